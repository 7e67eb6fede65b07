"""Answers with a file of records: writes it completely, a workbook in a child process, before its first byte is sent."""

import json
import os
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, BinaryIO

from starlette.responses import Response, StreamingResponse

from mahasiswa import wording
from mahasiswa.record import Mahasiswa, groups
from mahasiswa.sheets import export as workbook
from mahasiswa.store import Query
from mahasiswa.web.list_html import BODY_ROWS, RowFormat, format_bodies, packed, printed_row, shown
from mahasiswa.web.list_query import PRINTED_MAX_ROWS, Printout
from mahasiswa.web.pages import Pages
from mahasiswa.web.request import Request
from mahasiswa.web.responses import ProblemPage, chunks_of
from mahasiswa.web.uploads import run_child
from mahasiswa.work import EXPORT

WORKBOOK_TIMEOUT_SECONDS = 300.0
PIECE_CHARACTERS = 16 * 1024  # a line with several records ends after so many characters

Export = Callable[..., Awaitable[Any]]
"""Calls a function in a thread with records, and returns its result. It holds a slot of EXPORT."""


async def export_records(
    request: Request,
    pages: Pages,
    export: Export,
    stem: str = "mahasiswa",
    titles: Sequence[str] = wording.HEADER,
) -> Response:
    """Answer with a file of these records: CSV if the path says so, or else a workbook. `stem` begins its name."""
    ending = ".csv" if ".csv" in request.path else ".xlsx"
    kind = workbook.EXPORTS[ending]
    file = request.unsent_file()
    if kind.needs_child:
        with tempfile.TemporaryFile() as lines:
            await export(partial(_write_lines, lines))
            await _pack(request, lines, file, titles)
    else:
        await export(lambda records: kind.write(records, file))
    # It is complete before its first byte is sent, so no transaction waits for a slow client.
    headers = {
        **pages.download_headers(f"{stem}{ending}"),
        "content-length": str(file.seek(0, os.SEEK_END)),
    }
    return StreamingResponse(chunks_of(file), 200, headers, kind.media_type)


async def print_records(
    request: Request,
    pages: Pages,
    export: Export,
    query: Query,
    selection: str = "",
) -> Response:
    """A page to print these records of a search or of a `selection`, with the layout in the URL's query."""
    printout = Printout.of(request.query_params)
    file = request.unsent_file()
    total: int = await export(partial(_write_rows, file, printed_row(printout)))
    count = min(total, PRINTED_MAX_ROWS)
    frame = pages.print_frame(query, total, count, printout, selection)
    headers = {**pages.headers, **(pages.not_stored if selection else {})}
    return StreamingResponse(chunks_of(file, *frame), 200, headers, "text/html")


def _write_rows(file: BinaryIO, row: RowFormat, records: Iterator[Mahasiswa]) -> int:
    """Write the rows of a printout; return the number of all records."""
    total = 0
    while chunk := list(islice(records, BODY_ROWS)):
        cells = packed(list(map(shown, chunk[: max(0, PRINTED_MAX_ROWS - total)])))
        file.writelines(format_bodies(row, cells, total + 1, b""))
        total += len(chunk)
    file.flush()  # so a full disk is noticed before the answer
    return total


def _write_lines(file: BinaryIO, records: Iterator[Sequence[str]]) -> None:
    """Write the records as lines, each a JSON array of some of them."""
    pieces = groups(records, PIECE_CHARACTERS)
    file.writelines(json.dumps(piece, ensure_ascii=False).encode() + b"\n" for piece in pieces)
    file.seek(0)


async def _pack(request: Request, lines: BinaryIO, file: BinaryIO, titles: Sequence[str]) -> None:
    """Let a child write a workbook to the file; raise ProblemPage if it cannot."""
    with tempfile.TemporaryDirectory() as folder:
        async with request.slots.slot(EXPORT, WORKBOOK_TIMEOUT_SECONDS):
            code = await run_child(
                workbook.__name__,
                folder,
                *titles,
                given=lines,
                output=file,
                timeout_seconds=WORKBOOK_TIMEOUT_SECONDS,
            )
    if code == workbook.NOT_CARRIED:
        file.seek(0)
        raise ProblemPage("not carried", text=file.read().decode())
    if code:
        raise ProblemPage("disk full" if code == workbook.DISK_FULL else "not read")
