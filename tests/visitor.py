"""Reads the service's pages as a browser does, and sends their links and forms: `Page` and `Site`."""

import re
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import quote, urljoin, urlsplit

import httpx
from selectolax.lexbor import LexborHTMLParser, LexborNode

TIMEOUT_SECONDS = 60
"""Maximum wait for an answer. The service gives up far earlier; the rest is for a busy machine."""

URL_ENCODED = "application/x-www-form-urlencoded"

SENT = ":is(input, select)[name]:not([type=submit], [disabled], [type=radio]:not([checked]), [type=checkbox]:not([checked]))"


class Link(NamedTuple):
    """A link to another page. `target` is the address of a browser's request."""

    text: str
    target: str


class Part:
    """An element of the page whose request target is `url`. Its texts are exact, including white space and line ends."""

    def __init__(self, node: LexborNode | LexborHTMLParser, url: str) -> None:
        self.css = node.css
        self.text = node.text
        self.url = url

    def texts(self, selector: str) -> list[str]:
        return [found.text() for found in self.css(selector)]

    def values(self, selector: str, name: str = "value") -> list[str]:
        """Return an attribute of each of these elements."""
        return [node.attributes.get(name) or "" for node in self.css(selector)]

    def parts(self, selector: str) -> list["Part"]:
        return [Part(node, self.url) for node in self.css(selector)]

    @property
    def cells(self) -> tuple[str, ...]:
        return tuple(self.texts("td, th"))

    @property
    def links(self) -> list[Link]:
        return [
            Link(node.text().strip(), urljoin(self.url, node.attributes["href"]))
            for node in self.css("a[href]:not([href^='#'])")
        ]

    @property
    def forms(self) -> list["Form"]:
        return [Form(node, self.url) for node in self.css("form")]


class Form(Part):
    """A form. `target` is the address of a browser's request, `submit` is the button's text."""

    def __init__(self, node: LexborNode, url: str) -> None:
        super().__init__(node, url)
        self.method = (node.attributes.get("method") or "get").lower()
        self.target = urljoin(url, node.attributes.get("action") or "")
        buttons = self.texts("button:not([type]), button[type=submit]")
        self.submit = [*buttons, *self.values("input[type=submit]"), ""][0].strip()

    @property
    def fields(self) -> dict[str, str]:
        """The fields that a browser sends if nothing is typed."""
        sent = {}
        for node in self.css(SENT):
            chosen = [*node.css("option[selected]"), *node.css("option"), node][0]
            sent[node.attributes["name"] or ""] = chosen.attributes.get("value") or ""
        return sent


class Page(Part):
    """An HTML page as a browser reads it."""

    def __init__(self, html: str, url: str) -> None:
        super().__init__(LexborHTMLParser(html), url)
        self.html = html

    @property
    def table(self) -> list[Part]:
        """The rows of the table's body."""
        return self.parts("tbody > tr:has(td)")

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """The rows as tuples (no, nim, nama, alamat)."""
        return [row.cells[:4] for row in self.table]

    @property
    def records(self) -> list[tuple[str, ...]]:
        return [row[1:] for row in self.rows]

    @property
    def nims(self) -> list[str]:
        return [nim for nim, *_ in self.records]

    def form(self, of: str) -> Form:
        """Return the one form with this button, or with this field."""
        (form,) = [form for form in self.forms if of in (form.submit, *form.fields)]
        return form

    @property
    def posts(self) -> list[Form]:
        """The forms that change something."""
        return [form for form in self.forms if form.method == "post"]

    def target(self, text: str) -> str:
        """Return the target of the links with this text. Fail unless all of them have the same one."""
        (target,) = {link.target for link in self.links if link.text == text}
        return target


class Site(httpx.Client):
    """A visitor to any implementation of the specification at `url`, as a client of httpx.

    The path of `url`, if any, is put before every path of the specification. httpx resolves dots in a path, unless it is
    given as the extension `target`. Records are changed without opening a page first.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.origin = f"{parts.scheme}://{parts.netloc}"
        self.prefix = parts.path.rstrip("/")
        # Without verification, because it takes long to load the certificates of the system.
        super().__init__(
            verify=False, trust_env=False, base_url=self.origin, timeout=TIMEOUT_SECONDS
        )

    def path(self, path: str, nim: str = "") -> str:
        """Return the request target of a path of the specification; the nim is percent-encoded and appended."""
        return self.prefix + path + quote(nim, safe="")

    def page(self, target: str) -> Page:
        """Return the page at a target. Fail unless the status is 200."""
        return page_of(self.get(target))

    def submit(self, form: Form, **typed: str) -> httpx.Response:
        """Send a form; `typed` replaces the values of inputs."""
        return self.post(form.target, data=form.fields | typed)

    def list(self) -> Page:
        return self.page(self.path("/"))

    @property
    def records(self) -> Sequence[tuple[str, ...]]:
        """The records of the list: nim, nama and alamat."""
        return self.list().records

    @property
    def nims(self) -> Sequence[str]:
        return self.list().nims

    def add(self, nim: str, nama: str, alamat: str) -> httpx.Response:
        record = {"nim": nim, "nama": nama, "alamat": alamat}
        return self.post(self.path("/mahasiswa/add"), data=record)

    def edit(self, nim: str, nama: str, alamat: str) -> httpx.Response:
        return self.post(self.path("/mahasiswa/edit/", nim), data={"nama": nama, "alamat": alamat})

    def delete(self, nim: str) -> httpx.Response:  # type: ignore[override]
        return self.post(self.path("/mahasiswa/delete/", nim))


def page_of(answer: httpx.Response, status: int = 200) -> Page:
    """Return the page of an answer. Fail unless it has this status."""
    assert answer.status_code == status, answer.text
    return Page(answer.text, answer.url.raw_path.decode())


def led_to(answer: httpx.Response) -> str:
    """Return the address of a redirect, which has no body, without the change that it names (test_own_change.py)."""
    assert answer.status_code == 302, answer.text
    assert answer.content == b"", answer.text
    return re.sub(r"&perubahan=\d+-\d+(?=#|$)", "", answer.headers["location"])
