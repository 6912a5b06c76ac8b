"""The rules as the page shows them, worked out from the firmware's own table (shaker.rules)."""

from __future__ import annotations

import itertools
from typing import Any

from shaker import lights, names, rules


def bets() -> list[dict[str, Any]]:
    """Return for each bet its name, the odds it can pay, and how many of the 216 throws win it."""
    found: dict[str, list[int]] = {name: [] for name in names.LAMPS}
    for dice in itertools.product(range(1, 7), repeat=3):
        for name, odds in rules.winning(dice).items():
            found[name].append(odds)
    return [{"bet": name, "pays": sorted(set(odds)), "wins": len(odds)} for name, odds in found.items()]


def faces() -> list[dict[str, str]]:
    """Return figure and colour of faces 1 to 6."""
    return [
        {"figure": figure, "colour": rules.COLOURS[colour]}
        for figure, colour in zip(rules.FIGURES, rules.COLOUR_OF, strict=True)
    ]


def colour_name(rgb: list[int]) -> str:
    """Return the name of the status LED's colour, "?" when the firmware knows none."""
    for name, known in lights.COLOURS.items():
        if list(known) == list(rgb):
            return name
    return "?"
