"""The part of the bench test that runs on the board, sent through the raw REPL; benchtest.py calls it.

Runs under MicroPython with the firmware's own modules, and on nothing else. Whatever could move dice or a
bolt goes through the firmware's round and interlock, so no step of the test can get past them. Every call
ends with every output off but the bolts, which stay where they are, whatever happens in it: Ctrl-C comes at
any time, and a host that is gone says nothing. Must never start the watchdog, nor write to the journal.
Units: ms; latencies in us on the board's own clock.
"""

import struct
import time

import machine

from shaker import board as hardware
from shaker import inputs, names, pins, record
from shaker import settings as config
from shaker.board import Board
from shaker.core import SCAN_MS, Core
from shaker.events import Queue
from shaker.files import Files
from shaker.journal import Journal
from shaker.state import State
from shaker.ticks import ticks_add, ticks_diff

MOTION_BIT = 1 << names.CONTACTS.index("motion")
BOLTS = names.COVER_LOCK | names.COVER_BAR | names.DOME_LOCK
SLICE_MS = 3000  # run() comes back to the host so often, to end with it when it is gone; never in a shake
SIGNAL_GPIO = 0x100  # the pin is a plain GPIO again, and low
LATCH_BITS = {
    "latch_a": (names.C_LATCH_A_NO, names.C_LATCH_A_NC),
    "latch_b": (names.C_LATCH_B_NO, names.C_LATCH_B_NC),
}


class NoJig:
    """Nobody moves or sees anything: a person does."""

    def set_input(self, name, value):
        """Do nothing."""

    def output(self, name):
        """See nothing."""


class Bench:
    """The board under test."""

    def __init__(self):
        folder, tail = hardware.mount_data()
        files = Files(folder)
        journal = Journal(files, tail)
        journal.open()
        state = State()
        if journal.newest:
            state.load(journal.newest)
        self.phase_found = names.PHASES[state.phase]
        self.settings = config.Settings()
        if config.IN_FORCE in files.listdir():
            with files.open(config.IN_FORCE, "r") as f:
                self.settings = config.parse(f.read())
        self.board = Board(self.settings)
        self.queue = Queue()
        self.core = Core(self.settings, State(), self.queue, lambda: True)
        self.jig = NoJig()
        self.driven = False  # the drive alone pulses

    def facts(self):
        """Return what the host needs to know: (phase found, lever build, motion fitted, front board)."""
        s = self.settings
        return (self.phase_found, s.lever, s.motion, s.front_board)

    def loopback(self):
        """Use the jig of the module target_wiring; return False when there is none."""
        try:
            self.jig = __import__("target_wiring")
        except ImportError:
            return False
        return True

    # -- Inputs ------------------------------------------------------------------------------------------

    def contacts(self, ms=60):
        """Return (word, steady): the contacts after `ms`, and whether they stood still for that long."""
        board = self.board
        word = board.read()
        steady = True
        for _ in range(ms // SCAN_MS):
            time.sleep_ms(SCAN_MS)
            now = board.read()
            if now != word:
                word = now
                steady = False
        return (word, steady and word == board.read_pins())

    def put(self, moves):
        """Let the jig move inputs: ((name, value), …)."""
        for name, value in moves:
            self.jig.set_input(name, value)

    # -- Outputs that move nothing --------------------------------------------------------------------------

    def alarm(self, ms):
        """Sound the alarm for `ms`; return whether the jig saw it on, then off."""
        try:
            self.board.write(names.ALARM, 0)
            seen = self.seen("alarm")
            time.sleep_ms(ms)
        finally:
            self.board.write(0, 0)
        return (seen, self.seen("alarm"))

    def status(self, colour, ms):
        """Show a colour (r, g, b) on the status LED for `ms`."""
        try:
            self.board.status(*colour)
            time.sleep_ms(ms)
        finally:
            self.board.status(0, 0, 0)

    def lamps(self, ms):
        """Light each lamp of the layout for `ms`, in order, then all."""
        try:
            for i in range(len(names.LAMPS)):
                self.board.lamps(1 << i if i < 20 else 0, 1 << (i - 20) if i >= 20 else 0)
                time.sleep_ms(ms)
            self.board.lamps((1 << 20) - 1, (1 << 19) - 1)
            time.sleep_ms(10 * ms)
        finally:
            self.board.lamps(0, 0)

    def seen(self, output):
        """Return whether the jig sees an output on, None without a jig."""
        return self.jig.output(output)

    # -- The firmware's own round ----------------------------------------------------------------------------

    def begin(self):
        """Begin a round of our own, in memory, with the bolts as for a table at rest."""
        self.core = Core(self.settings, State(), self.queue, lambda: True)
        self.core.begin(self.board.ticks())

    def write(self, outputs, driving, without):
        """Write to the board as the firmware does, but for the channels of the agitator in `without`."""
        board = self.board
        if without != names.AGITATOR_ENABLE:
            board.write(outputs & ~without, driving)
            return
        # The board pulses with both channels only, so the drive alone is the same pulse, asked for here.
        board.write(outputs & ~names.DRIVE, driving)
        if outputs & names.DRIVE != names.DRIVE:
            self.drive_off()
        else:
            if not self.driven:
                self.driven = True
                board._rmt.write_pulses(board._pulse, board._pulse_levels)
            machine.mem32[hardware._SEL_AGITATOR] = board._pulse_signal

    def drive_off(self):
        """End the pulse of the drive alone."""
        self.driven = False
        machine.mem32[hardware._SEL_AGITATOR] = SIGNAL_GPIO

    def run(self, until, ms, moves=(), drive_lock=True, latch=None, without=0):
        """Scan until every word of `until` holds and no bolt is driven, or until `ms` have passed.

        until: a phase, "refused" (reported since the start), "alarm", "quiet", "dome-free", "dome-locked",
        "open" (cover off, both latches open).
        moves: what the jig does, ((at_ms, name, value), …); a negative time counts from the first pulse.
        drive_lock: False leaves the cover's lock where it is, so that a latch can be opened in the shake.
        latch: the one whose opening is timed. without: channels (mask) of the agitator that stay off.
        Without `moves` it also returns after SLICE_MS, when nothing shakes: the host calls it again.
        Returns (phase, fault, outputs, events, pulses seen, latency or -1, arrived, outputs the jig saw).
        """
        core = self.core
        board = self.board
        start = board.ticks()
        due = start
        pulse_at = None
        waiting = list(moves)
        timed = [None, None]  # type: list
        bits = LATCH_BITS[latch] if latch else None
        knocks = 0
        moving = False
        arrived = False
        mute = 0 if drive_lock else names.COVER_LOCK
        try:
            while True:
                now = board.ticks()
                word = board.read()
                core.scan(now, word)
                outputs = core.outputs
                self.write(outputs, core.driving & ~mute, without)
                if timed[0] is not None and timed[1] is None and not outputs & names.DRIVE and self.is_off():
                    timed[1] = time.ticks_us()
                board.lamps(core.lamps_lo, core.lamps_hi)
                if outputs & names.AGITATOR and pulse_at is None:
                    pulse_at = now
                if word & MOTION_BIT and not moving and core.state.phase == names.SHAKING:
                    knocks += 1
                moving = word & MOTION_BIT
                for move in list(waiting):
                    at, name, value = move
                    if at < 0:
                        ready = pulse_at is not None and ticks_diff(now, pulse_at) >= -at
                    else:
                        ready = ticks_diff(now, start) >= at
                    if ready:
                        waiting.remove(move)
                        self.jig.set_input(name, value)
                if not waiting and not core.driving and core.round.judged and self.holds(until):
                    arrived = True
                    break
                passed = ticks_diff(now, start)
                if passed >= ms:
                    break
                if passed >= SLICE_MS and not moves and not core.driving and not self.shakes():
                    break
                due = ticks_add(due, SCAN_MS)
                while ticks_diff(due, board.ticks()) > 0:
                    if bits and timed[0] is None and outputs & names.DRIVE == names.DRIVE:
                        word = board.read()
                        if not word & bits[0] or word & bits[1]:
                            timed[0] = time.ticks_us()
                    else:
                        time.sleep_ms(1)
                if ticks_diff(due, board.ticks()) < -100:
                    due = board.ticks()
            saw = [name for name in names.OUTPUTS if self.seen(name)]
        finally:
            board.write(core.outputs & BOLTS, 0)
            self.drive_off()
            board.lamps(0, 0)
        state = core.state
        return (
            names.PHASES[state.phase],
            names.FAULTS[state.fault],
            core.outputs,
            self.events(),
            knocks,
            -1 if timed[0] is None or timed[1] is None else time.ticks_diff(timed[1], timed[0]),
            arrived,
            saw,
        )

    def shakes(self):
        """Is a shake of the agitator's under way? It must not be left unwatched."""
        return self.core.state.phase == names.SHAKING and not self.settings.lever

    def holds(self, until):
        """Do all words of run()'s `until` hold?"""
        outputs = self.core.outputs
        words = [names.PHASES[self.core.state.phase]]
        words.append("alarm" if outputs & names.ALARM else "quiet")
        words.append("dome-locked" if outputs & names.DOME_LOCK else "dome-free")
        levels = self.core.inputs.levels
        if levels & inputs.LATCH_A_OPEN and levels & inputs.LATCH_B_OPEN and not levels & names.COVER:
            words.append("open")
        if "refused" in until:
            for i in range(self.queue.count):
                if self.queue.buf[self.queue.slot(i) + record.OFF_EVENT] == names.EV_REFUSED:
                    words.append("refused")
        return all(word in words for word in until)

    def is_off(self):
        """Are both agitator channels off at their pins?"""
        return not machine.Pin(pins.AGITATOR_ENABLE).value() and not machine.Pin(pins.AGITATOR).value()

    def events(self):
        """Return what the round reported since the last call: ((name, a, b), …)."""
        found = []
        for i in range(self.queue.count):
            values = struct.unpack_from(record.BODY, self.queue.buf, self.queue.slot(i))
            found.append((names.EVENTS[values[1]], values[17], values[18]))
        self.queue.drop(self.queue.count)
        return found

    def safe(self):
        """Everything off."""
        self.board.safe()
        self.board.status(0, 0, 0)
        self.board.lamps(0, 0)


bench = Bench()
