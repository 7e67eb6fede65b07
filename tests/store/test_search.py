"""The search of both engines: one table of cases, and the same letters as in `folding`."""

import asyncio
import random
import re
import threading
import time
from collections.abc import Awaitable, Callable, Iterable
from difflib import get_close_matches
from pathlib import Path

import pytest
from engines import ENGINES
from stores import fill, items, opened, run_script

from mahasiswa.record import Mahasiswa
from mahasiswa.settings import DatabaseURL
from mahasiswa.store import Query, Store, folding, reader
from mahasiswa.store.folding import SEARCHED_CHARACTERS
from mahasiswa.store.reader import SOUNDING_TEXTS
from mahasiswa.work import EXPORT, SEARCH

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
    Mahasiswa("23.10-00", "Sa`adah, S.Pd.", "中 🎓"),
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
    "0": "saadah|s.pd|spd saadah|saadah,|23.10-00|231000|中|🎓",
    "3": "20/456839/TK/50663|20/456839/tk/50663|456839|tk/50663",
    "34": "jl.",
    "": "siti yogyakarta|siti*|-|.|- .|\u0301|siti\0",
}

# The same in one field. A nim is found by its beginning; `jl`, `jln` and `jalan` mean the same in an address.
CASES_OF_A_FIELD = [
    ("nim", "3", "20/45|20 / 45"), ("nim", "0", "2310|23.1"), ("nim", "", "839|siti|-|" + "9" * 200),
    ("nim", "21456789", "000"), ("nama", "23", "siti"), ("nama", "", "bandung"), ("alamat", "23", "bandung"),
    ("alamat", "", "siti"), ("alamat", "34", "jalan"), ("alamat", "3", "JLN. merdeka"),
    ("", "4", "jln kaliurang|jalan souza"),
]  # fmt: skip


async def nims(store: Store, cari: str, di: str = "") -> list[str]:
    """Return the nims that a search finds, by each of the methods that search."""
    query = Query(cari, di=di)  # type: ignore[arg-type]
    page = await store.reader(SEARCH).search(query, 0, 100)
    assert page.total == (await store.reader(SEARCH).search(query, 0, 0)).total
    chunks = store.reader(EXPORT).chunks(query._replace(urut="nama"))
    exported = sorted([record.nim async for chunk in chunks for record in chunk])
    assert exported == [record.nim for record in page.records]
    assert len(page.records) == page.total
    return [record.nim for record in page.records]


@pytest.fixture
async def people(store: Store, url: DatabaseURL, monkeypatch: pytest.MonkeyPatch) -> Store:
    """Return a store with PEOPLE. The history has the name of the administrator, and is searched for it too."""
    monkeypatch.setenv("SUDO_USER", "0")
    fill(url, PEOPLE)
    return store


async def test_a_search_finds_what_people_mean(people: Store) -> None:
    """Its words stand in any order and any field. Case, accents, apostrophes, dots, commas and hyphens do not matter."""
    for di, found, caris in [*(("", *case) for case in CASES.items()), *CASES_OF_A_FIELD]:
        for cari in caris.split("|"):
            hits = await nims(people, cari, di)
            assert sorted(nim[-1] for nim in hits) == sorted(found), (di, cari)


async def assert_each_finds(finder: Callable[[str], Awaitable[Iterable[str]]]) -> None:
    """Check that a search by this function finds the nims of each case."""
    for found, caris in CASES.items():
        for cari in caris.split("|"):
            assert sorted(nim[-1] for nim in await finder(cari)) == sorted(found), cari


async def test_the_history_is_searched_in_the_same_way(people: Store) -> None:
    """A search finds an entry by its texts before and after: of an import, and of a deletion of the same records."""
    await people.write_all("delete", removals=[record.nim for record in PEOPLE])
    for batch in await items(people):

        async def nims_of_entries(cari: str, batch: int = batch.id) -> list[str]:
            page = await people.reader(SEARCH).history(cari, 0, 100, batch=batch)
            assert page.total == len(page.items)
            found = await people.reader(SEARCH).history(cari, 0, 10)
            assert found.total == 2 * bool(page.items)
            return [record.nim for entry in page.items if (record := entry.after or entry.before)]  # type: ignore[union-attr]

        await assert_each_finds(nims_of_entries)


CUT = re.compile(
    r"CASE WHEN length\((\S+)\) > :SHOWN_MAX_CHARACTERS\s+"
    r"THEN substr\(\1, 1, :SHOWN_MAX_CHARACTERS - 1\) \|\| '…'\s+ELSE \1 END"
)
FOLD_BEGINS = "CASE WHEN octet_length(t)"
FOLD_MIN_CHARACTERS = 140  # of the rest, which each statement has in the same form


@pytest.mark.parametrize("engine", ENGINES)
def test_each_statement_cuts_and_folds_texts_in_the_same_way(engine: str) -> None:
    """Each statement is whole, so that it can be pasted. A slip in one of them has no other test."""
    folds = []
    for file in (Path(reader.__file__).parent / engine / "sql").glob("*.sql"):
        sql = file.read_text("utf-8")
        assert 2 * len(CUT.findall(sql)) == sql.count(":SHOWN_MAX_CHARACTERS"), file
        folds += [" ".join(rest.split()) for rest in sql.split(FOLD_BEGINS)[1:]]
    assert len({fold[:FOLD_MIN_CHARACTERS] for fold in folds}) == 1, folds


# Addresses by nim. The others differ in one number, or only look like an RT or an RW.
ADDRESSES = dict(enumerate(
    ["RT 3 RW 7", "RT.003/RW.007", "rt03/rw07", "RT 03/07", "RT/RW 003/007", "RT 3, RW 07, Gg. Melati", "RT 007 RW 003", "RT 30 RW 7", "RT 3 RW 70", "RT 13/7", "RT/RW 7/3", "Mart 3 Drw 7", "RT 1/2 Blok C 3/7", "Gang Melati No.5", "Kec.Depok Kab. Sleman", "Kecamatan Depok, Kabupaten Sleman", "Ds. Sari Dsn.Krajan", "Desa Sari, dusun Krajan", "Perum Griya", "Perumahan Griya", "Kel. Wates Nomor 5", "Kelurahan Wates", "Windsor", "Jalan Gang Tujuh, Jl. Mawar",
     "RT/RW : 003/007", "RT/RW: 03/07", "RT: 03 RW: 07", "RT 03 / 07", "RT 03 /RW 07", "RT  03 RW 07", "RT\u00a003 RW\u00a007", "RTRW 03/07", "RT 0 RW 000"]
))  # fmt: skip
BOTH = {0, 1, 2, 3, 4, 5, *range(24, 32)}
FOUND = {
    "rt 3 rw 7|RW 07 RT 03|rt3 rw7|RT.003/RW.007|rt 03/07|rt/rw 3/7|RT 003 / RW 007|rt: 3, rw: 7": BOTH,
    "rt 3|RT003|rt-03": BOTH | {8},
    "rw 7|RW.007": BOTH | {7, 9},
    "|".join(ADDRESSES[at] for at in range(24, 32)): BOTH, "rt 000": {32},
    "rt 7 rw 3|rt7/3": {6, 10}, "rt 7 rw 3 gang": set(),
    "3/7": BOTH | {12}, "1/2": {12}, "rt 3/7 gang melati|gg melati rt 3": {5},
    "gg|gang": {5, 13, 23}, "kec depok|KECAMATAN depok|kec.depok|KAB.sleman|kab sleman|kabupaten sleman": {14, 15},
    "ds sari|desa sari|dsn krajan|dusun krajan": {16, 17}, "perum griya|perumahan griya": {18, 19},
    "kel wates|kelurahan wates": {20, 21}, "no 5|nomor 5|no.5": {13, 20}, "jl.mawar": {23}, "blok.c": {12}, "desa": {16, 17},
    '"rt 3"|"RT 3"|“rt 3”': {0, 5, 7, 8, 11}, '"jl mawar"': {23}, '"gang melati"': {13}, '"gang sari"|"jalan mawar"': set(),
}  # fmt: skip


async def test_an_address_is_found_however_it_is_written(store: Store, url: DatabaseURL) -> None:
    """RT and RW are found with their number only. A word is found by its abbreviation. A text in quotes stands as it is."""
    fill(url, [(f"N{at:02}", "Siti", address) for at, address in ADDRESSES.items()])
    for caris, expected in FOUND.items():
        for cari in caris.split("|"):
            for di in ("", "alamat"):
                found = {int(nim[1:]) for nim in await nims(store, cari, di)}
                assert found == expected, (cari, di)
            assert (await store.reader(SEARCH).history(cari, 0, 10)).total == bool(expected)


OFFERED = {
    "nuraeni": "Nur\u2019Aini", "siti nuraeni": "Siti Nur\u2019Aini", "stii bandung": "Siti Bandung",
    "sitinuraini": "Siti Nur\u2019Aini", "yogyakata": "Yogyakarta", "sitibandung": "Siti Bandung", "kafe": "Café",
    "DSUZA": "D\u2019Souza", "merdekano": "Merdeka No.",  # a word of two letters
} | dict.fromkeys(("zzzz", "-", "siti\0", "s" * 255, "zainap"))  # fmt: skip


async def test_the_nearest_names_are_offered(people: Store) -> None:
    """The best correction comes first, and each correction finds a record. A deleted name is not offered any more."""
    await people.add("0010", "Zainab", "Solo")
    assert await people.reader(SEARCH).spellings(Query("zainap"), 3) == [("Zainab", 1)]
    await people.delete("0010")
    for cari, expected in OFFERED.items():
        assert await nims(people, cari) == []
        offered = await people.reader(SEARCH).spellings(Query(cari), 3)
        assert [text for text, _ in offered[:1]] == ([expected] if expected else []), cari
        assert len(offered) <= 3
        for text, count in offered:
            assert len(await nims(people, text)) == count > 0, text


async def test_a_name_is_found_by_its_sound(store: Store, url: DatabaseURL) -> None:
    """Each spelling of a name leads to the other one, before names that only look like it."""
    pairs = "riski Rizky/mohamad Muhammad/djoko Joko/soesilo Susilo/jogja Yogya/tjahyo Cahyo/syarif Sarif/khalid Halid"
    pairs += "/dddodiii Dodi"  # three alike letters
    names = [pair.split() for pair in pairs.split("/")]
    fill(url, [(str(number), name, "Solo") for number, (_, name) in enumerate(names)])
    for spelling, name in names:
        offered = await store.reader(SEARCH).spellings(Query(spelling), 3)
        assert offered[:1] == [(name, 1)], spelling


WRITTEN = (
    "Rizky Jogja", "Rizky Yogya", "Riski Jogja", "Riski Yogyakarta", "Risky Jogja",
    "Any Solo", "Ani Bandung", "Anita Solo", "Riskiana Jogjakarta", "Siti Jogja", "Ny. Yo Sari", "Nugraha", "Nugroho", "Yoko", "Jokowi",
)  # fmt: skip
ALSO_WRITTEN = {
    "jogja": [("Yogya", 2), ("Yogyakarta", 1)], "riski": [("Rizky", 2), ("Risky", 1)], "rizky": [("Riski", 3), ("Risky", 1), ("Riskiana", 1)],
    "riski jogja": [("Rizky jogja", 1), ("Risky jogja", 1), ("riski Yogya", 1), ("riski Yogyakarta", 1)],
    "ani": [("Any", 1)], "any": [("Ani", 2)], "Siti": [], '"jogja"': [], "jo": [], "nugraha": [],
    "yoko": [("Jokowi", 1)],  # four letters
}  # fmt: skip


async def test_other_spellings_of_a_word_that_is_found_are_counted(
    store: Store, url: DatabaseURL
) -> None:
    """They have the same sound, or from four letters on a sound that goes on. They are not found, and not merely similar."""
    fill(url, [(str(number), text, "Solo") for number, text in enumerate(WRITTEN)])
    for cari, expected in ALSO_WRITTEN.items():
        assert await nims(store, cari) or cari == "jo"
        also = await store.reader(SEARCH).same_sound(Query(cari, di="nama"), 5)
        assert sorted(also) == sorted(expected), cari
    assert await store.reader(SEARCH).same_sound(Query("20", di="nim"), 5) == []


async def test_other_spellings_are_those_of_both_ends_of_the_list(
    store: Store, url: DatabaseURL
) -> None:
    """A list of years has other names at its beginning than at its end."""
    lower, higher = (range(half, half + SOUNDING_TEXTS["names"]) for half in (10_000, 50_000))
    for name, nims_of_half in (("Rizky", lower), ("Riski", higher)):
        fill(url, [(str(nim), name, "Solo") for nim in nims_of_half])
    for cari, other in (("riski", "Rizky"), ("rizky", "Riski")):
        also = await store.reader(SEARCH).same_sound(Query(cari), 5)
        assert also == [(other, SOUNDING_TEXTS["names"])]


async def test_sounds_are_compared_in_a_thread(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Meanwhile the event loop serves others, and the timeout of the page can end the wait."""
    has_begun, may_end = threading.Event(), threading.Event()

    def compare(*_: object) -> list[str]:
        has_begun.set()
        assert may_end.wait(10)
        return []

    monkeypatch.setattr(reader, "same_sound", compare)
    also = asyncio.create_task(store.reader(SEARCH).same_sound(Query("riski"), 5))
    assert await asyncio.to_thread(has_begun.wait, 10)
    may_end.set()
    assert await also == []


@pytest.mark.parametrize(
    "name",
    ["ab" * 32_000, "ab " * 21_000, "abcdefgh" * 4 + " " + "hgfedcba" * 4, '"\\" [] \\\\ {"a":'],
)
async def test_long_and_odd_names_do_not_make_the_nearest_names_expensive(
    store: Store, url: DatabaseURL, name: str
) -> None:
    """Only the beginning of a name and words of the usual length are compared, for a bounded time."""
    fill(url, [(f"{number}", f"{number} {name}", "Solo") for number in range(300)])
    began = time.process_time()
    await store.reader(SEARCH).spellings(Query("abcdefhg" * 4 + " bac cab bca"), 5)
    assert time.process_time() - began < 2


async def test_the_nearest_names_are_looked_for_a_tenth_of_a_second(
    store: Store, url: DatabaseURL
) -> None:
    """Four words are compared with 9,000 in less than half of the time that all comparisons take."""
    letters = random.Random(1)
    words = ["".join(letters.sample("abcdefgh" * 4, 32)) for _ in range(9004)]
    fill(url, [(f"{at}", " ".join(words[at : at + 3]), "Solo") for at in range(4, 9004, 3)])
    began = time.process_time()
    get_close_matches(words[0], words[4:], 3, 0.7)
    compared = time.process_time()
    await store.reader(SEARCH).spellings(Query(" ".join(words[:4])), 3)
    assert time.process_time() - compared < 2 * (compared - began)


# Also letters that have three cases, or whose other case is an ASCII letter or two letters.
LETTERS = "aAiI'`.,- é\u00c9\u0301\u2019\u00a0ßẞæİıſ\u212a\u212bςΣǅǆǄ\u0345µμÿŸёЁ中🎓/%_\\"
LINES = [
    "".join(chr(code) for code in range(max(first, 1), first + 200) if not 0xD800 <= code < 0xE000)
    for first in (*range(0, 0x2200, 200), 0xA700, 0xFE00, 0xFF00, 0x1F300)
]


async def test_every_letter_is_folded_as_in_python(url: DatabaseURL) -> None:
    """For every character of the alphabets: a text with it is found by it, and by its folded form, and by no other."""
    async with opened(url) as store:
        fill(url, [(f"n{number}", line, "") for number, line in enumerate(LINES)])
        folded = [folding.fold(line) for line in LINES]
        for letter in {*folding.REPLACEMENTS, *LETTERS} - {" ", "\u00a0"}:
            if not (word := folding.fold(letter).strip()):
                continue
            expected = [
                number for number, line in enumerate(folded) if word in line or word in f"n{number}"
            ]
            found = (await store.reader(SEARCH).search(Query(letter), 0, 100)).records
            assert [record.nim for record in found] == sorted(
                f"n{number}" for number in expected
            ), ascii(letter)


async def test_the_first_1000_characters_of_a_text_are_searched(store: Store) -> None:
    """Also of texts beyond ASCII, and in the history."""
    for number, letter in enumerate("aé"):
        long = letter * (SEARCHED_CHARACTERS - 5)
        await store.add(f"{number}", long + " depan belakang", long + " muka belakang")
    for cari, found in (("depan", 0), ("muka", 2), ("depa", 2), ("bela", 0)):
        history = await store.reader(SEARCH).history(cari, 0, 10)
        assert len(await nims(store, cari)) == history.total == found, cari


async def test_a_search_finds_what_another_program_writes(path: Path) -> None:
    """Nothing is derived from the records, so nothing can be out of date. A text that is not UTF-8 hides no other."""
    records = "('1', 'Nur\u2019aini', 'Klaten'), ('2', 'José', CAST(x'41ff' AS TEXT))"
    replaced = "INSERT OR REPLACE INTO mahasiswa VALUES ('1', 'Ána', 'Bantul')"
    run_script(path, f"INSERT INTO mahasiswa VALUES {records}; {replaced}")
    async with opened(path) as store:
        assert [await nims(store, cari) for cari in ("ana bantul", "nuraini")] == [["1"], []]
        assert (await store.reader(SEARCH).search(Query("jose"), 0, 0)).total == 1
