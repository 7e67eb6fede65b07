"""Spreadsheets as other programs make them, malicious ones, and an importer that reads the pages of an import."""

import io
import json
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import httpx
import openpyxl  # type: ignore[import-untyped]
import pytest
from harness import Page, Service, Site, led_to
from processes import Closing

from mahasiswa.sheets.rules import PROBLEMS

HEADER = ("NIM", "Nama", "Alamat")
SHEET = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
IMPORT, SELECT = "/mahasiswa/impor", "/mahasiswa/pilih"
HEADINGS = {IMPORT: ("Impor Data Mahasiswa", "Pratinjau Impor"), SELECT: ("Pilih Banyak",) * 2}
"""The headings of the form and of the page of a stage."""

Record = tuple[str, str, str]


def as_records(*lines: str) -> list[Record]:
    """Return the records that are written as lines, such as `1|Ani|Solo`."""
    return [cast("Record", tuple(line.split("|"))) for line in lines]


KEPT: list[Record] = as_records("2301|Ani|Solo", "2302|Budi|Bantul", "2303|Citra|Klaten")

# Python's sqlite3 must not open the file in a process that uses APSW: closing its descriptor drops APSW's locks.
OTHER_PROGRAM = """
import json, sqlite3, sys
db = sqlite3.connect(sys.argv[1], timeout=30, isolation_level=None)
for line in sys.stdin:
    statement, *values = json.loads(line)
    print(json.dumps(db.execute(statement, values).fetchall()), flush=True)
"""


class Database(Closing):
    """The SQLite file of a service, opened by another program, which runs these statements."""

    def __init__(self, path: Path, *statements: str) -> None:
        command = [sys.executable, "-ISc", OTHER_PROGRAM, str(path)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for statement in statements:
            self.run(statement)

    def run(self, statement: str, *values: str) -> list[tuple[Any, ...]]:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps([statement, *values]) + "\n")
        self.process.stdin.flush()
        return list(map(tuple, json.loads(self.process.stdout.readline())))

    def fill(self, records: Iterable[Sequence[str]]) -> None:
        self.run("DELETE FROM mahasiswa")
        self.run(
            "INSERT INTO mahasiswa (nim, nama, alamat) SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(?)",
            json.dumps(list(records)),
        )

    def close(self) -> None:
        self.process.communicate(timeout=60)


class Preview(Page):
    """The page of a preview, as a person reads it.

    `counts` are those that are not zero. `problems` are the sentences about the lines that are not saved, in their order.
    """

    def __init__(self, html: str, url: str) -> None:
        super().__init__(html, url)
        numbers = [int(text.replace(".", "")) for text in self.texts(".summary dd")]
        counts = zip(self.texts(".summary dt"), numbers, strict=True)
        self.counts = {name: number for name, number in counts if number}
        self.alert = " ".join(self.texts("[role=alert]"))
        self.status = " ".join(self.texts("[role=status]"))
        self.what_was_read = " ".join(" ".join(self.texts("main .note")[:1]).split())
        self.problems = self.texts(".problem > .bad")

    @property
    def path(self) -> str:
        return urlsplit(self.url).path

    @property
    def identifier(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def buttons(self) -> dict[str, str]:
        """The buttons of the form by their values, without the hidden one."""
        buttons = self.css("main form button[name=aksi]:not([hidden])")
        return {str(button.attributes["value"]): button.text().strip() for button in buttons}

    @property
    def fields(self) -> dict[str, str]:
        """The fields that a browser sends if nothing is typed."""
        return self.form("versi").fields

    def lines(self, part: str) -> list[tuple[str, ...]]:
        """The cells of the lines in a part: baru, berubah or sama."""
        return [tuple(row.texts("td")) for row in self.parts(f"#{part} tbody tr")]


class Importer:
    """Uploads to the form of an import or of a selection, and reads the pages that follow."""

    def __init__(self, site: Site, path: str = IMPORT) -> None:
        self.site = site
        self.path = path
        self.headings = HEADINGS[path]

    def send(self, data: bytes = b"", name: str = "", pasted: str = "") -> httpx.Response:
        """Send the form as a browser does: both fields, even if nothing was chosen or typed."""
        kind = "text/csv" if name.endswith(".csv") else "application/octet-stream"
        return self.site.client.post(
            self.site.path(self.path), files={"berkas": (name, data, kind)}, data={"tempel": pasted}
        )

    def upload(self, data: bytes, name: str = "daftar.csv") -> Preview:
        """Send a file; the response must lead to a preview."""
        return self.shown(self.send(data, name))

    def paste(self, text: str) -> Preview:
        return self.shown(self.send(pasted=text))

    def refused(self, answer: httpx.Response, status: int = 400) -> str:
        """Return the alert of the form's page, which a refused file must lead to."""
        page = Page(answer.text, str(answer.url))
        assert (answer.status_code, page.headings[0]) == (status, self.headings[0])
        return " ".join(page.texts("[role=alert]"))

    def open(self, target: str) -> Preview:
        """Open the address of a preview."""
        return self.shown(self.site.get(target))

    def shown(self, answer: httpx.Response, status: int = 200) -> Preview:
        """Return the preview that an answer is, or to which it redirects."""
        if status == 200 and answer.status_code == 302:
            target = answer.headers["location"]
            answer = self.site.get(target)
        else:
            target = answer.url.raw_path.decode()
        page = Preview(answer.text, target)
        assert (answer.status_code, page.headings[0]) == (status, self.headings[1]), answer.text
        return page

    def press(
        self, preview: Preview, action: str, typed: Mapping[str, str] | None = None
    ) -> httpx.Response:
        """Press a button of a preview, by its value, after changing some fields."""
        return self.site.submit(preview.form("versi"), **(typed or {}), aksi=action)

    def pressed(
        self, preview: Preview, action: str, typed: Mapping[str, str] | None = None
    ) -> Preview:
        """The same; the response must lead to a preview."""
        return self.shown(self.press(preview, action, typed))

    def accepted(self, preview: Preview) -> Preview:
        """Call the columns and all doubts right."""
        if [*preview.buttons] == ["baca"]:
            preview = self.pressed(preview, "baca")
        for _ in PROBLEMS:
            doubts = [button for button in preview.buttons if button.startswith("benar:")]
            if not doubts:
                break
            preview = self.pressed(preview, doubts[0])
        return preview

    def save(self, preview: Preview, action: str = "simpan") -> None:
        assert led_to(self.press(preview, action)) == self.site.path("/") + "?halaman=1"

    @property
    def records(self) -> Sequence[tuple[str, ...]]:
        return self.site.records


@pytest.fixture(scope="module")
def other(service: Service) -> Iterator[Database]:
    assert isinstance(service.database, Path)
    with Database(service.database) as database:
        yield database


@pytest.fixture
def importer(site: Site) -> Importer:
    return Importer(site)


def csv(
    *rows: Sequence[str], separator: str = ";", encoding: str = "utf-8", end: str = "\r\n"
) -> bytes:
    return "".join(separator.join(row) + end for row in rows).encode(encoding)


def numbered(
    count: int, nama: str = "Ani", alamat: str = "Solo", *, nim: str = "{:05}"
) -> list[Record]:
    """Return records whose texts are the same, except for their number in the place of `{}`."""
    templates = (nim, nama, alamat)
    return [cast("Record", tuple(text.format(n) for text in templates)) for n in range(count)]


MIXED = csv(
    HEADER,
    KEPT[0],
    ("2302", "Budi S.", "Bantul"),
    ("2304", "Dewi", "Sleman"),
    ("", "Eko", "Solo"),
    ("2305", "", "S"),
)
"""A file with an unchanged, a changed and a new record of KEPT, and two invalid rows."""


def by_openpyxl(
    *rows: Iterable[object],
    formats: Mapping[str, str] | None = None,
    several: Mapping[str, Iterable[Iterable[object]]] | None = None,
    hidden: str = "",
    hidden_rows: Iterable[int] = (),
) -> bytes:
    """Return a workbook of one sheet, or of `several` by their names. `formats` are number formats by cell.

    `hidden` is the name of a sheet. The rows are those of the first sheet.
    """
    workbook = openpyxl.Workbook()
    workbook.remove(workbook.active)
    for name, rows_of_sheet in (several or {"Sheet": rows}).items():
        sheet = workbook.create_sheet(name)
        for row in rows_of_sheet:
            sheet.append(list(row))
        if name == hidden:
            sheet.sheet_state = "hidden"
    for cell, number_format in (formats or {}).items():
        workbook.worksheets[0][cell].number_format = number_format
    for number in hidden_rows:
        workbook.worksheets[0].row_dimensions[number].hidden = True
    file = io.BytesIO()
    workbook.save(file)
    return file.getvalue()


def sheet_xml(*rows: bytes, prologue: bytes = b"") -> Iterator[bytes]:
    """Return the XML of a worksheet with these rows."""
    namespace = b'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    yield b'<?xml version="1.0"?>' + prologue + b"<worksheet " + namespace + b"><sheetData>"
    yield from rows
    yield b"</sheetData></worksheet>"


def text_cell(text: bytes) -> bytes:
    return b'<c t="inlineStr"><is><t xml:space="preserve">' + text + b"</t></is></c>"


HEADER_XML = b"<row>" + b"".join(text_cell(name.encode()) for name in HEADER) + b"</row>"


def with_sheet(parts: Iterable[bytes]) -> bytes:
    """Return a workbook whose first sheet is this XML, valid or not."""
    usual, file = io.BytesIO(by_openpyxl(HEADER)), io.BytesIO()
    with (
        zipfile.ZipFile(usual) as source,
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as target,
    ):
        for name in source.namelist():
            if name == "xl/worksheets/sheet1.xml":
                with target.open(name, "w") as part:
                    part.writelines(parts)
            else:
                target.writestr(name, source.read(name))
    return file.getvalue()


def zip_bomb() -> bytes:
    """Return a workbook that is small, and large when it is unpacked."""
    row = b"<row>" + text_cell(b"A" * 100) * 10 + b"</row>"
    return with_sheet(sheet_xml(HEADER_XML, *[row * 1000] * 300))


def cells_of(xlsx: bytes) -> list[list[Any]]:
    workbook = openpyxl.load_workbook(io.BytesIO(xlsx))
    (sheet,) = workbook.worksheets
    return [list(row) for row in sheet.iter_rows()]
