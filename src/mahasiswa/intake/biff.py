"""Puts a bare BIFF stream into an OLE container, because PHP programs write .xls files without one, and no reader takes those."""

import struct

SECTOR_BYTES = 512
STREAM_MIN_BYTES = 4096  # a shorter stream would need a second table of sectors
_FREE, _END, _TABLE = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD
_TABLE_ENTRIES = SECTOR_BYTES // 4
_HEADER_ENTRIES = 109

_BOF, _EOF, _CODEPAGE, _BOUNDSHEET = 0x0809, 0x000A, 0x0042, 0x0085
_BIFF5, _BIFF8 = 0x0500, 0x0600
_GLOBALS, _WORKSHEET = 0x0005, 0x0010


def in_container(stream: bytes) -> bytes:
    """The bytes of an .xls file with this stream."""
    version, kind = struct.unpack_from("<HH", stream, 4)
    if kind == _WORKSHEET:
        version = _BIFF8 if version == _BIFF8 else _BIFF5
        stream = _globals(version) + stream[:4] + struct.pack("<H", version) + stream[6:]
    name = "Workbook" if version == _BIFF8 else "Book"
    return _container(name, stream.ljust(STREAM_MIN_BYTES, b"\0"))


def _globals(version: int) -> bytes:
    """The part of a stream before its only sheet, which names the sheet."""
    name = b"\x00A" if version == _BIFF8 else b"A"
    start = _record(_BOF, struct.pack("<HHHH", version, _GLOBALS, 0, 0))
    start += _record(_CODEPAGE, struct.pack("<H", 1252))
    length = len(start) + 4 + 7 + len(name) + 4
    sheet = struct.pack("<IBBB", length, 0, 0, 1) + name
    return start + _record(_BOUNDSHEET, sheet) + _record(_EOF, b"")


def _record(number: int, data: bytes) -> bytes:
    return struct.pack("<HH", number, len(data)) + data


def _container(name: str, stream: bytes) -> bytes:
    """Compound File Binary, version 3: the header, the table of sectors, the directory, and the stream."""
    count = -(-len(stream) // SECTOR_BYTES)
    tables = 1
    while tables * _TABLE_ENTRIES < tables + 1 + count:
        tables += 1
    first = tables + 1  # of the stream
    table = [_TABLE] * tables + [_END] + [*range(first + 1, first + count), _END]
    table += [_FREE] * (tables * _TABLE_ENTRIES - len(table))
    in_header = [*range(tables)] + [_FREE] * (_HEADER_ENTRIES - tables)
    header = struct.pack(
        "<8s16x5H6x9I109I",
        *(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", 0x3E, 3, 0xFFFE, 9, 6),
        *(0, tables, tables, 0, STREAM_MIN_BYTES, _END, 0, _END, 0),
        *in_header,
    )
    root = _entry("Root Entry", 5, 1, _END, 0)
    directory = root + _entry(name, 2, _FREE, first, len(stream))
    return (
        header
        + struct.pack(f"<{len(table)}I", *table)
        + directory.ljust(SECTOR_BYTES, b"\0")
        + stream.ljust(count * SECTOR_BYTES, b"\0")
    )


def _entry(name: str, kind: int, child: int, start: int, size: int) -> bytes:
    text = name.encode("utf-16-le") + b"\0\0"
    return struct.pack(
        "<64sHBBIII16x4x16xIQ", text, len(text), kind, 1, _FREE, _FREE, child, start, size
    )
