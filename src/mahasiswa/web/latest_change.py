"""The line above the list that shows the latest change.

It is rendered again after each change. A function takes 7 us for it, a template 24 us.
"""

from markupsafe import Markup

from mahasiswa import wording
from mahasiswa.store.history import Batch, Entry
from mahasiswa.web.escaping import text

NAMA_MAX_CHARACTERS, NIM_MAX_CHARACTERS = 60, 40
"""Maximum length of the texts in the line."""


def verb(item: Entry | Batch) -> str:
    """The word for a change, such as "Diubah"."""
    if isinstance(item, Batch):
        return wording.BATCH_VERBS[item.kind]
    return wording.ADDED if item.before is None else wording.DELETED if item.after is None else wording.CHANGED


def latest_change(item: Entry | Batch, when: Markup, history_url: str) -> str:
    """The line for a change. `when` is its moment as an element."""
    done = verb(item).lower()
    if isinstance(item, Batch):
        entry, who = item.only, f"{wording.number(item.rows)} mahasiswa"
        if item.kind == "undo" and entry and entry.after is None:
            done = wording.ADDITION_UNDONE
    else:
        entry, who = item, ""
    if entry and (record := entry.after or entry.before):
        who = f"{_isolated(record.nama, NAMA_MAX_CHARACTERS)} ({_isolated(record.nim, NIM_MAX_CHARACTERS)})"
    link = f'<a href="{text(history_url)}">{wording.HISTORY}</a>'
    return f'<p class="latest" role="status">{wording.LATEST}: {who} {done} {when} · {link}</p>'


def _isolated(value: str, maximum: int) -> str:
    return f"<bdi>{text(value if len(value) <= maximum else value[: maximum - 1] + '…')}</bdi>"
