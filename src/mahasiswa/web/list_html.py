"""Formats what each change alters on a page: rows (specification 4.1.4, 4.1.5) and the latest change."""

import re
from collections.abc import Iterator, Sequence
from itertools import chain

from markupsafe import Markup, escape

from mahasiswa import wording
from mahasiswa.record import SHOWN_MAX_CHARACTERS, Mahasiswa
from mahasiswa.store.history_items import Item
from mahasiswa.web.list_query import Printout
from mahasiswa.work import groups, slices

CONFIRM = f"return confirm('{wording.CONFIRM_DELETION}')"  # specification 4.1.5
# For our own pages, on which the question names the student and stands in `data-tanya`.
CONFIRM_NAMED = "return confirm(this.dataset.tanya)"
TRIM = "this.value=this.value.trim()"
"""Removes outer spaces in the browser, because the service stores what it gets (specification 4.4.1)."""

TICK_ALL = "for(const tick of this.form)tick.checked=this.checked"
"""Ticks all rows of a page."""

HANDLERS = (CONFIRM, CONFIRM_NAMED, TRIM, TICK_ALL)  # all inline code of the pages
BODY_ROWS = 100  # rows in one body of the table
# Maximum length of texts that one call escapes, because it holds the interpreter's lock.
FORMATTED_MAX_BYTES = 1 << 20
# In the line about the latest change.
SHOWN_NAMA_MAX_CHARACTERS = 60
SHOWN_NIM_MAX_CHARACTERS = 40

NUL = b"\0"

RowFormat = Sequence[bytes]
"""The HTML of a row between its values, and at every second place the name of a value."""

# `&` comes first. A bare CR would become LF in an HTML parser.
ENTITIES = (
    (b"&", b"&amp;"),
    (b"<", b"&lt;"),
    (b">", b"&gt;"),
    (b'"', b"&#34;"),
    (b"'", b"&#39;"),
    (b"\r", b"&#13;"),
)
# Cells of these lengths get <wbr>; longer ones would hold the event loop.
LONG_CELL_BYTES = 100
HUGE_CELL_BYTES = 4096

LOOP_MAX_BYTES = 64 * 1024
"""Maximum bytes of texts that are formatted on the event loop without a pause. Longer ones are formatted in a thread.
The texts of 1,000 usual records are about as long."""

LOOP_MAX_ROWS = 1000

PAGE_MAX_RECORDS = 12_000
"""Maximum records of a page that is kept. The route streams a longer list. After a change, a stream
sends its first byte sooner than a page that is rendered as a whole."""

# A browser without style sheets, such as w3m, breaks a word only at <wbr>, so one long word would make the table wider
# than any screen. Letters beyond ASCII are left alone, because <wbr> between two of them could change how they look.
# The pattern has no & and no ; so a word never ends within an entity.
long_word = re.compile(rb"[!-%'-:<-~]{20}(?=[!-%'-:<-~])")
place = re.compile(r"\{(\w+)\}")
UNRESERVED = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.~-"  # RFC 3986, 2.3
# Each byte as it is written in a path segment. `%` is already encoded before.
ENCODED = [bytes([byte]) if byte in UNRESERVED + b"%" else b"%%%02X" % byte for byte in range(256)]
# The texts of the row numbers. A page of 10,000 rows would take a tenth longer if it made them
# itself.
NUMBERS = [b"%d" % number for number in range(PAGE_MAX_RECORDS + 1)]


def escaped(value: object) -> Markup:
    """Escape a text for an element or a quoted attribute, with the rules of ENTITIES."""
    return Markup(str(escape(value)).replace("\r", "&#13;"))  # noqa: S704 - escaped in this very call


def row_format(prefix: str, list_query: str = "", *, is_ticked: bool = False) -> RowFormat:
    """The row of the list of specification 4.1, or with `list_query` that of our own page.

    The links of our own page lead back to it by its URL query. On such a page the nim has an id,
    which describes the controls of the row, and the question before a deletion names the student.
    With `is_ticked` the row has a tick for the form of the page. `{path}` is the nim as a path
    segment. Texts in an attribute are `{said_…}`.
    """
    query = escape(list_query)
    named = ""
    nim = "<td>{nim}</td>"
    ask = f'onsubmit="{CONFIRM}"'
    if query:
        named = ' aria-describedby="m-{path}"'
        nim = '<th scope="row" id="m-{path}">{nim}</th>'
        asked = wording.CONFIRM_NAMED_DELETION.format(nama="{said_nama}", nim="{said_nim}")
        ask = f'data-tanya="{asked}" onsubmit="{CONFIRM_NAMED}"'
    tick = f'<input type="checkbox" form="pilih" name="nim[]" value="{{path}}" aria-label="{wording.TICK}"{named}>'
    return _row(
        f"<tr><td>{tick if is_ticked else ''}{{number}}</td>"
        f"{nim}<td>{{nama}}</td><td>{{alamat}}</td>"
        f'<td><a href="{prefix}/mahasiswa/edit/{{path}}{query}"{named}>{wording.EDIT}</a>'
        f'<form method="POST" action="{prefix}/mahasiswa/delete/{{path}}{query}" {ask}>'
        f'<button type="submit"{named}>{wording.DELETE}</button></form></td></tr>\n'
    )


def printed_row(printout: Printout) -> RowFormat:
    """The row of a printout, with its empty cells at the end."""
    others = "<td>{alamat}</td>" * printout.with_alamat + "<td></td>" * len(printout.titles)
    return _row(
        f'<tr><td>{{number}}</td><th scope="row">{{nim}}</th><td>{{nama}}</td>{others}</tr>\n'
    )


CELLS = len(Mahasiswa._fields)  # of a packed record


def _row(html: str) -> RowFormat:
    return [piece.encode() for piece in place.split(html)]


def size_of(records: Sequence[Mahasiswa]) -> int:
    """The number of characters in these records."""
    return sum(map(len, chain.from_iterable(records)))


def is_short(records: Sequence[Mahasiswa]) -> bool:
    """Whether the event loop may format these records. A character has up to four bytes."""
    return size_of(records) <= LOOP_MAX_BYTES and len(packed(records)) <= LOOP_MAX_BYTES


def packed(records: Sequence[Sequence[str]]) -> bytes:
    """The cells of records with NUL between them, which no record holds."""
    return "\0".join(chain.from_iterable(records)).encode()


def format_bodies(
    row: RowFormat, packed: bytes, first: int, end: bytes = b"</tbody>\n"
) -> Iterator[bytes]:
    """The rows of packed records, numbered from `first`, in bodies of at most BODY_ROWS, each with this end.

    A browser lays out only the bodies that are on its screen (style.css).
    """
    for piece in _pieces(packed):
        columns = _columns(row, piece, first)
        rows = len(columns[0])
        first += rows
        html = list(row) * rows
        for number, column in enumerate(columns):
            html[2 * number + 1 :: len(row)] = column
        for body in slices(html, BODY_ROWS * len(row)):
            # The tags join the first and the last piece, so the long body is not copied again.
            body[0] = b"<tbody>\n" + body[0]
            body[-1] += end
            yield b"".join(body)


def _pieces(packed: bytes) -> Iterator[bytes]:
    """Packed records in pieces. Each ends with the record that makes it longer than FORMATTED_MAX_BYTES."""
    if len(packed) <= FORMATTED_MAX_BYTES:
        yield from [packed] * bool(packed)
        return

    records = slices(packed.split(NUL), CELLS)
    for group in groups(records, _length, FORMATTED_MAX_BYTES):
        yield NUL.join(chain.from_iterable(group))


def _length(record: Sequence[bytes]) -> int:
    return sum(map(len, record))


def _columns(row: RowFormat, packed: bytes, first: int) -> Sequence[Sequence[bytes]]:
    """The values that a row has, each for all records. The templates escape by the same rules."""
    for character, entity in ENTITIES:
        packed = packed.replace(character, entity)
    cells = packed.split(NUL)
    said_nims, said_names, addresses = _by_field(cells)
    nims, names = said_nims, said_names
    if len(max(cells, key=len)) >= LONG_CELL_BYTES:
        nims, names, addresses = _by_field(list(map(_breakable, cells)))

    values: dict[bytes, Sequence[bytes]] = {
        b"number": _numbers(first, len(said_nims)),
        b"nim": nims,
        b"nama": names,
        b"alamat": addresses,
        b"path": _path_segments(said_nims),
        b"said_nim": said_nims,
        b"said_nama": said_names,
    }
    return [values[name] for name in row[1::2]]


def _breakable(cell: bytes) -> bytes:
    """A cell whose long words can be broken, if it is neither short nor huge."""
    is_long = LONG_CELL_BYTES <= len(cell) < HUGE_CELL_BYTES
    return long_word.sub(rb"\g<0><wbr>", cell) if is_long else cell


def _numbers(first: int, count: int) -> Sequence[bytes]:
    end = first + count
    if end <= len(NUMBERS):
        return NUMBERS[first:end]
    return [b"%d" % number for number in range(first, end)]


def _by_field(cells: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    return (cells[at::CELLS] for at in range(CELLS))


def _path_segments(nims: Sequence[bytes]) -> Sequence[bytes]:
    """Every escaped nim as `quote(nim, safe="")` writes the nim."""
    quoted = NUL.join(nims)
    if _is_of(UNRESERVED, quoted):
        return nims
    for character, entity in reversed(ENTITIES):
        quoted = quoted.replace(entity, character)
    quoted = quoted.replace(b"%", b"%25").replace(b"/", b"%2F").replace(b" ", b"%20")
    segments = quoted.split(NUL)
    if _is_of(UNRESERVED + b"%", quoted):
        return segments
    # One call for each nim, because one call for all of them would hold the interpreter's lock.
    return [b"".join(map(ENCODED.__getitem__, segment)) for segment in segments]


def _is_of(characters: bytes, texts: bytes) -> bool:
    """Whether texts with NUL between them have no other characters."""
    return not texts.translate(None, characters + NUL)


def verb(item: Item) -> str:
    """The label of a change, such as "Diubah"."""
    is_return = item.kind == "undo" and item.after and not item.before
    return wording.RESTORED if is_return else wording.CHANGES[item.kind][0]


def undo_name(item: Item) -> str:
    """The text of the button that takes a change back. An entry that stands for its batch has a button of its own."""
    kind = item.kind
    if item.batch:
        kind = "add" if not item.before else "edit" if item.after else "delete"
    name = wording.CHANGES[kind][1]
    if item.batch or item.kind == "nim" or item.left is None or item.rows == 1:
        return name
    text = wording.UNDO_REST if item.left < item.rows else wording.UNDO_BATCH
    return text.format(name=name, rows=wording.number(item.left))


def latest_change(
    item: Item, when: Markup, history_url: str, *, is_own: bool, left: int = 0
) -> Markup:
    """The line for the person's own change, or for the latest one.

    `when` is its moment as an element; without `history_url` the line has no link. `left` is the
    number of records that an undo has left alone.
    """
    link = f' · <a href="{escaped(history_url)}">{wording.HISTORY}</a>' if history_url else ""
    label = wording.OWN_CHANGE if is_own else wording.LATEST
    said = _sentence(item)
    if left and item.kind == "undo":
        said = wording.UNDONE_IN_PART.format(
            rows=wording.number(item.rows), left=wording.number(left)
        )
    line = f'<p class="latest" role="status">{label}: {said} {when}{link}</p>'
    return Markup(line)  # noqa: S704 - its texts are escaped


def _sentence(item: Item) -> str:
    """The sentence about a change, as HTML."""
    done = wording.LATEST_LINES.get(item.kind) or f"{{who}} {verb(item).lower()}"
    if not item.record:
        return done.format(who=f"{wording.number(item.rows)} mahasiswa")
    nim = _isolated(item.record.nim, SHOWN_NIM_MAX_CHARACTERS)
    nama = _isolated(item.record.nama, SHOWN_NAMA_MAX_CHARACTERS)
    if item.kind == "nim" and item.before:
        old = _isolated(item.before.nim, SHOWN_NIM_MAX_CHARACTERS)
        return wording.LATEST_NIM_LINE.format(nama=nama, old=old, nim=nim)
    if item.kind == "undo" and not item.before:
        done = wording.LATEST_RETURNED
    elif item.kind == "undo" and not item.after:
        done = wording.LATEST_REMOVED
    return done.format(who=f"{nama} ({nim})")


def _isolated(value: str, maximum: int) -> str:
    return f"<bdi>{escaped(cut(value, maximum))}</bdi>"


def shown(record: Sequence[str]) -> Sequence[str]:
    """The texts of a record as a page of our own shows them."""
    return [cut(text, SHOWN_MAX_CHARACTERS) for text in record]


def cut(value: str, maximum: int) -> str:
    """The text, or its beginning with “…” in place of the rest."""
    return value if len(value) <= maximum else value[: maximum - 1] + "…"
