"""Import and export are linear in their input, and no call of C code holds the interpreter's lock for long."""

import io
import time
from collections.abc import Callable
from contextlib import suppress

import pytest

from mahasiswa.record import Mahasiswa
from mahasiswa.sheets.cells import Refused, TooHeavy
from mahasiswa.sheets.csv_form import START
from mahasiswa.sheets.export import EXPORTS
from mahasiswa.sheets.html_table import html_rows
from mahasiswa.sheets.read import tables_of
from mahasiswa.sheets.rules import bare_nim, judge, lines
from mahasiswa.sheets.xlsx_export import write_xlsx

pytestmark = [pytest.mark.torture, pytest.mark.alone]

MEBIBYTE = 1 << 20
SMALLEST_SECONDS = 0.02
"""A shorter time cannot be compared, so the input is doubled until it takes longer."""

NO_LONGER_SECONDS = 0.1
"""A time that grows more than linearly is no fault below this."""


PASTED = "NIM\tNama\tAlamat\n"
CSV = "NIM;Nama;Alamat\n"
EXPORT = START.decode()


def upload(text: str) -> None:
    """Do everything that the child process does with a file."""
    for table, rows in tables_of(io.BytesIO(text.encode())):
        for _ in rows if table.doubt else lines(rows, table):
            pass


def page(text: str) -> None:
    for _ in html_rows(io.BytesIO(text.encode())):
        pass


def clean(nim: str) -> None:
    """Judge one line. A cell is longer here than any that is read."""
    bare_nim(judge(0, (nim, nim, nim)).nim)


def export(text: str) -> None:
    """Write 20 records whose three texts are as long as this one."""
    EXPORTS[".csv"].write([Mahasiswa(text, text, text)] * 20, io.BytesIO())
    write_xlsx(
        [Mahasiswa("1", text[:10_000], text[:10_000])] * (1 + len(text) // 10_000), io.BytesIO()
    )


STEPS: dict[str, tuple[Callable[[str], None], Callable[[int], str]]] = {
    "a NIM like a rounded number": (clean, lambda n: "1." + "1" * n + "E"),
    "pasted brackets in headers": (
        upload,
        lambda n: "\t".join(["(" * 99] * 1000 + [PASTED[:-1]]) + "x\n" * (n // 2),
    ),
    "a pasted line of a chat": (
        upload,
        lambda n: "12345" + " " * n + "-, x\n" + "12345 A" + " " * n,
    ),
    "a quote of CSV that never ends": (upload, lambda n: CSV + '1;A;"B\n' + "2;A;B\n" * (n // 6)),
    "our own export with quotes before guards": (
        upload,
        lambda n: EXPORT + "1;\",'" + '""' * (n // 2) + '=";x\r\n',
    ),
    "rows of titles": (
        upload,
        lambda n: CSV + "DAFTAR MAHASISWA;;\nMengetahui,;Total;x\n" * (n // 40),
    ),
    "a web page of tags that never end": (page, lambda n: "<table><tr><td>" + "<a " * (n // 3)),
    "an export of formulas": (export, lambda n: ",=" * (n // 2)),
}


@pytest.mark.parametrize(("step", "worst"), STEPS.values(), ids=STEPS)
def test_an_input_twice_as_long_costs_at_most_twice_as_much(
    step: Callable[[str], None], worst: Callable[[int], str]
) -> None:
    """For n, 2n and 4n, measured in turn until the shortest times are within limits twice as generous."""
    size = 20_000
    while processor_seconds(step, worst(size)) < SMALLEST_SECONDS and size < 2 * MEBIBYTE:
        size *= 2
    inputs = [worst(size * factor) for factor in (1, 2, 4)]
    once = twice = four_times = float("inf")
    for _ in range(5):
        measured = (processor_seconds(step, text) for text in inputs)
        once, twice, four_times = map(min, measured, (once, twice, four_times))
        if twice < 4 * once + NO_LONGER_SECONDS and four_times < 8 * once + NO_LONGER_SECONDS:
            return
    pytest.fail(
        f"{once:.3f} s for {size:,} characters, {twice:.3f} s for twice and {four_times:.3f} s for four times as many"
    )


def processor_seconds(step: Callable[[str], None], text: str) -> float:
    began = time.process_time()
    with suppress(Refused, TooHeavy):  # it does not matter whether the input is refused
        step(text)
    return time.process_time() - began
