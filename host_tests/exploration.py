"""Exhaustive search: every reachable state of the round, on the firmware's own classes (issue 6, SPEC 12).

Owns the steps, the states and the search; explore.py is its command line.

What is real: shaker.core.Core with Inputs, Round, Agitator, Bolts, State and Queue, the interlock, Device for
the host's commands, Settings. What is judged: explore_rules.py, written from SPEC alone.

One step = one scan. The abstraction, and why it loses nothing:

- Time. A state holds no clock values, only which timers run. A step is taken either with every running timer
  one tick before its limit, or with exactly one of them at its limit, alone or together with a change of a
  contact or key. So timers may run out in any order and at any moment: more than any legal settings allow,
  never less. A late scan that is no overrun (250 ms) is the ordinary step. Every step is taken across the
  wrap of the clock: the scan before it came before, and whatever runs began before. The agitator's next edge
  lies before the wrap if it is late, else after (explore_parts.py takes whole shakes across).
- Debouncing. A step begins with the counters of the contacts that are to change one sample short of their
  limit; the real Inputs.sample() takes the last. What lies before changes nothing but counters
  (explore_parts.py proves the counters themselves, sequence by sequence). A latch has four settled values:
  open, closed, invalid, and none of them while its contacts are under way.
- What cannot matter is dropped, and what may not matter is set to its worst value before each step: numbers
  of a last shake, old times, lamps left burning, DISTURBED and `turned on` where they have no meaning.
- Movement of the base and causes outside the table (journal, settings, clock) come and go at any moment.
- Faults: the codes are checked when they are raised and cleared; of them a state keeps dome-opened alone, the
  only one with an effect that lasts. The first code is any of FIRSTS then, in turn; and wherever a clear is
  asked for, by key or host, it is each of the 17, alone and with all others (once for each origin, flags,
  cover, dome and outcome).
- Keys: one key down at a time, any other beside a paid that is held, and any two contacts or keys may change
  in one scan where a round is open; --full: paid and another key together, and pairs of changes everywhere.
  Keys that are down and hold nothing count as the same key: only their press edge tells them apart.
- Memory: what a state says of the round's memory (latches seen open, keys ignored, a hold, the service key
  turned on) is what explore_rules.py reads in SPEC: each step asks that the round remembers that and no more.
- Bolts: told, not driven; how long and how often is proved in explore_parts.py. A release may be held back
  by the budget at any moment and for any time; one so held matters only to the step that moves the other.
- Power: cut after each record of each scan (a batch that is torn leaves a prefix), an exception at any
  moment, and then every combination of contacts, found by a Core as a new one is, whose state is loaded from
  the record by State.load, as app.py does it.
- Latch A and latch B may be exchanged (not with --full, which so proves it).
test_explore.py walks the plain firmware scan by scan, with real debouncing and real time, and finds every
state it meets among those reached here.
"""

import collections
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import multiprocessing
import pathlib
import struct
import sys
import time
from array import array

import explore_rules as rules
from explore_rules import BOTH_OPEN, DICE, LAMP_MASK, REPEAT, ROUND, Facts, Violation, broken, need
from shaker import names as n
from shaker import record
from shaker.record import FLAG_BETS, FLAG_DISTURBED, FLAG_SERVICE

FIRMWARE = pathlib.Path(__file__).resolve().parent.parent / "firmware"
NOW = 4  # the tick of every step: the scan before it, and all that began earlier, came before the wrap
LONG_MS = 1 << 20
# Stand in turn for every first fault: the core raises none of them in FAULT, nor at a restart from it.
FIRSTS = (
    n.F_PROGRAM_ALTERED,
    n.F_OPENED_IN_SHAKE,
    n.F_OPENED_IN_BETTING,
    n.F_OPENED_WHILE_OFF,
    n.F_AGITATOR_STALLED,
    n.F_POWER_LOST_IN_SHAKE,
    n.F_SCAN_OVERRUN,
)
CODES = range(1, len(n.FAULTS))
DOME_OPENED = 1 << (n.F_DOME_OPENED - 1)
DISTURBING = DOME_OPENED | 1 << (n.F_AGITATOR_RUNAWAY - 1) | 1 << (n.F_SHAKEN_LATE - 1)  # SPEC 3
FAST = {"bolt_ms": 200, "pulse_ms": 100, "gap_ms": 200, "settle_ms": 300}
CONFIGS = (
    ("electronic, motion", {"motion": True}),
    ("lever", {"actuation": "lever", "front_board": False}),
    ("electronic, no motion", {"motion": False, "front_board": False}),
)
MORE_CONFIGS = (
    ("electronic, motion, no board", {"motion": True, "front_board": False, "layout_lamps": False}),
    ("lever, board", {"actuation": "lever", "front_board": True}),
    ("electronic, no motion, board", {"motion": False, "front_board": True}),
)

# A live state. LEVELS: settled inputs; a key that is down: PAID, BELL for any other that counts, START for
# any other that is ignored. TOLD: standing commands of the bolts. PULSES: seen at the outputs, or strokes.
(
    LEVELS,
    PHASE,
    ORIGIN,
    FLAGS,
    DICED,
    DOMED,
    SEEN,
    IGNORED,
    HOLD,
    TURNED,
    STROKES,
    STAGE,
    BEGUN,
    WATCHING,
    DRIVING,
    OUT,
    TOLD,
    PULSES,
) = range(18)
# A restored state, not yet judged: (-1, phase, origin, flags, dice, dome-opened latched)

A_BITS, B_BITS = 0x2003, 0x400C
NONE, CLOSED, INVALID, OPEN = range(4)
LATCH = ((0, 0x0001, 0x0002, 0x2000), (0, 0x0004, 0x0008, 0x4000))
WORDS = ((0, 0b0001, 0b0000, 0b0010), (0, 0b0100, 0b0000, 0b1000))  # contacts; NONE: see _latch_word
TRAVEL, PULSE, GAP, SETTLE = 1, 2, 3, 4
KEY_BITS = (n.START, n.LEVER, n.BELL, n.VOID_KEY, n.PAID)
OTHER_KEYS = n.KEYS & ~n.PAID
COMMANDS = ("result", "void", "paid", "clear", "abandon", "reboot")
# Steps that people, the host or time take; the others are faults, cuts and accidents.
LEGAL = frozenset(
    (
        "idle",
        "latch",
        "cover",
        "dome",
        "service",
        "press",
        "release",
        "hold",
        "stuck",
        "edge",
        "settled",
        "window",
        "host",
        "judge",
    )
)
# Steps that no scenario file can make.
UNSPEAKABLE = frozenset(("broken", "stopped", "overrun", "late", "full", "crash", "blocked", "unlocked"))
# What happens to a table at rest or in FAULT whatever its latches and keys: tried once for each phase,
# origin, flags, outputs, cover, dome, service key and broken pair (--full: in every state).
ACCIDENTS = frozenset(("broken", "stopped", "motion", "stall", "blocked"))
# What changes in the very scan in which a timer runs out. A contact that opens ends what the timer would do:
# that is tried where it must be (the drive's edges), and is the plain change elsewhere.
_CONTACTS = ("latch", "cover", "dome", "service")
# Changes of inputs alone, and commands: at rest, Core decides nothing but what these ask it to.
_CHANGES = frozenset((*_CONTACTS, "press", "release", "motion", "both", "host"))
_TOGETHER = {
    "edge": (*_CONTACTS, "press", "release"),
    "settled": ("press",),
    "window": ("press",),
    "hold": ("latch", "dome"),
}
_PLACE = n.COVER | n.DOME | n.SERVICE | n.LATCH_A_INVALID | n.LATCH_B_INVALID


def can_be_said(act):
    """True when a scenario file has words for it: none for a timer and a change in one and the same scan."""
    return act.kind not in UNSPEAKABLE and not (act.kind in _TOGETHER and isinstance(act.arg, tuple))


# -- The firmware, as it is or with a small change ---------------------------------------------------


class NoPlace(ValueError):
    """A change cannot be made: its text is not there, or not once."""


class _Changed(importlib.machinery.SourceFileLoader):
    """Loads a firmware module with a piece of its text replaced."""

    def __init__(self, name, path, old, new):
        super().__init__(name, path)
        self._old = old
        self._new = new

    def get_code(self, fullname):
        path = self.get_filename(fullname)
        text = pathlib.Path(path).read_text("utf-8")
        if text.count(self._old) != 1:
            raise NoPlace(f"{pathlib.Path(path).name}: {text.count(self._old)} places for {self._old!r}")
        return compile(text.replace(self._old, self._new), path, "exec")


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, mutant):
        self._name = "shaker." + mutant[0]
        self._path = str(FIRMWARE / "shaker" / (mutant[0] + ".py"))
        self._change = mutant[1:3]

    def find_spec(self, fullname, path, target=None):
        if fullname != self._name:
            return None
        loader = _Changed(fullname, self._path, *self._change)
        return importlib.util.spec_from_loader(fullname, loader)


def load(mutant=None):
    """Return {module name: module} of a fresh copy of the firmware; mutant: (module, old text, new text)."""
    saved = {name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] == "shaker"}
    finder = _Finder(mutant) if mutant else None
    if finder:
        sys.meta_path.insert(0, finder)
    try:
        wanted = (
            "core",
            "device",
            "events",
            "state",
            "settings",
            "inputs",
            "bolts",
            "interlock",
            "round",
            "rules",
        )
        return {name: importlib.import_module("shaker." + name) for name in wanted}
    finally:
        if finder:
            sys.meta_path.remove(finder)
        for name in list(sys.modules):
            if name.split(".")[0] == "shaker":
                del sys.modules[name]
        sys.modules.update(saved)


# -- What can happen in one scan ---------------------------------------------------------------------


class Act:
    """One step. `kind`, `arg`; `before`, `c0`, `c1`, `c2`, `word`: how Inputs is primed; `after`: the settled
    inputs SPEC 5 wants then; `pressed`: keys with a press edge.
    """

    __slots__ = ("after", "arg", "before", "c0", "c1", "c2", "kind", "pressed", "word")

    def __init__(self, kind, arg, levels, flips=()):
        self.kind = kind
        self.arg = arg
        self.before = self.after = levels
        self.c0 = self.c1 = self.c2 = 0
        self.pressed = 0
        self.word = levels & 0x1FF0
        target = [_latch(levels, 0), _latch(levels, 1)]
        raw = list(target)
        for what, value in flips:
            if what in ("a", "b"):
                i = what == "b"
                old = target[i]
                if value == CLOSED:
                    # From open the contacts are under way first: settled to none, which equals open here.
                    self.before &= ~LATCH[i][old]
                    self._prime(LATCH[i][CLOSED], 6)
                    raw[i] = CLOSED
                else:
                    self._prime(LATCH[i][old] | LATCH[i][value], 1)
                    raw[i] = value if value != NONE else (INVALID if old == CLOSED else CLOSED)
                    if value == NONE and old != NONE:
                        self.c0 &= ~LATCH[i][CLOSED if old != CLOSED else INVALID]
                target[i] = value
                self.after = self.after & ~(A_BITS, B_BITS)[i] | LATCH[i][value]
            else:
                if what in KEY_BITS:
                    count = 4
                    if value:
                        self.pressed |= what
                elif what == n.SERVICE:
                    count = 4
                elif what == n.MOTION:
                    count = 1 if value else 6
                else:
                    count = 6 if value else 1
                self._prime(what, count)
                self.word = self.word & ~what | (what if value else 0)
                self.after = self.after & ~what | (what if value else 0)
        for i in (0, 1):
            # Under way and not changing now: on its way to closed, which takes more than one sample.
            self.word |= WORDS[i][CLOSED if raw[i] == NONE else raw[i]]

    def _prime(self, bits, count):
        bits &= 0x7FFF
        if count & 1:
            self.c0 |= bits
        if count & 2:
            self.c1 |= bits
        if count & 4:
            self.c2 |= bits

    def __repr__(self):
        return f"{self.kind}({self.arg})" if self.arg is not None else self.kind


def _latch(levels, i):
    bits = levels & (A_BITS, B_BITS)[i]
    return LATCH[i].index(bits)


def _flips(levels):
    """Return every single change of a contact: (kind, arg, flip)."""
    found = []
    for i, name in enumerate("ab"):
        now = _latch(levels, i)
        # Closing takes longer than leaving the old side: there is always a moment of neither.
        found += [("latch", (name, to), (name, to)) for to in (OPEN, CLOSED, INVALID, NONE) if to != now]
    for kind, bit in (("cover", n.COVER), ("dome", n.DOME), ("service", n.SERVICE)):
        found.append((kind, not levels & bit, (bit, not levels & bit)))
    return found


class Acts:
    """All steps for given settled inputs, made once for each."""

    def __init__(self, full):
        self.full = full
        self._known = {}

    def of(self, levels, ignored):
        """Return (plain acts, pairs of changes) for `levels` and the ignored keys among them."""
        key = levels, ignored
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._make(levels, ignored)
        return found

    def _make(self, levels, ignored):
        flips = _flips(levels)
        keys = [("release", bit, (bit, False)) for bit in KEY_BITS if levels & bit]
        down = levels & n.KEYS
        # Without `full`, a paid that is down is held: what it holds must stand any other key.
        if not down or down == n.PAID or (self.full and not (down & n.PAID and down & OTHER_KEYS)):
            keys += [
                ("press", bit, (bit, True))
                for bit in KEY_BITS
                if not levels & bit and not (bit != n.PAID and down & OTHER_KEYS)
            ]
        changes = flips + keys
        acts = [Act("idle", None, levels)]
        acts += [Act(kind, arg, levels, (flip,)) for kind, arg, flip in changes]
        acts.append(Act("motion", None, levels, ((n.MOTION, True),)))
        acts.append(Act("runaway", None, levels | n.MOTION))
        acts += [
            Act(kind, None, levels)
            for kind in (
                "broken",
                "stopped",
                "overrun",
                "hold",
                "edge",
                "late",
                "settled",
                "unlocked",
                "window",
                "stall",
            )
        ]
        acts += [
            Act(kind, (what, arg), levels, (flip,))
            for kind in ("edge", "settled", "window", "hold")
            for what, arg, flip in changes
            if what in _TOGETHER[kind]
        ]
        acts += [Act("pair", i, levels) for i in (0, 1) if _latch(levels, i) == INVALID]
        acts += [Act("stuck", bit, levels) for bit in KEY_BITS if levels & bit & ~ignored]
        acts += [Act("host", name, levels) for name in COMMANDS]
        acts += [Act("blocked", name, levels) for name in ("broken", "moving")]
        if levels & n.SERVICE:
            acts += [Act("blocked", "key", levels, ((n.SERVICE, False),))]
        if not down:
            acts += [Act("full", bit, levels, ((bit, True),)) for bit in (n.START, n.LEVER)]
        pairs = []
        if down & n.PAID and down & OTHER_KEYS and not self.full:
            return acts, pairs  # what two changes at once do to a hold shows without the other key
        for i in range(len(changes)):
            for j in range(i):
                one, two = changes[j], changes[i]
                both = (one[2], two[2])
                if one[2][0] == two[2][0]:
                    continue
                if one[0] == two[0] == "press" and not self.full and not down and n.PAID in (one[1], two[1]):
                    continue
                if one[0] == two[0] == "press" and n.PAID not in (one[1], two[1]):
                    continue  # two other keys at once are two keys one after the other
                pairs.append(Act("both", (one[:2], two[:2]), levels, both))
        return acts, pairs


# -- One Core that can be put into any state -----------------------------------------------------------


class _Journal:
    unix_base = None


_UNPACK = struct.Struct(record.BODY).unpack_from
_PACK = struct.Struct(record.BODY).pack_into
_UNPACK_X = struct.Struct("<I").unpack_from


class Rig:
    """The firmware's Core, `config`: settings that differ from FAST. `step` takes it from state to state."""

    def __init__(self, modules, config, symmetric=True):
        settings = modules["settings"].Settings()
        settings.set({**FAST, **config})
        self.settings = settings
        self.symmetric = symmetric
        self.room = True
        self.core, self.queue = build(modules, settings, lambda: self.room)
        self.device = modules["device"].Device(self.core, _Journal(), self.queue, settings, "00", 0)
        self.parts = (
            self.core,
            self.core.inputs,
            self.core.round,
            self.core.agitator,
            self.core.bolts,
            self.core.bolts._lock,
            self.core.bolts._bar,
            self.core.bolts._dome,
        )
        self._blank = [
            {k: v for k, v in vars(part).items() if isinstance(v, (int, bool))} for part in self.parts
        ]
        size = self.core.bolts._lock._size
        self._starts = array("i", [NOW] * size)
        self._size = size
        self.facts = Facts()
        self.facts.lever = settings.lever
        self.facts.board = settings.front_board
        self._lit = LAMP_MASK if settings.layout_lamps else 0
        self.motion = settings.motion and not settings.lever
        self.first = FIRSTS[0]  # the first code of the FAULT to step from
        self.faults = 0  # further codes latched there
        self._record = bytearray(record.SIZE)
        self.restored = []  # states a cut during the last step leaves behind
        self.at_rest = False  # in the state to step from, nothing changes by itself
        self._rest = modules["core"]._REST
        self._preparations = {
            "pair": self._pair,
            "hold": self._held,
            "stuck": self._stuck,
            "edge": self._edge,
            "late": self._late,
            "settled": self._settled,
            "unlocked": self._unlocked,
            "window": self._window,
            "stall": self._stall,
            "runaway": self._runaway,
            "overrun": self._overrun,
            "stopped": self._stopped,
            "broken": self._broken,
            "full": self._full,
            "blocked": self._blocked,
        }
        self._far = (NOW - LONG_MS) & 0x3FFFFFFF
        self._never_down = [self._far] * 5
        self._hold_at = (NOW - 799) & 0x3FFFFFFF
        self._down_at = (NOW - 9999) & 0x3FFFFFFF
        self._pair_at = (NOW - 199) & 0x3FFFFFFF
        self._stroke_at = (NOW - settings.settle_ms + 1) & 0x3FFFFFFF
        self._window_at = (NOW - settings.lever_window_ms) & 0x3FFFFFFF

    # -- Putting ---------------------------------------------------------------------------------------

    def put(self, t, act, poor=False, held=0):
        """Put the core into live state `t`, contacts primed for `act`, timers just short of their limits.

        poor: the bolts' budget is spent; held: bolts (mask) whose release it holds back.
        """
        core = self.core
        s = core.state
        the_round = core.round
        agitator = core.agitator
        inputs = core.inputs
        bolts = core.bolts
        far = self._far
        ph = t[PHASE]
        shaking = ph == n.SHAKING
        fault = ph == n.FAULT
        flags = t[FLAGS]
        s.phase = ph
        s.origin = t[ORIGIN]
        s.flags = flags
        s.round = ROUND
        s.repeat = REPEAT
        if fault:
            s.fault = self.first
            s.faults = 1 << (self.first - 1) | self.faults | t[DOMED] << (n.F_DOME_OPENED - 1)
        else:
            s.fault = s.faults = 0
            if ph in _NOT_DISTURBED_YET:
                s.flags = flags | FLAG_DISTURBED
        s.die1, s.die2, s.die3 = DICE if t[DICED] or stale_dice(ph, t[ORIGIN], flags) else (0, 0, 0)

        s.changed = True

        inputs.levels = act.before
        inputs.rose = inputs.fell = 0
        inputs.calm = 50
        inputs._word = -1
        inputs._c0 = act.c0
        inputs._c1 = act.c1
        inputs._c2 = act.c2
        inputs.counting = act.c0 | act.c1 | act.c2

        levels = t[LEVELS]
        the_round.judged = True
        the_round.settings_bad = the_round.journal_bad = the_round.clock_bad = False
        the_round._seen = t[SEEN]
        the_round._ignored = t[IGNORED]
        down = levels & ~t[IGNORED]
        if down & n.KEYS:
            the_round._down_at[:] = [self._down_at if down & bit else far for bit in KEY_BITS]
        else:
            the_round._down_at[:] = self._never_down
        pairs = levels & (n.LATCH_A_INVALID | n.LATCH_B_INVALID)
        the_round._pairs = pairs
        the_round._pair_a_at = self._pair_at if pairs & n.LATCH_A_INVALID else far
        the_round._pair_b_at = self._pair_at if pairs & n.LATCH_B_INVALID else far
        the_round._hold = t[HOLD]
        the_round._hold_at = self._hold_at if t[HOLD] else far
        the_round._turned_on = bool(t[TURNED]) if fault else True
        the_round._strokes = t[STROKES] if shaking else 3
        the_round._shake_at = self._window_at if shaking and t[STROKES] < 3 else far
        the_round._stroke_at = self._stroke_at if shaking else far
        the_round.t_s = 100
        the_round.t_ms = 0

        agitator._stage = t[STAGE]
        agitator._edge = NOW + 1
        agitator._pulse_at = self._pair_at
        agitator._watching = t[WATCHING]
        agitator._moving = False
        agitator._moving_at = far
        agitator.begun = t[BEGUN] if shaking or self.facts.lever else 3
        driving = t[DRIVING]
        agitator.drive = driving & 1 != 0
        agitator.pulsing = driving & 2 != 0
        agitator.done = driving & 4 != 0

        told = t[TOLD] | held
        out = t[OUT] | held
        used = self._size if poor else 0
        for bolt, bit in ((bolts._lock, 4), (bolts._bar, 8), (bolts._dome, 16)):
            bolt.told = told & bit != 0
            bolt.driving = bolt._turn = bolt._waiting = False
            bolt._used = used
            bolt._starts = self._starts
        bolts.told = out & n.BOLTS
        bolts.driving = 0
        bolts.busy = (told ^ out) & n.BOLTS  # a release that waits for the budget
        bolts._owed_drive = 0

        core.outputs = out
        core.driving = 0
        core.lamps_lo = core._won_lo = self._lit & 0xFFFFF
        core.lamps_hi = core._won_hi = self._lit >> 20
        core._word = -1
        core._last = (NOW - 250) & 0x3FFFFFFF
        core._still = 0
        # At rest, a change of keys or movement takes the short way, Core.touch(), and a command has to wake
        # the core; NOW is before the deadline.
        core._rest = self._rest if self.at_rest and act.kind in _CHANGES and not bolts.busy else 0
        core._due = 251 if core._rest else 0
        if core._rest and not (t[DICED] and (ph == n.PAYOUT or (fault and t[ORIGIN] == n.PAYOUT))):
            core.lamps_lo = core.lamps_hi = 0  # else they are lit from before, and must go out
        core._pending = 0
        self.queue.count = 0
        self.device.reboot_asked = False
        self.room = True

    def put_restored(self, p, pending=0, stay=False):
        """Put the core as it is after Core() and State.load() of a record that says `p`; begins scanning."""
        for part, values in zip(self.parts, self._blank, strict=True):
            vars(part).update(values)
        core = self.core
        core.round._down_at[:] = [0] * 5
        for bolt in self.parts[5:]:
            bolt._starts = self._starts
        fault = self.first if p[1] == n.FAULT else 0
        faults = 1 << (fault - 1) | p[5] << (n.F_DOME_OPENED - 1) if fault else 0
        dice = DICE if p[4] or stale_dice(*p[1:4]) else (0, 0, 0)
        # Of the record the state alone counts: the other numbers are none that load() could mistake for it.
        _PACK(
            self._record, 0, 0xE5, 99, p[1] | p[2] << 4, p[3], 98, 97, 96, 95, REPEAT, 94, ROUND, 93,
            faults, fault, *dice, 92, 91,
        )  # fmt: skip
        core.state.load(self._record)
        core.state.changed = True
        wrote = (*p[1:4], REPEAT, ROUND, faults, fault, dice)
        need(self.fields() == wrote, "SPEC 7", f"restored as {self.fields()}, written as {wrote}")
        self.queue.count = 0
        self.room = True
        core._pending = pending
        core.bolts_stay = stay
        core.begin((NOW - 10) & 0x3FFFFFFF)

    # -- Looking -----------------------------------------------------------------------------------------

    def fields(self):
        """Return the state as explore_rules follows it."""
        s = self.core.state
        return (s.phase, s.origin, s.flags, s.repeat, s.round, s.faults, s.fault, (s.die1, s.die2, s.die3))

    def records(self):
        """Return all records that wait: the fields after each, then event, a, b, x."""
        queue = self.queue
        found = []
        for i in range(queue.count):
            at = queue.slot(i)
            r = _UNPACK(queue.buf, at)
            found.append(
                (
                    r[2] & 15,
                    r[2] >> 4,
                    r[3],
                    r[8],
                    r[10],
                    r[12],
                    r[13],
                    r[14:17],
                    r[1],
                    r[17],
                    r[18],
                    _UNPACK_X(queue.buf, at + record.OFF_X)[0],
                )
            )
        return found

    def canonical(self, pulses):
        """Return the live state the core is in."""
        return canonical(self.core, pulses, self.symmetric)

    # -- One step ------------------------------------------------------------------------------------------

    def step(self, t, act, poor=False, held=0):
        """Take one step from live state `t`; return the live state after it. Raises Violation. See put().

        `restored` then holds every state that a power cut in this scan may leave in the journal.
        """
        self.put(t, act, poor, held)
        core = self.core
        the_round = core.round
        agitator = core.agitator
        facts = self.facts
        kind = act.kind
        arg = act.arg
        before = t[OUT] | held
        s0 = self.fields()

        facts.judging = False
        facts.bad = facts.moving = False
        facts.command = None
        facts.fired = kind
        facts.causes = ()
        facts.told = before
        facts.seen = t[SEEN] | act.after & BOTH_OPEN | act.before & BOTH_OPEN
        facts.ignored = t[IGNORED]
        facts.hold = t[HOLD]
        facts.turned_on = t[TURNED]
        facts.turning_off = act.before & n.SERVICE and not act.after & n.SERVICE
        facts.turning_on = act.after & n.SERVICE and not act.before & n.SERVICE
        facts.cleared = False
        facts.stuck = arg if kind == "stuck" else 0
        facts.pressed = act.pressed
        facts.pulses = t[PULSES]
        facts.begun = t[PULSES]
        prepare = self._preparations.get(kind)
        if prepare:
            prepare(t, arg)
        facts.room = self.room

        s = s0
        waiting = 0
        word = act.word
        if kind == "host":
            facts.command = arg
            s = self._command(s0, facts, act.before, arg)
            waiting = self.queue.count
            if s is s0 and canonical(core, t[PULSES], self.symmetric) == t:
                self.restored = ()
                return t  # refused, and nothing is different: the plain step is what follows
        elif kind == "blocked" and arg != "key":
            facts.command = "clear"
            s = self._command(s0, facts, act.before, "clear")
            waiting = self.queue.count
            if arg == "moving":
                word |= n.MOTION
        core.scan(NOW, word)

        levels = core.inputs.levels
        records = self.records() if self.queue.count else ()
        if s is not s0 and core.state.faults:
            facts.command = None
        after = rules.check_records(s, records[waiting:], facts, levels) if records else s
        final = self.fields()
        if final != after:
            broken("SPEC 7", f"the state {final} is not the last record's {after}")
        if levels != act.after and word == act.word:
            broken("SPEC 5", f"inputs settled to {levels:04x}, not {act.after:04x}")
        rules.check_state(final)
        if agitator.drive and final[0] != n.SHAKING:
            broken("I1", "the drive is wanted outside SHAKING")
        rules.check_duties(s, final, records, facts, levels, the_round)
        out = core.outputs
        rules.check_outputs(final, out, before, levels, facts, poor)
        self._check_lamps(final)
        told = told_of(core.bolts)
        if core.driving != (t[TOLD] | held) ^ told:
            broken("I6", f"bolts {core.driving:02x} are driven, {(t[TOLD] | held) ^ told:02x} have changed")
        pulses = 0
        if final[0] == n.SHAKING:
            if kind in ("edge", "late"):
                need((out ^ before) & n.AGITATOR, "SPEC 5, the shake", "an edge does not come")
            elif kind == "settled" and t[PULSES] == 3:
                need(act.pressed & n.LEVER, "SPEC 3", "settled, and still SHAKING", "expect phase=BETTING")
            pulses = self._count(t, act, s, out, before)
        self.restored = [restored(r) for r in records]
        return canonical(core, pulses, self.symmetric)

    def _count(self, t, act, s, out, before):
        pulses = t[PULSES] if s[0] == n.SHAKING else 0
        if self.facts.lever:
            if act.kind == "window":  # and yet SHAKING: a stroke in the same scan began another shake
                return 1
            return min(pulses + 1, 3) if act.pressed & n.LEVER or s[0] != n.SHAKING else pulses
        if out & ~before & n.AGITATOR:
            pulses += 1
            need(pulses <= 3, "A2.1", "a fourth pulse")
        return pulses

    def _command(self, s0, facts, levels, name):
        """Give the host's command `name`, check the reply and its effect; return the state after it."""
        pressed, facts.pressed = facts.pressed, 0
        reply = self.device.command(name, DICE if name == "result" else None)
        ph = s0[0]
        off = not levels & n.COVER
        want = "wrong-phase"
        if name == "result":
            want = None if ph == n.PAYOUT else want
        elif name in ("void", "paid"):
            if ph == n.PAYOUT:
                want = None if off else "cover-on"
        elif name == "abandon":
            want = None if ph == n.VOID else want
        elif name == "clear":
            if ph == n.FAULT:
                want = "cause-present" if rules.cause_present(s0, facts, levels) else None
        elif name == "reboot":
            want = None if ph == n.IDLE else reply if reply in ("round-open", "wrong-phase") else want
        if reply != want:
            broken(
                "I8", f"{name} in {n.PHASES[ph]} gets {reply}, not {want}", "expect reply " + (want or "ok")
            )
        if reply is not None:
            if self.queue.count or self.fields() != s0:
                broken(
                    "refusals change nothing",
                    f"{name} was refused and did something",
                    "expect phase=" + n.PHASES[ph],
                )
            return s0
        records = self.records()
        s = rules.check_records(s0, records, facts, levels)
        need(self.fields() == s, "SPEC 7", f"{name} changed more than its records say")
        need(records or name == "reboot", "SPEC 7", f"{name} left no record")
        facts.pressed = pressed
        return s

    def _check_lamps(self, s):
        core = self.core
        lit = core.lamps_lo | core.lamps_hi << 20
        want = self._lit if rules.owed(s) and s[7] != (0, 0, 0) else 0
        if lit != want:
            words = rules.DICE_LAMPS if want else "none"
            broken("A3.2, lamps", f"lamps {lit:x}, not {want:x}", "expect lamps=" + words)

    # -- Steps that do more than change contacts -----------------------------------------------------------

    def _pair(self, t, arg):
        self.facts.causes = ((n.F_LATCH_A_WIRING, n.F_LATCH_B_WIRING)[arg],)
        if arg:
            self.core.round._pair_b_at = (NOW - 200) & 0x3FFFFFFF
        else:
            self.core.round._pair_a_at = (NOW - 200) & 0x3FFFFFFF

    def _held(self, t, arg):
        self.core.round._hold_at = (NOW - 800) & 0x3FFFFFFF

    def _stuck(self, t, arg):
        self.core.round._down_at[KEY_BITS.index(arg)] = (NOW - 10000) & 0x3FFFFFFF

    def _edge(self, t, arg):
        self.core.agitator._edge = NOW

    def _late(self, t, arg):
        self.core.agitator._edge = (NOW - 20) & 0x3FFFFFFF

    def _settled(self, t, arg):
        self.core.round._stroke_at = (NOW - self.settings.settle_ms) & 0x3FFFFFFF
        self.core.round._shake_at = (NOW - self.settings.bolt_ms) & 0x3FFFFFFF

    def _unlocked(self, t, arg):
        self._settled(t, arg)
        self.core.round._shake_at = (NOW - self.settings.bolt_ms + 1) & 0x3FFFFFFF

    def _window(self, t, arg):
        self.core.round._shake_at = (self._window_at - 1) & 0x3FFFFFFF

    def _stall(self, t, arg):
        self.core.agitator._pulse_at = (NOW - 200) & 0x3FFFFFFF
        if self.motion and t[WATCHING]:
            self.facts.causes = (n.F_AGITATOR_STALLED,)

    def _runaway(self, t, arg):
        if self.motion:
            agitator = self.core.agitator
            agitator._moving = True
            agitator._moving_at = (NOW - 300) & 0x3FFFFFFF
            if not agitator.drive:
                self.facts.causes = (n.F_AGITATOR_RUNAWAY,)

    def _overrun(self, t, arg):
        self.core._last = (NOW - 251) & 0x3FFFFFFF
        if t[PHASE] == n.SHAKING and t[BEGUN] and not self.facts.lever:
            self.facts.causes = (n.F_SCAN_OVERRUN,)

    def _stopped(self, t, arg):
        self.core._last = NOW
        self.core._still = 39
        self.facts.bad = True
        self.facts.causes = (n.F_CLOCK_STALLED,)

    def _broken(self, t, arg):
        self.facts.bad = True
        self.facts.causes = (n.F_JOURNAL_FAILED,)
        self.core.round.persistent(n.F_JOURNAL_FAILED, True)

    def _full(self, t, arg):
        self.room = False

    def _blocked(self, t, arg):
        if arg == "moving":
            self.facts.moving = self.core.agitator._moving = self.motion
            self.core.agitator._moving_at = NOW
        else:
            self.facts.bad = self.core.round.journal_bad = True

    # -- After a restart -------------------------------------------------------------------------------------

    def judge(self, p, found, pending=0, stay=False):
        """Restart from `p` with contacts as in `found` (levels, seen); return the live state."""
        levels, seen = found
        self.put_restored(p, pending, stay)
        core = self.core
        inputs = core.inputs
        facts = self.facts
        s0 = self.fields()
        told = core.bolts.told
        dome = 0 if p[3] & FLAG_SERVICE else n.DOME  # in service mode it may be off, its lock with it
        out = core.outputs | _alarm_due(s0, 0)
        rules.check_outputs(s0, out, core.outputs, dome, facts_restored(facts), False)
        act = Act("judge", None, levels)
        inputs.levels = levels
        core.round._seen |= seen  # a round that begins has seen nothing
        core.scan((NOW - 5) & 0x3FFFFFFF, act.word)
        need(not core.round.judged, "SPEC 7", "judged before the contacts have settled")
        need(not core.outputs & (n.DRIVE | n.FRONT_BOARD), "SPEC 7", "driven before the state is judged")
        need(
            core.outputs & n.BOLTS == told and not core.driving,
            "SPEC 2",
            "a bolt moves before the state is judged",
        )
        need(self.device.command("paid") == "busy", "I8", "a command before the state is judged")
        need(not self.queue.count and self.fields() == s0, "SPEC 7", "the state changes before it is judged")

        if inputs.counting:
            core.round.t_s = 1  # a latch that never comes to rest is judged after a second
        inputs.calm = 19
        facts.judging = True
        facts.bad = bool(pending >> (n.F_JOURNAL_FAILED - 1) & 1)
        facts.moving = False
        facts.command = None
        facts.fired = "judge"
        facts.causes = tuple(code for code in range(1, 18) if pending >> (code - 1) & 1)
        facts.told = told
        facts.seen = seen | levels & BOTH_OPEN
        facts.ignored = facts.hold = facts.stuck = 0
        facts.turned_on = facts.turning_off = facts.turning_on = facts.cleared = False
        facts.pressed = 0
        facts.pulses = facts.begun = 0
        facts.room = True
        before = core.outputs
        core.scan(NOW, act.word)
        need(core.round.judged, "SPEC 7", "not judged though all contacts have settled")
        records = self.records()
        final = self.fields()
        after = rules.check_records(s0, records, facts, levels)
        need(final == after, "SPEC 7", f"the state {final} is not the last record's {after}")
        rules.check_state(final)
        rules.check_duties(s0, final, records, facts, levels, core.round)
        lost = 0
        if s0[0] == n.SHAKING:
            lost = n.F_POWER_LOST_IN_SHAKE
        elif s0[0] == n.BETTING and levels & n.COVERING != n.COVERING:
            lost = n.F_OPENED_WHILE_OFF
        if lost and final[6] != lost:
            broken(
                "SPEC 7",
                f"the first fault is {n.FAULTS[final[6]]}, not {n.FAULTS[lost]}",
                "expect fault=" + n.FAULTS[lost],
            )
        if s0[0] not in (n.IDLE, n.COVERED):
            need(
                records and records[0][8] == n.EV_RECOVERED,
                "SPEC 7",
                "no recovered event",
                "expect event recovered",
            )
        if rules.owed(s0):
            need(rules.owed(final), "I7", "a power cut ended an outstanding payout", "expect cover_bar=on")
        rules.check_outputs(final, core.outputs, before, levels, facts, False)
        self._check_lamps(final)
        for bit in (n.COVER_LOCK, n.COVER_BAR, n.DOME_LOCK):
            empty = (
                bit == n.DOME_LOCK
                and not levels & n.DOME
                and core.outputs & n.DOME_LOCK
                and told & n.DOME_LOCK
            )
            want = (not stay and not empty) or (told ^ core.outputs) & bit
            need(
                bool(core.driving & bit) == bool(want),
                "SPEC 2",
                f"bolt {bit:02x} after a restart: {core.driving:02x}",
            )
        self.restored = [restored(r) for r in records]
        return self.canonical(0)

    def crash(self, t):
        """An exception reaches the top in live or restored state `t`; return what the journal then holds."""
        if t[0] == -1:
            self.put_restored(t)
        else:
            self.put(t, Act("idle", None, t[LEVELS]))
        s0 = self.fields()
        self.core.round.fault(n.F_INTERNAL_ERROR, 0)
        facts = self.facts
        facts.causes = (n.F_INTERNAL_ERROR,)
        facts.judging = True
        records = self.records()
        s = rules.check_records(s0, records, facts, 0)
        need(records and s == self.fields(), "SPEC 6", "an exception leaves no record")
        rules.check_state(s)
        return restored(records[-1])


_NOT_DISTURBED_YET = (n.IDLE, n.COVERED, n.VOID)  # the next shake must clear the flag: worst value


def _alarm_due(s, levels):
    # Before the first scan only the bolts are known; front board and alarm are off, as after any reset.
    return n.ALARM if s[0] == n.FAULT or (rules.owed(s) and levels & n.COVER) else 0


def facts_restored(facts):
    """Return facts for the moment before the first scan: no front board yet, whatever the settings."""
    found = Facts()
    found.board = False
    found.lever = facts.lever
    return found


def stale_dice(ph, origin, flags):
    """May the dice of a round that is over still be held? Then they must matter to nothing."""
    if ph == n.FAULT:
        ph = origin
    return ph == n.IDLE or (ph == n.COVERED and not flags & FLAG_BETS)


def build(modules, settings, room):
    """Return (Core, Queue) made as app.py makes them, on a blank journal."""
    state = modules["state"].State()
    state.boot = 1
    queue = modules["events"].Queue()
    return modules["core"].Core(settings, state, queue, room), queue


def told_of(bolts):
    """Return the standing commands of the three bolts themselves."""
    return (
        (n.COVER_LOCK if bolts._lock.told else 0)
        | (n.COVER_BAR if bolts._bar.told else 0)
        | (n.DOME_LOCK if bolts._dome.told else 0)
    )


def restored(r):
    """Return the restored state that record `r` (or a state's fields) leaves behind."""
    ph, origin, flags, _, _, faults, _, dice = r[:8]
    if ph in _NOT_DISTURBED_YET or (ph == n.FAULT and origin != n.CLOSED) or ph == n.PAYOUT:
        flags &= ~FLAG_DISTURBED
    domed = ph == n.FAULT and origin == n.IDLE and faults >> (n.F_DOME_OPENED - 1) & 1
    diced = dice[0] and not stale_dice(ph, origin, flags)
    return (-1, ph, origin, flags, 1 if diced else 0, int(domed))


def canonical(core, pulses, symmetric):
    """Return the live state of `core`; pulses: how many have been seen since the shake began."""
    s = core.state
    the_round = core.round
    agitator = core.agitator
    ph = s.phase
    shaking = ph == n.SHAKING
    fault = ph == n.FAULT
    seen = the_round._seen
    levels = core.inputs.levels & 0x6FFF
    # A latch under way that has been seen open is as good as open.
    if not levels & A_BITS and seen & 0x2000:
        levels |= 0x2000
    if not levels & B_BITS and seen & 0x4000:
        levels |= 0x4000
    ignored = the_round._ignored
    if symmetric and levels & n.PAID and not the_round._hold:
        # A key that is down and holds nothing is a key like any other.
        levels = levels & ~n.PAID | n.BELL
        ignored = ignored & ~n.PAID | (n.BELL if ignored & n.PAID else 0)
    keys = levels & OTHER_KEYS
    if keys or ignored:
        levels &= ~OTHER_KEYS
        if keys & ~ignored:
            levels |= n.BELL
        if keys & ignored:
            levels |= n.START
        ignored = (ignored & n.PAID) | (n.START if keys & ignored else 0)
    flags = s.flags
    if ph in _NOT_DISTURBED_YET or (fault and s.origin != n.CLOSED) or ph == n.PAYOUT:
        flags &= ~FLAG_DISTURBED
    where = s.origin if fault else ph
    keep = ~(n.COVER_LOCK | n.COVER_BAR)
    if where == n.PAYOUT:
        keep |= n.COVER_BAR
    elif where == n.SHAKING or where == n.BETTING:
        keep |= n.COVER_LOCK
    out = core.outputs & keep
    told = told_of(core.bolts) & keep
    if symmetric:
        a = (levels & 3) | (levels >> 11 & 4) | (seen >> 10 & 8)
        b = (levels >> 2 & 3) | (levels >> 12 & 4) | (seen >> 11 & 8)
        if a > b:
            levels = levels & ~(A_BITS | B_BITS) | (levels & 3) << 2 | (levels & 12) >> 2
            levels |= (a & 4) << 12 | (b & 4) << 11
            seen = (a & 8) << 11 | (b & 8) << 10
    return (
        levels,
        ph,
        s.origin,
        flags,
        1 if s.die1 and not stale_dice(ph, s.origin, flags) else 0,
        1 if fault and not levels & n.DOME and s.faults >> (n.F_DOME_OPENED - 1) & 1 else 0,
        seen,
        ignored,
        the_round._hold,
        1 if fault and the_round._turned_on else 0,
        min(the_round._strokes, 3) if shaking and the_round._lever else 0,
        agitator._stage,
        agitator.begun if shaking else 0,
        agitator._watching,
        agitator.drive | agitator.pulsing << 1 | agitator.done << 2,
        out,
        told,
        pulses,
    )


# -- The search -----------------------------------------------------------------------------------------


class Found:
    """What a search found: `states`, `restored`, `transitions`, `seconds`; `path`, `violation` if broken."""

    def __init__(self, name):
        self.name = name
        self.states = self.restored = self.transitions = 0
        self.seconds = 0.0
        self.violation = None
        self.path = ()
        self.dead = ()
        self.phases = ()


BLANK = (-1, n.IDLE, n.IDLE, 0, 0, 0)


def combinations(full):
    """Return every (levels, seen) that a restart can find."""
    found = []
    latch = ((NONE, 0), (CLOSED, 0), (CLOSED, 1), (INVALID, 0), (INVALID, 1), (OPEN, 1))
    for i, (a, seen_a) in enumerate(latch):
        for j, (b, seen_b) in enumerate(latch):
            if not full and j < i:
                continue
            for rest in range(8):
                levels = LATCH[0][a] | LATCH[1][b]
                levels |= (
                    (n.COVER if rest & 1 else 0)
                    | (n.DOME if rest & 2 else 0)
                    | (n.SERVICE if rest & 4 else 0)
                )
                keys = (0, n.START, n.PAID, n.START | n.PAID) if full else (0, n.START, n.PAID)
                found += [(levels | key, seen_a << 13 | seen_b << 14) for key in keys]
    return found


def search(
    name, config, full=False, mutant=None, modules=None, speakable=False, keep=None, hunt=False, most=None
):
    """Explore every state from power-on; return Found. Stops at the first violation.

    speakable: only steps a scenario file can make. keep: a set that receives every live state.
    hunt: rounds first, IDLE and FAULT last; quicker to a violation, but not by the shortest path.
    most: give up after so many transitions, with nothing proved.
    """
    started = time.perf_counter()
    rig = Rig(modules or load(mutant), config, symmetric=not full)
    acts = Acts(full)
    found = Found(name)
    ids = {BLANK: 0}
    order = [BLANK]
    parents = [(0, None)]
    sources = array("i")
    targets = array("i")
    everything = combinations(full)
    transitions = 0
    accidents = {}
    cleared = set()  # where every first code has been tried, and what came of it
    soon: collections.deque[int] = collections.deque((0,))
    later: collections.deque[int] = collections.deque()

    def reach(state, at, act, legal):
        number = ids.get(state)
        if number is None:
            number = ids[state] = len(order)
            order.append(state)
            parents.append((at, act))
            (later if hunt and state[PHASE] in (n.IDLE, n.FAULT) else soon).append(number)
        if legal and number != at:
            sources.append(at)
            targets.append(number)

    at = 0
    t = act = None
    try:
        while soon or later:
            if most and transitions > most:
                break
            at = (soon or later).popleft()
            t = order[at]
            if t[0] == -1:
                for i, one in enumerate(everything):
                    rig.first = FIRSTS[(at + i) % len(FIRSTS)]
                    act = Act("judge", one, one[0])
                    reach(rig.judge(t, one), at, act, True)
                    transitions += 1
                    for p in rig.restored:
                        reach(p, at, act, False)
                    if not speakable:
                        code = (n.F_RESTART_STORM, n.F_SETTINGS_INVALID, n.F_JOURNAL_FAILED)[i % 3]
                        act = Act("crash", one, one[0])
                        reach(
                            rig.judge(t, one, 1 << (code - 1), code != n.F_SETTINGS_INVALID), at, act, False
                        )
                        transitions += 1
                if not speakable:
                    act = Act("crash", None, 0)
                    reach(rig.crash(t), at, act, False)
            else:
                plain, pairs = acts.of(t[LEVELS], t[IGNORED])
                todo = [a for a in plain if _applies(a, t, rig)]
                if full or t[PHASE] not in (n.IDLE, n.FAULT):
                    todo = todo + pairs
                elif t[TURNED]:  # a key may come down in the very scan that clears the fault
                    todo += [a for a in pairs if a.pressed and a.before & ~a.after & n.SERVICE]
                calm = t[PHASE] in (n.IDLE, n.FAULT)
                place = (
                    t[PHASE],
                    t[ORIGIN],
                    t[FLAGS],
                    t[DICED],
                    t[DOMED],
                    t[TURNED],
                    t[OUT],
                    t[TOLD],
                    t[LEVELS] & _PLACE,
                )
                rig.at_rest = False
                rig.first = FIRSTS[at % len(FIRSTS)]
                done = accidents.get(place)
                if done is None:
                    done = accidents[place] = set()
                for act in todo:
                    if calm and not full and act.kind in ACCIDENTS:
                        if (act.kind, act.arg) in done:
                            continue
                        done.add((act.kind, act.arg))
                    if speakable and not can_be_said(act):
                        continue
                    legal = act.kind in LEGAL
                    new = rig.step(t, act)
                    if act.kind == "idle":
                        rig.at_rest = new == t and not rig.restored
                    reach(new, at, act, legal)
                    transitions += 1
                    for p in rig.restored:
                        reach(p, at, act, False)
                    where = None
                    if t[PHASE] == n.FAULT and not speakable and _clears(act, t):
                        covers = t[LEVELS] & (n.COVER | n.DOME)
                        where = act.kind, new[PHASE], t[ORIGIN], t[FLAGS], t[DOMED], covers
                    if where and where not in cleared:
                        cleared.add(where)
                        first = rig.first
                        for rig.first, rig.faults in _latched(t):
                            reach(rig.step(t, act), at, act, legal)
                            transitions += 1
                            for p in rig.restored:
                                reach(p, at, act, False)
                        rig.first, rig.faults = first, 0
                    if t[TOLD] != new[TOLD] and not speakable:
                        # The same with no budget left: a release waits, or another still has.
                        up = new[TOLD] & ~t[TOLD]
                        held = (n.COVER_BAR if up & n.COVER_LOCK else 0) | (
                            n.COVER_LOCK if up & n.COVER_BAR else 0
                        )
                        reach(rig.step(t, act, True, held), at, act, legal)
                        transitions += 1
                        for p in rig.restored:
                            reach(p, at, act, False)
                act = Act("cut", None, t[LEVELS])
                reach(_cut(t), at, act, False)
                transitions += 1
                if not speakable:
                    act = Act("crash", None, t[LEVELS])
                    reach(rig.crash(t), at, act, False)
                    transitions += 1
    except Violation as violation:
        found.violation = violation
        found.path = tuple(_path(at, order, parents)) + ((t, act),)
    except Exception as error:  # a mutant may break the firmware itself: that is a finding too
        found.violation = Violation("exception", f"{type(error).__name__}: {error}")
        found.path = tuple(_path(at, order, parents)) + ((t, act),)
        if mutant is None:
            raise
    if not found.violation and not (soon or later):
        goal, found.dead = _dead_ends(order, sources, targets)
        if found.dead:
            dead = found.dead[0]
            found.violation = Violation(
                "no dead end", f"no legal way to {goal} from {order[dead]}", ["expect phase=" + goal]
            )
            found.path = tuple(_path(dead, order, parents)) + ((order[dead], Act("idle", None, 0)),)
    found.transitions = transitions
    found.restored = sum(t[0] == -1 for t in order)
    found.states = len(order) - found.restored
    counts = [0] * len(n.PHASES)
    for t in order:
        if t[0] != -1:
            counts[t[PHASE]] += 1
    found.phases = tuple(counts)
    found.seconds = time.perf_counter() - started
    if keep is not None:
        keep.update(t for t in order if t[0] != -1)
    return found


def _applies(act, t, rig):
    """Can `act` do anything but what the plain step does, in live state `t`?"""
    kind = act.kind
    if kind == "hold":
        return t[HOLD]
    if kind == "stuck":
        # A hold ends after 800 ms, long before 10 s; without `full`, any other key came down later still.
        return not t[HOLD] or (not rig.symmetric and act.arg != n.PAID)
    if kind in ("edge", "late"):
        return t[STAGE]
    if kind in ("settled", "unlocked"):
        return t[STROKES]
    if kind == "window":
        return 0 < t[STROKES] < 3
    if kind == "stall":
        return t[WATCHING] or t[PHASE] == n.FAULT
    if kind == "overrun":
        return t[PHASE] in (n.SHAKING, n.BETTING)
    if kind == "host":
        return not t[DRIVING] & 2  # the line is not served between the pulses
    if kind == "blocked":
        return t[PHASE] == n.FAULT and (act.arg != "key" or t[TURNED]) and (act.arg != "moving" or rig.motion)
    if kind == "full":
        return t[PHASE] == n.COVERED
    return True


def _clears(act, t):
    """Does `act` ask to clear the fault of live state `t`?"""
    return act.arg == "clear" if act.kind == "host" else act.kind == "service" and t[TURNED] and not act.arg


def _latched(t):
    """Return every (first code, further codes) that the FAULT of live state `t` may have: alone, with all."""
    found = []
    for first in CODES:
        for others in (0, (1 << CODES[-1]) - 1):
            faults = 1 << (first - 1) | others
            if faults & DISTURBING and t[ORIGIN] == n.CLOSED and not t[FLAGS] & FLAG_DISTURBED:
                continue
            # A dome that was off before a fault from IDLE is no cause of its own: what `t` says of it stands.
            if faults & DOME_OPENED and t[ORIGIN] == n.IDLE and not t[LEVELS] & n.DOME and not t[DOMED]:
                continue
            found.append((first, others))
    return found


def _cut(t):
    return restored(
        (t[PHASE], t[ORIGIN], t[FLAGS], 0, 0, t[DOMED] << (n.F_DOME_OPENED - 1), 0, (t[DICED], 0, 0))
    )


def _path(at, order, parents):
    steps = []
    while at:
        parent, act = parents[at]
        steps.append((order[parent], act))
        at = parent
    return reversed(steps)


def _dead_ends(order, sources, targets):
    """Return (phase, live states from which no legal way leads there): back to IDLE from everywhere; to
    BETTING from IDLE, and from VOID, where the bets must stand on the whole way.
    """
    back = [[] for _ in order]
    for source, target in zip(sources, targets, strict=True):
        back[target].append(source)
    live = [i for i, t in enumerate(order) if t[0] != -1]
    home = {i for i in live if order[i][PHASE] == n.IDLE and not order[i][FLAGS] & FLAG_SERVICE}
    betting = {i for i in live if order[i][PHASE] == n.BETTING}
    void = {i for i in live if order[i][FLAGS] & FLAG_BETS and order[i][PHASE] in _REPEATING}
    for goal, goals, begin, within in (
        ("IDLE", home, live, None),
        ("BETTING", betting, home, None),
        ("BETTING", betting, [i for i in live if order[i][PHASE] == n.VOID], void),
    ):
        good = _leading(back, goals, within)
        dead = [i for i in begin if i not in good]
        if dead:
            return goal, sorted(dead)
    return None, ()


_REPEATING = (n.VOID, n.COVERED, n.SHAKING)


def _leading(back, goals, within):
    """Return the states with a way to one of `goals`; within: the only ones it may pass, None: any."""
    good = set(goals)
    todo = list(goals)
    while todo:
        for source in back[todo.pop()]:
            if source not in good and (within is None or source in within):
                good.add(source)
                todo.append(source)
    return good


# -- The command line ---------------------------------------------------------------------------------------


def _job(job):
    name, config, full = job
    return search(name, config, full)


def explore(full=False, processes=2):
    """Search all configurations; yields Found, one for each, as they come."""
    jobs = [(name, config, full) for name, config in CONFIGS + (MORE_CONFIGS if full else ())]
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        yield from pool.imap_unordered(_job, jobs)
