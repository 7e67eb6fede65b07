"""Fixtures for tests in Chromium: `window` and `open_window` are pages of Playwright.

All tests of a worker share one browser. While it runs, Playwright keeps an event loop in this thread, so coroutine tests
would be refused: conftest.py puts the modules with browser tests last.
"""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from engines import empty
from harness import Service
from playwright import sync_api
from playwright.sync_api import Browser, expect

from mahasiswa.settings import BOOTSTRAP

# No test may reach another machine, so no other name is resolved.
ARGUMENTS = ["--no-proxy-server", "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"]
NPM = Path(__file__).parents[1] / "npm"
SHEET = "bootstrap/dist/css/bootstrap.min.css"
# Options of `open_window`. A mobile window uses the viewport that a page sets.
PHONE = {"viewport": {"width": 375, "height": 667}, "is_mobile": True, "has_touch": True}

expect.set_options(timeout=120_000)  # milliseconds; the rest is for a busy machine

Window = sync_api.Page  # The `Page` of the other tests is the text of an answer.
OpenWindow = Callable[..., Window]
"""Takes `cdn=True` to reach the style sheet, and options of Playwright's `Browser.new_context`."""


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    installed = shutil.which("chromium") or pytest.skip("chromium is not installed")
    with sync_api.sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=installed, args=ARGUMENTS)


@pytest.fixture(scope="session")
def node_modules() -> Path:
    """Return the folder of npm's packages, which `make test` installs. Skip the test if it could not."""
    folder = NPM / "node_modules"
    if not (folder / ".package-lock.json").exists():
        pytest.skip("the packages of tests/npm are not installed: make .venv/dev.stamp")
    return folder


@pytest.fixture
def open_window(
    request: pytest.FixtureRequest, chromium: Browser, service: Service
) -> Iterator[OpenWindow]:
    """Empty the list, and return a function that opens windows. No console of a window may report a problem."""
    empty(service)

    def opened(*, cdn: bool = False, **options: Any) -> Window:  # noqa: ANN401 - those of Playwright
        window = chromium.new_page(base_url=service.url, reduced_motion="reduce", **options)
        if cdn:
            sheet = request.getfixturevalue("node_modules") / SHEET
            headers = {"access-control-allow-origin": "*"}
            window.route(BOOTSTRAP, lambda route: route.fulfill(path=sheet, headers=headers))
        return window

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
    html = window.locator("html")
    expect(html).to_have_css("--bs-blue", "#0d6efd")
    yield "with the CDN"
    window.evaluate("document.querySelector('link[rel=stylesheet]').sheet.disabled = true")
    expect(html).to_have_css("--bs-blue", "")
    yield "without the CDN"
