"""Receives a file or pasted cells on disk, and lets a child process read them into a stage.

The child reads a file of strangers, so it has no password and no database. Another one packs workbooks.
"""

import asyncio
import ipaddress
import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import BinaryIO, NamedTuple, TypeVar

from starlette.datastructures import FormData, Headers, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.responses import Response

from mahasiswa import wording
from mahasiswa.sheets import read
from mahasiswa.sheets import stage as stages
from mahasiswa.sheets.cells import TooHeavy
from mahasiswa.sheets.stage import Stage, Stale
from mahasiswa.store import Store
from mahasiswa.web.acts import Students, settle
from mahasiswa.web.forms import body_pieces, boundary_of
from mahasiswa.web.pages import Pages
from mahasiswa.web.request import Request
from mahasiswa.web.responses import ProblemPage
from mahasiswa.work import PREVIEW, STAGE, UPLOAD

FILE_MAX_BYTES = 16 << 20
PASTED_MAX_BYTES = 1 << 20
UPLOAD_FORM_BYTES = 64 << 10  # of an upload around its file
READ_TIMEOUT_SECONDS = 60.0
NAME_MAX_CHARACTERS = 255  # of a file; a longer name is cut

# A child gets only what Python needs, so it gets no password and no address of a database.
VARIABLES = ("PYTHONPATH", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE", "PATH", "LD_LIBRARY_PATH", "TMPDIR")  # fmt: skip

T = TypeVar("T")


@dataclass(eq=False)
class UploadRefused(Exception):
    """The upload cannot be read. The answer is its form with this sentence, and with the pasted text."""

    text: str
    pasted: str = ""


class Upload(NamedTuple):
    """A file, or pasted cells, which have no name."""

    file: BinaryIO
    name: str = ""
    pasted: str = ""


@asynccontextmanager
async def received(request: Request) -> AsyncIterator[Upload]:
    """The upload in the body of a request, until the end of the block; raise ProblemPage, Busy, UploadRefused."""
    with request.slots.place(UPLOAD, client_of(request)):
        form = await _parsed(request)
    try:
        file = form.get("berkas")
        if isinstance(file, UploadFile) and file.filename:
            if (file.size or 0) > FILE_MAX_BYTES:
                raise ProblemPage("file too large", FILE_MAX_BYTES)
            yield Upload(file.file, file.filename[:NAME_MAX_CHARACTERS])
            return
        pasted = str(form.get("tempel", ""))
        if not pasted.strip():
            raise UploadRefused(wording.NOTHING_CHOSEN[request.purpose])
        with tempfile.TemporaryFile() as text:
            text.write(pasted.encode())
            text.seek(0)
            yield Upload(text, pasted=pasted)
    finally:
        await form.close()


async def staged(
    request: Request,
    store: Store,
    pages: Pages,
    fill: Callable[[Stage], Awaitable[object]],
    name: str = "",
) -> Response:
    """Fill a new stage, compare it with the list, and lead to its page. If that fails, nothing is kept."""
    purpose = request.purpose
    create = partial(Stage.create, request.service.uploads, purpose, name, client_of(request))
    stage = await in_thread(request, create)
    students = Students(store, asyncio.get_running_loop())
    try:
        with stage:
            await fill(stage)
            await in_thread(request, partial(settle, stage, students))
    except BaseException:
        stages.remove(request.service.uploads, stage.path.name)
        raise
    return pages.redirect_to(f"/mahasiswa/{purpose}/{stage.path.name}")


async def read_into(
    request: Request,
    stage: Stage,
    version: int = 1,
    *,
    given: Upload | None = None,
    choice: stages.Choice | None = None,
) -> None:
    """Let a child process read an upload into a stage. With a choice of columns, it reads the rows that the stage keeps.

    Raise UploadRefused, Stale, TooHeavy, Busy and ProblemPage.
    """
    options = json.dumps({"version": version, "choice": choice})
    async with request.slots.slot(PREVIEW, READ_TIMEOUT_SECONDS):
        code = await run_child(
            read.__name__,
            str(stage.path),
            options,
            given=given and given.file,
            timeout_seconds=READ_TIMEOUT_SECONDS,
        )
    if code == stages.EXIT_STALE:
        raise Stale
    if code == stages.EXIT_DISK_FULL:
        raise ProblemPage("disk full")
    if code:
        raise TooHeavy
    if error := (await in_thread(request, stage.facts)).error:
        raise UploadRefused(error, given.pasted if given else "")


async def run_child(
    module: str,
    *arguments: str,
    given: BinaryIO | None = None,
    output: BinaryIO | None = None,
    timeout_seconds: float,
) -> int:
    """Run a module of ours with these files as its standard input and output; raise OSError.

    Return its exit code, which is negative if a signal has ended it. It is killed at the timeout, or if the caller is
    cancelled, and has ended on return.
    """
    nothing = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",  # take no module from the directory in which the service was started
        "-m",
        module,
        *arguments,
        stdin=given or nothing,
        stdout=output or nothing,
        stderr=nothing,
        env={name: os.environ[name] for name in VARIABLES if name in os.environ},
    )
    running = asyncio.create_task(process.wait())
    try:
        await asyncio.wait([running], timeout=timeout_seconds)
    finally:
        with suppress(ProcessLookupError):  # it has ended
            process.kill()
        code = await running
    return code


async def stage_of(request: Request) -> Stage:
    """The stage that the path of a request names; raise Gone."""
    find = partial(Stage.find, request.service.uploads, request.parameter, request.purpose)
    return await in_thread(request, find)


async def in_thread(request: Request, work: Callable[[], T]) -> T:
    """Do a step with a stage in a thread, with the person of the request for the history."""
    return await request.slots.run(STAGE, partial(copy_context().run, work))


def client_of(request: Request) -> str:
    """The address of a client. An IPv6 address stands for its network, because one client may have all of it."""
    address = request.address
    return str(ipaddress.ip_network(f"{address}/64", strict=False)) if ":" in address else address


async def _parsed(request: Request) -> FormData:
    # Without the client's charset, which would choose the codec of all texts.
    content_type = f'multipart/form-data; boundary="{boundary_of(request)}"'
    longest = FILE_MAX_BYTES + UPLOAD_FORM_BYTES
    async with aclosing(body_pieces(request, longest, "file too large")) as pieces:
        parser = MultiPartParser(
            Headers({"content-type": content_type}),
            pieces,
            max_files=1,
            max_fields=2,
            max_part_size=PASTED_MAX_BYTES,
        )
        try:
            return await parser.parse()
        except MultiPartException as error:
            if "exceeded" in error.message:
                raise ProblemPage("too large", PASTED_MAX_BYTES) from None
            raise ProblemPage("bad request") from None
