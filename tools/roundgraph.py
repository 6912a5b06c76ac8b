"""The round's state diagram from the rows of TRANSITIONS: as Mermaid text and as a picture.

Owns where each phase stands in the picture and which way its arrows go; what is drawn comes from the rows. A
transition that has no way of its own here is drawn straight; a phase without a place is an error.
Units of the picture: SVG user units, y downwards.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from html import escape
from typing import NamedTuple


class Row(NamedTuple):
    """One transition: names of the phases and the event, the condition, and the rule (article)."""

    before: str
    after: str
    event: str
    condition: str
    rule: str


class Way(NamedTuple):
    """The points of an arrow, and its label: x, y of its last line if `above`, else its first."""

    points: tuple[tuple[int, int], ...]
    x: int
    y: int
    anchor: str
    wide: int
    above: bool


_BOX = (150, 84)
_WIDTH, _HEIGHT = 1290, 640
PLACES = {
    "IDLE": (130, 110),
    "COVERED": (480, 110),
    "SHAKING": (810, 110),
    "BETTING": (1120, 110),
    "PAYOUT": (130, 370),
    "VOID": (480, 370),
    "CLOSED": (1120, 370),
    "FAULT": (130, 540),
}
_SAYS = {
    "IDLE": ("no round",),
    "COVERED": ("cover on, latched",),
    "SHAKING": ("cover locked,", "dice shaken"),
    "BETTING": ("cover locked,", "front board on"),
    "CLOSED": ("cover unlocked",),
    "PAYOUT": ("latches barred,", "winning bets lit"),
    "VOID": ("bets stand",),
}
_WAYS = {
    ("IDLE", "COVERED"): Way(((280, 130), (480, 130)), 380, 120, "middle", 25, True),
    ("COVERED", "IDLE"): Way(((480, 176), (280, 176)), 380, 192, "middle", 25, False),
    ("COVERED", "SHAKING"): Way(((630, 130), (810, 130)), 720, 120, "middle", 22, True),
    ("SHAKING", "COVERED"): Way(((810, 176), (630, 176)), 720, 192, "middle", 22, False),
    ("SHAKING", "BETTING"): Way(((960, 152), (1120, 152)), 1040, 142, "middle", 20, True),
    ("BETTING", "CLOSED"): Way(((1195, 194), (1195, 370)), 1185, 282, "end", 20, False),
    ("CLOSED", "PAYOUT"): Way(
        ((1195, 454), (1195, 500), (205, 500), (205, 454)), 840, 492, "middle", 40, True
    ),
    ("PAYOUT", "IDLE"): Way(((160, 370), (160, 194)), 150, 250, "end", 17, False),
    ("PAYOUT", "VOID"): Way(((280, 412), (480, 412)), 380, 428, "middle", 24, False),
    ("COVERED", "VOID"): Way(((545, 194), (545, 370)), 535, 236, "end", 28, False),
    ("VOID", "COVERED"): Way(((595, 370), (595, 194)), 605, 282, "start", 22, False),
    ("VOID", "IDLE"): Way(((500, 370), (500, 340), (230, 340), (230, 194)), 240, 332, "start", 40, True),
}  # fmt: skip
_STYLE = """
text { font: 13px system-ui, sans-serif; fill: #1f2328 }
.paper { fill: #ffffff } .box { fill: #eef2f6; stroke: #57606a; stroke-width: 1.5 }
.fault { fill: #ffebe9; stroke: #cf222e; stroke-width: 1.5; stroke-dasharray: 6 4 }
.name { font-weight: 700; font-size: 16px } .event { font-weight: 700 } .rule { font-style: italic }
.soft { fill: #57606a } .way { fill: none; stroke: #57606a; stroke-width: 1.5 } .head { fill: #57606a }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .paper { fill: #0d1117 } .box { fill: #1c232d; stroke: #9da7b3 }
.fault { fill: #2d1215; stroke: #ff7b72 } .soft { fill: #9da7b3 } .way { stroke: #9da7b3 }
.head { fill: #9da7b3 }
}"""


def mermaid(rows: Sequence[Row]) -> str:
    """Return the diagram in Mermaid's language."""
    lines = ["stateDiagram-v2", "    direction LR", "    [*] --> IDLE"]
    for row in rows:
        # A label may hold neither a colon nor a semicolon there.
        words = f"{row.event} – {row.condition} ({row.rule})".replace(":", ",").replace(";", ",")
        lines.append(f"    {row.before} --> {row.after}: {words}")
    lines.append("    FAULT: FAULT, from any phase")
    return "\n".join(lines) + "\n"


def _way(before: str, after: str) -> Way:
    if (before, after) in _WAYS:
        return _WAYS[before, after]
    (x0, y0), (x1, y1) = PLACES[before], PLACES[after]
    half_w, half_h = _BOX[0] // 2, _BOX[1] // 2
    dx, dy = x1 - x0, y1 - y0
    if abs(dx) >= abs(dy):
        side = half_w if dx > 0 else -half_w
        ends = ((x0 + half_w + side, y0 + half_h), (x1 + half_w - side, y1 + half_h))
    else:
        side = half_h if dy > 0 else -half_h
        ends = ((x0 + half_w, y0 + half_h + side), (x1 + half_w, y1 + half_h - side))
    return Way(ends, (ends[0][0] + ends[1][0]) // 2, (ends[0][1] + ends[1][1]) // 2, "middle", 24, True)


def _arrow(row: Row) -> list[str]:
    way = _way(row.before, row.after)
    path = "M" + "L".join(f"{x} {y}" for x, y in way.points)
    words = textwrap.wrap(f"{row.condition} ({row.rule})", way.wide)
    lines = [("event", row.event), *(("soft", line) for line in words)]
    top = way.y - 16 * (len(lines) - 1) if way.above else way.y
    out = [f'<path class="way" d="{path}" marker-end="url(#head)"/>']
    for i, (kind, line) in enumerate(lines):
        place = f'x="{way.x}" y="{top + 16 * i}" text-anchor="{way.anchor}"'
        out.append(f'<text class="{kind}" {place}>{escape(line)}</text>')
    return out


def _box(name: str) -> list[str]:
    x, y = PLACES[name]
    wide, high = _BOX
    says = _SAYS.get(name, ())
    out = [f'<rect class="box" x="{x}" y="{y}" width="{wide}" height="{high}" rx="10"/>']
    first = y + high // 2 + 5 - 9 * len(says)
    out.append(f'<text class="name" x="{x + wide // 2}" y="{first}" text-anchor="middle">{name}</text>')
    for i, line in enumerate(says):
        place = f'x="{x + wide // 2}" y="{first + 18 * (i + 1)}" text-anchor="middle"'
        out.append(f'<text class="soft" {place}>{escape(line)}</text>')
    return out


def svg(rows: Sequence[Row], phases: Sequence[str], resume: Sequence[str]) -> str:
    """Return the picture. resume: lines that say where a cleared fault leads.

    Raises KeyError for a phase that has no place.
    """
    x, y = PLACES["FAULT"]
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img"'
        ' aria-labelledby="title">',
        '<title id="title">The round: phases, and what leads from one to the next</title>',
        f"<style>{_STYLE}\n</style>",
        '<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="9" markerHeight="9"'
        ' orient="auto"><path class="head" d="M0 0L10 5L0 10z"/></marker></defs>',
        f'<rect class="paper" width="{_WIDTH}" height="{_HEIGHT}"/>',
    ]
    for row in rows:
        out += _arrow(row)
    for name in phases:
        if name != "FAULT":
            out += _box(name)
    wide = PLACES["BETTING"][0] + _BOX[0] - x
    out.append(f'<rect class="fault" x="{x}" y="{y}" width="{wide}" height="{_HEIGHT - y - 14}" rx="10"/>')
    out.append(f'<text class="name" x="{x + 20}" y="{y + 30}">FAULT</text>')
    for i, line in enumerate(resume):
        out.append(f'<text x="{x + 110}" y="{y + 24 + 18 * i}">{escape(line)}</text>')
    return "\n".join([*out, "</svg>"]) + "\n"
