"""A real service in a process of its own, and a visitor who reads its pages and sends its forms as a browser does."""

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self
from urllib.parse import quote, urlencode, urlsplit

import httpx
from selectolax.lexbor import LexborHTMLParser, LexborNode

SETTINGS = (
    "HOST",
    "PORT",
    "DATABASE_URL",
    "BASE_URL",
    "CDN_URL",
    "CDN_INTEGRITY",
    "WORKERS",
    "LOG_LEVEL",
    "SAME_ORIGIN_ONLY",
)
START_SECONDS = 15.0
STOP_SECONDS = 10.0
URL_ENCODED = "application/x-www-form-urlencoded"

Fields = Mapping[str, str] | Sequence[tuple[str, str]]


class StartError(Exception):
    """The service ended, with exit code `code` and having written `stderr`, before it answered."""

    def __init__(self, code: int, stderr: str) -> None:
        super().__init__(f"the service ended with exit code {code} before it answered; standard error:\n{stderr}")
        self.code = code
        self.stderr = stderr


class Service:
    """`python -m mahasiswa` on a free port of 127.0.0.1, in a process group of its own.

    `database` is the path of an SQLite file or a whole DATABASE_URL. `environment` sets further variables; None takes
    one away, so that the service's own default holds. Raises `StartError` where the process ends instead of answering.
    """

    def __init__(
        self, database: Path | str, environment: Mapping[str, str | None] | None = None, *, cwd: Path | None = None
    ) -> None:
        url = f"sqlite:///{database.absolute()}" if isinstance(database, Path) else database
        chosen: dict[str, str | None] = {"HOST": "127.0.0.1", "PORT": str(free_port()), "DATABASE_URL": url}
        chosen |= environment or {}
        port = chosen["PORT"] or "3000"
        # A test may set a wrong one, to see it refused.
        self.port = int(port) if re.fullmatch("[0-9]{1,5}", port) and int(port) < 65536 else 0
        prefix = urlsplit(chosen.get("BASE_URL") or "").path.rstrip("/")
        self.url = f"http://127.0.0.1:{self.port}{prefix}"
        inherited = {name: value for name, value in os.environ.items() if name not in SETTINGS}
        self._environment = inherited | {name: value for name, value in chosen.items() if value is not None}
        self._cwd = cwd
        # Files, because a pipe that nobody reads fills up and stops the process that writes to it.
        with ExitStack() as files:
            self._stdout = files.enter_context(tempfile.TemporaryFile())
            self._stderr = files.enter_context(tempfile.TemporaryFile())
            self._files = files.pop_all()
        self._start()

    @property
    def pid(self) -> int:
        """The process id of the main process, which is also the id of the process group."""
        return self._process.pid

    def client(self) -> httpx.Client:
        """Return a client for this service's address; it keeps no redirect and asks no proxy."""
        return client(self.url)

    def site(self) -> "Site":
        """Return a visitor to this service."""
        return Site(self.url)

    def raw(self, data: bytes, seconds: float = 5.0) -> bytes:
        """Send bytes exactly as they are; return all that comes back until the end of the connection or the time."""
        received = b""
        with (
            socket.create_connection(("127.0.0.1", self.port), seconds) as connection,
            suppress(TimeoutError, ConnectionResetError),
        ):
            connection.sendall(data)
            deadline = time.monotonic() + seconds
            while (left := deadline - time.monotonic()) > 0:
                connection.settimeout(left)
                if not (part := connection.recv(65536)):
                    break
                received += part
        return received

    def stdout(self) -> str:
        """Return what the service has written to its standard output so far."""
        return _written(self._stdout.fileno())

    def stderr(self) -> str:
        """Return what the service has written to its standard error so far."""
        return _written(self._stderr.fileno())

    def stop(self) -> int:
        """End the service with SIGTERM and return its exit code."""
        self._process.terminate()
        try:
            return self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise

    def kill(self) -> None:
        """End the service and all its workers with SIGKILL, as a power failure would."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()
        # A worker that is writing to a disk dies a moment later, and holds the port until then.
        deadline = time.monotonic() + STOP_SECONDS
        while self._listens() and time.monotonic() < deadline:
            time.sleep(0.01)

    def restart(self) -> None:
        """Start the service anew on the same port and database, stopping it first where it still runs."""
        if self._process.poll() is None:
            self.stop()
        self._start()

    def close(self) -> None:
        """End whatever still runs and give the files back."""
        if self._process.poll() is None:
            self.kill()
        self._files.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _start(self) -> None:
        taken = self._listens()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "mahasiswa"],
            cwd=self._cwd,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=self._stdout,
            stderr=self._stderr,
            start_new_session=True,
        )
        try:
            # Whoever had the port would answer in this one's place, so that only its end can be waited for.
            self._wait_for_an_answer(START_SECONDS if taken else 0.02)
        except BaseException:
            self.close()
            raise

    def _wait_for_an_answer(self, pause: float) -> None:
        path = urlsplit(self.url).path
        question = f"GET {path}/ HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nConnection: close\r\n\r\n".encode()
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            with suppress(subprocess.TimeoutExpired):
                raise StartError(self._process.wait(pause), self.stderr())
            with suppress(OSError):
                if time.monotonic() < deadline and self.raw(question).startswith(b"HTTP/"):
                    return
        raise TimeoutError(f"neither an answer at {self.url} nor an end; standard error:\n{self.stderr()}")

    def _listens(self) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
            return True
        return False


class Input(NamedTuple):
    """An input of a form, with what the page says about it."""

    name: str
    type: str
    value: str
    required: bool
    readonly: bool
    disabled: bool


class Form(NamedTuple):
    """A form: `action` as the page writes it, `target` as a browser would ask for it, `submit` its button's text."""

    method: str
    action: str
    target: str
    enctype: str
    inputs: tuple[Input, ...]
    labels: tuple[str, ...]
    submit: str

    @property
    def text_inputs(self) -> list[Input]:
        """The single-line text inputs, in the order of the page."""
        return [field for field in self.inputs if field.type == "text"]

    @property
    def values(self) -> dict[str, str]:
        """What a browser sends where nothing is typed."""
        return {field.name: field.value for field in self.inputs if field.name and not field.disabled}


class Link(NamedTuple):
    """A link: `href` as the page writes it, `target` as a browser would ask for it."""

    text: str
    href: str
    target: str


class Row(NamedTuple):
    """A row of the list: the texts of its cells to the byte, and what its cells hold."""

    cells: tuple[str, ...]
    links: tuple[Link, ...]
    forms: tuple[Form, ...]


class Page:
    """An HTML page as a browser reads it; every text is exact, white space and line ends included."""

    def __init__(self, html: str, url: str) -> None:
        self.html = html
        self.url = url
        self.tree = LexborHTMLParser(html)

    @property
    def title(self) -> str:
        """The title of the document."""
        return self._texts("head > title")[0]

    @property
    def headings(self) -> list[str]:
        """The texts of all headings, without white space around them."""
        return [text.strip() for text in self._texts("h1, h2, h3, h4, h5, h6")]

    @property
    def stylesheets(self) -> list[str]:
        """The addresses of the style sheets, as the page writes them."""
        return [_attribute(node, "href") for node in self.tree.css("link[rel~=stylesheet]")]

    @property
    def links(self) -> list[Link]:
        """Every link of the page."""
        return [self._link(node) for node in self.tree.css("a[href]")]

    @property
    def forms(self) -> list[Form]:
        """Every form of the page."""
        return [self._form(node) for node in self.tree.css("form")]

    @property
    def columns(self) -> list[str]:
        """The header of the table, without white space around the words."""
        header = self.tree.css_first("table tr", strict=False)
        return [cell.text().strip() for cell in header.css("th, td")] if header else []

    @property
    def table(self) -> list[Row]:
        """The rows of the table's body."""
        return [self._row(node) for node in self.tree.css("tbody > tr") if node.css("td")]

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """The rows of the table's body as tuples (no, nim, nama, alamat)."""
        return [row.cells[:4] for row in self.table]

    @property
    def record_form(self) -> Form:
        """The one form in which a record is typed."""
        (form,) = [form for form in self.forms if "alamat" in form.values]
        return form

    @property
    def nims(self) -> list[str]:
        """The nims of all rows; a row of one cell, as some pages show for an empty list, has none."""
        return [nim for row in self.table for nim in row.cells[1:2]]

    def row(self, nim: str) -> Row:
        """Return the row of exactly this nim, of which there must be one."""
        found = [row for row in self.table if row.cells[1:2] == (nim,)]
        assert len(found) == 1, f"{nim!r} stands {len(found)} times in the list"
        return found[0]

    def _texts(self, selector: str) -> list[str]:
        return [node.text() for node in self.tree.css(selector)]

    def _row(self, node: LexborNode) -> Row:
        return Row(
            tuple(cell.text() for cell in node.css("td, th")),
            tuple(self._link(link) for link in node.css("a[href]")),
            tuple(self._form(form) for form in node.css("form")),
        )

    def _link(self, node: LexborNode) -> Link:
        href = _attribute(node, "href")
        return Link(node.text().strip(), href, browser_target(self.url, href))

    def _form(self, node: LexborNode) -> Form:
        action = _attribute(node, "action")
        buttons = [button.text().strip() for button in node.css("button:not([type]), button[type=submit]")]
        buttons += [_attribute(button, "value") for button in node.css("input[type=submit]")]
        return Form(
            (_attribute(node, "method") or "get").lower(),
            action,
            browser_target(self.url, action),
            _attribute(node, "enctype") or URL_ENCODED,
            tuple(_input(field) for field in node.css("input:not([type=submit])")),
            tuple(label.text().strip() for label in node.css("label")),
            buttons[0] if buttons else "",
        )


class Site:
    """A visitor to any implementation at `url`, whose path, if any, stands before every path of the specification.

    A target is sent exactly as it is given: nothing is normalised.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.origin = f"{parts.scheme}://{parts.netloc}"
        self.prefix = parts.path.rstrip("/")
        self.client = client(self.origin)

    def path(self, path: str, nim: str | None = None) -> str:
        """Return the target of a path of the specification; a nim becomes its last segment, fully encoded."""
        return self.prefix + path + ("" if nim is None else quote(nim, safe=""))

    def send(self, method: str, target: str, body: bytes | None = None, **headers: str) -> httpx.Response:
        """Send one request; a header's name is written with `_` for `-`."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.client.request(method, "/", content=body, headers=named, extensions={"target": target.encode()})

    def get(self, target: str) -> httpx.Response:
        """Ask for a target."""
        return self.send("GET", target)

    def post(self, target: str, fields: Fields = ()) -> httpx.Response:
        """Send fields as an HTML form does."""
        return self.send("POST", target, urlencode(fields).encode(), content_type=URL_ENCODED)

    def page(self, target: str) -> Page:
        """Return the page at a target, which must answer 200."""
        answer = self.get(target)
        assert answer.status_code == 200, f"GET {target} answers {answer.status_code}"
        return Page(answer.text, self.origin + target)

    def submit(self, form: Form, **typed: str) -> httpx.Response:
        """Send a form, with what was typed into its inputs."""
        assert form.method == "post"
        return self.post(form.target, form.values | typed)

    def list(self) -> Page:
        """Return the list page."""
        return self.page(self.path("/"))

    def add(self, nim: str, nama: str, alamat: str) -> httpx.Response:
        """Add a record without opening the page first."""
        return self.post(self.path("/mahasiswa/add"), {"nim": nim, "nama": nama, "alamat": alamat})

    def edit(self, nim: str, nama: str, alamat: str) -> httpx.Response:
        """Edit a record without opening the page first."""
        return self.post(self.path("/mahasiswa/edit/", nim), {"nama": nama, "alamat": alamat})

    def delete(self, nim: str) -> httpx.Response:
        """Delete a record without being asked."""
        return self.post(self.path("/mahasiswa/delete/", nim))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.client.close()


def client(url: str) -> httpx.Client:
    """Return a client that follows no redirect and asks no proxy."""
    return httpx.Client(base_url=url, follow_redirects=False, trust_env=False, verify=url.startswith("https:"))


def free_port() -> int:
    """Return a port of 127.0.0.1 that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def browser_target(page_url: str, href: str) -> str:
    """Return the request target for a link of a page as the URL standard has it, or the whole URL of another site.

    Dot segments are resolved, also percent-encoded ones; slashes are never merged and nothing is decoded.
    """
    page = urlsplit(page_url)
    origin = f"{page.scheme}://{page.netloc}"
    href = re.sub(r"[\t\n\r]", "", href.strip("".join(map(chr, range(33))))).partition("#")[0]
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:|//", href):
        if not href.startswith(origin + "/"):
            return href
        href = href.removeprefix(origin)
    path, mark, query = href.partition("?")
    path = path.replace("\\", "/") or page.path
    if not path.startswith("/"):
        path = page.path.rpartition("/")[0] + "/" + path
    kept: list[str] = []
    dots = ""
    for segment in path.split("/")[1:]:
        dots = segment.lower().replace("%2e", ".")
        if dots == "..":
            kept[-1:] = []
        elif dots != ".":
            kept.append(segment)
    if dots in {".", ".."}:
        kept.append("")
    return quote("/" + "/".join(kept) + mark + query, safe="!#$%&'()*+,/:;=?@[\\]^|~")


def _attribute(node: LexborNode, name: str) -> str:
    return node.attributes.get(name) or ""


def _input(node: LexborNode) -> Input:
    return Input(
        _attribute(node, "name"),
        (_attribute(node, "type") or "text").lower(),
        _attribute(node, "value"),
        *(mark in node.attributes for mark in ("required", "readonly", "disabled")),
    )


def _written(file: int) -> str:
    # Read at a position: the child shares the file's offset, and seeking would move where it writes.
    return os.pread(file, os.fstat(file).st_size, 0).decode("utf-8", "replace")
