"""Fixtures and helpers for tests in Chromium: windows that record and answer dialogs.

All tests of a worker share one browser. While it runs, Playwright keeps an event loop in this thread, so coroutine tests
would be refused: conftest.py puts the modules with browser tests last.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from engines import empty
from harness import Page, Service
from playwright import sync_api
from playwright.sync_api import Browser, Locator, Response, expect
from processes import finished, run

from mahasiswa.settings import BOOTSTRAP
from mahasiswa.system.folder_lock import folder_lock

CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# No test may reach another machine, so no other name is resolved.
ARGUMENTS = ["--no-proxy-server", "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"]
NPM = Path(__file__).parents[1] / "npm"
SHEET = "bootstrap/dist/css/bootstrap.min.css"
TIMEOUT_MILLISECONDS = 120_000
# Options of `open_window`. A mobile window uses the viewport that a page sets.
PHONE = {"viewport": {"width": 375, "height": 667}, "is_mobile": True, "has_touch": True}


expect.set_options(timeout=TIMEOUT_MILLISECONDS)


class Window:
    """A browser window with its own profile.

    `last` is the answer that the page came with. `dialogs` are the texts of dialogs, each of which is answered with
    `answer`.
    """

    last: Response

    def __init__(self, context: sync_api.BrowserContext) -> None:
        self.answer = True
        self.dialogs: list[str] = []
        context.set_default_timeout(TIMEOUT_MILLISECONDS)
        self.page = context.new_page()
        self.page.on("dialog", self._answer_dialog)

    @property
    def rows(self) -> Locator:
        return self.page.locator("tbody tr")

    def open(self, path: str) -> None:
        """Open a path of the service without waiting for the CDN."""
        with self.leaving():
            self.page.goto(path, wait_until="commit")

    def records(self) -> list[tuple[str, ...]]:
        """Return the exact texts of the list."""
        return Page(self.page.content(), self.page.url).records

    def type(self, **fields: str) -> None:
        for name, value in fields.items():
            self.page.locator(f"input[name={name}]").fill(value)

    def press(self, button: str) -> None:
        """Press the first button of this name, which leads to another page."""
        with self.leaving():
            self.page.get_by_role("button", name=button, exact=True).first.click()

    @contextmanager
    def leaving(self) -> Iterator[None]:
        """Wait for the page to which the actions in the block lead."""
        with self.page.expect_navigation(wait_until="commit") as navigation:
            yield
        self.last = navigation.value
        # The link is the last element of every page. The document's "load" event would wait for the CDN.
        self.page.locator("link[rel=stylesheet]").wait_for(state="attached")

    def style(self, selector: str, name: str) -> str:
        script = "(element, name) => getComputedStyle(element).getPropertyValue(name)"
        return str(self.page.locator(selector).first.evaluate(script, name))

    def _answer_dialog(self, dialog: sync_api.Dialog) -> None:
        self.dialogs.append(f"{dialog.type}: {dialog.message}")
        (dialog.accept if self.answer else dialog.dismiss)()


OpenWindow = Callable[..., Window]
"""Takes `cdn=True` to reach the style sheet, and options of Playwright's `Browser.new_context`."""


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    installed = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if not installed:
        pytest.skip(f"no browser is installed: none of {', '.join(CHROMIUM)} is on the PATH")
    with sync_api.sync_playwright() as playwright:
        yield playwright.chromium.launch(
            executable_path=installed, args=ARGUMENTS, chromium_sandbox=os.geteuid() != 0
        )


@pytest.fixture(scope="session")
def node_modules() -> Path:
    """Install the packages of tests/npm once. Skip the test if npm cannot install them."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed, so Bootstrap, axe-core and html-validate are missing")
    with folder_lock(NPM):
        # Otherwise a package is missing, or has another version.
        if finished(npm, "ls", cwd=NPM).returncode != 0:
            try:
                run(npm, "ci", cwd=NPM)
            except AssertionError as error:
                pytest.skip(f"npm could not install the packages of tests/npm: {error}")
    return NPM / "node_modules"


@pytest.fixture
def open_window(
    request: pytest.FixtureRequest, chromium: Browser, service: Service
) -> Iterator[OpenWindow]:
    """Empty the list, and return a function that opens windows. No console of a window may report a problem."""
    empty(service)

    def opened(*, cdn: bool = False, **options: Any) -> Window:  # noqa: ANN401 - those of Playwright
        context = chromium.new_context(base_url=service.url, reduced_motion="reduce", **options)
        if cdn:
            sheet = request.getfixturevalue("node_modules") / SHEET
            headers = {"content-type": "text/css", "access-control-allow-origin": "*"}
            context.route(BOOTSTRAP, lambda route: route.fulfill(path=sheet, headers=headers))
        return Window(context)

    yield opened
    problems: list[object] = []
    for context in chromium.contexts:
        (page,) = context.pages
        problems += page.page_errors(filter="all")
        problems += [
            message.text
            for message in page.console_messages(filter="all")
            # Tests request pages with status 404, and style sheets that do not arrive.
            if not message.text.startswith("Failed to load resource")
            and message.type in {"error", "warning"}
        ]
        context.close()
    assert not problems, problems


@pytest.fixture
def window(open_window: OpenWindow) -> Window:
    """Open a window that cannot reach the CDN."""
    return open_window()


def each_look(window: Window) -> Iterator[str]:
    """Yield while the page has the CDN's style sheet, and again when it has lost it."""
    window.page.wait_for_load_state("load")
    assert window.style("html", "--bs-blue")
    yield "with the CDN"
    window.page.evaluate("document.querySelector('link[rel=stylesheet]').sheet.disabled = true")
    assert not window.style("html", "--bs-blue")
    yield "without the CDN"
