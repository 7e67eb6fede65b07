"""The confirmation of an import: changes since the preview, and forms that no preview sends."""

import json
from collections.abc import Callable
from functools import partial
from urllib.parse import quote

import pytest
from spreadsheets import (
    HEADER,
    IMPORT,
    KEPT,
    MIXED,
    SAVE,
    Database,
    Importer,
    Preview,
    another_program,
    csv,
    own_database,
    own_importer,
    own_service,
    own_site,
)

# The fixtures, which pytest finds by these names.
__all__ = ["another_program", "own_database", "own_importer", "own_service", "own_site"]

CHANGED = "Sebagian data sudah diubah orang lain sejak pratinjau. Belum ada yang disimpan. Periksa lagi, lalu simpan."
DAMAGED = "Data yang akan disimpan tidak lengkap atau berubah. Ulangi dari unggah berkas."

# ---- changed between preview and confirmation

MEANWHILE: dict[str, tuple[str, str, dict[str, int]]] = {
    "changed": ("Perbarui", "UPDATE mahasiswa SET nama = 'Orang lain' WHERE nim = '2'", {"Baru": 1, "Berubah": 1}),
    "added": ("Lewati", "INSERT INTO mahasiswa VALUES ('4', 'Orang lain', 'X')", {"Baru": 0, "Berubah": 2}),
    "removed": ("Perbarui", "DELETE FROM mahasiswa WHERE nim = '2'", {"Baru": 2, "Berubah": 0}),
}


@pytest.mark.parametrize(("button", "statement", "counts"), MEANWHILE.values(), ids=MEANWHILE)
def test_an_import_does_not_overwrite_a_change_since_the_preview(
    importer: Importer, other: Database, button: str, statement: str, counts: dict[str, int]
) -> None:
    """Nothing is written. A new preview compares the file with the list of now, and can be confirmed."""
    other.fill(KEPT)
    rows = csv(HEADER, ("2", "Budi S.", "Bantul"), ("4", "Dewi", "Sleman"))
    preview = importer.upload(rows)
    other.run(statement)
    before = importer.records()
    again = importer.shown(importer.press(preview, button), 409)
    assert again.alert == CHANGED
    assert importer.records() == before
    assert {name: again.counts[name] for name in counts} == counts
    assert again.counts["Perlu diperbaiki"] == 0
    shown = {row.nim: row.after for row in (*again.new, *again.changed)}
    assert shown == {"2": ("Budi S.", "Bantul"), "4": ("Dewi", "Sleman")}
    by_nim = {nim: (nama, alamat) for nim, nama, alamat in before}
    assert all(row.before == by_nim[row.nim] for row in again.changed)
    importer.save(again, "Perbarui" if again.changed else "Simpan")
    assert importer.records() == [KEPT[0], ("2", "Budi S.", "Bantul"), KEPT[2], ("4", "Dewi", "Sleman")]


def test_a_skipped_record_may_change_since_the_preview(importer: Importer, other: Database) -> None:
    """The import does not touch the record, so it is no conflict."""
    other.fill(KEPT)
    preview = importer.upload(MIXED)
    other.run("UPDATE mahasiswa SET nama = 'Orang lain' WHERE nim = '2'")
    importer.save(preview, "Lewati")
    assert importer.records() == [KEPT[0], ("2", "Orang lain", "Bantul"), KEPT[2], ("4", "Dewi", "Sleman")]


def test_a_blank_cell_does_not_undo_a_change_since_the_preview(importer: Importer, other: Database) -> None:
    """The cell is still blank in the second preview, so the record keeps its newest text."""
    other.fill(KEPT)
    preview = importer.upload(csv(HEADER, ("2", "Budi S.", "")))
    other.run("UPDATE mahasiswa SET alamat = 'Alamat baru' WHERE nim = '2'")
    again = importer.shown(importer.press(preview, "Perbarui"), 409)
    assert [(row.before, row.after) for row in again.changed] == [(("Budi", "Alamat baru"), ("Budi S.", "Alamat baru"))]
    importer.save(again, "Perbarui")
    assert importer.records()[1] == ("2", "Budi S.", "Alamat baru")


def test_a_second_preview_keeps_the_row_numbers_of_the_file(importer: Importer, other: Database) -> None:
    """A person finds the row in the file by its number."""
    other.fill(KEPT)
    preview = importer.upload(csv(("Daftar",), HEADER, ("1", "Ani", "Solo"), ("4", "Dewi", "Sleman"), ("2", "B", "C")))
    numbers = {row.nim: row.number for row in (*preview.new, *preview.changed)}
    assert numbers == {"4": 4, "2": 5}
    other.run("DELETE FROM mahasiswa WHERE nim = '2'")
    again = importer.shown(importer.press(preview, "Perbarui"), 409)
    assert {row.nim: row.number for row in (*again.new, *again.changed)} == numbers


@pytest.mark.parametrize("button", ["Lewati", "Perbarui"])
def test_a_confirmation_may_be_sent_twice(importer: Importer, other: Database, button: str) -> None:
    """A second click is no conflict, because the records are as it wants them."""
    other.fill(KEPT)
    preview = importer.upload(MIXED)
    importer.save(preview, button)
    records = importer.records()
    importer.save(preview, button)
    assert importer.records() == records


def test_an_import_writes_all_rows_or_none(importer: Importer, other: Database) -> None:
    """If another program's trigger refuses one row, none is written, and the page says so."""
    other.fill(KEPT)
    other.run("CREATE TRIGGER no BEFORE INSERT ON mahasiswa WHEN NEW.nim = '8' BEGIN SELECT RAISE(ABORT, 'no'); END")
    try:
        preview = importer.upload(csv(HEADER, ("2", "X", "Y"), ("7", "A", "B"), ("8", "C", "D"), ("9", "E", "F")))
        answer = importer.press(preview, "Perbarui")
    finally:
        other.run("DROP TRIGGER no")
    assert answer.status_code == 503
    assert "Data belum tersimpan" in answer.text
    assert importer.records() == KEPT


# ---- a confirmation that no preview sends

Rows = list[list[object]]


def swapped(old: object, new: object) -> Callable[[Rows], object]:
    """Return a function that replaces every cell equal to `old` by `new`."""
    return lambda rows: [[new if cell == old and type(cell) is type(old) else cell for cell in row] for row in rows]


TAMPERED: dict[str, Callable[[Rows], object]] = {
    "no list": lambda rows: {"rows": rows},
    "a list less": lambda rows: rows[0],
    "a list more": lambda rows: [rows],
    "a cell less": lambda rows: [rows[0][:-1]],
    "a cell more": lambda rows: [[*rows[0], None]],
    "a null": swapped("Ani", None),
    "a number": swapped("1", 1),
    "a boolean": swapped("Solo", new=True),
    "a list in a list": swapped("1", ["1"]),
    "a dot": swapped("1", "."),
    "dots": swapped("1", ".."),
    "a long nim": swapped("1", "9" * 256),
    "a NUL": swapped("Ani", "A\0ni"),
    "half a surrogate pair": swapped("Ani", "\ud83d"),
    "a nim twice": lambda rows: rows * 2,
    "a version that is none": swapped(None, "x"),
    "a version of another kind": swapped(None, 5),
}


as_field = partial(json.dumps, separators=(",", ":"))
"""JSON as a preview sends it, without spaces."""


def genuine(importer: Importer) -> Rows:
    """Return the row that a preview sends back, as JSON."""
    rows: Rows = json.loads(importer.upload(csv(HEADER, ("1", "Ani", "Solo"))).data)
    (row,) = rows
    assert {"1", "Ani", "Solo", None} <= set(row)
    return rows


@pytest.mark.parametrize("tamper", TAMPERED.values(), ids=TAMPERED)
def test_a_tampered_confirmation_is_refused(importer: Importer, tamper: Callable[[Rows], object]) -> None:
    """Nothing is written, and the page is the form again. The original confirmation would be written."""
    rows = genuine(importer)
    sent = as_field(tamper(rows))
    assert importer.refused(importer.site.post(SAVE, {"data": sent, "ada": "perbarui"})) == DAMAGED
    assert importer.records() == []
    assert importer.site.post(SAVE, {"data": as_field(rows), "ada": "perbarui"}).status_code == 302
    assert importer.records() == [("1", "Ani", "Solo")]


@pytest.mark.parametrize("data", ["", "[[", "NaN", "null", "[" * 100_000, "\ufeff[]"], ids=lambda data: repr(data[:8]))
def test_a_confirmation_that_is_not_json_is_refused(importer: Importer, data: str) -> None:
    assert importer.refused(importer.site.post(SAVE, {"data": data})) == DAMAGED


@pytest.mark.parametrize(
    "form",
    ["", "ada=perbarui", "data=DATA&data=DATA", "data=DATAX"],
    ids=["an empty body", "no data", "data twice", "no UTF-8"],
)
def test_a_damaged_confirmation_is_refused(importer: Importer, form: str) -> None:
    """Its text is not repaired, because the person has not seen the result."""
    data = quote(as_field(genuine(importer)))
    body = form.replace("DATAX", data.replace("Ani", "A%FF")).replace("DATA", data).encode()
    answer = importer.site.send("POST", SAVE, body, content_type="application/x-www-form-urlencoded")
    assert importer.refused(answer) == DAMAGED
    assert importer.records() == []


def test_a_confirmation_of_more_than_10000_rows_is_refused(importer: Importer) -> None:
    rows = genuine(importer)
    many = [row for n in range(10_001) for row in swapped("1", str(n))(rows)]  # type: ignore[attr-defined]
    words = importer.refused(importer.site.post(SAVE, {"data": as_field(many)}))
    assert words.startswith("Data yang akan disimpan melebihi 10.000 baris.")
    assert importer.records() == []


def test_a_confirmation_over_8_mib_is_refused(importer: Importer) -> None:
    """The page names the limit."""
    answer = importer.site.post(SAVE, {"data": as_field(swapped("Solo", "x" * (8 << 20))(genuine(importer)))})
    assert answer.status_code == 413
    words = Preview(answer.text, IMPORT).tree.css("main p")[0].text()
    assert "8 MB" in words
    assert importer.records() == []


def test_a_conflict_in_the_largest_confirmation_is_refused(importer: Importer, other: Database) -> None:
    """The second preview would be too large, so the page says that, and nothing is written."""
    rows = genuine(importer)
    other.fill(KEPT)
    data = as_field(swapped("Solo", "x" * ((8 << 20) - 200))(rows))
    words = importer.refused(importer.site.post(SAVE, {"data": data}))
    assert words.startswith("Data yang akan disimpan melebihi 8 MB.")
    assert importer.records() == KEPT


@pytest.mark.parametrize(
    ("target", "kind"), [(SAVE, "application/json"), (SAVE, "multipart/form-data"), (IMPORT, "application/json")]
)
def test_an_import_that_is_not_a_form_is_refused(importer: Importer, target: str, kind: str) -> None:
    """The response is a page."""
    answer = importer.site.send("POST", target, b'{"data": []}', content_type=kind)
    assert answer.status_code in {400, 415}
    assert "Kembali ke daftar" in answer.text or "Impor Data Mahasiswa" in answer.text
