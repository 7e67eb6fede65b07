"""Edits with a version: changes of different fields are both kept, and changes of the same field are a conflict."""

import asyncio
from collections.abc import Awaitable

import pytest
from stores import SITI, opened, read_all

from mahasiswa.record import Mahasiswa, digest
from mahasiswa.settings import DatabaseURL
from mahasiswa.store import Store, migrate
from mahasiswa.store.engines import forget
from mahasiswa.store.errors import EditConflict

NIM = SITI.nim
BREAKS = SITI._replace(alamat="Jl. Merdeka 1\r\nRT 03")

KEPT = {
    "the address changed, the form changes the name": (SITI, (SITI.nama, "Solo"), ("Ani", SITI.alamat), ("Ani", "Solo")),
    "both changed, the form changes nothing": (SITI, ("Siti", "Solo"), SITI[1:], ("Siti", "Solo")),
    "nothing changed, the form changes both": (SITI, SITI[1:], ("Ani", "Bantul"), ("Ani", "Bantul")),
    "the form repeats the change": (SITI, ("Siti", "Solo"), ("Siti", "Solo"), ("Siti", "Solo")),
    "line breaks, the form changes the name": (BREAKS, BREAKS[1:], ("Ani", "Jl. Merdeka 1RT 03"), ("Ani", BREAKS.alamat)),
    "line breaks, and the address changed": (BREAKS, (SITI.nama, "Solo"), ("Ani", "Jl. Merdeka 1RT 03"), ("Ani", "Solo")),
    "line breaks, the form changes the address": (BREAKS, BREAKS[1:], (SITI.nama, "Solo"), (SITI.nama, "Solo")),
    "the form repeats the change without its line break": (SITI, ("Siti\n", SITI.alamat), ("Siti", "Solo"), ("Siti\n", "Solo")),
    "only a line break was added": (SITI, ("Siti Aminah\n", SITI.alamat), SITI[1:], ("Siti Aminah\n", SITI.alamat)),
    "the form sends a line break": (SITI, SITI[1:], ("Siti\nAminah", SITI.alamat), ("Siti\nAminah", SITI.alamat)),
}  # fmt: skip


@pytest.mark.parametrize(("shown", "current", "sent", "expected"), KEPT.values(), ids=KEPT)
async def test_an_edit_changes_only_the_fields_that_the_form_changed(
    store: Store, shown: Mahasiswa, current: tuple[str, str], sent: tuple[str, str], expected: tuple[str, str]
) -> None:
    """Every other field keeps the text that is stored now."""
    await store.add(NIM, *current)
    await store.update(NIM, *sent, digest(shown))
    assert await read_all(store) == [(NIM, *expected)]


CONFLICTS = {
    "one field": (("Siti", SITI.alamat), ("Ani", SITI.alamat), ("Ani", SITI.alamat)),
    "one field, and the other changed": (("Siti", "Solo"), ("Ani", SITI.alamat), ("Ani", "Solo")),
    "one field, and the form changes the other": (("Siti", SITI.alamat), ("Ani", "Solo"), ("Ani", "Solo")),
    "both fields": (("Siti", "Solo"), ("Ani", "Bantul"), ("Ani", "Bantul")),
}


@pytest.mark.parametrize(("current", "sent", "edited"), CONFLICTS.values(), ids=CONFLICTS)
async def test_a_field_that_both_changed_is_a_conflict(
    store: Store, current: tuple[str, str], sent: tuple[str, str], edited: tuple[str, str]
) -> None:
    """Nothing is written. The error has three records: the stored one, the record of the form, and the record that the form showed."""
    await store.add(*SITI)
    await store.update(NIM, *current)
    with pytest.raises(EditConflict) as conflict:
        await store.update(NIM, *sent, digest(SITI))
    assert (conflict.value.current, conflict.value.edited) == ((NIM, *current), (NIM, *edited))
    assert conflict.value.before == SITI
    assert await read_all(store) == [(NIM, *current)]


async def test_a_conflict_has_what_the_form_showed_only_if_the_history_has_it(store: Store, url: DatabaseURL) -> None:
    """It is found behind later changes, but not for a form of another record or of texts that never were stored."""
    await store.add(*SITI)
    await store.add("0002", *SITI[1:])
    for nama in ("Ani", "Budi", "Citra"):
        await store.update(NIM, nama, "Solo")
    assert await before(store, digest(SITI)) == SITI
    assert await before(store, digest(SITI._replace(nama="Ani", alamat="Solo"))) == (NIM, "Ani", "Solo")
    assert await before(store, digest(SITI._replace(nama="Dewi"))) is None
    await store.update("0002", "Ani", "Solo")
    forget(url, NIM)
    await store.add(NIM, "Eko", "Solo")
    assert await before(store, digest(SITI)) is None


async def before(store: Store, versi: str) -> Mahasiswa | None:
    """Send an edit that must be a conflict; return the record that the form showed, as the error has it."""
    with pytest.raises(EditConflict) as conflict:
        await store.update(NIM, "Saya", "Bantul", versi)
    return conflict.value.before


async def test_without_a_history_a_conflict_has_no_earlier_texts(url: DatabaseURL) -> None:
    """With HISTORY_DAYS=0 a conflict is noticed all the same."""
    migrate(url, 0)
    async with opened(url) as store:
        await store.add(*SITI)
        await store.update(NIM, "Ani", "Solo")
        assert await before(store, digest(SITI)) is None


@pytest.mark.parametrize("versi", ["x", digest(SITI)[:11], digest(SITI)[11:], "RdG6VEGIUp742bM3gS8VNA"])
async def test_a_version_that_is_not_understood_is_a_conflict(store: Store, versi: str) -> None:
    """A form of another release, or a part of a version, never overwrites both texts."""
    await store.add(*SITI)
    with pytest.raises(EditConflict):
        await store.update(NIM, "Ani", "Solo", versi)
    assert await read_all(store) == [SITI]


async def test_concurrent_edits_of_different_fields_through_several_stores_are_both_kept(url: DatabaseURL) -> None:
    """The comparison is part of the write's transaction, so one edit of each field is stored in every round."""
    async with opened(url) as first, opened(url) as second:
        await first.add(*SITI)
        for turn in range(10):
            (shown,) = await read_all(first)
            versi = digest(shown)
            names = [(f"Orang {turn} {number}", shown.alamat) for number in range(4)]
            addresses = [(shown.nama, f"Kota {turn} {number}") for number in range(4)]
            edits = [(texts, store) for texts in (*names, *addresses) for store in (first, second)]
            stored = await asyncio.gather(*(is_stored(store.update(NIM, *texts, versi)) for texts, store in edits))
            winners = {texts for (texts, _), was_stored in zip(edits, stored, strict=True) if was_stored}
            (nama,) = {nama for nama, _ in winners} - {shown.nama}
            (alamat,) = {alamat for _, alamat in winners} - {shown.alamat}
            assert await read_all(second) == [(NIM, nama, alamat)]


async def is_stored(edit: Awaitable[None]) -> bool:
    """Make an edit; return whether it was stored and no conflict."""
    try:
        await edit
    except EditConflict:
        return False
    return True
