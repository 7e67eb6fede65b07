"""Reads the service's pages as a browser does, and sends their links and forms: `Page` and `Site`."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from urllib.parse import quote, urlencode, urljoin, urlsplit, urlunsplit

import httpx
from processes import Closing
from selectolax.lexbor import LexborHTMLParser, LexborNode

TIMEOUT_SECONDS = 60
"""Maximum wait for an answer. The service gives up far earlier; the rest is for a busy machine."""

URL_ENCODED = "application/x-www-form-urlencoded"

SENT = ":is(input, select)[name]:not([type=submit], [disabled], [type=radio]:not([checked]), [type=checkbox]:not([checked]))"

Fields = Mapping[str, str] | Sequence[tuple[str, str]]


class Link(NamedTuple):
    """A link. `href` is as written in the page, `target` is the address of a browser's request."""

    text: str
    href: str
    target: str


class Form:
    """A form. `action` is as written in the page, `target` is the address of a browser's request, `submit` is the button's text.

    `inputs` are the attributes of each input.
    """

    def __init__(self, node: LexborNode, url: str) -> None:
        self.node = node
        self.method = _attribute(node, "method").lower() or "get"
        self.action = _attribute(node, "action")
        self.target = browser_target(url, self.action)
        self.enctype = _attribute(node, "enctype") or URL_ENCODED
        self.inputs = [field.attributes for field in node.css("input:not([type=submit])")]
        buttons = texts_in(node, "button:not([type]), button[type=submit]")
        buttons += [_attribute(button, "value") for button in node.css("input[type=submit]")]
        self.submit = buttons[0].strip() if buttons else ""

    @property
    def text_inputs(self) -> list[dict[str, str | None]]:
        """The single-line text inputs, in the order of the page."""
        return [field for field in self.inputs if field.get("type", "text") == "text"]

    @property
    def values(self) -> dict[str, str]:
        """The fields that a browser sends if nothing is typed."""
        sent = {}
        for node in self.node.css(SENT):
            chosen = (node.css("option[selected]") or node.css("option") or [node])[0]
            sent[_attribute(node, "name")] = _attribute(chosen, "value")
        return sent


class Row:
    """A row of the list: the exact texts of its cells, and the links and forms in them."""

    def __init__(self, node: LexborNode, url: str) -> None:
        self.node, self.url = node, url
        self.cells = tuple(texts_in(node, "td, th"))

    @property
    def links(self) -> list[Link]:
        return _links(self.node, self.url)

    @property
    def forms(self) -> list[Form]:
        return [Form(node, self.url) for node in self.node.css("form")]


class Page:
    """An HTML page as a browser reads it. Texts are exact, including white space and line ends.

    Only the texts of `headings` and of `columns`, the header cells of the table, are stripped. `stylesheets` are the
    addresses as written in the page.
    """

    def __init__(self, html: str, url: str) -> None:
        self.html, self.url, self.tree = html, url, LexborHTMLParser(html)
        self.title = " ".join(self.texts("head > title"))
        self.headings = [text.strip() for text in self.texts("h1, h2, h3, h4, h5, h6")]
        self.stylesheets = [
            _attribute(node, "href") for node in self.tree.css("link[rel~=stylesheet]")
        ]
        header = self.tree.css_first("table tr:not(.paper)", strict=False)
        self.columns = [cell.text().strip() for cell in header.css("th, td")] if header else []

    @property
    def links(self) -> list[Link]:
        return _links(self.tree, self.url)

    @property
    def forms(self) -> list[Form]:
        return [Form(node, self.url) for node in self.tree.css("form")]

    @property
    def table(self) -> list[Row]:
        return [Row(node, self.url) for node in self.tree.css("tbody > tr:has(td)")]

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """The rows of the table's body as tuples (no, nim, nama, alamat)."""
        return [row.cells[:4] for row in self.table]

    @property
    def record_form(self) -> Form:
        """The one form that has the fields of a record."""
        return self.form("alamat")

    @property
    def nims(self) -> list[str]:
        """The nims of all rows. A row with one cell, as some implementations show for an empty list, has no nim."""
        return [nim for row in self.table for nim in row.cells[1:2]]

    @property
    def records(self) -> list[tuple[str, ...]]:
        return [row.cells[1:4] for row in self.table]

    def texts(self, selector: str) -> list[str]:
        return texts_in(self.tree, selector)

    def values(self, selector: str, name: str = "value") -> list[str]:
        """Return an attribute of each of these elements."""
        return [str(node.attributes[name]) for node in self.tree.css(selector)]

    def form(self, of: str) -> Form:
        """Return the one form with this button, below this path, or with this field."""
        (form,) = [
            form
            for form in self.forms
            if of in (form.submit, form.target.partition("?")[0], *form.values)
        ]
        return form

    @property
    def posts(self) -> list[Form]:
        """The forms that change something."""
        return [form for form in self.forms if form.method == "post"]

    def targets(self, text: str) -> list[str]:
        return [link.target for link in self.links if link.text == text]

    def target(self, text: str) -> str:
        """Return the target of the links with this text. Fail unless all of them have the same one."""
        (target,) = {*self.targets(text)}
        return target

    def row(self, nim: str) -> Row:
        """Return the row of exactly this nim. Fail unless there is exactly one."""
        (row,) = [row for row in self.table if row.cells[1:2] == (nim,)]
        return row


class Site(Closing):
    """A visitor to any implementation of the specification at `url`.

    The path of `url`, if any, is put before every path of the specification. A target is sent exactly as it is given,
    without normalisation. Records are changed without opening a page first.
    """

    def __init__(self, url: str, socket: str = "") -> None:
        parts = urlsplit(url)
        self.origin = f"{parts.scheme}://{parts.netloc}"
        self.prefix = parts.path.rstrip("/")
        self.client = client(self.origin, socket)

    def path(self, path: str, nim: str | None = None) -> str:
        """Return the request target of a path of the specification; the nim is percent-encoded and appended."""
        return self.prefix + path + ("" if nim is None else quote(nim, safe=""))

    def send(
        self, method: str, target: str, body: bytes | None = None, **headers: str
    ) -> httpx.Response:
        """Send one request. In the name of a header, `_` stands for `-`."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.client.request(
            method, "/", content=body, headers=named, extensions={"target": target.encode()}
        )

    def get(self, target: str) -> httpx.Response:
        return self.send("GET", target)

    def post(self, target: str, fields: Fields = ()) -> httpx.Response:
        """Send fields with POST as an HTML form does."""
        return self.send("POST", target, urlencode(fields).encode(), content_type=URL_ENCODED)

    def page(self, target: str) -> Page:
        """Return the page at a target. Fail unless the status is 200."""
        answer = self.get(target)
        assert answer.status_code == 200, f"GET {target} answers {answer.status_code}"
        return Page(answer.text, self.origin + target)

    def submit(self, form: Form, **typed: str) -> httpx.Response:
        """Send a form; `typed` replaces the values of inputs."""
        assert form.method == "post"
        return self.post(form.target, form.values | typed)

    def accepts(self, form: Form, **typed: str) -> None:
        """Send a form. Fail unless the answer is the redirect after a change."""
        assert self.submit(form, **typed).status_code == 302

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
        return self.post(self.path("/mahasiswa/add"), {"nim": nim, "nama": nama, "alamat": alamat})

    def stores(self, nim: str, nama: str, alamat: str) -> None:
        """Add a record. Fail unless the answer says that it is stored."""
        assert self.add(nim, nama, alamat).status_code == 302

    def edit(self, nim: str, nama: str, alamat: str) -> httpx.Response:
        return self.post(self.path("/mahasiswa/edit/", nim), {"nama": nama, "alamat": alamat})

    def delete(self, nim: str) -> httpx.Response:
        return self.post(self.path("/mahasiswa/delete/", nim))

    def close(self) -> None:
        self.client.close()


def texts_in(node: LexborNode | LexborHTMLParser, selector: str) -> list[str]:
    return [found.text() for found in node.css(selector)]


def page_of(answer: httpx.Response, status: int = 200) -> Page:
    """Return the page of an answer. Fail unless it has this status."""
    assert answer.status_code == status, answer.text
    return Page(answer.text, str(answer.url))


def fields(record: Sequence[str]) -> dict[str, str]:
    """Return the fields of a form with this record."""
    return dict(zip(("nim", "nama", "alamat"), record, strict=True))


def led_to(answer: httpx.Response) -> str:
    """Return the address of a redirect, which has no body, without the change that it names (test_own_change.py)."""
    assert (answer.status_code, answer.content) == (302, b""), answer.text
    return re.sub(r"&perubahan=\d+-\d+(?=#|$)", "", answer.headers["location"])


def client(url: str, socket: str = "") -> httpx.Client:
    """Return an HTTP client, perhaps of a Unix socket, that follows no redirect and uses no proxy."""
    is_https = url.startswith("https:")
    return httpx.Client(
        transport=httpx.HTTPTransport(uds=socket) if socket else None,
        base_url=url,
        follow_redirects=False,
        trust_env=False,
        timeout=TIMEOUT_SECONDS,
        verify=is_https,
    )


def browser_target(page_url: str, href: str) -> str:
    """Return the target of a link as a browser asks for it, or another site's whole URL."""
    page, link = urlsplit(page_url), urlsplit(urljoin(page_url, href))
    if link.netloc != page.netloc:
        return link.geturl()
    target = urlunsplit(("", "", link.path or "/", link.query, ""))
    return quote(target, safe="!#$%&'()*+,/:;=?@[\\]^|~")


def _attribute(node: LexborNode, name: str) -> str:
    return node.attributes.get(name) or ""


def _links(node: LexborNode | LexborHTMLParser, url: str) -> list[Link]:
    found = node.css("a[href]")
    targets = [_attribute(link, "href") for link in found]
    return [
        Link(link.text().strip(), href, browser_target(url, href))
        for link, href in zip(found, targets, strict=True)
    ]
