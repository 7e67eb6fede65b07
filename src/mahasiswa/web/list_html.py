"""Formats the rows of a list as HTML (specification 4.1.4, 4.1.5), and cuts and escapes texts."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain

from markupsafe import escape

from mahasiswa import wording
from mahasiswa.record import SHOWN_MAX_CHARACTERS, Mahasiswa
from mahasiswa.web.list_query import Printout
from mahasiswa.work import slices

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
ESCAPED_MAX_BYTES = 1 << 20

NUL = b"\0"
CELLS = len(Mahasiswa._fields)  # of a packed record

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

place = re.compile(r"\{(\w+)\}")
reserved = re.compile(rb"[^A-Za-z0-9_.~\0-]")  # RFC 3986, 2.3; NUL separates texts


def row_format(prefix: str, list_query: str = "") -> RowFormat:
    """The row of the list of specification 4.1, or with `list_query` that of our own page.

    The links of our own page lead back to it by its URL query. On such a page the nim has an id,
    which describes the controls of the row, and the question before a deletion names the student.
    The row has a tick for the form of the page. `{path}` is the nim as a path segment.
    """
    query = escape(list_query)
    named = tick = ""
    nim = "<td>{nim}</td>"
    ask = f'onsubmit="{CONFIRM}"'
    if query:
        named = ' aria-describedby="m-{path}"'
        tick = f'<input type="checkbox" form="pilih" name="nim[]" value="{{path}}" aria-label="{wording.TICK}"{named}>'
        nim = '<th scope="row" id="m-{path}">{nim}</th>'
        ask = f'data-tanya="{wording.CONFIRM_NAMED_DELETION}" onsubmit="{CONFIRM_NAMED}"'
    return _row(
        f"<tr><td>{tick}{{number}}</td>"
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


def _row(html: str) -> RowFormat:
    return [piece.encode() for piece in place.split(html)]


def packed(records: Sequence[Sequence[str]]) -> bytes:
    """The cells of records with NUL between them, which no record holds."""
    return "\0".join(chain.from_iterable(records)).encode()


def format_bodies(
    row: RowFormat, packed: bytes, first: int, end: bytes = b"</tbody>\n"
) -> Iterator[bytes]:
    """The rows of packed records, numbered from `first`, in bodies of at most BODY_ROWS, each with this end.

    A browser lays out only the bodies that are on its screen (style.css).
    """
    if not packed:
        return
    cells = b"".join(map(_escaped, slices(packed, ESCAPED_MAX_BYTES))).split(NUL)
    nims = cells[::CELLS]
    values: dict[bytes, Sequence[bytes]] = {
        b"number": _numbers(first, len(nims)),
        b"nim": nims,
        b"nama": cells[1::CELLS],
        b"alamat": cells[2::CELLS],
        b"path": nims,
    }
    if not b"".join(nims).isalnum():
        raw = NUL.join(packed.split(NUL)[::CELLS])
        values[b"path"] = reserved.sub(lambda found: b"%%%02X" % ord(found[0]), raw).split(NUL)

    html = list(row) * len(nims)
    for at in range(1, len(row), 2):
        html[at :: len(row)] = values[row[at]]
    for body in slices(html, BODY_ROWS * len(row)):
        # The tags join the first and the last piece, so the long body is not copied again.
        body[0] = b"<tbody>\n" + body[0]
        body[-1] += end
        yield b"".join(body)


@lru_cache(maxsize=4)
def _numbers(first: int, count: int) -> Sequence[bytes]:
    """The numbers of rows. To make them takes a fifth of the time of a page, and most changes leave their count."""
    return [b"%d" % number for number in range(first, first + count)]


def _escaped(text: bytes) -> bytes:
    """Escape by the rules of ENTITIES, as the templates do."""
    for character, entity in ENTITIES:
        text = text.replace(character, entity)
    return text


def shown(record: Sequence[str]) -> Sequence[str]:
    """The texts of a record as a page of our own shows them."""
    return [cut(text, SHOWN_MAX_CHARACTERS) for text in record]


def cut(value: str, maximum: int) -> str:
    """The text, or its beginning with “…” in place of the rest."""
    return value if len(value) <= maximum else value[: maximum - 1] + "…"
