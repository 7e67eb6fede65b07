"""Renders every page from its template, and sets the headers that all answers share."""

import base64
import copy
import hashlib
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from importlib import metadata, resources
from typing import NamedTuple, Self
from urllib.parse import quote, urlsplit

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import Response

from mahasiswa import sheets, wording
from mahasiswa.record import NIM_MAX_CHARACTERS, Mahasiswa, digest, digest_or_dash
from mahasiswa.settings import Settings
from mahasiswa.store import SLICE_RECORDS
from mahasiswa.store.errors import EditConflict
from mahasiswa.store.history import Batch, Conflict, Entry
from mahasiswa.web.cached_page import CachedPage
from mahasiswa.web.escaping import text
from mahasiswa.web.latest_change import latest_change, verb
from mahasiswa.web.list_rows import CONFIRM, format_bodies, format_rows, row_format
from mahasiswa.web.list_view import MAX_ROWS_PER_PAGE, OFFERED_ROWS_PER_PAGE, View
from mahasiswa.web.preview_view import PreviewView
from mahasiswa.web.responses import Part
from mahasiswa.wording import PROBLEMS, ProblemName

DAYS_WITHOUT_YEAR = 330
"""Maximum HISTORY_DAYS for which a moment is unique without its year. A moment is never shown as "today", because the
list page may be kept for days."""

SLOTS = {name: Markup(f"<!--{name}-->") for name in ("total", "latest", "today", "rows")}  # noqa: S704 - these names
"""Marks in list.html for the parts that differ between versions of the data. No record can hold one: `<` is escaped."""

slot = re.compile(rb"<!--(\w+)-->")


class Frame(NamedTuple):
    """The list page without its rows. `head` of the list of specification 4.1 is the same for all lists with records."""

    head: bytes
    middle: bytes
    after: bytes

    @property
    def before(self) -> bytes:
        """The page before its rows."""
        return self.head + self.middle


class Pages:
    """Renders each page for one set of settings."""

    def __init__(self, settings: Settings) -> None:
        self.prefix = settings.prefix
        self.place = ""
        self._timezone = settings.timezone
        self._history_days = settings.history_days
        environment = Environment(
            loader=PackageLoader("mahasiswa.web"),
            autoescape=True,
            undefined=StrictUndefined,
            auto_reload=False,
            finalize=text,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        style = _minified((resources.files("mahasiswa.web") / "templates" / "style.css").read_text("utf-8"))
        environment.globals |= {
            "style": Markup(style),  # noqa: S704 - the project's own file
            "cdn_url": settings.cdn_url,
            "cdn_integrity": settings.cdn_integrity,
            "number": wording.number,
            "version": metadata.version("mahasiswa"),
            "lengths": OFFERED_ROWS_PER_PAGE,
            "max_length": MAX_ROWS_PER_PAGE,
            "has_history": settings.history_days > 0,
            "path": self.path,
            "edit_path": self.edit_path,
            "nim_max_characters": NIM_MAX_CHARACTERS,
        }
        environment.filters |= {"verb": verb, "when": self._when}
        environment.tests["batch"] = lambda item: isinstance(item, Batch)
        self._templates = environment
        self.row = row_format(self.prefix)
        self.headers = {
            "content-security-policy": _content_security_policy(style, settings.cdn_url),
            "x-content-type-options": "nosniff",
            "referrer-policy": "same-origin",
            "cache-control": "no-cache, private",
            "x-robots-tag": "noindex",
        }
        self.not_stored = {"cache-control": "no-store"}
        # 302 to the list, without a body (specification 7.5).
        self.redirect = Response(status_code=302, headers={"location": self.path("/"), **self.headers})

        # No record is in these, so they are rendered once.
        self._frames = {
            (count, has_more): self._frame(count, has_more=has_more)
            for count, has_more in ((0, False), (1, False), (1, True))
        }
        self.empty_add_form = self._cached(self.add_form())
        self.empty_import_form = self._cached(self.import_form())
        self.empty_bulk_delete_form = self._cached(self.bulk_delete_form())

    def at(self, place: str) -> Self:
        """The pages of a record that was opened from a page of the list with this URL query, which they lead back to."""
        if not place:
            return self
        pages = copy.copy(self)
        pages.place = place
        pages.redirect = Response(status_code=302, headers={"location": self.path("/") + place, **self.headers})
        return pages

    def path(self, path: str) -> str:
        """The address of one of the routes, with the prefix of BASE_URL."""
        return self.prefix + path

    def edit_path(self, nim: str) -> str:
        """The address of a record's edit page. Everything is percent-encoded, so any nim is one path segment."""
        return f"{self.prefix}/mahasiswa/edit/{quote(nim, safe='')}"

    def list_frame(
        self, count: int, latest: Entry | Batch | None, view: View | None = None, *, has_more: bool = False
    ) -> Frame:
        """The list page around its `count` rows; without `view` the list of specification 4.1.

        With `has_more` there may be more than `count` records. `latest` is the latest change.
        """
        head, *middle, _, after = self._frame(count, view) if view else self._frames[min(count, 1), has_more]
        values = {
            b"total": wording.number(view.total if view else count),
            b"latest": latest_change(latest, self._when(latest), self.path("/mahasiswa/riwayat")) if latest else "",
            b"today": wording.date(datetime.now(self._timezone)),
        }
        middle[::2] = [values[name].encode() for name in middle[::2]]
        return Frame(head, b"".join(middle), after)

    def end_of_day(self) -> float:
        """The moment, as `time.time()` counts, when a list page that is rendered now shows the wrong date."""
        tomorrow = datetime.now(self._timezone) + timedelta(days=1)
        return tomorrow.replace(hour=0, minute=0, second=0, microsecond=0).timestamp()

    def rows(self, packed: bytes, number: int) -> bytes:
        """The rows of a slice of the list. Slices are counted from 0."""
        return format_rows(self.row, packed, number * SLICE_RECORDS + 1)

    def bodies(self, records: Sequence[Mahasiswa], first: int, view: View | None = None) -> bytes:
        """The rows of any number of records, numbered from `first`. Their links lead back to the page of `view`."""
        return format_bodies(row_format(self.prefix, view.place) if view else self.row, records, first)

    def found(self, view: View, records: Sequence[Mahasiswa], latest: Entry | Batch | None) -> Response:
        """One page of a search, or of the list in some order."""
        frame = self.list_frame(len(records), latest, view)
        rows = self.bodies(records, view.offset + 1, view)
        return Response(frame.before + rows + frame.after, headers=self.headers, media_type="text/html")

    def add_form(
        self,
        values: Mapping[str, str | None] | None = None,
        wrong: Mapping[str, str] | None = None,
        problem: ProblemName | None = None,
    ) -> Response:
        """The form of specification 4.2, with the texts that were typed and, by field, the reason of a refusal."""
        return self._form(
            "Tambah Data Mahasiswa", self.path("/mahasiswa/add") + self.place, values or {}, wrong or {}, problem
        )

    def edit_form(self, record: Mahasiswa) -> Response:
        """The form of specification 4.3. Its button carries the digest of the record that it shows."""
        return self.edit_again(record.nim, digest(record), record._asdict())

    def edit_again(
        self,
        nim: str,
        versi: str | None,
        values: Mapping[str, str | None],
        wrong: Mapping[str, str] | None = None,
        problem: ProblemName | None = None,
    ) -> Response:
        """The edit form with the texts that were typed and, by field, the reason of a refusal."""
        values = {**values, "nim": nim}
        action = self.edit_path(nim) + self.place
        return self._form("Edit Data Mahasiswa", action, values, wrong or {}, problem, existing=True, versi=versi)

    def changed(self, conflict: EditConflict) -> Response:
        """The edit form if someone else changed the same field: the stored texts, the typed texts, and the choice."""
        current = conflict.current
        return self._form(
            "Edit Data Mahasiswa",
            self.edit_path(current.nim) + self.place,
            conflict.edited._asdict(),
            {},
            "changed",
            existing=True,
            versi=digest(current),
            conflict=conflict,
        )

    def already_stored(self, nim: str) -> Response:
        """The answer to an addition of a record that is already stored with the same texts, as by a second click."""
        return self._page("stored.html", 409, nim=nim)

    def import_form(self, message: str = "", status: int = 400, pasted: str = "") -> Response:
        """The page to choose a spreadsheet or to paste cells, with a message about the last attempt."""
        return self._import_form(message, status, pasted, None)

    def preview(self, view: PreviewView) -> Response:
        """The preview of an import, or the import form with a choice of columns if they could not be found."""
        if view.columns_problem:
            return self._import_form(view.columns_problem, 400, "", view)
        status = 409 if view.alert == "changed" else 200
        return self._page("preview.html", status, self.not_stored, view=view, letter=wording.column_letter)

    def _import_form(self, message: str, status: int, pasted: str, view: PreviewView | None) -> Response:
        return self._page(
            "import.html",
            status if message else 200,
            self.not_stored if view else None,
            message=message,
            pasted=pasted,
            view=view,
            letter=wording.column_letter,
            max_size=wording.size(sheets.UPLOAD_MAX_BYTES),
            max_rows=sheets.UPLOAD_MAX_ROWS,
        )

    def bulk_delete_form(self, message: str = "", status: int = 400, pasted: str = "") -> Response:
        """The page to paste NIMs or to choose a file with them, with a message about the last attempt."""
        return self._page(
            "bulk_delete.html",
            status if message else 200,
            message=message,
            pasted=pasted,
            preview=None,
            max_size=wording.size(sheets.UPLOAD_MAX_BYTES),
            max_rows=sheets.UPLOAD_MAX_ROWS,
        )

    def bulk_delete(self, found: Sequence[Mahasiswa], missing: Sequence[sheets.NimCell], data: str) -> Response:
        """The preview of a bulk delete. Its confirmation sends `data` back."""
        preview = {"found": found, "missing": missing, "data": data}
        return self._page("bulk_delete.html", 200, self.not_stored, preview=preview)

    def history(self, view: View, items: Sequence[Entry | Batch], batch: int | None) -> Response:
        """One page of the history, or of one of its batches."""
        address = "/mahasiswa/riwayat" if batch is None else f"/mahasiswa/riwayat/kelompok/{batch}"
        return self._page(
            "history.html", view=view, items=items, batch=batch, address=self.path(address), days=self._history_days
        )

    def undo_conflict(self, conflicts: Sequence[Conflict], total: int, entry: int | None) -> Response:
        """The page of an undo that would overwrite newer changes: the choice for an entry, the list for a batch."""
        current = conflicts[0].current
        return self._page(
            "undo_conflict.html",
            409,
            conflicts=conflicts,
            total=total,
            address="" if entry is None else self.path(f"/mahasiswa/riwayat/perubahan/{entry}"),
            versi=digest_or_dash(current),
        )

    def error(
        self, problem: ProblemName, headers: Mapping[str, str] | None = None, *, text: str = "", limit: int = 0
    ) -> Response:
        """The page that reports a problem; `text` replaces its sentence, `limit` is in bytes."""
        status, heading, explanation = PROBLEMS[problem]
        text = text or explanation.format(limit=wording.size(limit))
        return self._page("error.html", status, headers, heading=heading, text=text)

    def healthy(self) -> Response:
        """GET /sehat if the store answers."""
        heading, text = wording.HEALTHY
        return self._page("error.html", heading=heading, text=text)

    def head(self, media_type: str, headers: Mapping[str, str] | None = None) -> Response:
        """The answer to HEAD if the length would be known only after making the whole body."""
        response = Response(headers={**self.headers, **(headers or {})}, media_type=media_type)
        del response.headers["content-length"]  # 0 would be wrong
        return response

    def _frame(self, count: int, view: View | None = None, *, has_more: bool = False) -> list[bytes]:
        """The list page without its rows, cut at the slots: its pieces and, between them, the names of the slots."""
        place = view.place if view else ""
        page = self._render("list.html", count=count, view=view, has_more=has_more, place=place, **SLOTS)
        return slot.split(page.encode())

    def _form(
        self,
        heading: str,
        action: str,
        values: Mapping[str, str | None],
        wrong: Mapping[str, str],
        problem: ProblemName | None,
        *,
        existing: bool = False,
        versi: str | None = None,
        conflict: EditConflict | None = None,
    ) -> Response:
        status, _, alert = PROBLEMS[problem] if problem else (200, "", "")
        if wrong:
            status = 409 if "duplicate" in wrong.values() else 400
        wrong_fields = [field for field in Mahasiswa._fields if field in wrong]
        return self._page(
            "form.html",
            status,
            heading=heading,
            action=action,
            values={field: values.get(field) for field in Mahasiswa._fields},
            wrong=wrong,
            alert=alert,
            existing=existing,
            versi=versi,
            conflict=conflict,
            focus=wrong_fields[0] if wrong_fields else "nama" if existing else "nim",
        )

    def _when(self, item: Entry | Batch) -> Markup:
        local = wording.moment(item.moment.astimezone(self._timezone), with_year=self._history_days > DAYS_WITHOUT_YEAR)
        iso = item.moment.isoformat(timespec="seconds")
        return Markup(f'<time datetime="{iso}">{local}</time>')  # noqa: S704 - no text of a person is in it

    def _cached(self, response: Response) -> CachedPage:
        body = bytes(response.body)
        return CachedPage([Part(body)], hashlib.sha256(body).hexdigest()[:32], self.headers)

    def _page(
        self, template: str, status: int = 200, headers: Mapping[str, str] | None = None, **context: object
    ) -> Response:
        return Response(self._render(template, **context), status, {**self.headers, **(headers or {})}, "text/html")

    def _render(self, template: str, **context: object) -> str:
        return self._templates.get_template(template).render({"place": self.place, **context})


def _minified(sheet: str) -> str:
    """The style sheet without comments and runs of white space. No string in it holds either."""
    return re.sub(r"/\*.*?\*/|\s+", " ", sheet, flags=re.DOTALL)


def _content_security_policy(style: str, cdn_url: str) -> str:
    """Allow the inline sheet, the CDN's sheet and the one inline handler, which needs 'unsafe-hashes' beside its hash."""
    cdn = urlsplit(cdn_url)
    return "; ".join([
        "default-src 'none'",
        f"style-src {_hash(style)} {cdn.scheme}://{cdn.netloc}",
        f"font-src {cdn.scheme}://{cdn.netloc}",
        f"script-src 'unsafe-hashes' {_hash(CONFIRM)}",
        "img-src data:",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    ])  # fmt: skip


def _hash(source: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"
