"""The command's import of CSV handles a thousand rows at once, with the same result as row by row."""

import csv
import io
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from naughty import NAUGHTY, NAUGHTY_NIMS

from mahasiswa import sheets
from mahasiswa.record import Incoming
from mahasiswa.sheets import delimited, reading

HEADER = "NIM,Nama,Alamat\n"

ordinary = st.sampled_from(["Ani", "Budi", "Jl. Melati 5, Solo", "Sa'adah", "Ma\u2019ruf", "x\ny", 'a "b" c'])
awkward = st.sampled_from([*NAUGHTY, "", " ", "####", "Total", "Mengetahui,", "Nama", "Alamat", "\u00c9lan", "\x7f"])
nims = (
    st.integers(0, 60).map(str)
    | st.integers(0, 10**6).map("{:07}".format)
    | st.sampled_from(["A1", "20/4/TK", "1.5E+3", "1.0", " 7", "'8", "NIM", "", "9" * 256, "##", ".", *NAUGHTY_NIMS])
)
rows = st.lists(st.tuples(nims, ordinary | awkward, ordinary | awkward), max_size=120)
ordinary_rows = st.lists(st.tuples(st.integers(0, 10**6).map(str), ordinary, ordinary), min_size=40, max_size=300)
ragged = st.lists(st.lists(nims | ordinary, max_size=5), max_size=60)
raw = st.text('12;,\t"\r\n\0aé ', max_size=300).map(lambda text: HEADER + "1,a,b\n" * 30 + text)


def written(cells: Sequence[Sequence[str]], line_end: str = "\n") -> str:
    """Return a CSV file with a header and these rows."""
    file = io.StringIO()
    csv.writer(file, lineterminator=line_end).writerows([("NIM", "Nama", "Alamat"), *cells])
    return file.getvalue()


Outcome = tuple[list[Incoming], list[sheets.Answer], dict[int, str], str]


def outcome(text: str, *, in_batches: bool) -> Outcome:
    """Return the rows to write, the other answers, the warnings and the error of an import."""
    cleaner, incoming, others, error = sheets.Cleaner(), list[Incoming](), list[sheets.Answer](), ""

    def batches(table: sheets.Table) -> Iterator[sheets.Batch | Sequence[sheets.SheetRow]]:
        if in_batches:
            yield from table.batches()
        else:
            for row in table:
                yield [row]

    try:
        with sheets.read(io.BytesIO(text.encode("utf-8", "replace")), sheets.COMMAND_LINE) as table:
            for batch in batches(table):
                cleaned = cleaner.clean_batch(batch) if isinstance(batch, sheets.Batch) else None
                if cleaned is not None:
                    incoming += cleaned
                    continue
                answers = list(cleaner.clean(batch.selected() if isinstance(batch, sheets.Batch) else batch))
                incoming += [answer[:4] for answer in answers if isinstance(answer, sheets.Row)]
                others += [answer for answer in answers if not isinstance(answer, sheets.Row)]
    except sheets.SheetError as refused:
        error = str(refused)
        return [], [], {}, error
    return incoming, others, cleaner.suspects(), error


@pytest.fixture
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch has a few rows, so that there are many of them."""
    monkeypatch.setattr(delimited, "BATCH_CHARACTERS", 100)
    monkeypatch.setattr(reading, "SELECTED_ROWS", 26)


@pytest.mark.usefixtures("_small_batches")
def test_batches_give_the_rows_that_one_by_one_gives() -> None:
    """The same rows, rows that are set aside, wrong rows, warnings and errors, for random cells and random text."""

    @given(
        st.builds(
            written, rows | ragged | ordinary_rows | ordinary_rows.map(sorted), st.sampled_from(["\n", "\r\n", "\r"])
        )
        | raw
        | st.builds(str.__add__, st.builds(written, ordinary_rows), raw)
    )
    @example(HEADER + "1,a,b\n" * 40 + '2,"open\n' + "3,a,b\n" * 200)
    @example(HEADER + "".join(f"{n},a,b\n" for n in range(200)) + '2,"' + "x" * 140_000 + '",b\n')
    @example(HEADER + "".join(f"{n},a,b\n\n" for n in range(200)) + "7,a,b\n7,c,d\n")
    @example("sep=;\nNIM;Nama;Alamat\n" + "".join(f"{n};a;b\n" for n in range(200)))
    @settings(max_examples=200, deadline=None)
    def compare(text: str) -> None:
        assert outcome(text, in_batches=True) == outcome(text, in_batches=False)

    compare()


def test_ordinary_rows_are_cleaned_in_batches() -> None:
    """All rows but the first thousand, whose columns are looked for, are cleaned in batches, in order or not."""
    numbers = [*range(100_000, 104_000), *range(50_000, 46_000, -1), *range(200_000, 204_000)]
    text = written([(str(n), "Sa'adah", "Jl. Melati 5, Solo\nJawa") for n in numbers])
    cleaner = sheets.Cleaner()
    with sheets.read(io.BytesIO(text.encode()), sheets.COMMAND_LINE) as table:
        first, *batches = table.batches()
        assert not isinstance(first, sheets.Batch)
        assert len(list(cleaner.clean(first))) == 1000
        cleaned = [cleaner.clean_batch(batch) for batch in batches if isinstance(batch, sheets.Batch)]
    assert sum(len(batch) for batch in cleaned if batch) == 11_000
    repeated = list(cleaner.clean([(20_000, str(n), "Sa'adah", "Jl. Melati 5, Solo\nJawa") for n in numbers]))
    assert all(isinstance(answer, sheets.Skipped) for answer in repeated)
    assert len(repeated) == len(numbers)
