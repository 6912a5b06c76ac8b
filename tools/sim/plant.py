"""What hands and gravity do at the table: cover, latches, dome, keys, and three dice.

Owns where things physically are. Bolts hold what they hold, and where they are comes from the
world. Must not know a phase or a rule. `order(**what)` sends the contacts' new state to the world.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

KEYS = ("start", "lever", "bell", "void", "paid")
ENGAGED = 500  # of 1000: a bolt this far out holds
ODD_CHANCE = 0.03  # of each kind, at every shake
MOTORS = ("ok", "dead", "runaway", "welded")
LYING = ("flat", "stacked", "tilted")


class Blocked(Exception):
    """Something holds: `what` cannot be moved because of `by`."""

    def __init__(self, what: str, by: str):
        super().__init__(what, by)
        self.what = what
        self.by = by


class Dice:
    """Three dice under the dome. `faces` lie up, `front` are seen from the croupier's side."""

    def __init__(self, seed: int | None = None):
        self._random = random.Random(seed)
        self.rolls = 0
        self.tumbling = False
        self.force: str | None = None  # how shakes leave them until the cover is next lifted; None: by chance
        self.lying = "flat"
        self.faces = [1, 4, 6]
        self.front = [2, 1, 2]
        self.places = [(-0.5, 0.1, 8), (0.05, -0.25, -14), (0.5, 0.2, 23)]

    def settle(self) -> None:
        """They come to rest, by chance."""
        chance = self._random
        self.rolls += 1
        self.tumbling = False
        for i in range(3):
            self._turn(i, chance.randint(1, 6))
        self.lying = self.force or chance.choices(LYING, (1 - 2 * ODD_CHANCE, ODD_CHANCE, ODD_CHANCE))[0]
        turn = chance.uniform(0, 2 * math.pi)
        self.places = []
        for i in range(3):
            angle = turn + i * 2 * math.pi / 3 + chance.uniform(-0.4, 0.4)
            far = chance.uniform(0.45, 0.62)
            self.places.append(
                (round(far * math.cos(angle), 3), round(far * math.sin(angle), 3), chance.randint(-44, 44))
            )
        self.places.sort()
        if self.lying != "flat":  # the last one lies on, or leans against, the middle one
            x, y, turned = self.places[1]
            off = 0.07 if self.lying == "stacked" else 0.36
            self.places[2] = (round(x + off, 3), round(y - off / 6, 3), turned + chance.randint(5, 25))

    def turn(self, die: int) -> None:
        """A hand turns die 0-2 to its next face, and lays them all flat."""
        if self.lying != "flat":
            self.places = [(-0.5, 0.1, 8), (0.05, -0.25, -14), (0.5, 0.2, 23)]
            self.lying = "flat"
        self._turn(die, self.faces[die] % 6 + 1)

    def _turn(self, die: int, up: int) -> None:
        self.faces[die] = up
        self.front[die] = self._random.choice([face for face in range(1, 7) if face not in (up, 7 - up)])

    def seen(self, faces: bool) -> dict[str, Any]:
        """Return what a viewer sees; without `faces` only that they lie there."""
        shown = {"roll": self.rolls, "tumbling": self.tumbling, "places": self.places, "lying": self.lying}
        if faces and not self.tumbling:
            return {**shown, "faces": self.faces, "front": self.front}
        return {**shown, "lying": self.lying if faces else "flat"}


class Plant:
    """The table in front of the croupier."""

    def __init__(self, order: Callable[..., object], seed: int | None = None):
        self._order = order
        self.cover = False
        self.latch = {"latch_a": False, "latch_b": False}
        self.dome = True
        self.service = False
        self.pressed: dict[str, set[object]] = {name: set() for name in KEYS}
        self.bolts = [0, 0, 0]
        self.cuts: set[str] = set()
        self.sticks: set[str] = set()
        self.motor = "ok"
        self.bounce_ms = 0
        self.dice = Dice(seed)

    def state(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "cover": "on" if self.cover else "off",
            **{name: "closed" if closed else "open" for name, closed in self.latch.items()},
            "dome": "closed" if self.dome else "open",
            "service": "on" if self.service else "off",
            "keys": {name: bool(hands) for name, hands in self.pressed.items()},
            "cuts": sorted(self.cuts),
            "sticks": sorted(self.sticks),
            "motor": self.motor,
            "bounce": self.bounce_ms,
            "force": self.dice.force,
        }

    # -- Hands -------------------------------------------------------------------------------------------

    def move(self, what: str, to: str) -> None:
        """Put cover, latch_a, latch_b, dome or service where `to` says. Raises Blocked, or ValueError."""
        if what == "cover" and to in ("on", "off"):
            self._move_cover(to == "on")
        elif what in self.latch and to in ("open", "closed"):
            self._move_latch(what, to == "closed")
        elif what == "dome" and to in ("open", "closed"):
            self._move_dome(to == "closed")
        elif what == "service" and to in ("on", "off"):
            self.service = to == "on"
        else:
            raise ValueError(what)
        self._order(set={what: to})

    def _move_cover(self, on: bool) -> None:
        if not on:
            for name, closed in self.latch.items():
                if closed:
                    raise Blocked("cover", name)
            self.dice.force = None  # what was forced has been seen
        self.cover = on

    def _move_latch(self, name: str, closed: bool) -> None:
        if closed and self.bolts[1] >= ENGAGED:
            raise Blocked(name, "cover_bar")
        if closed and not self.cover:
            raise Blocked(name, "no_cover")
        if not closed and self.latch[name] and self.bolts[0] >= ENGAGED:
            raise Blocked(name, "cover_lock")
        self.latch[name] = closed

    def _move_dome(self, closed: bool) -> None:
        if self.cover and closed != self.dome:
            raise Blocked("dome", "cover")
        if not closed and self.bolts[2] >= ENGAGED:
            raise Blocked("dome", "dome_lock")
        self.dome = closed

    def pry(self, what: str) -> None:
        """Open latch_a, latch_b or dome by brute force, bolt or no bolt. Raises ValueError."""
        if what in self.latch:
            self.latch[what] = False
        elif what == "dome" and not self.cover:
            self.dome = False
        else:
            raise ValueError(what)
        self._order(set={what: "open"})

    def press(self, key: str, hand: object) -> None:
        """`hand` presses a key. Raises ValueError."""
        if key not in self.pressed:
            raise ValueError(key)
        first = not self.pressed[key]
        self.pressed[key].add(hand)
        if first:
            self._order(set={key: "pressed"})

    def release(self, key: str, hand: object) -> None:
        """`hand` lets go of a key, if it holds it. Raises ValueError."""
        if key not in self.pressed:
            raise ValueError(key)
        if hand in self.pressed[key]:
            self.pressed[key].discard(hand)
            if not self.pressed[key]:
                self._order(set={key: "released"})

    def let_go(self, hand: object) -> None:
        """`hand` is gone, and with it whatever it held down."""
        for key in KEYS:
            self.release(key, hand)

    def force(self, how: str | None) -> None:
        """Let shakes leave the dice as `how` says (LYING, None: by chance) until the cover is next lifted."""
        if how is not None and how not in LYING:
            raise ValueError(how)
        self.dice.force = how

    # -- Damage ------------------------------------------------------------------------------------------

    def damage(self, cuts: set[str], sticks: set[str]) -> None:
        """Let exactly these contacts be cut, and these welded."""
        self.cuts, self.sticks = cuts, sticks
        self._order(mend=1)
        for contact in sorted(cuts):
            self._order(cut=contact)
        for contact in sorted(sticks):
            self._order(stick=contact)

    def set_motor(self, kind: str) -> None:
        """Choose the motor, one of MOTORS. Raises ValueError."""
        if kind not in MOTORS:
            raise ValueError(kind)
        self.motor = kind
        self._order(motor=kind)

    def set_bounce(self, ms: int) -> None:
        """Let contacts bounce for `ms` whenever they move."""
        self.bounce_ms = ms
        self._order(bounce=ms)
