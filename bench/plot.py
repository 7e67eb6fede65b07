"""Draws the plot as an SVG with two logarithmic axes, for light and dark pages."""

import math
from collections.abc import Callable, Mapping, Sequence

WIDTH, HEIGHT = 820, 480
LEFT, RIGHT, TOP, BOTTOM = 80, 190, 56, 60

Point = tuple[float, float]

_STYLE = """
  svg { font: 13px system-ui, sans-serif; --paper: #ffffff; --ink: #24292f; --faint: #d0d7de; }
  .c0 { --c: #0b6bcb; } .c1 { --c: #6e7781; } .c2 { --c: #1a7f37; } .c3 { --c: #bc4c00; } .c4 { --c: #8250df; }
  @media (prefers-color-scheme: dark) {
    svg { --paper: #0d1117; --ink: #e6edf3; --faint: #30363d; }
    .c0 { --c: #58a6ff; } .c1 { --c: #9da7b3; } .c2 { --c: #3fb950; } .c3 { --c: #f0883e; } .c4 { --c: #bc8cff; }
  }
  .paper { fill: var(--paper); } text { fill: var(--ink); } .grid { stroke: var(--faint); }
  .line { fill: none; stroke: var(--c); stroke-width: 2; } .mark { fill: var(--c); } text.name { fill: var(--c); }
  .c0 .line { stroke-width: 3.5; } .c0 text.name { font-weight: 700; }
"""


def draw(title: str, x_label: str, y_label: str, series: Mapping[str, Sequence[Point]]) -> str:
    """Draw one line per series, with its name at the end. There must be a point, and all values must be above zero."""
    points = [point for line in series.values() for point in line]
    x_low, x_high = min(x for x, _ in points), max(x for x, _ in points)
    y_low = 10.0 ** math.floor(math.log10(min(y for _, y in points)))
    y_high = 10.0 ** math.ceil(math.log10(max(y for _, y in points)))

    def place(point: Point) -> Point:
        x, y = (
            (math.log10(value) - math.log10(low)) / (math.log10(high) - math.log10(low) or 1)
            for value, low, high in zip(point, (x_low, y_low), (x_high, y_high), strict=True)
        )
        return LEFT + x * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - y * (HEIGHT - TOP - BOTTOM)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{title}">',
        f"<style>{_STYLE}</style>",
        f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}"/>',
        f'<text x="{LEFT}" y="28" font-size="16" font-weight="600">{title}</text>',
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 14}" text-anchor="middle">{x_label}</text>',
        f'<text transform="translate(20 {(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)" text-anchor="middle">{y_label}</text>',
    ]
    parts += _grid(place, sorted({x for x, _ in points}), (x_low, x_high), (y_low, y_high))
    names = _without_overlap({name: place(line[-1])[1] for name, line in series.items() if line})
    for number, (name, line) in enumerate(series.items()):
        if line:
            placed = [place(point) for point in line]
            parts.append(f'<g class="c{number % 5}">{_line(placed)}')
            lift = 10 if line[-1][0] < x_high else 0  # avoids the longer lines of other series
            height = names[name] + 4 - lift
            parts.append(f'<text class="name" x="{placed[-1][0] + 12:.0f}" y="{height:.0f}">{name}</text></g>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _grid(place: Callable[[Point], Point], ticks: Sequence[float], x_range: Point, y_range: Point) -> list[str]:
    parts = []
    for x in ticks:
        left, bottom = place((x, y_range[0]))
        parts.append(f'<line class="grid" x1="{left:.0f}" x2="{left:.0f}" y1="{bottom:.0f}" y2="{TOP}"/>')
        parts.append(f'<text x="{left:.0f}" y="{bottom + 20:.0f}" text-anchor="middle">{x:,.0f}</text>')
    for power in range(round(math.log10(y_range[0])), round(math.log10(y_range[1])) + 1):
        left, height = place((x_range[0], 10.0**power))
        right, _ = place((x_range[1], 10.0**power))
        parts.append(f'<line class="grid" x1="{left:.0f}" x2="{right:.0f}" y1="{height:.0f}" y2="{height:.0f}"/>')
        label = f"{10**power:,}" if power >= 0 else f"{10.0**power:g}"
        parts.append(f'<text x="{left - 8:.0f}" y="{height + 4:.0f}" text-anchor="end">{label}</text>')
    return parts


def _line(placed: Sequence[Point]) -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
    marks = "".join(f'<circle class="mark" cx="{x:.1f}" cy="{y:.1f}" r="4"/>' for x, y in placed)
    return f'<polyline class="line" points="{path}"/>{marks}'


def _without_overlap(heights: Mapping[str, float], least: float = 17) -> dict[str, float]:
    """Move names down until they do not overlap."""
    moved: dict[str, float] = {}
    last = -math.inf
    for name, height in sorted(heights.items(), key=lambda item: item[1]):
        last = moved[name] = max(height, last + least)
    return moved
