"""The line above the list that shows the latest change.

It is no template, because every change makes it new: a template takes 24 us, and five times as long after a pause.
"""

from markupsafe import Markup

from mahasiswa import wording
from mahasiswa.store.history import Batch, Entry
from mahasiswa.web.escaping import text

NAMA_MAX_CHARACTERS, NIM_MAX_CHARACTERS = 60, 40
"""Maximum length of the texts in the line."""


def verb(item: Entry | Batch) -> str:
    """What was done, as the history and this line show it."""
    if isinstance(item, Batch):
        return wording.BATCH_VERBS[item.kind]
    return wording.ADDED if item.before is None else wording.DELETED if item.after is None else wording.CHANGED


def latest_change(item: Entry | Batch, when: Markup, history_url: str) -> str:
    """The line for a change. `when` is its moment as an element."""
    entry = item.only if isinstance(item, Batch) else item
    done = verb(item).lower()
    if isinstance(item, Batch) and item.kind == "undo" and entry and entry.after is None:
        done = wording.ADDITION_UNDONE
    if entry and (record := entry.after or entry.before):
        who = f"{_isolated(record.nama, NAMA_MAX_CHARACTERS)} ({_isolated(record.nim, NIM_MAX_CHARACTERS)})"
    else:
        who = f"{wording.number(item.rows if isinstance(item, Batch) else 1)} mahasiswa"
    link = f'<a href="{text(history_url)}">{wording.HISTORY}</a>'
    return f'<p class="latest">{wording.LATEST}: {who} {done} {when} · {link}</p>'


def _isolated(value: str, maximum: int) -> str:
    return f"<bdi>{text(value if len(value) <= maximum else value[: maximum - 1] + '…')}</bdi>"
