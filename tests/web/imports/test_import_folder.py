"""Files of offices in the folder `shared/school_files` beside the checkout: what is stored after one, two and three presses."""

import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import httpx
from processes import cannot
from selectolax.lexbor import LexborNode
from spreadsheets import SAVE, Importer, Record
from visitor import Page

FOLDER = Path(
    os.environ.get("SCHOOL_FILES")
    or Path(__file__).resolve().parents[3].with_name("shared") / "school_files"
)
MOST_PRESSES = 3

NOT_COMPARED = re.compile(
    r"rt|rw|dusun|dsn|ds|desa|kelurahan|kel|kecamatan|kec", re.IGNORECASE
).fullmatch
"""Words that an address may have or lack."""


class Tried(NamedTuple):
    """What a person gets who presses the first button, and then answers each question."""

    by_one: str  # the outcome of the first press: right, wrong, part, asked
    at_last: str
    presses: int
    says: str  # the first alert of the first page
    stored: Sequence[Record]


def try_file(importer: Importer, answer: httpx.Response, want: Sequence[Sequence[Any]]) -> Tried:
    """Press the first button that saves; then each repair; then answer the other questions with ticks."""
    outcomes = []
    page = Page(answer.text, str(answer.url))
    says = " ".join(" ".join(page.texts("main .alert, main .question")[:1]).split())
    ticks = False
    repair: LexborNode | None = None
    for _ in range(MOST_PRESSES):
        form = preview_form(page)
        button = form and (repair or form.css_first("button[name=ada]", strict=False))
        if not form or not button:
            break
        answer = press(importer, form, button, ticks=ticks)
        outcomes.append(outcome(importer.records(), want))
        page = Page(answer.text, str(answer.url))
        form = preview_form(page)
        repair = form and form.css_first("button[name='perbaiki[]']", strict=False)
        ticks = not repair
        if answer.status_code == 302:
            break
    outcomes = outcomes or [outcome(importer.records(), want)]
    return Tried(outcomes[0], outcomes[-1], len(outcomes), says, importer.records())


def preview_form(page: Page) -> LexborNode | None:
    forms = [node for node in page.tree.css("main form") if node.css("input[name=data]")]
    return forms[0] if forms else None


def press(
    importer: Importer, form: LexborNode, button: LexborNode, *, ticks: bool
) -> httpx.Response:
    """Send a form as a browser does. With `ticks` each question is answered with its tick first."""
    fields = [*fields_of(form, ticks=ticks)]
    name, value = (str(button.attributes.get(key) or "") for key in ("name", "value"))
    return importer.site.post(SAVE, [*fields, (name, value)])


def fields_of(form: LexborNode, *, ticks: bool) -> Iterator[tuple[str, str]]:
    for node in form.css("input[name], select[name]"):
        of = node.attributes
        name, kind = str(of["name"]), of.get("type")
        if node.tag == "select":
            options = node.css("option[selected]") or node.css("option")[:1]
            yield from ((name, str(option.attributes.get("value") or "")) for option in options)
        elif kind != "checkbox":
            yield name, of.get("value") or ""
        elif "checked" in of or (ticks and name == "benar[]"):
            yield name, of.get("value") or "on"


def outcome(stored: Sequence[Record], want: Sequence[Sequence[Any]]) -> str:
    """Compare what is stored with what a careful person would store. A row without an address may get `-`."""
    wanted = sorted(comparable(row) for row in want if row[2] is not None)
    open_rows = [(row[0], row[1]) for row in want if row[2] is None]
    found = sorted(
        comparable(row) for row in stored if row[2] != "-" or (row[0], row[1]) not in open_rows
    )
    if found == wanted:
        return "right"
    if not found:
        return "asked"
    return "part" if all(row in wanted for row in found) else "wrong"


def comparable(row: Sequence[str]) -> tuple[str, str, tuple[str, ...]]:
    nim, nama, alamat = row
    words = (word.lstrip("0").casefold() for word in re.findall(r"\w+", alamat))
    return nim, " ".join(nama.split()), tuple(word for word in words if not NOT_COMPARED(word))


def send(importer: Importer, name: str, entry: Mapping[str, Any]) -> httpx.Response:
    if "text" in entry:
        return importer.send(pasted=entry["text"])
    return importer.send((FOLDER / name).read_bytes(), name)


def test_nothing_wrong_is_stored_by_one_press_from_files_of_offices(importer: Importer) -> None:
    """`pytest -s` shows the table. With SHOW=1 it has rows that are stored."""
    try:
        manifest = json.loads((FOLDER / "manifest.json").read_text())
    except OSError as error:
        cannot("try the files of offices", error)
    tried: dict[str, Tried] = {}
    for name, entry in manifest.items():
        for record in importer.records():
            importer.site.delete(record[0])
        tried[name] = try_file(importer, send(importer, name, entry), entry["want"])
    counted = {name: of for name, of in tried.items() if not manifest[name].get("doubtful")}
    by_one = Counter(of.by_one for of in counted.values())
    at_last = Counter(of.at_last for of in counted.values())
    table = [line_of(name, of, counts=name in counted) for name, of in tried.items()]
    table.append(
        f"by one press: {dict(by_one)}; after at most {MOST_PRESSES} presses: {dict(at_last)}"
    )
    sys.stdout.write("\n".join(["", *table, ""]))
    assert tried.keys() == manifest.keys()


def line_of(name: str, of: Tried, *, counts: bool) -> str:
    mark = " " if counts else "?"
    line = f"{mark} {of.by_one:6} {of.at_last:6} {of.presses}  {name:40.40} {of.says:.90}"
    if of.at_last == "right" or "SHOW" not in os.environ:
        return line
    return "\n".join([line, *(f"      {record}" for record in of.stored[:5])])
