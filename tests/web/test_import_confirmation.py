"""The confirmation of an import: changes since the preview, and forms that no preview sends."""

import base64
import bz2
import json
from collections.abc import Callable
from urllib.parse import quote

import pytest
from spreadsheets import HEADER, IMPORT, KEPT, MIXED, SAVE, Database, Importer, Preview, csv

from mahasiswa import wording

CHANGED = "Sebagian data sudah diubah orang lain sejak pratinjau. Belum ada yang disimpan. Periksa lagi, lalu simpan."
DAMAGED = wording.CONFIRMATION_DAMAGED

# ---- changed between preview and confirmation

MEANWHILE: dict[str, tuple[str, str, dict[str, int]]] = {
    "changed": ("perbarui", "UPDATE mahasiswa SET nama = 'Orang lain' WHERE nim = '2'", {"Baru": 1, "Berubah": 1}),
    "added": ("lewati", "INSERT INTO mahasiswa VALUES ('4', 'Orang lain', 'X')", {"Berubah": 2}),
    "removed": ("perbarui", "DELETE FROM mahasiswa WHERE nim = '2'", {"Baru": 2}),
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
    assert {name: again.counts.get(name, 0) for name in ("Baru", "Berubah")} == {"Baru": 0, "Berubah": 0, **counts}
    assert "Perlu diperbaiki" not in again.counts
    shown = {row.nim: row.after for row in (*again.new, *again.changed)}
    assert shown == {"2": ("Budi S.", "Bantul"), "4": ("Dewi", "Sleman")}
    by_nim = {nim: (nama, alamat) for nim, nama, alamat in before}
    assert all(row.before == by_nim[row.nim] for row in again.changed)
    importer.save(again, "perbarui" if again.changed else "Simpan")
    assert importer.records() == [KEPT[0], ("2", "Budi S.", "Bantul"), KEPT[2], ("4", "Dewi", "Sleman")]


def test_a_skipped_record_may_change_since_the_preview(importer: Importer, other: Database) -> None:
    """The import does not touch the record, so it is no conflict."""
    other.fill(KEPT)
    preview = importer.upload(MIXED)
    other.run("UPDATE mahasiswa SET nama = 'Orang lain' WHERE nim = '2'")
    importer.save(preview, "lewati")
    assert importer.records() == [KEPT[0], ("2", "Orang lain", "Bantul"), KEPT[2], ("4", "Dewi", "Sleman")]


def test_a_blank_cell_does_not_undo_a_change_since_the_preview(importer: Importer, other: Database) -> None:
    """The cell is still blank in the second preview, so the record keeps its newest text."""
    other.fill(KEPT)
    preview = importer.upload(csv(HEADER, ("2", "Budi S.", "")))
    other.run("UPDATE mahasiswa SET alamat = 'Alamat baru' WHERE nim = '2'")
    again = importer.shown(importer.press(preview, "perbarui"), 409)
    assert [(row.before, row.after) for row in again.changed] == [(("Budi", "Alamat baru"), ("Budi S.", "Alamat baru"))]
    importer.save(again, "perbarui")
    assert importer.records()[1] == ("2", "Budi S.", "Alamat baru")


@pytest.mark.parametrize("button", ["lewati", "perbarui"])
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
        answer = importer.press(preview, "perbarui")
    finally:
        other.run("DROP TRIGGER no")
    assert answer.status_code == 503
    assert "Data belum tersimpan" in answer.text
    assert importer.records() == KEPT


# ---- a confirmation that no preview sends


def genuine(importer: Importer) -> str:
    """Return the field that the preview of one new record sends back."""
    return importer.upload(csv(HEADER, ("1", "Ani", "Solo"))).data


def altered(field: str, alter: Callable[[str], str]) -> str:
    """Return the field with its contents altered."""
    text = alter(bz2.decompress(base64.urlsafe_b64decode(field)).decode("utf-8"))
    return base64.urlsafe_b64encode(bz2.compress(text.encode("utf-8", "surrogatepass"))).decode()


@pytest.mark.parametrize("damage", ["", "another format", "no number"])
def test_a_tampered_confirmation_is_refused(importer: Importer, damage: str) -> None:
    """The page is the form again. The original would be written. `test_form_field.py` has many more damages."""
    field = genuine(importer)
    damaged = altered(field, lambda text: text.replace("[1,1]", "[1,NaN]")) if damage == "no number" else damage
    assert importer.refused(importer.site.post(SAVE, {"data": damaged, "ada": "perbarui"})) == DAMAGED
    assert importer.records() == []
    assert importer.site.post(SAVE, {"data": field, "ada": "perbarui"}).status_code == 302
    assert importer.records() == [("1", "Ani", "Solo")]


@pytest.mark.parametrize("nim", [".", "..", "9" * 256, "1\\n" + "2" * 254], ids=["dot", "dots", "long", "long lines"])
def test_a_tampered_confirmation_writes_no_nim_that_is_refused(importer: Importer, nim: str) -> None:
    """Its cells are cleaned as those of a file are. A row that the preview has not shown as new is not written."""
    field = altered(genuine(importer), lambda text: text.replace('"NIM","1"', f'"NIM","{nim}"'))
    importer.shown(importer.site.post(SAVE, {"data": field}), 409)
    assert importer.records() == []


@pytest.mark.parametrize(
    "form",
    ["", "ada=perbarui", "data=DATA&data=DATA", "data=%FFDATA"],
    ids=["an empty body", "no data", "data twice", "no UTF-8"],
)
def test_a_damaged_confirmation_is_refused(importer: Importer, form: str) -> None:
    """It is not repaired, because the person has not seen the result."""
    body = form.replace("DATA", quote(genuine(importer))).encode()
    answer = importer.site.send("POST", SAVE, body, content_type="application/x-www-form-urlencoded")
    assert importer.refused(answer) == DAMAGED
    assert importer.records() == []


def test_a_confirmation_of_more_than_10000_rows_is_refused(importer: Importer) -> None:
    columns = [[title, *map(str, range(10_001))] for title in HEADER]
    field = altered(
        genuine(importer),
        lambda text: json.dumps(
            [*json.loads(text)[:2], [["", [1] * 10_002, columns]], *json.loads(text)[3:]], separators=(",", ":")
        ),
    )
    words = importer.refused(importer.site.post(SAVE, {"data": field}))
    assert words.startswith("Berkas ini berisi lebih dari 10.000 baris.")
    assert importer.records() == []


def test_a_confirmation_over_8_mib_is_refused(importer: Importer) -> None:
    """The page names the limit, which holds for the form as it is sent and for its unpacked contents."""
    answer = importer.site.post(SAVE, {"data": "x" * (8 << 20)})
    assert answer.status_code == 413
    assert "8 MB" in Preview(answer.text, IMPORT).tree.css("main p")[0].text()
    bomb = base64.urlsafe_b64encode(bz2.compress(bytes(1 << 27))).decode()
    assert len(bomb) < 1 << 12
    words = importer.refused(importer.site.post(SAVE, {"data": bomb}))
    assert words.startswith("Isi pratinjau ini melebihi 8 MB.")
    assert importer.records() == []


@pytest.mark.parametrize(
    ("target", "kind"), [(SAVE, "application/json"), (SAVE, "multipart/form-data"), (IMPORT, "application/json")]
)
def test_an_import_that_is_not_a_form_is_refused(importer: Importer, target: str, kind: str) -> None:
    """The response is a page."""
    answer = importer.site.send("POST", target, b'{"data": []}', content_type=kind)
    assert answer.status_code in {400, 415}
    assert "Kembali ke daftar" in answer.text or "Impor Data Mahasiswa" in answer.text
