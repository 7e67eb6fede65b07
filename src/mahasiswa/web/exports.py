"""Answers with a file of records: writes it completely, a workbook in a helper, before its first byte is sent."""

import asyncio
import os
import tempfile
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import BinaryIO

from starlette.responses import Response

from mahasiswa.record import Mahasiswa
from mahasiswa.sheets import public as sheets
from mahasiswa.store.threads import in_thread
from mahasiswa.system.unfinished import unfinished
from mahasiswa.web.helpers import helper_task, in_messages
from mahasiswa.web.pages import Pages
from mahasiswa.web.request import ProblemPage
from mahasiswa.web.responses import Stream, chunks_of, unsent_file
from mahasiswa.web.service import Request


async def export_records(
    request: Request, pages: Pages, records: AsyncGenerator[Sequence[Mahasiswa]]
) -> Response:
    """Answer with a file of these records. The end of the path names the kind of the file.

    The read of the records, or the caller, holds a slot of EXPORT.
    """
    suffix = request.path[request.path.rindex(".") :]
    kind = sheets.EXPORTS[suffix]
    async with unsent_file() as file:
        if kind.needs_helper:
            async with aclosing(records):
                await _workbook(request, file, records)
        else:
            await in_thread(records, lambda found: kind.write(found, file))
        # It is complete before its first byte is sent, so no transaction waits for a slow client.
        length = str(file.seek(0, os.SEEK_END))
        headers = {**pages.download_headers(f"mahasiswa{suffix}"), "content-length": length}
        return Stream(request, chunks_of(file), headers, kind.media_type, file)


async def _workbook(
    request: Request, file: BinaryIO, chunks: AsyncGenerator[Sequence[Mahasiswa]]
) -> None:
    """Let a helper write a workbook to the file; raise ProblemPage if it cannot."""
    # This read waits for a slot, so the helper is started only when there is a slot.
    first: Sequence[Mahasiswa] = await anext(chunks, [])

    async def next_records(*_: object) -> Iterator[bytes]:
        nonlocal first
        found, first = first, []
        return in_messages(found or await anext(chunks, []))

    # If the helper is killed, XlsxWriter's files stay. They are removed with this folder. If this
    # worker is killed too, a later export removes them.
    private = unfinished(Path(tempfile.gettempdir()))
    folder = await asyncio.to_thread(private.__enter__)
    try:
        file.fileno()  # makes it a file on disk
        task = helper_task(request, "export_xlsx", folder=str(folder))
        await request.service.helpers.converse(task, (), next_records, file.fileno())
    except sheets.TooBig:  # the helper has died, or was too late
        raise ProblemPage("not read") from None
    finally:
        await asyncio.to_thread(private.__exit__, None, None, None)
