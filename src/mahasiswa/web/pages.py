"""The HTML of every answer. Nothing else in the project knows any."""

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from importlib import resources
from itertools import chain
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.responses import Response

from mahasiswa.record import Mahasiswa, digest
from mahasiswa.settings import Settings
from mahasiswa.sheets import Plan
from mahasiswa.web.list_view import View

CONFIRM = "return confirm('Apakah Anda yakin ingin menghapus data ini?')"

LONG = 1000
"""Rows of a list that is offered page by page as well."""

NUL = b"\0"
MARK = Markup("<!--rows-->")
ENTITIES = ((b"&", b"&amp;"), (b"<", b"&lt;"), (b">", b"&gt;"), (b'"', b"&#34;"), (b"'", b"&#39;"), (b"\r", b"&#13;"))
reserved = re.compile(rb"[^A-Za-z0-9_.~%\0-]")


class Problem(NamedTuple):
    """A page that says what happened and what to do next."""

    status: int
    heading: str
    text: str


PROBLEMS = {
    "bad request": Problem(400, "Permintaan tidak dapat dibaca", "Alamat atau data yang dikirim rusak. Muat ulang halaman, lalu coba lagi."),
    "other site": Problem(403, "Permintaan dari situs lain", "Permintaan ini datang dari situs lain, jadi tidak dijalankan. Buka halaman ini lewat alamatnya sendiri, lalu coba lagi."),
    "refused": Problem(400, "Tidak dapat disimpan", "Data ditolak oleh aturan basis data. Periksa isinya, lalu simpan lagi."),
    "no record": Problem(404, "Tidak ditemukan", "Data mahasiswa tidak ditemukan. Mungkin sudah dihapus atau NIM-nya keliru."),
    "no page": Problem(404, "Alamat tidak dikenal", "Halaman tidak ditemukan. Periksa kembali tautannya."),
    "changed": Problem(409, "", "Data ini sudah diubah orang lain sejak Anda membukanya. Perubahan Anda belum disimpan."),
    "method": Problem(405, "Cara akses tidak didukung", "Halaman ini tidak dapat dibuka dengan cara tersebut."),
    "too slow": Problem(408, "Waktu pengiriman habis", "Data tidak diterima lengkap pada waktunya, jadi belum disimpan. Periksa sambungan, lalu kirim lagi."),
    "too large": Problem(413, "Kiriman terlalu besar", "Data yang dikirim terlalu besar (maksimal 64 KB)."),
    "confirmation too large": Problem(413, "Kiriman terlalu besar", "Data yang akan disimpan melebihi 8 MB. Bagi berkasnya menjadi beberapa bagian."),
    "file too large": Problem(413, "Berkas terlalu besar", "Ukuran berkas melebihi 16 MB."),
    "not carried": Problem(422, "Tidak dapat diekspor", ""),
    "not a form": Problem(415, "Jenis data tidak didukung", "Data belum disimpan karena tidak dikirim sebagai formulir. Kirim lewat formulir di halaman ini."),
    "failed": Problem(500, "Maaf", "Terjadi kesalahan di server. Coba lagi beberapa saat lagi. Jika berulang, hubungi pengelola."),
    "not saved": Problem(503, "Basis data tidak dapat diakses", "Data belum tersimpan karena basis data sedang tidak dapat diakses. Coba lagi beberapa saat lagi."),
    "uncertain": Problem(503, "Basis data tidak dapat diakses", "Belum dapat dipastikan apakah data tersimpan. Periksa daftar sebelum mencoba lagi."),
    "not read": Problem(503, "Basis data tidak dapat diakses", "Data sedang tidak dapat ditampilkan. Coba lagi beberapa saat lagi."),
}  # fmt: skip


def text(value: object) -> Markup:
    """Escape a text for an element or a quoted attribute. A bare CR would not survive an HTML parser."""
    return Markup(str(escape(value)).replace("\r", "&#13;"))  # noqa: S704 - escaped in this very call


def number(value: int) -> str:
    """10000 as `10.000`."""
    return f"{value:,}".replace(",", ".")


class Pages:
    """Renders each page for one set of settings."""

    def __init__(self, settings: Settings) -> None:
        self.prefix = settings.prefix
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
            "style": Markup(style),  # noqa: S704 - our own
            "cdn_url": settings.cdn_url,
            "cdn_integrity": settings.cdn_integrity,
            "number": number,
            "path": self.path,
            "edit_path": self.edit_path,
        }
        self._templates = environment
        self.row = (
            "<tr><td>%d</td><td>%b</td><td>%b</td><td>%b</td>"
            f'<td><a href="{self.path("/mahasiswa/edit/")}%b">Edit</a>'
            f'<form method="POST" action="{self.path("/mahasiswa/delete/")}%b" onsubmit="{CONFIRM}">'
            '<button type="submit">Delete</button></form></td></tr>\n'
        ).encode()
        self.headers = {
            "content-security-policy": _content_security_policy(style, settings.cdn_url),
            "x-content-type-options": "nosniff",
            "referrer-policy": "same-origin",
            "cache-control": "no-cache",
        }
        # 302 to the list, without a body (specification 7.5).
        self.redirect = Response(status_code=302, headers={"location": self.path("/"), **self.headers})

    def path(self, path: str) -> str:
        """A path of ours as a browser must ask for it."""
        return self.prefix + path

    def edit_path(self, nim: str) -> str:
        """The address of a record's edit page: everything percent-encoded, so that any nim is one path segment."""
        return f"{self.prefix}/mahasiswa/edit/{quote(nim, safe='')}"

    def list_frame(self, count: int) -> tuple[bytes, bytes]:
        """What stands before and after the rows on the list page (specification 4.1) of that many records or more."""
        page = self._render("list.html", rows=MARK, view=None, count=count, long=count > LONG)
        before, _, after = page.partition(MARK)
        return before.encode(), after.encode()

    def found(self, view: View, records: Sequence[Mahasiswa]) -> Response:
        """A page of the list as `view` has it."""
        rows = Markup(self.rows(pack(records), view.offset + 1).decode())  # noqa: S704 - escaped there
        return self._page("list.html", rows=rows, view=view, count=len(records), long=False)

    def rows(self, packed: bytes, first: int) -> bytes:
        """Rows of the list, numbered from `first`, of records that `pack` made: the one hot spot.

        The same rules as the templates': `text` for a cell, `quote` for a path, each for all cells in one go.
        """
        if not packed:
            return b""
        nims = packed.split(NUL)[::3]
        for character, entity in ENTITIES:
            packed = packed.replace(character, entity)
        cells = packed.split(NUL)
        segments = _segments(nims)
        numbers = range(first, first + len(nims))
        columns = (numbers, cells[::3], cells[1::3], cells[2::3], segments, segments)
        return b"".join([self.row % row for row in zip(*columns, strict=True)])

    def add_form(
        self,
        values: Mapping[str, str | None] | None = None,
        wrong: Mapping[str, str] | None = None,
        *,
        problem: str = "",
    ) -> Response:
        """The form of specification 4.2, with what was typed and what is wrong with it: field to reason."""
        return self._form("Tambah Data Mahasiswa", self.path("/mahasiswa/add"), values or {}, wrong or {}, problem)

    def edit_form(self, record: Mahasiswa, versi: str) -> Response:
        """The form of specification 4.3. Its button carries the digest of the record it was opened with."""
        return self.edit_again(record.nim, versi, record._asdict())

    def edit_again(
        self,
        nim: str,
        versi: str | None,
        values: Mapping[str, str | None],
        wrong: Mapping[str, str] | None = None,
        *,
        problem: str = "",
    ) -> Response:
        """The same form with what was typed and what is wrong with it."""
        values = {**values, "nim": nim}
        action = self.edit_path(nim)
        return self._form("Edit Data Mahasiswa", action, values, wrong or {}, problem, existing=True, versi=versi)

    def changed(self, current: Mahasiswa, values: Mapping[str, str | None]) -> Response:
        """The same form where someone else has changed the record meanwhile: theirs and yours, and the choice."""
        return self._form(
            "Edit Data Mahasiswa",
            self.edit_path(current.nim),
            {**values, "nim": current.nim},
            {},
            "changed",
            existing=True,
            versi=digest(current),
            theirs=current,
        )

    def import_form(self, message: str = "", status: int = 400, pasted: str = "") -> Response:
        """Where to choose a spreadsheet or paste its cells, with what was wrong with the last one."""
        return self._page("import.html", status if message else 200, message=message, pasted=pasted)

    def preview(self, plan: Plan, data: str, note: str | None, *, changed: bool = False) -> Response:
        """What an import would do; `data` is what its confirmation sends back."""
        noticed = [entry for entry in (*plan.new, *plan.changed, *plan.same) if entry.row.cleaned or entry.row.warnings]
        noticed.sort(key=lambda entry: entry.row.number)
        status = 409 if changed else 200
        return self._page("preview.html", status, plan=plan, data=data, note=note, noticed=noticed, changed=changed)

    def error(self, problem: str, headers: Mapping[str, str] | None = None, *, text: str = "") -> Response:
        """One of PROBLEMS, as a page; `text` may say it more exactly."""
        status, heading, explanation = PROBLEMS[problem]
        return self._page("error.html", status, headers, heading=heading, text=text or explanation)

    def healthy(self) -> Response:
        """GET /sehat where the store answers."""
        return self._page("error.html", heading="Sehat", text="Layanan berjalan dan data dapat dibaca.")

    def head(self, media_type: str, headers: Mapping[str, str] | None = None) -> Response:
        """The answer to HEAD where only GET, by making the whole body, would find out its length."""
        response = Response(headers={**self.headers, **(headers or {})}, media_type=media_type)
        del response.headers["content-length"]  # 0 would be wrong
        return response

    def _form(
        self,
        heading: str,
        action: str,
        values: Mapping[str, str | None],
        wrong: Mapping[str, str],
        problem: str,
        *,
        existing: bool = False,
        versi: str | None = None,
        theirs: Mahasiswa | None = None,
    ) -> Response:
        alert = PROBLEMS[problem].text if problem else ""
        status = PROBLEMS[problem].status if problem else 200
        if wrong:
            status = 409 if "duplicate" in wrong.values() else 400
        fields = [field for field in Mahasiswa._fields if field in wrong] or ["nama" if existing else "nim"]
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
            theirs=theirs,
            focus=fields[0],
        )

    def _page(
        self, template: str, status: int = 200, headers: Mapping[str, str] | None = None, **context: object
    ) -> Response:
        return Response(self._render(template, **context), status, {**self.headers, **(headers or {})}, "text/html")

    def _render(self, template: str, **context: object) -> str:
        return self._templates.get_template(template).render(context)


def pack(records: Sequence[tuple[str, str, str]]) -> bytes:
    """Records as one text, NUL between cells. A NUL of another program's, which no page can carry, is replaced."""
    packed = "\0".join(chain.from_iterable(records)).encode()
    if records and packed.count(NUL) >= len(records) * 3:
        return pack([Mahasiswa(*(cell.replace("\0", "\ufffd") for cell in record)) for record in records])
    return packed


def _segments(nims: Sequence[bytes]) -> Sequence[bytes]:
    """Every nim as `quote(nim, safe="")` writes it."""
    quoted = NUL.join(nims).replace(b"%", b"%25").replace(b"/", b"%2F").replace(b" ", b"%20")
    return reserved.sub(lambda byte: b"%%%02X" % byte[0][0], quoted).split(NUL)


def _minified(sheet: str) -> str:
    """Without comments and runs of white space, which no string of ours has."""
    return re.sub(r"/\*.*?\*/|\s+", " ", sheet, flags=re.DOTALL)


def _content_security_policy(style: str, cdn_url: str) -> str:
    """Our own sheet, the delivery network's, and the one inline handler, which a hash alone does not allow."""
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
