"""The one table of texts that programs damage, or that attack a page, a statement, a spreadsheet or a log: `HOSTILE`."""

import json
from pathlib import Path

_TEXTS = Path(__file__).with_name("hostile_texts.json").read_text("utf-8")
_REPEATED = ("x", "é", "😀", "🎓", "9", "/", '"', "'", ",=", ";'", '""\n', "\r\n")

HOSTILE: list[str] = [
    *json.loads(_TEXTS),
    *(unit * (255 // len(unit)) for unit in _REPEATED),
    "a" * 5000,
]
"""Each can be stored as a name or an address, and all but the last as a NIM. NUL, and half a surrogate pair, cannot."""
