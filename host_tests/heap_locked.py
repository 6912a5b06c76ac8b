"""Plays rounds with every scan under micropython.heap_lock(): a scan that allocates ends in MemoryError.

Runs on a real MicroPython interpreter; prints "<build> <what>: <scans that allocated>". Must be fed to it
whole; the queue is drained between scans, outside the lock.
"""

import gc

import micropython

from rig import Rig
from shaker import names
from shaker.ticks import fold


class LockedRig(Rig):
    """A rig whose core scans with the heap locked."""

    allocated = 0
    scans = 0

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
        except MemoryError:
            self.allocated += 1
        micropython.heap_unlock()
        self.scans += 1
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


def keys(rig):
    """Every key in every phase."""
    for phase in ("IDLE", "COVERED", "SHAKING", "BETTING", "CLOSED", "PAYOUT", "VOID"):
        other = LockedRig(lever=rig.settings.lever)
        other.go(phase)
        for key in ("start", "lever", "bell", "void", "paid"):
            other.press(key)
        other.run(3000)
        rig.allocated += other.allocated
        rig.scans += other.scans


def faults(rig):
    """Every fault a table can cause, in every phase, and its clear."""
    strikes = (
        ("latch_a", "open"), ("latch_b", "open"), ("cover", "off"), ("dome", "open"), ("latch_a", "invalid"),
        ("latch_b", "invalid"), ("motion", "moving"), ("lever", "pressed"),
    )  # fmt: skip
    for phase in ("IDLE", "COVERED", "SHAKING", "BETTING", "CLOSED", "PAYOUT", "VOID"):
        for name, value in strikes:
            other = LockedRig(lever=rig.settings.lever)
            other.go(phase)
            before = other.word
            other.set(**{name: value})
            other.run(400)
            other.word = before
            other.pinned = None
            other.run(500)
            other.turn_service()
            rig.allocated += other.allocated
            rig.scans += other.scans
    for motor in ("dead", "runaway"):
        other = LockedRig(lever=rig.settings.lever)
        other.motor = motor
        other.cover_up()
        other.press("start")
        other.run(4000)
        rig.allocated += other.allocated


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
            rig.allocated += other.allocated


def late(rig):
    """A scan that is late, and a clock that stands."""
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
        rig.allocated += other.allocated


def long(rig):
    """Two minutes at rest, deciding each time, across the wrap."""
    rig.always_decide = True
    rig.clock = (1 << 30) - 70000
    rig.run(130000)


def main():
    """Play all of it in both builds."""
    for lever in (False, True):
        for what, play in (
            ("round", whole_round), ("keys", keys), ("faults", faults), ("alarm", alarm),
            ("service", service), ("restart", restart), ("late", late), ("stuck", stuck),
            ("host", host), ("long", long),
        ):  # fmt: skip
            gc.collect()
            rig = LockedRig(lever=lever, clock=0 if what == "long" else (1 << 30) - 4000)
            play(rig)
            print("%s %s: %d" % ("lever" if lever else "electronic", what, rig.allocated))
    for lever in (False, True):
        for what, play in (("round", whole_round), ("alarm", alarm), ("service", service)):
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
