"""Spreadsheets as real programs make them, and a visitor who imports them and reads the preview."""

import io
import json
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import openpyxl  # type: ignore[import-untyped]
import pytest
import xlsxwriter  # type: ignore[import-untyped]
from harness import Page, Service, Site
from selectolax.lexbor import LexborNode

HEADER = ("NIM", "Nama", "Alamat")
SHEET = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
IMPORT = "/mahasiswa/impor"
SAVE = "/mahasiswa/impor/simpan"
SOFFICE_SECONDS = 120.0

Record = tuple[str, str, str]


# A process of its own, because closing a descriptor of this file by Python's sqlite3 would drop the locks that APSW may
# hold in this one.
OTHER_PROGRAM = """
import json, sqlite3, sys
db = sqlite3.connect(sys.argv[1], timeout=30, isolation_level=None)
for line in sys.stdin:
    statement, *values = json.loads(line)
    print(json.dumps(db.execute(statement, values).fetchall()), flush=True)
"""


class Database:
    """The service's own SQLite file in the hands of another program."""

    def __init__(self, path: Path) -> None:
        command = [sys.executable, "-c", OTHER_PROGRAM, str(path)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, statement: str, *values: str) -> list[list[Any]]:
        """Run one statement; return its rows when it is committed."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps([statement, *values]) + "\n")
        self.process.stdin.flush()
        rows: list[list[Any]] = json.loads(self.process.stdout.readline())
        return rows

    def fill(self, records: Iterable[Sequence[str]]) -> None:
        """Replace all records, whatever their texts hold."""
        self.run("DELETE FROM mahasiswa")
        self.run(
            "INSERT INTO mahasiswa (nim, nama, alamat) SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(?)",
            json.dumps(list(records)),
        )

    def close(self) -> None:
        """End it."""
        self.process.communicate()


class Button(NamedTuple):
    """A button that sends its form, and what it sends of its own."""

    text: str
    name: str
    value: str


class Shown(NamedTuple):
    """A row of a preview; `before` is None where it shows no older texts."""

    number: int
    nim: str
    after: tuple[str, str]
    before: tuple[str, str] | None = None


class Preview(Page):
    """What the page of a preview says, as a person reads it."""

    @property
    def counts(self) -> dict[str, int]:
        """The four counts by their names."""
        names, numbers = (self._texts(f".summary {tag}") for tag in ("dt", "dd"))
        return {name: int(number.replace(".", "")) for name, number in zip(names, numbers, strict=True)}

    @property
    def alert(self) -> str:
        """What is said first of all, or nothing."""
        return " ".join(self._texts("[role=alert]"))

    @property
    def wrong(self) -> list[str]:
        """The rows to be corrected: row number, reason, and the cells as they stand in the file."""
        return [" ".join(text.split()) for text in self._texts(".rows .bad")]

    @property
    def noticed(self) -> list[str]:
        """The rows to look at: row number, what was cleaned or is doubtful, and the cells as they will be written."""
        return [" ".join(text.split()) for text in self._texts(".rows li:not(.bad)")]

    @property
    def changed(self) -> list[Shown]:
        """The rows that change a record."""
        rows = self.tree.css("section .compare tbody tr")
        return [
            Shown(int(number.text()), nim.text(), _lines(after), _lines(before))
            for number, nim, before, after in (row.css("td") for row in rows)
        ]

    @property
    def new(self) -> list[Shown]:
        """The rows that add a record."""
        return self._folded("Baru")

    @property
    def same(self) -> list[Shown]:
        """The rows that change nothing."""
        return self._folded("Tidak berubah")

    @property
    def buttons(self) -> list[Button]:
        """The buttons that write."""
        attributes = [(node.text(), node.attributes) for node in self.tree.css("main form button[type=submit]")]
        return [Button(text, str(of.get("name")), str(of.get("value"))) for text, of in attributes]

    @property
    def data(self) -> str:
        """The one field that holds the rows to write."""
        (field,) = self.tree.css("main form input")
        assert (field.attributes["type"], field.attributes["name"]) == ("hidden", "data")
        return str(field.attributes["value"])

    def _folded(self, heading: str) -> list[Shown]:
        for node in self.tree.css("details"):
            (summary,) = node.css("summary")
            if summary.text().startswith(heading):
                cells = [[cell.text() for cell in row.css("td")] for row in node.css("tbody tr")]
                return [Shown(int(number), nim, (nama, alamat)) for number, nim, nama, alamat in cells]
        return []


class Importer:
    """A visitor who imports through the pages."""

    def __init__(self, site: Site) -> None:
        self.site = site

    def send(self, data: bytes = b"", name: str = "", pasted: str = "") -> httpx.Response:
        """Send the form as a browser does: both fields, also where nothing was chosen or typed."""
        kind = "text/csv" if name.endswith(".csv") else "application/octet-stream"
        return self.site.client.post(
            self.site.path(IMPORT), files={"berkas": (name, data, kind)}, data={"tempel": pasted}
        )

    def upload(self, data: bytes, name: str = "daftar.csv") -> Preview:
        """Send a file; the answer must be a preview."""
        return self.shown(self.send(data, name))

    def paste(self, text: str) -> Preview:
        """Send cells; the answer must be a preview."""
        return self.shown(self.send(pasted=text))

    def refused(self, answer: httpx.Response, status: int = 400) -> str:
        """Return what the form's page says of a file that was refused."""
        page = Preview(answer.text, str(answer.url))
        assert (answer.status_code, page.headings) == (status, ["Impor Data Mahasiswa"])
        return page.alert

    def shown(self, answer: httpx.Response, status: int = 200) -> Preview:
        """Return an answer as the preview it must be."""
        assert answer.status_code == status, Preview(answer.text, str(answer.url)).alert
        page = Preview(answer.text, str(answer.url))
        assert page.headings[0] == "Pratinjau Impor"
        return page

    def press(self, preview: Preview, text: str) -> httpx.Response:
        """Press the button that begins with this text."""
        (button,) = [button for button in preview.buttons if button.text.startswith(text)]
        (form,) = [form for form in preview.forms if "data" in form.values]
        return self.site.post(form.target, {"data": preview.data, button.name: button.value})

    def save(self, preview: Preview, text: str = "Simpan") -> None:
        """Press the button, which must write."""
        answer = self.press(preview, text)
        assert (answer.status_code, answer.headers["location"]) == (302, self.site.path("/")), answer.text
        assert not answer.content

    def records(self) -> list[Record]:
        """Return every record, as the list shows them."""
        return [(nim, nama, alamat) for _, nim, nama, alamat in self.site.list().rows]


@pytest.fixture(scope="module", name="database")
def own_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return where the module's service keeps its records."""
    return tmp_path_factory.mktemp("service") / "mahasiswa.db"


@pytest.fixture(scope="module", name="service")
def own_service(database: Path) -> Iterator[Service]:
    """Start a service on that file."""
    with Service(database) as service:
        yield service


@pytest.fixture(scope="module", name="site")
def own_site(service: Service) -> Iterator[Site]:
    """Visit the service."""
    with service.site() as site:
        yield site


@pytest.fixture(scope="module", name="other")
def another_program(service: Service, database: Path) -> Iterator[Database]:
    """Write to its file from elsewhere."""
    assert service, "it makes the table"
    other = Database(database)
    yield other
    other.close()


def csv(*rows: Sequence[str], separator: str = ";", encoding: str = "utf-8", end: str = "\r\n") -> bytes:
    """Return a CSV file as somebody writes it who knows of no quotes."""
    return "".join(separator.join(row) + end for row in rows).encode(encoding)


def by_openpyxl(*rows: Sequence[object], formats: Mapping[str, str] | None = None) -> bytes:
    """Return a workbook; `formats` are number formats by cell."""
    workbook = openpyxl.Workbook()
    for row in rows:
        workbook.active.append(list(row))
    for cell, number_format in (formats or {}).items():
        workbook.active[cell].number_format = number_format
    file = io.BytesIO()
    workbook.save(file)
    return file.getvalue()


def by_xlsxwriter(*rows: Sequence[str]) -> bytes:
    """Return a workbook of texts."""
    file = io.BytesIO()
    with xlsxwriter.Workbook(file, {"strings_to_formulas": False, "strings_to_urls": False}) as workbook:
        sheet = workbook.add_worksheet()
        for number, row in enumerate(rows):
            for column, text in enumerate(row):
                sheet.write_string(number, column, text)
    return file.getvalue()


def by_libreoffice(data: bytes, ending: str, folder: Path, *, filter_options: str = "") -> bytes:
    """Return a workbook as LibreOffice saves it with another ending, or skip where there is no LibreOffice."""
    soffice = shutil.which("soffice")
    if soffice is None:
        pytest.skip("LibreOffice is not installed")
    source = folder / "source.xlsx"
    source.write_bytes(data)
    profile = f"-env:UserInstallation={(folder / 'profile').as_uri()}"
    target = f"{ending}:{filter_options}" if filter_options else ending
    command = [soffice, profile, "--headless", "--convert-to", target, "--outdir", str(folder / "out"), str(source)]
    subprocess.run(command, check=True, capture_output=True, timeout=SOFFICE_SECONDS)
    return (folder / "out" / f"source.{ending}").read_bytes()


def cells_of(xlsx: bytes) -> list[list[Any]]:
    """Return the cells of a workbook's one sheet, read by a program that is not ours."""
    workbook = openpyxl.load_workbook(io.BytesIO(xlsx))
    (sheet,) = workbook.worksheets
    return [list(row) for row in sheet.iter_rows()]


def _lines(cell: LexborNode) -> tuple[str, str]:
    """The two texts of a cell, one above the other."""
    nama, alamat = cell.text(separator="\n").strip("\n").split("\n")
    return nama, alamat
