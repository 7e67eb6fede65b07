"""Draws docs/architecture.svg: how a GET, a POST and an import flow through the files. Run it without arguments."""

from html import escape
from pathlib import Path

WIDTH, HEIGHT = 1080, 1072
LANE_X = (150, 450, 750)  # left edges of the three lanes
LANE_WIDTH = 280
MIDDLES = tuple(x + LANE_WIDTH // 2 for x in LANE_X)
BOX_HEIGHT = 58

STYLE = """
  .paper { fill: #ffffff } .band { fill: #f1f4f8 } .box { fill: #ffffff; stroke: #8a97a8; stroke-width: 1.2 }
  .answer { fill: #e3f1e6; stroke: #3f8f56; stroke-width: 1.2 }
  text { font-family: system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1b2430; font-size: 13px }
  .title { font-size: 16px; font-weight: 600 } .layer { font-size: 13px; font-weight: 600; fill: #5b6878 }
  .file { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: 13px; font-weight: 600 }
  .note { fill: #465362; font-size: 12.5px }
  .arrow { stroke: #465362; stroke-width: 1.6; fill: none; marker-end: url(#head) } .head { fill: #465362 }
  @media (prefers-color-scheme: dark) {
    .paper { fill: #0d1117 } .band { fill: #161d27 } .box { fill: #0d1117; stroke: #5c6b7d }
    .answer { fill: #12301c; stroke: #4fae6b }
    text { fill: #e6edf3 } .layer { fill: #9aa7b5 } .note { fill: #b3bfcb }
    .arrow { stroke: #b3bfcb } .head { fill: #b3bfcb }
  }
"""

LANES = ("GET / (the list)", "POST (add, edit, delete)", "POST (an import)")

# name, top, bottom
BANDS = (
    ("server", 52, 138),
    ("web", 146, 542),
    ("sheets", 550, 636),
    ("store", 644, 890),
    ("database", 898, 984),
)

# left, width, top, file, what it does
BOXES = (
    (150, 880, 66, "listener.py, worker.py, http_protocol.py", "open the port and the store; uvicorn parses HTTP; deadlines; the list page from memory"),
    (150, 880, 160, "web/middleware.py", "outermost, for every route: the request log, errors become pages, pages are compressed"),
    (150, 880, 256, "web/request_guard.py", "refuses ambiguous requests and, if SAME_ORIGIN_ONLY=1, requests from other sites"),
    (150, 280, 360, "web/list_cache.py", "version unchanged: page from memory"),
    (450, 580, 360, "web/routes.py, app.py", "the route table: method and path lead to a handler, also for every other GET"),
    (200, 230, 464, "list_html.py, templates/", "render the rows"),
    (450, 280, 464, "web/students.py, forms.py", "read the form, attempt the write"),
    (750, 280, 464, "web/imports.py, web/acts.py", "a stage; its buttons write"),
    (750, 230, 564, "sheets/", "read, clean, compare"),
    (150, 880, 658, "store/engines.py", "at the start, the address of the database chooses sqlite/ or postgres/"),
    (150, 280, 740, "{sqlite,postgres}/store.py", "the version first, then the rows"),
    (450, 580, 740, "store/group_commit.py", "on SQLite changes wait in a queue and become one group"),
    (450, 580, 822, "sqlite/store.py or postgres/store.py", "one transaction and one disk sync per group (PostgreSQL: per change)"),
    (150, 880, 912, "mahasiswa.db or PostgreSQL", "the table mahasiswa: nim, nama, alamat, and their rules as named constraints"),
)  # fmt: skip

ANSWERS = (
    "200 with the page, or 304",
    "302 after the sync, or the form again",
    "the preview; once confirmed, 302",
)

# x and y of the start, x and y of the head
ARROWS = (
    *((x, 124, x, 158) for x in MIDDLES),
    *((x, 218, x, 254) for x in MIDDLES),
    *((x, 314, x, 358) for x in MIDDLES),
    (430, 389, 448, 389),
    (300, 418, 300, 462),
    (330, 464, 330, 420),
    (175, 418, 175, 656),
    (590, 418, 590, 462),
    (890, 418, 890, 462),
    (590, 522, 590, 656),
    (850, 522, 850, 562),
    (880, 564, 880, 524),
    (1005, 522, 1005, 656),
    *((x, 716, x, 738) for x in MIDDLES),
    (740, 798, 740, 820),
    (290, 798, 290, 910),
    (740, 880, 740, 910),
    *((x, 970, x, 1010) for x in MIDDLES),
)


def draw() -> str:
    """The whole picture as SVG."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-labelledby="t">',
        '<title id="t">How a GET, a POST and an import flow through the files</title>',
        f"<style>{STYLE}</style>",
        '<defs><marker id="head" viewBox="0 0 10 10" refX="8" refY="5" markerWidth="7" markerHeight="7" orient="auto">',
        '<path class="head" d="M0 0 10 5 0 10z"/></marker></defs>',
        f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}" rx="8"/>',
    ]
    for name, top, bottom in BANDS:
        parts.append(
            f'<rect class="band" x="16" y="{top}" width="{WIDTH - 32}" height="{bottom - top}" rx="6"/>'
        )
        parts.append(f'<text class="layer" x="32" y="{(top + bottom) / 2 + 5}">{name}</text>')
    for x, name in zip(MIDDLES, LANES, strict=True):
        parts.append(f'<text class="title" x="{x}" y="36" text-anchor="middle">{name}</text>')
    for left, width, top, file, note in BOXES:
        middle = left + width // 2
        parts.append(
            f'<rect class="box" x="{left}" y="{top}" width="{width}" height="{BOX_HEIGHT}" rx="6"/>'
        )
        parts.append(
            f'<text class="file" x="{middle}" y="{top + 24}" text-anchor="middle">{escape(file)}</text>'
        )
        parts.append(
            f'<text class="note" x="{middle}" y="{top + 43}" text-anchor="middle">{escape(note)}</text>'
        )
    for left, middle, answer in zip(LANE_X, MIDDLES, ANSWERS, strict=True):
        parts.append(
            f'<rect class="answer" x="{left}" y="1012" width="{LANE_WIDTH}" height="40" rx="20"/>'
        )
        parts.append(f'<text x="{middle}" y="1037" text-anchor="middle">{escape(answer)}</text>')
    parts.append('<text class="layer" x="32" y="1037">answer</text>')
    parts += [f'<path class="arrow" d="M{x1} {y1} L{x2} {y2}"/>' for x1, y1, x2, y2 in ARROWS]
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    Path(__file__).with_name("architecture.svg").write_text(draw(), "utf-8")
