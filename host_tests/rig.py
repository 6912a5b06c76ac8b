"""The functional core on a bench of its own: contacts in, outputs and events out; no board, flash or line.

Owns a table's contacts and a motor that follows the drive (spins up, coasts), and steps `core.Core` every
5 ms of a clock with any origin. For unit tests; runs on CPython and, for the allocation test, on MicroPython.
Units: ms; `now` counts from the first scan.
"""

import struct

from shaker import names, record
from shaker.core import Core
from shaker.device import Device
from shaker.events import Queue
from shaker.state import State
from shaker.ticks import fold

SCAN_MS = 5
SPIN_UP_MS = 15
COAST_MS = 120
ORIGINS = (0, 536870907, 1073741819)


class Options:
    """Settings as SPEC gives their defaults; keyword arguments differ."""

    def __init__(self, **other):
        self.bolt_ms = 600
        self.pulse_ms = 250
        self.gap_ms = 350
        self.duty = 70
        self.settle_ms = 700
        self.lever_window_ms = 10000
        self.lever = False
        self.motion = True
        self.front_board = True
        self.layout_lamps = True
        self.layouts = 1
        self.authorised = False
        for name, value in other.items():
            if not hasattr(self, name):
                raise ValueError(name)
            setattr(self, name, value)


class Event:
    """One event as the round emitted it: name, after-state and arguments."""

    def __init__(self, buf, at, now):
        values = struct.unpack_from(record.BODY, buf, at)
        self.now = now
        self.name = names.EVENTS[values[1]]
        self.phase = names.PHASES[values[2] & 15]
        self.origin = names.PHASES[values[2] >> 4]
        self.flags = values[3]
        self.boot = values[5]
        self.t = values[6] * 1000 + values[7]
        self.repeat = values[8]
        self.round = values[10]
        self.faults = values[12]
        self.fault = names.FAULTS[values[13]]
        self.dice = values[14:17]
        self.a, self.b = values[17:19]
        self.x, self.y = struct.unpack_from("<II", buf, at + record.OFF_X)

    def said(self):
        """The event in words, with the arguments that its kind has."""
        if self.name == "refused":
            return "refused %s %s" % (names.WHATS[self.a], names.WHYS[self.b])
        if self.name == "key-stuck":
            return "key-stuck " + names.WHATS[self.a]
        if self.name in ("fault", "clear"):
            return self.name + " " + names.FAULTS[self.a]
        if self.name == "recovered":
            return "recovered " + names.PHASES[self.a]
        if self.name in ("service", "shake-done"):
            return "%s %d" % (self.name, self.a)
        return self.name


class Journal:
    """What Device needs of a journal."""

    unix_base = None


class Rig:
    """One core and its table. `events`: every event so far; `trace`: (now, outputs) whenever they changed."""

    def __init__(self, clock=0, state=None, rest=1000, **options):
        """state: the one restored at start; rest: ms to be at rest before the first line of a test."""
        self.settings = Options(**options)
        self.state = state if state else State()
        self.queue = Queue()
        self.has_room = True
        self.core = Core(self.settings, self.state, self.queue, self.room)
        self.device = Device(self.core, Journal(), self.queue, self.settings, "00", 0)
        self.clock = clock
        self.now = 0
        self.always_decide = False
        self.written = None
        self._turn = None
        self.word = 0
        self.motor = "ok"
        self.pinned = None
        self.moving = False
        self._since = 0
        self.events = []
        self.trace = []
        self._took = 0
        self.set(latch_a="open", latch_b="open", dome="closed")
        self.core.begin(fold(clock))
        self.run(rest)

    def room(self):
        """What the journal says of room for a further round."""
        return self.has_room

    # -- People -------------------------------------------------------------------------------------

    def set(self, **inputs):
        """Put inputs where the names of SPEC section 2 say."""
        for name, value in inputs.items():
            number = names.INPUT_VALUES[name].index(value)
            if name == "motion":
                self.pinned = number
            elif name in ("latch_a", "latch_b"):
                at = 0 if name == "latch_a" else 2
                self._contact(at, number == 1)
                self._contact(at + 1, number == 0)
            else:
                self._contact(names.CONTACTS.index(name), number == 1)

    def _contact(self, i, made):
        self.word = self.word | 1 << i if made else self.word & ~(1 << i)

    def press(self, key, ms=100):
        """Press and release one key."""
        self.set(**{key: "pressed"})
        self.run(ms)
        self.set(**{key: "released"})
        self.run(40)

    def cover_up(self):
        """Seat the cover and close both latches."""
        self.set(cover="on", latch_a="closed", latch_b="closed")
        self.run(100)

    def uncover(self):
        """Open both latches and lift."""
        self.set(latch_a="open", latch_b="open")
        self.run(100)
        self.set(cover="off")
        self.run(100)

    def turn_service(self):
        """Turn the service key on and off again."""
        self.set(service="on")
        self.run(100)
        self.set(service="off")
        self.run(100)

    # -- Time ---------------------------------------------------------------------------------------

    def _plant(self):
        drive = self.core.outputs & names.DRIVE == names.DRIVE
        force = self.motor == "runaway" or (self.motor == "ok" and drive)
        if force == self.moving:
            self._since = self.now
        elif self.now - self._since >= (SPIN_UP_MS if force else COAST_MS):
            self.moving = force
        moving = self.moving if self.pinned is None else self.pinned
        self._contact(12, moving)

    def scan(self, late=0):
        """One scan, `late` ms later than due."""
        core = self.core
        self.now += SCAN_MS + late
        self._plant()
        if self.always_decide:
            core.wake()
        if self._turn is None:
            core.scan(fold(self.clock + self.now), self.word)
        elif self._turn(fold(self.clock + self.now)):
            self._write(core.outputs, core.driving)
        self.drain()
        if not self.trace or self.trace[-1][1] != core.outputs:
            self.trace.append((self.now, core.outputs))

    def in_turns(self):
        """From here on, scan by core.turns(), as app.py does; `written`: what the last scan wrote."""
        self._turn = self.core.turns(lambda: self.word, self._write).send
        self._turn(None)

    def _write(self, outputs, driving):
        self.written = (outputs, driving)

    def drain(self):
        """Take the events that wait, as the journal would."""
        queue = self.queue
        for i in range(queue.count):
            self.events.append(Event(queue.buf, queue.slot(i), self.now))
        queue.drop(queue.count)

    def run(self, ms):
        """Scan for `ms`."""
        end = self.now + ms
        while self.now < end:
            self.scan()

    def until(self, phase, ms=10000):
        """Scan until `phase`; ValueError when it does not come within `ms`."""
        end = self.now + ms
        while self.phase != phase:
            if self.now >= end:
                raise ValueError("%s after %d ms, not %s" % (self.phase, ms, phase))
            self.scan()

    # -- To the places where tests begin ---------------------------------------------------------------

    def go(self, phase):
        """Play from IDLE at rest to `phase`, the short way."""
        if phase == "IDLE":
            return self
        self.cover_up()
        self.until("COVERED")
        if phase == "COVERED":
            return self
        self.shake()
        if phase == "SHAKING":
            return self
        self.until("BETTING")
        self.run(1000)
        if phase == "BETTING":
            return self
        self.press("bell")
        self.run(700)
        if phase == "CLOSED":
            return self
        self.uncover()
        self.run(700)
        if phase == "PAYOUT":
            return self
        if phase == "VOID":
            self.press("void")
            self.run(700)
            return self
        raise ValueError(phase)

    def shake(self):
        """Begin the shake; with the lever, all three strokes."""
        if self.settings.lever:
            for _ in range(3):
                self.press("lever")
        else:
            self.press("start", 30)
        self.until("SHAKING")

    # -- What can be seen ---------------------------------------------------------------------------------

    @property
    def phase(self):
        """Name of the phase."""
        return names.PHASES[self.state.phase]

    @property
    def fault(self):
        """Code of the first fault, or none."""
        return names.FAULTS[self.state.fault]

    def on(self, name):
        """Is this output on?"""
        return self.core.outputs >> names.OUTPUTS.index(name) & 1 == 1

    def said(self):
        """What was reported since the last call, in words."""
        new = [event.said() for event in self.events[self._took :]]
        self._took = len(self.events)
        return new

    def last(self, name):
        """The last event of this name."""
        for event in reversed(self.events):
            if event.name == name:
                return event
        raise ValueError("no event " + name)
