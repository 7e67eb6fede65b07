"""Edits with a version: the earlier texts of a conflict, and edits through several stores at once."""

import asyncio
from collections.abc import Awaitable

import pytest
from stores import SITI, opened, read_all

from mahasiswa.record import Mahasiswa, digest
from mahasiswa.settings import DatabaseURL
from mahasiswa.store import Store
from mahasiswa.store.engines import forget
from mahasiswa.store.errors import EditConflict

NIM = SITI.nim


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
