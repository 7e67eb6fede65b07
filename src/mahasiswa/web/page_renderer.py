"""Renders a page from its template, and sets the headers that all pages share."""

import base64
import copy
import hashlib
import re
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from functools import partial
from importlib import metadata, resources
from typing import Any, Self
from urllib.parse import quote, urlsplit

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import Response

from mahasiswa import wording
from mahasiswa.record import INVISIBLE, NIM_MAX_CHARACTERS, ODD_SPACES, SHOWN_MAX_CHARACTERS
from mahasiswa.settings import BOOTSTRAP, BOOTSTRAP_INTEGRITY, Settings
from mahasiswa.sheets.read import FILE_MAX_BYTES, UPLOAD_MAX_ROWS
from mahasiswa.store.history_items import Item
from mahasiswa.web import list_html, list_query
from mahasiswa.web.list_html import cut, row_format
from mahasiswa.web.responses import ProblemPage
from mahasiswa.work import PAGE_MAX_BYTES

DAYS_WITHOUT_YEAR = 330
"""Maximum HISTORY_DAYS for which a moment is unique without its year. A moment is never shown as "today", because the
list page may be kept for days."""

NUMBER: ContextVar[str] = ContextVar("number", default="")
"""The number of this request, which an error page shows, so that a person can say which request failed."""

odd_spaces = re.compile(f"^ +| +$|(?<= ) +|[{ODD_SPACES}{INVISIBLE}]")


def marked(text: str) -> str:
    """The text with a sign for each needless space and each character that cannot be seen."""
    return odd_spaces.sub("\u2423", text)


class PageRenderer:
    """Renders templates for one set of settings."""

    def __init__(self, settings: Settings) -> None:
        self.prefix = settings.prefix
        self.list_query = ""
        self.timezone = settings.timezone
        self.history_days = settings.history_days

        self._styles = {name: _style_sheet(f"{name}.css") for name in ("style", "pages")}
        self._templates = self._environment(settings)
        self.changes: Any = self._templates.get_template("changes.html").module
        self.row = row_format(self.prefix)

        self.headers = {
            "content-security-policy": _content_security_policy(
                self._styles.values(), settings.cdn_url
            ),
            "x-content-type-options": "nosniff",
            "referrer-policy": "same-origin",
            "cross-origin-resource-policy": "same-origin",
            "cross-origin-opener-policy": "same-origin",
            "cache-control": "no-cache, private",
            "x-robots-tag": "noindex",
        }
        self.not_stored = {"cache-control": "no-store"}
        self.redirect = self.redirect_to("/")

    def _environment(self, settings: Settings) -> Environment:
        """The templates, each compiled, with the names that all of them know."""
        environment = Environment(
            loader=PackageLoader("mahasiswa.web"),
            autoescape=True,
            undefined=StrictUndefined,
            auto_reload=False,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        environment.globals |= {
            "style": self._styles["style"],
            "pages_style": self._styles["pages"],
            "cdn_url": settings.cdn_url,
            "cdn_integrity": BOOTSTRAP_INTEGRITY if settings.cdn_url == BOOTSTRAP else "",
            "path": self.path,
            "record_path": self.record_path,
            "home": self.path("/") + list_query.HOME_QUERY,
            "wording": wording,
            "number": wording.number,
            "columns": list(wording.LABELS.items()),
            "handlers": list_html,
            "limits": list_query,
            "nim_max_characters": NIM_MAX_CHARACTERS,
            "max_size": wording.size(FILE_MAX_BYTES),
            "max_rows": UPLOAD_MAX_ROWS,
            "history_days": settings.history_days,
            "version": metadata.version("mahasiswa"),
        }
        environment.filters |= {
            "when": self.when,
            "marked": marked,
            "shown": partial(cut, maximum=SHOWN_MAX_CHARACTERS),
            "short": partial(cut, maximum=60),  # a name in a sentence
            "short_nim": partial(cut, maximum=40),
        }

        # Load every template now: a process without a free file descriptor must still answer with a page.
        for name in environment.list_templates(extensions=["html"]):
            environment.get_template(name)
        return environment

    def at(self, list_query: str) -> Self:
        """Pages whose links and redirects lead back to the page of the list with this URL query."""
        if not list_query:
            return self
        pages = copy.copy(self)
        pages.list_query = list_query
        return pages

    def path(self, path: str) -> str:
        """The address of one of the routes, with the prefix of BASE_URL."""
        return self.prefix + path

    def download_headers(self, name: str) -> dict[str, str]:
        """The headers of a file with this name, which no cache keeps."""
        disposition = f'attachment; filename="{name}"'
        return {**self.headers, **self.not_stored, "content-disposition": disposition}

    def redirect_to(self, path: str) -> Response:
        """302 to one of the routes, without a body (specification 7.5). The headers of a page say nothing about it."""
        return Response(b"", 302, {"location": self.path(path)})

    def record_path(self, action: str, nim: str) -> str:
        """The address of a record's `edit`, `nim` or `delete`. Everything is percent-encoded, so any nim is one segment."""
        return self.path(f"/mahasiswa/{action}/{quote(nim, safe='')}")

    def error(
        self,
        problem: wording.ProblemName,
        headers: Mapping[str, str] | None = None,
        *,
        text: str = "",
        limit: int = 0,
        history: str = "",
    ) -> Response:
        """The page that reports a problem; `text` replaces its sentence, `limit` is in bytes.

        `history` is the address of the record's history, if the page has a link to it.
        """
        status, heading, explanation = wording.PROBLEMS[problem]
        sentence = text or explanation.format(limit=wording.size(limit))
        context = {"heading": heading, "text": sentence, "history": history}
        return self.page("error.html", status, headers, **context)

    def when(self, item: Item) -> Markup:
        local = wording.moment(
            item.moment.astimezone(self.timezone), with_year=self.history_days > DAYS_WITHOUT_YEAR
        )
        iso = item.moment.isoformat(timespec="seconds")
        return Markup(f'<time datetime="{iso}">{local}</time>')  # noqa: S704 - no text of a person is in it

    def page(
        self,
        template: str,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        **context: object,
    ) -> Response:
        number = NUMBER.get() if status >= 400 else ""
        body = checked(self.render(template, number_of_request=number, **context))
        return Response(body, status, {**self.headers, **(headers or {})}, "text/html")

    def render(self, template: str, **context: object) -> bytes:
        shared = {"list_query": self.list_query, "number_of_request": "", **context}
        return sent(self._templates.get_template(template).render(shared))


def sent(html: str) -> bytes:
    """The bytes of HTML. A bare CR would become LF in an HTML parser."""
    return html.encode().replace(b"\r", b"&#13;")


def checked(page: bytes) -> bytes:
    """The page; raise ProblemPage if it is too long."""
    if len(page) > PAGE_MAX_BYTES:
        raise ProblemPage("page too long")
    return page


def _style_sheet(name: str) -> Markup:
    """A sheet of ours without comments and needless spaces. No string in it holds one of those."""
    sheet = (resources.files("mahasiswa.web") / "templates" / name).read_text("utf-8")
    sheet = re.sub(r"(?:/\*.*?\*/|\s)+", " ", sheet, flags=re.DOTALL)
    return Markup(re.sub(r" ?([{};,]) |: ", lambda found: found[1] or ":", sheet))  # noqa: S704 - the project's own file


def _content_security_policy(styles: Iterable[str], cdn_url: str) -> str:
    """Allow the inline sheets, the CDN's sheet and the inline handlers, which need 'unsafe-hashes' beside their hashes."""
    parts = urlsplit(cdn_url)
    cdn = f"{parts.scheme}://{parts.netloc}"
    return "; ".join([
        "default-src 'none'",
        f"style-src {' '.join(map(_hash, styles))} {cdn}",
        f"font-src {cdn}",
        f"script-src 'unsafe-hashes' {' '.join(map(_hash, list_html.HANDLERS))}",
        "img-src 'self' data:",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    ])  # fmt: skip


def _hash(source: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"
