"""Plays rounds with every scan under micropython.heap_lock(): a scan that allocates ends in MemoryError.

Runs on a real MicroPython interpreter; prints "<build> <what>: 0", or 1 and where it was when one did. Must
be fed to it whole; the queue is drained between scans, outside the lock. Stdin: what to play, all by default.
"""

import gc
import sys

import micropython

from rig import Rig
from shaker import names
from shaker.ticks import fold


class LockedRig(Rig):
    """A rig whose core scans with the heap locked."""

    full = False  # nothing leaves the queue

    def scan(self, late=0):
        core = self.core
        self.now += 5 + late
        self._plant()
        if self.always_decide:
            core.wake()
        now = fold(self.clock + self.now)
        word = self.word
        micropython.heap_lock()
        try:
            core.scan(now, word)
        finally:
            micropython.heap_unlock()
        if not self.full:
            self.drain()


class CountedRig(Rig):
    """A rig that counts the scans after which more memory is in use: there frames count too, which a locked
    heap leaves to the stack. Scans as app.py does.
    """

    allocated = 0

    def scan(self, late=0):
        if self._turn is None:
            self.in_turns()
        self.now += 5
        now = fold(self.clock + self.now)
        self._plant()
        before = gc.mem_alloc()
        if self._turn(now):
            self._write(self.core.outputs, self.core.driving)
        if gc.mem_alloc() != before:
            self.allocated += 1
        self.drain()

    def _write(self, outputs, driving):
        pass


def whole_round(rig):
    """A void round, its repeat, payment; then a round that no one hurries."""
    rig.go("VOID")
    rig.go("PAYOUT")
    rig.device.command("result", (1, 4, 6))
    rig.run(100)
    rig.device.command("result", (6, 6, 6))
    rig.run(100)
    rig.press("paid", 1000)
    rig.go("VOID")
    rig.set(service="on")
    rig.run(100)
    rig.press("paid", 1000)
    rig.set(service="off")
    rig.run(700)


PHASES = ("IDLE", "COVERED", "SHAKING", "BETTING", "CLOSED", "PAYOUT", "VOID", "FAULT")
# Of a shake with the default times: the lock travels, first pulse, first gap, the dice settle.
STAGES = ((1, 200), (2, 650), (3, 950), (4, 2200))


def reach(rig, phase):
    """Go to `phase`; a FAULT is out of BETTING, its cause gone."""
    if phase != "FAULT":
        rig.go(phase)
        return
    rig.go("BETTING")
    rig.set(latch_b="open")
    rig.run(50)
    rig.set(latch_b="closed")
    rig.run(100)


def everywhere(rig):
    """Yield (name, a rig just there) again and again: in every phase, and at every stage of a shake."""
    lever = rig.settings.lever
    for phase in PHASES:
        yield phase, lambda phase=phase: _at(lever, phase)
    for stage, ms in STAGES:
        yield "SHAKING", lambda stage=stage, ms=ms: _shaking(lever, stage, ms)


def _at(lever, phase):
    rig = LockedRig(lever=lever)
    reach(rig, phase)
    return rig


def _shaking(lever, stage, ms):
    rig = LockedRig(lever=lever)
    rig.cover_up()
    rig.press("lever" if lever else "start", 30)
    rig.until("SHAKING")
    if lever:  # that many strokes, and the third settles
        for _ in range(min(stage, 3) - 1):
            rig.press("lever", 30)
        return rig
    begun = rig.now
    while rig.now < begun + ms:
        rig.scan()
    if rig.core.agitator._stage != stage:
        raise ValueError("another stage of the shake")
    return rig


def keys(rig):
    """Every key in every phase and at every stage of a shake."""
    for phase, there in everywhere(rig):
        for key in ("start", "lever", "bell", "void", "paid"):
            other = there()
            if other.phase != phase:
                raise ValueError("%s, not %s" % (other.phase, phase))
            other.press(key)
            other.run(300)
        other = there()
        for key in ("start", "lever", "bell", "void", "paid"):
            other.press(key)
        other.turn_service()
        other.run(3000)


def faults(rig):
    """Every fault a table can cause, in every phase and at every stage of a shake, and its clear."""
    strikes = (
        ("latch_a", "open"), ("latch_b", "open"), ("cover", "off"), ("dome", "open"), ("latch_a", "invalid"),
        ("latch_b", "invalid"), ("motion", "moving"), ("lever", "pressed"),
    )  # fmt: skip
    for _, there in everywhere(rig):
        for name, value in strikes:
            other = there()
            before = other.word
            other.set(**{name: value})
            other.run(400)
            other.word = before
            other.pinned = None
            other.run(500)
            other.turn_service()
    for motor in ("dead", "runaway"):
        other = LockedRig(lever=rig.settings.lever)
        other.motor = motor
        other.cover_up()
        other.press("start")
        other.run(4000)


def alarm(rig):
    """A cover put on an unpaid round, taken off, put on under a fault."""
    rig.go("PAYOUT")
    for _ in range(3):
        rig.set(cover="on")
        rig.run(100)
        rig.set(cover="off")
        rig.run(100)
    rig.set(latch_a="invalid")
    rig.run(400)
    rig.set(cover="on")
    rig.run(100)
    rig.set(cover="off", latch_a="open")
    rig.run(100)
    rig.turn_service()


def service(rig):
    """Service mode with the dome off."""
    rig.set(service="on")
    rig.run(800)
    rig.set(dome="open")
    rig.run(800)
    rig.set(latch_a="invalid")
    rig.run(400)
    rig.set(latch_a="open", service="off")
    rig.run(100)
    rig.set(dome="closed")
    rig.run(800)


def restart(rig):
    """A restored phase, judged with contacts that bounce."""
    for phase in range(8):
        for cover in ("on", "off"):
            other = LockedRig(lever=rig.settings.lever, rest=0)
            other.state.phase = phase
            other.state.origin = names.CLOSED if phase == names.FAULT else 0
            for _ in range(10):
                other.set(cover=cover, bell="pressed")
                other.run(10)
                other.set(cover="off", bell="released")
                other.run(5)
            other.set(cover=cover, paid="pressed")
            other.core.fault_at_boot(names.F_RESTART_STORM)
            other.run(1500)


def unlocked(rig):
    """A restart with the dome off: its lock waits for it, as long as that may take."""
    other = LockedRig(lever=rig.settings.lever, rest=0)
    other.set(dome="open")
    other.run(2000)
    if not other.core.bolts._owed_drive:
        raise ValueError("nothing waits for the dome")
    other.set(dome="closed")
    other.run(1000)


def budget(rig):
    """A release that waits for its bolt's budget; shakes refused while it does, and for want of a drive."""
    for spent in ("_bar", "_lock"):
        other = LockedRig(lever=rig.settings.lever, bolt_ms=2000)
        start = "lever" if rig.settings.lever else "start"
        other.go("PAYOUT" if spent == "_bar" else "COVERED")
        bolt = getattr(other.core.bolts, spent)
        for _ in range(bolt._size):
            bolt.drive(fold(other.clock + other.now))
            other.run(2500)
        if spent == "_bar":
            other.press("paid", 1000)
            other.run(200)
            if not bolt._waiting:
                raise ValueError("the bar does not wait")
            other.cover_up()
            other.until("COVERED")
        other.press(start)
        said = other.said()[-1]
        if said != "refused %s not-covered" % start:
            raise ValueError(said)
        other.run(60000)


def full(rig):
    """A journal that has no room for a round, and a queue that has none for what is minor."""
    rig.cover_up()
    rig.has_room = False
    start = "lever" if rig.settings.lever else "start"
    rig.press(start)
    if rig.said()[-1] != "refused %s journal-full" % start:
        raise ValueError("it is not refused")
    rig.full = True
    for _ in range(45):
        rig.press("bell", 30)
    if not rig.queue.dropped:
        raise ValueError("nothing was dropped")
    rig.full = False
    rig.run(100)


def late(rig):
    """A scan that is late, at the edge of a pulse too, and a clock that stands."""
    for ms in (15, 100):
        rig.go("SHAKING")
        while rig.phase == "SHAKING":
            at_edge = not rig.settings.lever and rig.core.agitator.left(fold(rig.clock + rig.now), 0) == 5
            rig.scan(ms if at_edge else 0)
        rig.press("bell")
        rig.uncover()
        rig.press("paid", 1000)
    rig.go("SHAKING")
    rig.run(800)
    rig.scan(1900)
    rig.run(100)
    at = rig.now
    for _ in range(60):
        rig.now = at - 5
        rig.scan()
    rig.run(100)


def stuck(rig):
    """Every key held for 12 s."""
    rig.set(start="pressed", lever="pressed", bell="pressed", void="pressed", paid="pressed")
    rig.run(12000)
    rig.set(start="released", lever="released", bell="released", void="released", paid="released")
    rig.run(100)


def host(rig):
    """Commands between scans."""
    for phase in ("IDLE", "COVERED", "BETTING", "CLOSED", "PAYOUT"):
        other = LockedRig(lever=rig.settings.lever)
        other.go(phase)
        for command in ("clear", "abandon", "paid", "void", "abandon"):
            other.device.command(command)
            other.run(50)


def long(rig):
    """Two minutes at rest, deciding each time, across the wrap."""
    rig.always_decide = True
    rig.clock = (1 << 30) - 70000
    rig.run(130000)


def main():
    """Play all of it, or what is asked for, in both builds."""
    wanted = sys.stdin.read().split()
    for lever in (False, True):
        for what, play in (
            ("round", whole_round), ("keys", keys), ("faults", faults), ("alarm", alarm),
            ("service", service), ("restart", restart), ("late", late), ("stuck", stuck),
            ("host", host), ("long", long), ("unlocked", unlocked), ("budget", budget), ("full", full),
        ):  # fmt: skip
            if wanted and what not in wanted:
                continue
            gc.collect()
            allocated = 0
            try:
                play(LockedRig(lever=lever, clock=0 if what == "long" else (1 << 30) - 4000))
            except MemoryError as error:
                allocated = 1
                sys.print_exception(error)
            print("%s %s: %d" % ("lever" if lever else "electronic", what, allocated))
    for lever in (False, True):
        for what, play in (("round", whole_round), ("alarm", alarm), ("service", service)):
            if wanted:
                continue
            rig = CountedRig(lever=lever, clock=(1 << 30) - 4000)
            play(rig)
            print("%s %s, counted: %d" % ("lever" if lever else "electronic", what, rig.allocated))
    micropython.heap_lock()
    try:
        said = "nothing" if bytearray(100) else ""
    except MemoryError:
        said = "MemoryError"
    micropython.heap_unlock()
    print("allocating under the lock: " + said)


main()
