"""The import: pasted cells, the template, the records that a confirmation writes, and refused confirmations."""

import re
from io import BytesIO
from pathlib import Path

import openpyxl  # type: ignore[import-untyped]
import pytest
from harness import URL_ENCODED, Site, led_to, visited
from hypothesis import given, settings
from hypothesis import strategies as st
from spreadsheets import (
    HEADER,
    IMPORT,
    KEPT,
    MIXED,
    SAVE,
    SHEET,
    Database,
    Importer,
    Preview,
    as_records,
    by_openpyxl,
    csv,
    with_columns,
)
from visitor import page_of

from mahasiswa import wording
from mahasiswa.sheets import public as sheets

CHANGED = "Sebagian data sudah diubah orang lain sejak pratinjau. Belum ada yang disimpan. Periksa lagi, lalu simpan."


def test_cells_pasted_from_excel_are_imported(importer: Importer) -> None:
    """A cell with a line break has quotes around it. If a file was given too, only the file is read."""
    pasted = (
        'NIM\tNama\tAlamat\r\n007\tAni "A"\t"Baris satu\r\nbaris ""dua"""\r\n008\t"Budi"\tSolo\r\n'
    )
    importer.save(importer.paste(pasted))
    assert importer.records == as_records('007|Ani "A"|Baris satu, baris "dua"', '008|"Budi"|Solo')
    nothing = "Pilih berkas atau tempel data dari Excel, lalu lanjutkan ke pratinjau."
    assert (
        importer.refused(importer.send(pasted=" \r\n\t "))
        == importer.refused(importer.send())
        == nothing
    )
    both = importer.send(
        csv(HEADER, ("1", "Berkas", "A")), "a.csv", "NIM\tNama\tAlamat\n2\tTempel\tB"
    )
    assert [row.nim for row in importer.shown(both).new] == ["1"]


def test_the_template_passes_its_own_import_empty_and_filled_in(importer: Importer) -> None:
    """The empty template has nothing to save. A row that another program adds is imported."""
    answer = importer.site.get(importer.site.page(IMPORT).target("Unduh templat Excel"))
    assert answer.headers["content-type"] == SHEET
    assert answer.headers["content-disposition"] == 'attachment; filename="templat-mahasiswa.xlsx"'
    preview = importer.upload(answer.content, "templat.xlsx")
    assert (preview.alert, preview.counts, preview.buttons) == (wording.TEMPLATE_EMPTY, {}, [])
    workbook = openpyxl.load_workbook(BytesIO(answer.content))
    assert [cell.value for cell in workbook.active[1]] == list(HEADER)
    for column, text in enumerate(("00012", "Ani", "Solo"), 1):
        workbook.active.cell(2, column, text)
    file = BytesIO()
    workbook.save(file)
    importer.save(importer.upload(file.getvalue(), "templat.xlsx"))
    assert importer.records == [("00012", "Ani", "Solo")]


# ---- any file and any list
NIM = st.text("0123456789/A", min_size=3, max_size=5).filter(lambda nim: nim.strip("/A"))
TEXT = (
    st.text('aé;,"<\t =-', max_size=6)
    .map(lambda text: f"N{text}N")
    .filter(lambda text: not re.search("[ \t]{2}", text))
)
ROWS = st.dictionaries(NIM, st.tuples(TEXT, TEXT), max_size=12)


@given(ROWS, ROWS, st.booleans())
@settings(max_examples=60)
def test_an_import_writes_what_a_model_of_it_writes(
    site: Site,
    other: Database,
    stored: dict[str, tuple[str, str]],
    file: dict[str, tuple[str, str]],
    update: object,
) -> None:
    """It holds for any stored records, any file and either choice, and for the counts of the preview."""
    importer = Importer(site)
    other.fill([(nim, *texts) for nim, texts in stored.items()])
    quoted = [
        ['"' + cell.replace('"', '""') + '"' for cell in (nim, *texts)]
        for nim, texts in file.items()
    ]
    preview = importer.upload(csv(HEADER, *quoted))
    new = file.keys() - stored.keys()
    changed = {nim for nim in file.keys() & stored.keys() if file[nim] != stored[nim]}
    counts = {
        "Baru": len(new),
        "Berubah": len(changed),
        "Tidak berubah": len(file) - len(new) - len(changed),
    }
    assert {name: preview.counts.get(name, 0) for name in counts} == counts
    if preview.buttons:
        sent = {"data": preview.data, "ada": "perbarui" if update else "lewati"}
        answer = site.post(SAVE, [*sent.items(), *(("benar[]", tick) for tick in preview.answers)])
        assert answer.status_code == 302
    assert bool(preview.buttons) == bool(new or changed)
    expected = {**file, **stored, **(file if update else {})}
    assert importer.records == sorted((nim, *texts) for nim, texts in expected.items())


# ---- changed between preview and confirmation
@pytest.mark.parametrize("ada", ["", "hapus", "lewati", "perbarui"])
def test_an_import_updates_existing_records_only_if_told_to(
    importer: Importer, other: Database, ada: str
) -> None:
    """Otherwise it skips them, and they may have changed meanwhile. A second click is no conflict."""
    other.fill(KEPT)
    preview = importer.upload(MIXED)
    second = ("2", "Budi S.", "Bantul")
    if ada != "perbarui":
        other.run("UPDATE mahasiswa SET nama = 'Orang lain' WHERE nim = '2'")
        second = ("2", "Orang lain", "Bantul")
    sent = {"data": preview.data} | ({"ada": ada} if ada else {})
    for _ in range(2):
        assert importer.site.post(SAVE, sent).status_code == 302
        assert importer.records == [KEPT[0], second, KEPT[2], ("4", "Dewi", "Sleman")]


BUDI, DEWI, CITRA = (
    ("Budi S.", "Bantul"),
    ("Dewi", "Sleman"),
    ("3", ("Citra", "Klaten"), ("Citra A.", "Klaten")),
)
MEANWHILE = {
    "changed": (
        "UPDATE mahasiswa SET nama = 'Lain', alamat = 'X' WHERE nim IN ('2', '3')",
        [("4", None, DEWI), ("2", ("Lain", "X"), BUDI), ("3", ("Lain", "X"), ("Citra A.", "X"))],
    ),
    "added": (
        "INSERT INTO mahasiswa VALUES ('4', 'Lain', 'X')",
        [("2", ("Budi", "Bantul"), BUDI), CITRA, ("4", ("Lain", "X"), DEWI)],
    ),
    "removed": (
        "DELETE FROM mahasiswa WHERE nim = '2'",
        [("2", None, BUDI), ("4", None, DEWI), CITRA],
    ),
    "an unchanged one removed": (
        "DELETE FROM mahasiswa WHERE nim = '1'",
        [("1", None, KEPT[0][1:]), ("4", None, DEWI), ("2", ("Budi", "Bantul"), BUDI), CITRA],
    ),
}


@pytest.mark.parametrize(("statement", "shown"), MEANWHILE.values(), ids=MEANWHILE)
def test_an_import_does_not_overwrite_a_change_since_the_preview(
    importer: Importer,
    other: Database,
    statement: str,
    shown: list[tuple[str, object, tuple[str, str]]],
) -> None:
    """A new preview compares the file with the list of now. A blank cell is still blank, so the newest text stays."""
    other.fill(KEPT)
    rows = (KEPT[0], ("2", *BUDI), ("3", "Citra A.", ""), ("4", *DEWI))
    preview = importer.upload(csv(HEADER, *rows))
    other.run(statement)
    before = importer.records
    again = importer.shown(
        importer.press(preview, "lewati" if "INSERT" in statement else "perbarui"), 409
    )
    assert (again.alert, importer.records) == (CHANGED, before)
    assert [(row.nim, row.before, row.after) for row in (*again.new, *again.changed)] == shown
    assert "Perlu diperbaiki" not in again.counts
    importer.save(again, "perbarui")
    written = {nim: (nim, *after) for nim, _, after in shown}
    assert importer.records == sorted(({"1": KEPT[0]} | written).values())


def test_an_import_writes_all_rows_or_none(importer: Importer, other: Database) -> None:
    other.fill(KEPT)
    other.run(
        "CREATE TRIGGER no BEFORE INSERT ON mahasiswa WHEN NEW.nim = '8' BEGIN SELECT RAISE(ABORT, 'no'); END"
    )
    try:
        preview = importer.upload(
            csv(HEADER, ("2", "X", "Y"), ("7", "A", "B"), ("8", "C", "D"), ("9", "E", "F"))
        )
        answer = importer.press(preview, "perbarui")
    finally:
        other.run("DROP TRIGGER no")
    assert (answer.status_code, "Data belum tersimpan" in answer.text) == (503, True)
    assert importer.records == KEPT


# ---- a confirmation writes exactly the changes that its preview has shown
ANI, BUDI_A = ("5000000001", "Ani", "Solo"), ("5000000002", "Budi", "Jl. Wates 2")
OTHER_TITLES = {
    "a running number and the name first": ("No|Nama|NIM|Alamat", ["1", "Budi", *BUDI_A[::2]]),
    "name and address exchanged": ("NIM|Alamat|Nama", [BUDI_A[0], *BUDI_A[:0:-1]]),
    "the same columns with other titles": ("NPM|Nama|Alamat", BUDI_A),
    "none": ("", BUDI_A),
}


def new_records(preview: Preview) -> list[tuple[str, ...]]:
    """Return the records that a preview of several sheets shows as new, with all of their rows."""
    rows = preview.tree.css("#baru tbody tr")
    return [tuple(cell.text() for cell in row.css("td")[1:]) for row in rows]


@pytest.mark.parametrize("titles", OTHER_TITLES)
def test_sheets_with_other_titles_are_saved_as_their_preview_shows_them(
    importer: Importer, titles: str
) -> None:
    """Each sheet has its own columns: the form sends them back, and nobody has chosen them for other sheets."""
    line, texts = OTHER_TITLES[titles]
    of_b = [*[line.split("|")] * bool(line), texts]
    file = by_openpyxl(several={"A": [HEADER, ANI], "B": of_b})
    every = importer.upload(file, "a.xlsx")
    if not line:
        every = importer.read_all_sheets(every)
    assert new_records(every) == [ANI, BUDI_A]
    assert not every.questions
    importer.save(importer.check_again(every))
    assert importer.records == [ANI, BUDI_A]


UNTITLED = {
    "phones in the place of addresses": (("5000000002", "Budi", "0812345678"), "-"),
    "another column before the address": (("5000000002", "Budi", "L", "Jl. Wates 2"), "D"),
    "another column behind a place": (("5000000002", "Budi", "Bantul", "Jl. Wates 2"), "C"),
}


@pytest.mark.parametrize(("row", "alamat"), UNTITLED.values(), ids=UNTITLED)
def test_a_sheet_without_titles_whose_cells_are_others_is_a_question(
    importer: Importer, row: tuple[str, ...], alamat: str
) -> None:
    """It takes the columns of the sheet before only if all of its cells fit them."""
    preview = importer.upload(by_openpyxl(several={"A": [HEADER, ANI], "B": [row]}), "a.xlsx")
    every = importer.read_all_sheets(preview)
    assert every.letters == f"ABCAB{alamat}"
    (question,) = every.questions
    assert question.startswith("Judul kolom tidak ditemukan.")


def test_columns_that_were_chosen_belong_to_the_sheets_with_the_same_titles(
    importer: Importer,
) -> None:
    """A sheet with titles of its own is read by these, in the preview and in the confirmation."""
    titles = (*HEADER, "Asal")
    file = by_openpyxl(
        several={
            "A": [titles, (*ANI, "Klaten")],
            "B": [titles, ("3", "Citra", "Solo", "Wates")],
            "C": as_records("Nama|Alamat|NIM", "Budi|Jl. Wates 2|5000000002"),
        }
    )
    every = importer.upload(file, "a.xlsx")
    of_ab = with_columns(every, part=0, A="nim", B="nama", D="alamat")
    chosen = importer.check_again(every, **of_ab)
    new = [("3", "Citra", "Wates"), (*ANI[:2], "Klaten"), BUDI_A]
    assert sorted(new_records(chosen)) == new
    importer.save(importer.check_again(chosen))
    assert importer.records == new


def tampered(field: str, key: str, **inputs: object) -> str:
    """Return the field of a preview with other inputs, and the digests of what the preview has shown."""
    signing_key = bytes.fromhex(key)
    file = sheets.load(field, signing_key)
    if "roles" in inputs:
        inputs = {"chosen_columns": {file.tables[0].key: inputs["roles"]}}
    return sheets.dump(file._replace(**inputs), signing_key)  # type: ignore[arg-type]


INPUTS: dict[str, dict[str, object]] = {
    "columns": {"roles": {0: "nim", 1: "alamat", 2: "nama"}},
    "sheets": {"read_sheets": ["A", "B"]},
    "typed": {"typed": {4: ("4", "Dewi X", "Sleman")}},
    "left out": {"typed": {4: sheets.LEFT_OUT}},
    "accepted": {"accepted": frozenset({5})},
    "filled": {"fills_alamat": True},
    "repairs": {"repairs": ("nim",)},
}


@pytest.mark.parametrize("button", ["lewati", "perbarui"])
@pytest.mark.parametrize("inputs", INPUTS.values(), ids=INPUTS)
def test_a_confirmation_writes_nothing_that_its_preview_has_not_shown(
    importer: Importer, other: Database, inputs: dict[str, object], button: str
) -> None:
    """Whichever input of the computation is another one now, the answer is a preview of the changes of now."""
    other.fill(KEPT)
    rows = [KEPT[0], ("2", *BUDI), ("4", *DEWI), ("TAMU", "Fajar", "Solo"), ("6", "Gita", None)]
    rows.append(("NIM. 2300018101", "Hana", "Solo"))
    of_b = as_records("NIM Baru|Nama|Alamat", "2300007|Hadi|Solo")
    file = by_openpyxl(several={"A": [HEADER, *rows], "B": of_b})
    preview = importer.upload(file, "a.xlsx")
    ((key,),) = other.run("SELECT signing_key FROM mahasiswa_history_state")
    field = tampered(preview.data, key, **inputs)
    answer = importer.site.post(SAVE, {"data": field, "ada": button})
    again = importer.shown(answer, 409)
    assert (again.alert, importer.records) == (CHANGED, KEPT)
    importer.save(again, again.buttons[0].value, ticks=True)
    assert importer.records != KEPT


# ---- a confirmation that no preview sends
@pytest.mark.parametrize(
    "form", ["", "ada=perbarui", "data=", "data={0}&data={0}", "data=%FF{0}", "data={1}"]
)
@pytest.mark.parametrize("target", [SAVE, "/mahasiswa/pilih/simpan"])
def test_a_damaged_confirmation_is_refused(
    importer: Importer, other: Database, target: str, form: str
) -> None:
    """Of an import or a selection: the page asks for the file or the NIMs again. The original would be accepted."""
    other.fill(KEPT)
    selection = importer.site.page("/mahasiswa/pilih?cari=ani")
    page = importer.upload(csv(HEADER, ("4", "Dewi", "Solo"))) if target == SAVE else selection
    (field,) = page.values("input[name=data]")
    body = form.format(field, field[:60] + ("A" if field[60] != "A" else "B") + field[61:])
    answer = importer.site.send("POST", target, body.encode(), content_type=URL_ENCODED)
    assert page_of(answer, 400).texts("[role=alert]") == [wording.CONFIRMATION_DAMAGED]
    assert importer.records == KEPT
    assert importer.site.post(target, {"data": field}).status_code == 302


def test_a_preview_is_confirmed_at_every_service_of_its_database_and_at_no_other(
    database: str, tmp_path: Path
) -> None:
    """Also after a new start, because the database keeps the key."""
    with visited(database) as site:
        sent = {"data": Importer(site).upload(csv(HEADER, ("1", "Ani", "Solo"))).data}
    with visited(tmp_path / "b.db") as site:
        refused = Importer(site).refused(site.post(SAVE, sent))
        assert (refused, site.records) == (wording.CONFIRMATION_DAMAGED, [])
    with visited(database) as site:
        assert led_to(site.post(SAVE, sent)) == "/?halaman=1"
        assert site.records == [("1", "Ani", "Solo")]
