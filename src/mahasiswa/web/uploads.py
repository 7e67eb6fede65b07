"""Receives a file or pasted cells on disk, and lets a child process read them into a stage."""

import asyncio
import errno
import ipaddress
import json
import os
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO, NamedTuple, TypeVar

from starlette.datastructures import FormData, Headers, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

from mahasiswa import wording
from mahasiswa.record import Mahasiswa, near_key
from mahasiswa.sheets import stage as stages
from mahasiswa.sheets.cells import TooHeavy
from mahasiswa.sheets.stage import Purpose, Stage, Stale
from mahasiswa.store import Reader
from mahasiswa.web.child import Late, run_child
from mahasiswa.web.forms import body_pieces, boundary_of
from mahasiswa.web.request import BareRequest, ProblemPage
from mahasiswa.work import PREVIEW, STAGE, slices

FILE_MAX_BYTES = 16 << 20
PASTED_MAX_BYTES = 1 << 20
PASTED_SHOWN_MAX_BYTES = 64 << 10  # of a pasted text that is repeated after it was refused
UPLOAD_FORM_BYTES = 64 << 10  # of an upload around its file
UPLOAD_TIMEOUT_SECONDS = 600.0
READ_TIMEOUT_SECONDS = 60.0
SPOOLED_MIN_BYTES = 64 << 10  # a longer file is on the disk while it arrives
NAME_MAX_CHARACTERS = 255  # of a file; a longer name is cut

T = TypeVar("T")

NEAR_MAX_RECORDS = 20_000  # stored NIMs that are nearly those of an upload
READ_NIMS = 500  # in one read of the list

READER = "mahasiswa.sheets.read"


@dataclass(eq=False)
class UploadRefused(Exception):
    """The upload cannot be read. The answer is its form with this sentence, and with the pasted text."""

    text: str
    status: int = 400
    pasted: str = ""


class Upload(NamedTuple):
    """A file, or pasted cells, which have no name."""

    file: BinaryIO
    name: str = ""
    pasted: str = ""


@asynccontextmanager
async def received(request: BareRequest, purpose: Purpose) -> AsyncIterator[Upload]:
    """The upload in the body of a request, until the end of the block; raise ProblemPage, Busy, UploadRefused."""
    with request.limits.arriving_uploads.one(client_of(request)):
        try:
            async with asyncio.timeout(UPLOAD_TIMEOUT_SECONDS):
                form = await _parsed(request)
        except TimeoutError:
            raise ProblemPage("too slow") from None
    try:
        file = form.get("berkas")
        if isinstance(file, UploadFile) and file.filename:
            if (file.size or 0) > FILE_MAX_BYTES:
                raise ProblemPage("file too large", FILE_MAX_BYTES)
            yield Upload(file.file, _utf8(file.filename)[:NAME_MAX_CHARACTERS])
            return
        pasted = str(form.get("tempel", ""))
        if not pasted.strip():
            raise UploadRefused(wording.NOTHING_CHOSEN[purpose])
        with tempfile.TemporaryFile() as text:
            text.write(pasted.encode("latin-1"))
            text.seek(0)
            is_short = len(pasted) <= PASTED_SHOWN_MAX_BYTES
            yield Upload(text, pasted=_utf8(pasted) if is_short else "")
    finally:
        await form.close()


async def staged(
    request: BareRequest,
    folder: Path,
    purpose: Purpose,
    upload: Upload,
    compare: Callable[[Stage, int], Awaitable[object]],
) -> str:
    """Read an upload into a new stage, and compare it with the list; return its identifier.

    Raise UploadRefused, TooHeavy, Busy and OSError. Then nothing is kept.
    """
    run = partial(request.limits.slots.run, STAGE)
    address = client_of(request)
    stage = await run(partial(Stage.create, folder, purpose, upload.name, address))
    try:
        with stage:
            options = {"purpose": purpose, "pasted": not upload.name, "version": 1, "choice": None}
            await read_into(request, stage, options, upload.file)
            facts = await run(stage.facts)
            _refuse(facts.error, upload.pasted)
            await compare(stage, facts.version)
    except BaseException:
        stages.remove(folder, stage.path.name)
        raise
    return stage.path.name


async def read_into(
    request: BareRequest, stage: Stage, options: object, file: BinaryIO | None = None
) -> None:
    """Let a child process fill a stage; raise Stale, TooHeavy, Busy and OSError. See read.py for the options."""
    async with request.limits.slots.slot(PREVIEW, READ_TIMEOUT_SECONDS):
        try:
            code = await run_child(
                READER,
                str(stage.path),
                json.dumps(options),
                given=file,
                timeout_seconds=READ_TIMEOUT_SECONDS,
            )
        except Late:
            raise TooHeavy from None
    if code == stages.EXIT_STALE:
        raise Stale
    if code == stages.EXIT_DISK_FULL:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(stage.path))
    if code:
        raise TooHeavy


async def in_thread(request: BareRequest, work: Callable[[], T]) -> T:
    """Do a step with a stage."""
    return await request.limits.slots.run(STAGE, work)


async def note_near(request: BareRequest, reader: Reader, stage: Stage) -> None:
    """Note a stored record with nearly the NIM of each line that has none, in the stage. Raise what a read raises."""
    nims = await in_thread(request, partial(stage.column, "nims_without_near"))
    keys = sorted({near_key(nim) for nim in nims} - {""})
    near: dict[str, Mahasiswa] = {}
    for found in slices(await reader.near(keys, NEAR_MAX_RECORDS) if keys else [], READ_NIMS):
        stored = await reader.find(found)
        near |= {near_key(nim): record for nim, record in stored.items()}
    pairs = [(nim, *near.get(near_key(nim), ("", None))[:2]) for nim in nims]
    await in_thread(request, partial(stage.do, "note_near", pairs))


def client_of(request: BareRequest) -> str:
    """The address of a client. An IPv6 address stands for its network, because one client may have all of it."""
    address = request.connection.address()
    return str(ipaddress.ip_network(f"{address}/64", strict=False)) if ":" in address else address


def _refuse(error: str, pasted: str) -> None:
    """Raise UploadRefused if there is an error."""
    if error:
        raise UploadRefused(error, pasted=pasted)


async def _parsed(request: BareRequest) -> FormData:
    # The client's charset would choose the codec of all texts. ISO 8859-1 keeps every byte.
    content_type = f'multipart/form-data; charset=latin-1; boundary="{boundary_of(request)}"'
    longest = FILE_MAX_BYTES + UPLOAD_FORM_BYTES
    async with aclosing(body_pieces(request, longest, "file too large")) as pieces:
        parser = MultiPartParser(
            Headers({"content-type": content_type}),
            pieces,
            max_files=1,
            max_fields=2,
            max_part_size=PASTED_MAX_BYTES,
        )
        parser.spool_max_size = SPOOLED_MIN_BYTES
        try:
            return await parser.parse()
        except MultiPartException as error:
            if "exceeded" in error.message:
                raise ProblemPage("too large", PASTED_MAX_BYTES) from None
            raise ProblemPage("bad request") from None


def _utf8(text: str) -> str:
    """The text whose bytes are the characters of this one."""
    return text.encode("latin-1").decode(errors="replace")
