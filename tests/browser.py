"""Chromium in a person's hands: windows that count what they send and hear what the browser complains about.

The browser is started anew for each test module: Playwright leaves its event loop running in this thread for as long as
it lives, and `asyncio.run` in another module's tests would be refused.
"""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Literal, Protocol
from urllib.parse import urlsplit

import pytest
from harness import Service, Site
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Locator,
    Request,
    Response,
    Route,
    sync_playwright,
)

CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHROMIUM_ON_MACOS = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
ARGUMENTS = (
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # No test reaches beyond this machine: no other name is found.
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    "--no-proxy-server",
)
NPM = Path(__file__).parent / "npm"
NPM_SECONDS = 180.0
MILLISECONDS = 10_000
DESKTOP = (1280, 800)
PHONE = (375, 667)

Network = Literal["answers", "unreachable", "hangs"]
"""What the delivery network does when a page asks it for the style sheet."""

HEAR_VIOLATIONS = """
document.addEventListener("securitypolicyviolation", event =>
  console.error(`policy violated: ${event.effectiveDirective} ${event.blockedURI} ${event.sample}`))
"""


class Window:
    """A browser window of one person, with an own profile.

    `requests` are those to the service, as `POST /mahasiswa/add`; `foreign` the addresses elsewhere; `dialogs` the texts
    asked, each answered with `answer`; `problems` what the console says of scripts and policies.
    """

    def __init__(self, context: BrowserContext, url: str) -> None:
        self.url = url
        self.requests: list[str] = []
        self.foreign: list[str] = []
        self.dialogs: list[str] = []
        self.problems: list[str] = []
        self.answer = True
        self._last: Response | None = None
        context.set_default_timeout(MILLISECONDS)
        context.add_init_script(HEAR_VIOLATIONS)
        self.page = context.new_page()
        self.page.on("request", self._count)
        self.page.on("response", self._keep)
        self.page.on("dialog", self._reply)
        self.page.on("console", self._hear)
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))

    @property
    def posts(self) -> list[str]:
        """The targets of all POSTs sent so far."""
        return [target for method, target in map(str.split, self.requests) if method == "POST"]

    @property
    def rows(self) -> Locator:
        """The rows of the list."""
        return self.page.locator("tbody tr")

    def open(self, path: str) -> int:
        """Open a path of the service, without waiting for the delivery network; return the status."""
        answer = self.page.goto(self.url + path, wait_until="commit")
        assert answer is not None
        self._read()
        return answer.status

    def reload(self) -> None:
        """Refresh the page."""
        self.page.reload(wait_until="commit")
        self._read()

    def row(self, nim: str) -> Locator:
        """Return the row of exactly this nim, which must be there: a locator of its own would trim the text."""
        nims = self.page.locator("tbody td:nth-child(2)").evaluate_all("cells => cells.map(cell => cell.textContent)")
        assert nims.count(nim) == 1, f"{nim!r} stands {nims.count(nim)} times in the list: {nims!r}"
        return self.rows.nth(nims.index(nim))

    def cells(self) -> list[list[str]]:
        """Return the texts of the list, nim, nama and alamat, to the byte."""
        script = "rows => rows.map(row => [...row.cells].slice(1, 4).map(cell => cell.textContent))"
        rows: list[list[str]] = self.rows.evaluate_all(script)
        return rows

    def type(self, **fields: str) -> None:
        """Type into fields of the form, replacing what is there."""
        for name, value in fields.items():
            self.page.locator(f"input[name={name}]").fill(value)

    def save(self) -> None:
        """Press the form's button and wait for what the service answers."""
        with self.leaving():
            self.page.get_by_role("button", name="Simpan", exact=True).click()

    @contextmanager
    def leaving(self) -> Iterator[None]:
        """Wait for the page that what is done here leads to."""
        with self.page.expect_navigation(wait_until="commit"):
            yield
        self._read()

    def source(self) -> str:
        """Return the HTML of the page as the service sent it."""
        assert self._last is not None
        return self._last.text()

    def style(self, selector: str, name: str) -> str:
        """Return a computed property of the first element of a selector."""
        return str(self.page.locator(selector).first.evaluate("(e, name) => getComputedStyle(e)[name]", name))

    def _read(self) -> None:
        # The last element of every page. The document is not "loaded" for as long as the delivery network hangs.
        self.page.locator("link[rel=stylesheet]").wait_for(state="attached")

    def _count(self, request: Request) -> None:
        if request.url.startswith(self.url):
            parts = urlsplit(request.url)
            self.requests.append(f"{request.method} {parts.path}{'?' if parts.query else ''}{parts.query}")
        elif not request.url.startswith("data:"):
            self.foreign.append(request.url)

    def _keep(self, response: Response) -> None:
        if response.request.is_navigation_request():
            self._last = response

    def _reply(self, dialog: Dialog) -> None:
        self.dialogs.append(f"{dialog.type}: {dialog.message}")
        if self.answer:
            dialog.accept()
        else:
            dialog.dismiss()

    def _hear(self, message: ConsoleMessage) -> None:
        # A page of status 404 and a sheet that does not come are what those tests ask for.
        if message.type in {"error", "warning"} and not message.text.startswith("Failed to load resource"):
            self.problems.append(message.text)


class OpenWindow(Protocol):
    """Opens a window on the service; further arguments are those of Playwright's `Browser.new_context`."""

    def __call__(
        self,
        network: Network = "unreachable",
        size: tuple[int, int] = DESKTOP,
        *,
        url: str = "",
        sheet: bytes | None = None,
        **options: Any,  # noqa: ANN401 - as new_context
    ) -> Window:
        """Open it at `url`, the module's own service unless given; `sheet` is what the network answers."""


@pytest.fixture(scope="module", name="chromium")
def start_chromium() -> Iterator[Browser]:
    """Start the installed Chromium, or skip where there is none."""
    with ExitStack() as stack:
        playwright = stack.enter_context(sync_playwright())
        arguments = [*ARGUMENTS, *(["--no-sandbox"] if _is_root() else [])]
        browser = playwright.chromium.launch(executable_path=_chromium(), args=arguments)
        stack.callback(browser.close)
        yield browser


@pytest.fixture(scope="module", name="node_modules")
def install_node_modules(request: pytest.FixtureRequest) -> Path:
    """Install the packages of tests/npm, once a machine, or skip where npm cannot."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed: no Bootstrap, axe-core and html-validate to test with")
    assert request.config.cache is not None
    return _installed(npm, request.config.cache.mkdir("npm"))


@pytest.fixture(name="site")
def empty_site(service: Service) -> Iterator[Site]:
    """Visit the module's service without a browser, and begin with an empty list."""
    with service.site() as site:
        for nim in site.list().nims:
            site.delete(nim)
        yield site


@pytest.fixture(name="open_window")
def window_opener(
    request: pytest.FixtureRequest, chromium: Browser, service: Service, site: Site
) -> Iterator[OpenWindow]:
    """Open windows that are closed after the test; one whose console complained fails it."""
    assert site, "begin with an empty list"
    with ExitStack() as stack:
        windows: list[Window] = []

        def open_window(
            network: Network = "unreachable",
            size: tuple[int, int] = DESKTOP,
            *,
            url: str = "",
            sheet: bytes | None = None,
            **options: Any,  # noqa: ANN401 - as new_context
        ) -> Window:
            if network == "answers":
                sheet = sheet or bootstrap(request.getfixturevalue("node_modules"))
            options = {"viewport": {"width": size[0], "height": size[1]}, "reduced_motion": "reduce", **options}
            context = stack.enter_context(_context(chromium, options))
            url = url or service.url
            if network != "unreachable":
                context.route(re.compile(f"^(?!{re.escape(url)})"), partial(_deliver, sheet))
            windows.append(Window(context, url))
            return windows[-1]

        yield open_window
    assert [problem for window in windows for problem in window.problems] == []


@pytest.fixture(name="window")
def one_window(open_window: OpenWindow) -> Window:
    """Open a window for which the delivery network is out of reach."""
    return open_window()


def bootstrap(node_modules: Path) -> bytes:
    """Return the style sheet that the pages link to, from its npm package."""
    return (node_modules / "bootstrap" / "dist" / "css" / "bootstrap.min.css").read_bytes()


def contrast(one: str, other: str) -> float:
    """Return the contrast of two computed colours, from 1 to 21, as WCAG 2.2 defines it."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: str) -> float:
    """Return the relative luminance of a computed colour, from 0 (black) to 1 (white), as WCAG 2.2 defines it."""
    assert colour.startswith("rgb("), f"{colour} is not opaque"
    channels = [int(part) / 255 for part in colour.removeprefix("rgb(").removesuffix(")").split(",")]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def run(command: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:  # noqa: ANN401 - as run
    """Run a command to its end and return what it wrote."""
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=NPM_SECONDS, **options)


def _chromium() -> str:
    installed = [path for name in CHROMIUM if (path := shutil.which(name))]
    installed += [path for path in CHROMIUM_ON_MACOS if Path(path).exists()]
    if not installed:
        pytest.skip(f"no browser is installed: none of {', '.join(CHROMIUM)} is on the PATH")
    return installed[0]


def _is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0


def _installed(npm: str, cache: Path) -> Path:
    """Install into a folder that gets its name only when it is whole: another run may look for it meanwhile."""
    place = cache / hashlib.sha256((NPM / "package-lock.json").read_bytes()).hexdigest()
    if not place.exists():
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            copy = shutil.copytree(NPM, Path(folder) / "npm")
            done = run([npm, "ci"], cwd=copy)
            if done.returncode:
                pytest.skip(f"npm could not install the packages of tests/npm: {done.stderr.strip()}")
            with suppress(FileExistsError):
                copy.replace(place)
    return place / "node_modules"


@contextmanager
def _context(chromium: Browser, options: dict[str, Any]) -> Iterator[BrowserContext]:
    context = chromium.new_context(**options)
    try:
        yield context
    finally:
        context.close()


def _deliver(sheet: bytes | None, route: Route) -> None:
    """Answer with the sheet in the place of the delivery network, or never where there is none."""
    if sheet is not None:
        route.fulfill(body=sheet, headers={"content-type": "text/css", "access-control-allow-origin": "*"})
