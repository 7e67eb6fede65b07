"""The search of both engines: one table of cases, and the same letters and sounds as in `folding`."""

from pathlib import Path
from typing import Literal

import pytest
from engines import ENGINES
from stores import items, merge

from mahasiswa.record import Field, Mahasiswa
from mahasiswa.store import Query, Store, folding, reader
from mahasiswa.store.folding import SEARCHED_CHARACTERS
from mahasiswa.store.spelling import SEARCHES_OFFERED
from mahasiswa.work import SEARCH

PEOPLE = [
    Mahasiswa("20/456839/TK/50663", "Siti Nur'aini", "Jl. Merdeka No. 5, Bandung"),
    Mahasiswa("0002", "Siti\u00a0Nur\u2019Aini  Putri", "Bandung"),
    Mahasiswa("0001", "Nuraini", "Yogyakarta"),
    Mahasiswa("0004", "Maria D\u2019Souza", "Jl.Kaliurang Km. 5"),
    Mahasiswa("0005", "Café Ñandú", "Łódź"),
    Mahasiswa("0006", "Cafe\u0301 Al-Amin", "c:\\rumah"),
    Mahasiswa("0007", "Ḥasan Bā\u02bfalawī", "100% [Baru]"),
    Mahasiswa("0008", "Straße Æsir", "Nguyễn_Trãi"),
    Mahasiswa("0009", "ΣΊΜΟΣ Ёлкин", "*Mawar*?"),
    Mahasiswa("23.10-00", "Sa`adah, S.Pd.", "中 🎓 Ａriﬁn"),
]

# The words that people type, by the last digits of the nims that they mean.
CASES = {
    "23": "siti bandung|bandung siti|siti  aini|  SITI\taini |siti\u00a0aini|siti - bandung|"
    "s i t n u r a d g b zzz",  # the words after the tenth are ignored
    "123": "nuraini|nur\u2019aini|nur'aini|nur\u02bcaini|nur`aini|nur\u00b4aini|nur\u2018aini|NUR AINI",
    "4": "d'souza|dsouza|D\u2019SOUZA|jl kaliurang",
    "56": "cafe|CAFÉ|cafe\u0301",
    "5": "nandu|ñandu|lodz|ŁÓDŹ|lodz,",
    "6": "al-amin|alamin|al\u2013amin|c:\\rumah",
    "7": "hasan baalawi|ḥasan bā\u02bfalawī|100%|[baru]|%",
    "8": "strasse|STRAẞE aesir|nguyen_trai|NGUYỄN|nguyễn_|_",
    "9": "σίμος|σιμοσ елкин|ЁЛКИН|*mawar*?",
    "0": "saadah|s.pd|spd saadah|saadah,|23.10-00|231000|中|🎓|arifin|ariﬁn",
    "3": "20/456839/TK/50663|20/456839/tk/50663|456839|tk/50663",
    "34": "jl.",
    "": "siti yogyakarta|siti*|-|.|- .|\u0301",
}

# The same in one field. A nim is found by its beginning.
CASES_OF_A_FIELD = [
    ("nim", "3", "20/45|20 / 45"), ("nim", "0", "2310|23.1"), ("nim", "", "839|siti|-|" + "9" * 200),
    ("nim", "21456789", "000"), ("nama", "23", "siti"), ("nama", "", "bandung"), ("alamat", "23", "bandung"),
    ("alamat", "", "siti"),
]  # fmt: skip


async def nims(store: Store, cari: str, di: str = "") -> list[str]:
    """Return the nims that a search finds, by each of the methods that search."""
    query = Query(cari, di=di)  # type: ignore[arg-type]
    page = await store.reader(SEARCH).search(query, 0, 100)
    assert page.total == (await store.reader(SEARCH).search(query, 0, 0)).total
    records = await store.export(query._replace(urut="nama"), list)
    exported = sorted([record.nim for record in records])
    assert exported == [record.nim for record in page.records]
    assert len(page.records) == page.total
    return [record.nim for record in page.records]


@pytest.fixture
async def people(store: Store, url: str, monkeypatch: pytest.MonkeyPatch) -> Store:
    """Return a store with PEOPLE. The history has the name of the administrator, and is searched for it too."""
    monkeypatch.setenv("SUDO_USER", "0")
    merge(url, *PEOPLE)
    return store


async def test_a_search_finds_what_people_mean(people: Store) -> None:
    """Its words stand in any order and any field. Case, accents, apostrophes, dots, commas and hyphens do not matter."""
    for di, found, caris in [*(("", *case) for case in CASES.items()), *CASES_OF_A_FIELD]:
        for cari in caris.split("|"):
            hits = await nims(people, cari, di)
            assert sorted(nim[-1] for nim in hits) == sorted(found), (di, cari)


@pytest.mark.parametrize("urut", ["nim", "nama", "alamat"])
@pytest.mark.parametrize("arah", ["naik", "turun"])
async def test_a_page_has_as_many_records_as_its_limit(
    people: Store, urut: Field, arah: Literal["naik", "turun"]
) -> None:
    """In each order a page is a part of the whole list."""
    query = Query(urut=urut, arah=arah)
    page = await people.reader(SEARCH).search(query, 1, 3)
    whole = await people.reader(SEARCH).search(query, 0, 100)
    assert list(page.records) == list(whole.records)[1:4]


async def test_the_history_is_searched_in_the_same_way(people: Store) -> None:
    """A search finds an entry by its texts before and after: of an import, and of a deletion of the same records."""
    await people.write_all("delete", removals=[record.nim for record in PEOPLE])
    for batch in await items(people):
        for found, caris in CASES.items():
            for cari in caris.split("|"):
                page = await people.reader(SEARCH).history(cari, 0, 100, batch=batch.key)
                nims = [entry.nim for entry in page.items if entry.nim]
                assert sorted(nim[-1] for nim in nims) == sorted(found), cari
                all_batches = await people.reader(SEARCH).history(cari, 0, 10)
                assert all_batches.total == 2 * bool(found)


FOLD_BEGINS = "CASE WHEN octet_length(t)"
FOLD_MIN_CHARACTERS = 140  # of the rest, which each statement has in the same form


@pytest.mark.parametrize("engine", ENGINES)
def test_each_statement_folds_texts_in_the_same_way(engine: str) -> None:
    """Each statement is whole, so that it can be pasted. A slip in one of them has no other test."""
    folds = []
    for file in (Path(reader.__file__).parent / engine / "sql").glob("*.sql"):
        sql = file.read_text("utf-8")
        folds += [" ".join(rest.split()) for rest in sql.split(FOLD_BEGINS)[1:]]
    assert len({fold[:FOLD_MIN_CHARACTERS] for fold in folds}) == 1, folds


_LINES = Path(__file__).with_name("sound_pairs.txt").read_text().splitlines()
PAIRS = [line.split() for line in _LINES if not line.startswith(("#", "max"))]
FURTHER = [line.removeprefix("max ").split(": ") for line in _LINES if line.startswith("max")]
WORDS = sorted({word for pair in PAIRS for word in pair})


async def test_names_that_sound_alike_are_one_search(store: Store, url: str) -> None:
    """Each of a pair finds the other one, in all fields and in names, and so does the history."""
    merge(url, *[(str(number), word.title(), "Solo") for number, word in enumerate(WORDS)])

    async def found(cari: str, di: str) -> set[str]:
        hits = await store.reader(SEARCH).search(Query(cari, di=di), 0, 1000)  # type: ignore[arg-type]
        return {WORDS[int(record.nim)] for record in hits.records}

    for one, other in PAIRS:
        for di in ("", "nama"):
            assert {one, other} <= await found(one, di) & await found(other, di), (one, other)
        page = await store.reader(SEARCH).history(one, 0, 10)
        assert page.total == 1
    for maximum, words in FURTHER:
        for word in words.split():
            further = [other for other in await found(word, "") if word not in other]
            assert len(further) <= int(maximum), (word, further)


async def test_only_a_long_word_of_a_name_has_a_sound(store: Store) -> None:
    """Three letters have none. A text in quotes, an address and a nim are compared as they are written."""
    await store.add("Riski", "Rizky", "Jogja")
    for cari, is_found in (
        ("riski", True), ("rizqi rizky", True), ("riz", True), ("rizqi yogya", False), ("yogya", False),
        ('"rizky"', True), ('"rizqi"', False), ("“rizqi”", False), ("rzk", False), ("zqi", False),
    ):  # fmt: skip
        assert await nims(store, cari) == ["Riski"] * is_found, cari
    assert await nims(store, "rizky", "nim") == []


OFFERED = {
    "nuraeni": "Nuraini", "siti nuraeni": "Siti Nuraini", "stii bandung": "Siti Bandung",
    "yogyakata": "Yogyakarta", "kafe": "Café", "DSUZA": "D\u2019Souza", "merdekka no": "Merdeka No",
} | dict.fromkeys(("zzzz", "-", "s" * 255, "zainap", "siti yogyakarta", "a1 b2 c3 d4"))  # fmt: skip


async def test_the_nearest_names_are_offered(people: Store) -> None:
    """The best correction comes first, and each correction finds a record. A deleted name is not offered any more.

    There are at most five, and none if only digits were typed.
    """
    await people.add("0010", "Zainab", "Solo")
    assert await people.reader(SEARCH).spellings(Query("zainap")) == [("Zainab", 1)]
    await people.delete("0010")
    for cari, expected in OFFERED.items():
        assert await nims(people, cari) == []
        offered = await people.reader(SEARCH).spellings(Query(cari))
        assert [text for text, _ in offered[:1]] == ([expected] if expected else []), cari
        for text, count in offered:
            assert len(await nims(people, text)) == count > 0, text
    for number in range(9):
        await people.add(f"230001800{number}", f"Ani{number}", "Solo")
    for cari in ("anix", "23000180", "230001 8009"):
        offered = await people.reader(SEARCH).spellings(Query(cari))
        assert len(offered) == SEARCHES_OFFERED * (cari == "anix")


# Also letters that have three cases, or whose other case is an ASCII letter or two letters.
LETTERS = "aAiI'`.,- é\u00c9\u0301\u2019\u00a0ßẞæİıſ\u212a\u212bςΣǅǆǄ\u0345µμÿŸёЁ中🎓/%_\\"
LINES = [
    "".join(chr(code) for code in range(max(first, 1), first + 200) if not 0xD800 <= code < 0xE000)
    for first in (*range(0, 0x2200, 200), 0xA700, 0xFE00, 0xFF00, 0x1F300)
]


async def test_every_letter_is_folded_as_in_python(store: Store, url: str) -> None:
    """For every character of the alphabets: a text with it is found by it, and by its folded form, and by no other."""
    letters = sorted({*folding.REPLACEMENTS, *LETTERS})
    folded_away = [letter for letter in letters if not folding.fold(letter).strip()]
    letters = [letter for letter in letters if letter not in folded_away]
    words = ["".join(letters[at : at + 8]) for at in range(0, len(letters), 8)]
    texts = [*LINES, *words]
    merge(url, *[(f"{number:03}", "", text) for number, text in enumerate(texts)])
    folded = [folding.fold(text) for text in texts]
    for cari in (*words, *{*LETTERS} - {*folded_away}):
        parts = folding.fold(cari).split()
        expected = [f"{n:03}" for n, text in enumerate(folded) if all(p in text for p in parts)]
        found = (await store.reader(SEARCH).search(Query(cari), 0, 1000)).records
        assert [record.nim for record in found] == expected, ascii(cari)


async def test_the_first_1000_characters_of_a_text_are_searched(store: Store) -> None:
    """Also of texts beyond ASCII, and in the history."""
    for number, letter in enumerate("aé"):
        long = letter * (SEARCHED_CHARACTERS - 5)
        await store.add(f"{number}", long + " depan belakang", long + " muka belakang")
    for cari, found in (("depan", 0), ("muka", 2), ("depa", 2), ("bela", 0)):
        history = await store.reader(SEARCH).history(cari, 0, 10)
        assert len(await nims(store, cari)) == history.total == found, cari


async def test_records_are_twins_whatever_their_accents(store: Store) -> None:
    """A check for twins folds the letters as a search does."""
    await store.add("1", "Zoë Åström", "Solo")
    await store.add("2", "zoe astrom", "Solo")
    twins = await store.reader(SEARCH).suspects("twins", 10)
    assert twins.total == 2
