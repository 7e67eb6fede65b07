"""Reads the form of a preview: the file that the browser carries, with the repairs of a person."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat

from mahasiswa import sheets, wording
from mahasiswa.digits import whole_number
from mahasiswa.web.preview_view import Alert

FIELDS = (
    "data", "ada", "periksa", "lembar", "kolom[]", "baris[]", "nim[]", "nama[]", "alamat[]", "benar[]", "lewati[]",
    "pakai[]", "isi",
)  # fmt: skip
"""The fields of a preview's form. Those with brackets are sent several times, in the order of the page."""


def read_sent(sent: Mapping[str, Sequence[str]]) -> tuple[Alert, sheets.CleanedFile]:
    """Return the kind of the repairs in a preview's form, if it has any, and the rows with them. Raises SheetError."""
    # A field that was sent twice did not come from the preview.
    file = sheets.load(sent["data"][0] if len(sent["data"]) == 1 else "")
    cleaned = sheets.clean_again(file)
    # The preview of a bulk delete has no inputs for Nama and Alamat.
    columns = (sent[field] or repeat(None) for field in ("nim[]", "nama[]", "alamat[]"))
    rows = zip(sent["baris[]"], *columns, strict=False)
    repairs = sheets.Repairs(
        chosen(sent["lembar"], sent["kolom[]"]),
        {number: (nim, nama, alamat) for row, nim, nama, alamat in rows for number in numbers([row])},
        numbers(sent["benar[]"]),
        numbers(sent["lewati[]"]),
        fills_alamat=bool(sent["isi"]),
    )
    repaired = sheets.repaired(cleaned, repairs)
    if repaired.repairs() == file.repairs():
        return "", cleaned
    is_typed = (repaired.typed, repaired.accepted) != (file.typed, file.accepted)
    return "repaired" if is_typed else "chosen", sheets.clean_again(repaired)


def chosen(names: Sequence[str], columns: Sequence[str], *, nim_only: bool = False) -> sheets.Choice:
    """The sheets and the columns that a person has chosen. An invalid choice counts as none."""
    names = [name for name in names if len(name) <= sheets.NAME_MAX_CHARACTERS]
    of_fields = [whole_number(column) for column in columns]
    if len(columns) != len(wording.HEADER) or any((column or 0) >= sheets.MAX_TITLES for column in of_fields):
        return sheets.Choice(names, nim_only=nim_only)
    nim, nama, alamat = of_fields
    return sheets.Choice(names, (nim, nama, alamat), nim_only)


def numbers(texts: Iterable[str]) -> set[int]:
    """The numbers of rows in a field that is sent several times."""
    return {number for text in texts if (number := whole_number(text)) is not None}
