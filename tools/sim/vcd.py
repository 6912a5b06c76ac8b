"""The table's inputs and outputs as a Value Change Dump (IEEE 1364-2005, 18.2), for GTKWave or PulseView.

Owns the list of signals. One time step is one millisecond of the table's clock.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from shaker import names

# name, bits; in the order of their bits in Sample.word, lowest first.
SIGNALS = (
    *((name, 2 if name.startswith("latch") else 1) for name in names.INPUTS),
    *((name, 1) for name in names.OUTPUTS),
    ("base_moving", 1),
    ("power", 1),
)
LAMPS = ("lamps", len(names.LAMPS))


@dataclasses.dataclass(frozen=True)
class Sample:
    """All signals from `t` (ms) on: `word` packs SIGNALS, `lamps` the 39 lamps."""

    t: int
    word: int
    lamps: int


def pack(values: Iterable[int]) -> int:
    """Return the word of values in the order of SIGNALS."""
    word = at = 0
    for (_, bits), value in zip(SIGNALS, values, strict=True):
        word |= value << at
        at += bits
    return word


def unpack(word: int) -> list[int]:
    """Return the values in the order of SIGNALS."""
    values = []
    for _, bits in SIGNALS:
        values.append(word & ((1 << bits) - 1))
        word >>= bits
    return values


def write(samples: list[Sample], end: int, comment: str = "") -> str:
    """Return the file's text. `samples`: in order of time, at least one. `end`: the last moment, in ms."""
    signals = (*SIGNALS, LAMPS)
    codes = [chr(33 + i) for i in range(len(signals))]
    lines = ["$version shaker virtual table $end", "$timescale 1 ms $end"]
    if comment:
        lines.insert(0, f"$comment {comment.replace('$', '')} $end")
    lines.append("$scope module shaker $end")
    for (name, bits), code in zip(signals, codes, strict=True):
        span = f" [{bits - 1}:0]" if bits > 1 else ""
        lines.append(f"$var wire {bits} {code} {name}{span} $end")
    lines += ["$upscope $end", "$enddefinitions $end"]
    before: list[int] | None = None
    for sample in samples:
        values = [*unpack(sample.word), sample.lamps]
        changed = [i for i in range(len(values)) if before is None or values[i] != before[i]]
        if not changed:
            continue
        lines.append(f"#{sample.t}")
        if before is None:
            lines.append("$dumpvars")
        for i in changed:
            bits = signals[i][1]
            lines.append(f"b{values[i]:b} {codes[i]}" if bits > 1 else f"{values[i]}{codes[i]}")
        if before is None:
            lines.append("$end")
        before = values
    if end > samples[-1].t:
        lines.append(f"#{end}")
    return "\n".join(lines) + "\n"
