"""Formats the rows of the list (specification 4.1.4 and 4.1.5), many in one go: the hot spot of rendering."""

import re
from collections.abc import Sequence
from itertools import chain

CONFIRM = "return confirm('Apakah Anda yakin ingin menghapus data ini?')"
"""Specification 4.1.5."""

NUL = b"\0"
# `&` comes first. A bare CR would become LF in an HTML parser.
ENTITIES = ((b"&", b"&amp;"), (b"<", b"&lt;"), (b">", b"&gt;"), (b'"', b"&#34;"), (b"'", b"&#39;"), (b"\r", b"&#13;"))
reserved = re.compile(rb"[^A-Za-z0-9_.~%\0-]")


def row_format(prefix: str) -> bytes:
    """The %-format of a row: number, nim, nama, alamat, then twice the nim as a path segment."""
    return (
        "<tr><td>%d</td><td>%b</td><td>%b</td><td>%b</td>"
        f'<td><a href="{prefix}/mahasiswa/edit/%b">Edit</a>'
        f'<form method="POST" action="{prefix}/mahasiswa/delete/%b" onsubmit="{CONFIRM}">'
        '<button type="submit">Delete</button></form></td></tr>\n'
    ).encode()


def pack(records: Sequence[tuple[str, str, str]]) -> bytes:
    """The cells of the records as one text with NUL between them. No record holds a NUL."""
    return "\0".join(chain.from_iterable(records)).encode()


def format_rows(row: bytes, packed: bytes, first: int) -> bytes:
    """The rows of packed records, numbered from `first`.

    Escaping follows the same rules as in the templates, but each rule is applied to all cells at once: 0.3 us a row,
    where a template takes 4 us.
    """
    if not packed:
        return b""
    nims = packed.split(NUL)[::3]
    for character, entity in ENTITIES:
        packed = packed.replace(character, entity)
    cells = packed.split(NUL)
    segments = _path_segments(nims)
    numbers = range(first, first + len(nims))
    columns = (numbers, cells[::3], cells[1::3], cells[2::3], segments, segments)
    return b"".join([row % values for values in zip(*columns, strict=True)])


def _path_segments(nims: Sequence[bytes]) -> Sequence[bytes]:
    """Every nim as `quote(nim, safe="")` writes it."""
    quoted = NUL.join(nims).replace(b"%", b"%25").replace(b"/", b"%2F").replace(b" ", b"%20")
    return reserved.sub(lambda byte: b"%%%02X" % byte[0][0], quoted).split(NUL)
