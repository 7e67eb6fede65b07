"""The HTML of every answer. Nothing else in the project knows any."""

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.responses import Response

from mahasiswa.record import Mahasiswa
from mahasiswa.settings import Settings

CONFIRM = "return confirm('Apakah Anda yakin ingin menghapus data ini?')"


class Problem(NamedTuple):
    """A page that says what happened and what to do next."""

    status: int
    heading: str
    text: str


PROBLEMS = {
    "bad request": Problem(400, "Permintaan tidak dapat dibaca", "Alamat atau data yang dikirim rusak. Muat ulang halaman, lalu coba lagi."),
    "refused": Problem(400, "Data ditolak", "Data ditolak oleh aturan basis data. Periksa isinya, lalu simpan lagi."),
    "no record": Problem(404, "Data tidak ditemukan", "Data mahasiswa tidak ditemukan. Mungkin sudah dihapus atau NIM-nya keliru."),
    "no page": Problem(404, "Halaman tidak ditemukan", "Halaman tidak ditemukan. Periksa kembali tautannya."),
    "method": Problem(405, "Cara akses tidak didukung", "Halaman ini tidak dapat dibuka dengan cara tersebut."),
    "too slow": Problem(408, "Waktu pengiriman habis", "Data tidak diterima lengkap pada waktunya, jadi belum disimpan. Periksa sambungan, lalu kirim lagi."),
    "too large": Problem(413, "Data terlalu besar", "Data yang dikirim terlalu besar (maksimal 64 KB)."),
    "not a form": Problem(415, "Jenis data tidak didukung", "Data belum disimpan karena tidak dikirim sebagai formulir. Kirim lewat formulir di halaman ini."),
    "failed": Problem(500, "Terjadi kesalahan", "Terjadi kesalahan di server. Coba lagi beberapa saat lagi. Jika berulang, hubungi pengelola."),
    "not saved": Problem(503, "Data belum tersimpan", "Data belum tersimpan karena basis data sedang tidak dapat diakses. Coba lagi beberapa saat lagi."),
    "not read": Problem(503, "Data sedang tidak dapat ditampilkan", "Data sedang tidak dapat ditampilkan. Coba lagi beberapa saat lagi."),
}  # fmt: skip


def text(value: object) -> Markup:
    """Escape a text for an element or a quoted attribute. A bare CR would not survive an HTML parser."""
    return Markup(escape(value).replace("\r", "&#13;"))  # noqa: S704 - escaped in this very call


class Pages:
    """Renders each page for one set of settings."""

    def __init__(self, settings: Settings) -> None:
        self.prefix = settings.prefix
        environment = Environment(
            loader=PackageLoader("mahasiswa.web"),
            autoescape=True,
            undefined=StrictUndefined,
            finalize=text,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        style = _minified((resources.files("mahasiswa.web") / "templates" / "style.css").read_text("utf-8"))
        environment.globals |= {
            "style": Markup(style),  # noqa: S704 - our own
            "cdn_url": settings.cdn_url,
            "cdn_integrity": settings.cdn_integrity,
            "path": self.path,
            "edit_path": self.edit_path,
        }
        self._templates = environment
        self.headers = {
            "content-security-policy": _content_security_policy(style, settings.cdn_url),
            "x-content-type-options": "nosniff",
            "referrer-policy": "same-origin",
            "cache-control": "no-cache",
        }

    def path(self, path: str) -> str:
        """A path of ours as a browser must ask for it."""
        return self.prefix + path

    def edit_path(self, nim: str) -> str:
        """The address of a record's edit page: everything percent-encoded, so that any nim is one path segment."""
        return f"{self.prefix}/mahasiswa/edit/{quote(nim, safe='')}"

    def list(self, records: Sequence[Mahasiswa]) -> Response:
        """GET / (specification 4.1)."""
        rows = Markup("").join(self._rows(records))
        return self._page("list.html", rows=rows, empty=not records)

    def add_form(
        self,
        values: Mapping[str, str | None] | None = None,
        wrong: Mapping[str, str] | None = None,
        *,
        problem: str = "",
    ) -> Response:
        """The form of specification 4.2, with what was typed and what is wrong with it: field to reason."""
        return self._form("Tambah Data Mahasiswa", self.path("/mahasiswa/add"), values or {}, wrong or {}, problem)

    def edit_form(
        self, nim: str, values: Mapping[str, str | None], wrong: Mapping[str, str] | None = None, *, problem: str = ""
    ) -> Response:
        """The form of specification 4.3, likewise."""
        return self._form(
            "Edit Data Mahasiswa", self.edit_path(nim), {**values, "nim": nim}, wrong or {}, problem, existing=True
        )

    def error(self, problem: str, headers: Mapping[str, str] | None = None) -> Response:
        """One of PROBLEMS, as a page."""
        status, heading, explanation = PROBLEMS[problem]
        return self._page("error.html", status, headers, heading=heading, text=explanation)

    def redirect(self) -> Response:
        """302 to the list, without a body (specification 7.5)."""
        return Response(status_code=302, headers={"location": self.path("/"), **self.headers})

    def _form(
        self,
        heading: str,
        action: str,
        values: Mapping[str, str | None],
        wrong: Mapping[str, str],
        problem: str,
        *,
        existing: bool = False,
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
            focus=fields[0],
        )

    def _page(
        self, template: str, status: int = 200, headers: Mapping[str, str] | None = None, **context: object
    ) -> Response:
        body = self._templates.get_template(template).render(context)
        return Response(body, status, {**self.headers, **(headers or {})}, "text/html")

    def _rows(self, records: Iterable[Mahasiswa], first: int = 1) -> Iterable[Markup]:
        """Rows of the list, the one hot spot: a formatted string each, escaped as the templates escape."""
        for no, (nim, nama, alamat) in enumerate(records, first):
            segment = quote(nim, safe="")
            yield Markup(  # noqa: S704 - every value is escaped
                f"<tr><td>{no}</td><td>{text(nim)}</td><td>{text(nama)}</td><td>{text(alamat)}</td>"
                f'<td><a href="{self.prefix}/mahasiswa/edit/{segment}">Edit</a>'
                f'<form method="POST" action="{self.prefix}/mahasiswa/delete/{segment}" onsubmit="{CONFIRM}">'
                '<button type="submit">Delete</button></form></td></tr>\n'
            )


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
