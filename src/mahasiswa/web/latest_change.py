"""The line above the list that shows the latest change.

It is rendered again after each change. A function takes 7 us for it, a template 24 us.
"""

from markupsafe import Markup

from mahasiswa import wording
from mahasiswa.store.history import Batch, Entry
from mahasiswa.web.escaping import escaped

SHOWN_NAMA_MAX_CHARACTERS, SHOWN_NIM_MAX_CHARACTERS = 60, 40
"""Maximum length of the texts in the line."""


def verb(item: Entry | Batch) -> str:
    """The label of a change, such as "Diubah"."""
    if isinstance(item, Batch) and item.kind == "undo" and item.only and item.only.before is None:
        return wording.RESTORED
    return wording.KINDS[item.kind]


def undo_name(item: Entry | Batch) -> str:
    """The text of the button that takes a change back."""
    name = wording.UNDO[item.kind]
    if isinstance(item, Entry) or item.kind == "nim":
        return name
    return wording.UNDO_BATCH.format(name=name, rows=wording.number(item.rows))


def latest_change(item: Entry | Batch, when: Markup, history_url: str) -> Markup:
    """The line for a change. `when` is its moment as an element; without `history_url` the line has no link."""
    done = wording.LATEST_LINES.get(item.kind) or f"{{who}} {verb(item).lower()}"
    if isinstance(item, Batch):
        entry, who = item.only, f"{wording.number(item.rows)} mahasiswa"
        if item.kind == "undo" and entry:
            done = wording.LATEST_UNDO_LINES.get(entry.kind, done)
    else:
        entry, who = item, ""
    if entry and (record := entry.after or entry.before):
        who = f"{_isolated(record.nama, SHOWN_NAMA_MAX_CHARACTERS)} ({_isolated(record.nim, SHOWN_NIM_MAX_CHARACTERS)})"
    link = f' · <a href="{escaped(history_url)}">{wording.HISTORY}</a>' if history_url else ""
    line = f'<p class="latest" role="status">{wording.LATEST}: {done.format(who=who)} {when}{link}</p>'
    return Markup(line)  # noqa: S704 - its texts are escaped


def _isolated(value: str, maximum: int) -> str:
    return f"<bdi>{escaped(value if len(value) <= maximum else value[: maximum - 1] + '…')}</bdi>"
