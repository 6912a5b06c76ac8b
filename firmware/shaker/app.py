"""The composition root: puts the parts together and turns the crank, one scan every 5 ms.

Data flows one way: board -> inputs -> round -> interlock -> bolts -> board, and events -> journal -> link.
One synchronous loop reads, decides, makes durable, writes and talks; there is no timer, interrupt or task.
Order within a scan (SPEC section 7): what turns safe acts at once; then the events become durable; then the
other outputs act; then the host hears of it. Nothing is written, parsed or formatted while pulses run.
"""

from micropython import const

from shaker import board as hardware
from shaker import lights, startup
from shaker import settings as config
from shaker.core import SCAN_MS, Core, safe_part
from shaker.device import Device
from shaker.events import Queue
from shaker.files import Files
from shaker.journal import Journal
from shaker.link import Link
from shaker.names import ERRORS
from shaker.state import State
from shaker.ticks import ticks_add, ticks_diff
from shaker.verifier import Verifier

# Numbers of names.py and record.py, as literals: they cost nothing here, and test_literals.py compares them.
_ALARM = const(0x40)
_BOLTS = const(0x1C)
_F_INTERNAL_ERROR = const(14)
_F_JOURNAL_FAILED = const(17)
_F_SETTINGS_INVALID = const(15)
_FAULT = const(7)
_FLAG_SERVICE = const(0x04)
_IDLE = const(0)
_MARK_ALIVE = const(1)
_MARK_CLEAN = const(2)
_SERVICE = const(0x0800)
_SHAKING = const(2)

WATCHDOG_MS = const(2000)
_ALIVE_S = const(60)
_RETRY_SCANS = const(200)  # after a failed write, 1 s
_REBOOT_SCANS = const(60)  # 300 ms for the reply to leave
_BACKOFF_MAX_S = const(32)


class App:
    """The running firmware."""

    def __init__(self, program):
        """program: Files of the program's own folder, for `verify`."""
        root, tail_records = hardware.mount_data()
        files = Files(root)
        journal = Journal(files, tail_records)
        journal.open()
        state = State()
        if journal.newest:
            state.load(journal.newest)
        state.boot = journal.boot
        adoption = config.adopt(files, state.phase == _IDLE, journal.options_word, journal.options_auth)
        settings = adoption.settings
        journal.required = settings.host_required
        board = hardware.Board(settings)
        queue = Queue()
        core = Core(settings, state, queue, lambda: journal.room(settings.host_required))
        device = Device(core, journal, queue, settings, board.ident, board.cause)

        self.board = board
        self.journal = journal
        self.queue = queue
        self.core = core
        self.device = device
        self.link = Link(board.uart, journal, queue, device, settings, board.random, Verifier(program))
        self._ticks = board.ticks
        self._write = board.write
        self._feed = board.feed
        self._turn = core.turns(board.read, board.write).send
        self._turn(None)
        self._status = lights.OFF
        self._lamps_lo = -1
        self._lamps_hi = -1
        self._alive = False
        self._retry = 0
        self._leaving = 0
        self._journal_down = not journal.ok
        self._acting = 0  # outputs that were written last: those that are on
        self._undriven = 0  # bolts whose drive had to wait for the journal
        startup.report(core, queue, journal, adoption, board.cause)

    def backoff_s(self):
        """Seconds to wait before running: while an exception's fault stands, more with each short life."""
        crashed = self.core.state.faults >> (_F_INTERNAL_ERROR - 1) & 1
        short = self.journal.short_boots
        return min(1 << short, _BACKOFF_MAX_S) if crashed and short > 1 else 0

    def run(self):
        """Run for ever. Returns only after an orderly stop was asked for, with that stop recorded."""
        board = self.board
        for _ in range(self.backoff_s() * 10):
            board.write(_ALARM, 0)  # the fault goes on, and so does its alarm
            board.sleep_ms(100)
        self._commit()  # before the first scan: however long it takes, contacts settle by scans in time
        board.start_watchdog(WATCHDOG_MS)
        due = board.ticks()
        self.core.begin(due)
        self._acting = self.core.outputs
        while self._leaving != 1:
            self.step()
            due = ticks_add(due, SCAN_MS)
            wait = ticks_diff(due, board.ticks())
            if wait > 0:
                board.sleep_ms(min(wait, SCAN_MS))  # not longer where the clock stands still
            else:
                due = board.ticks()
        self.stop()

    def step(self):
        """One scan: read, decide, make durable, write, talk."""
        core = self.core
        link = self.link
        now = self._ticks()
        if core.agitator.pulsing or not core.round.judged:
            link.receive()
        else:
            link.listen(now)
        if self._turn(now) or self._leaving:
            self._act()
            self._show()
            if not core.agitator.pulsing:
                self._chores()
        if core.agitator.pulsing or not core.round.judged:
            link.send()
        else:
            link.speak(now)
        if core.moved:
            self._feed()

    def _act(self):
        """Write the outputs of a scan that decided something, events first."""
        core = self.core
        outputs = core.outputs
        if self.queue.count and not core.agitator.pulsing:
            safe = safe_part(self._acting, outputs)
            self._write(safe, core.driving & ~(safe ^ outputs))
            if not self._commit():
                self._undriven |= (safe ^ outputs) & _BOLTS
                outputs = safe
                core.wake()  # the rest waits, so the next scan must come here again
        late = self._undriven & ~(core.driving | (core.outputs ^ outputs))
        if late:  # what moves them now acts; their drive was over before it did
            self._undriven ^= late
            core.bolts.drive_once(late)
            core.wake()
        self._acting = outputs
        self._write(outputs, core.driving & ~(core.outputs ^ outputs))

    def _commit(self):
        if self._retry:
            self._retry -= 1
            return False
        try:
            self.journal.append(self.queue)
        except OSError:
            self._failed()
            return False
        if self._journal_down:
            self._journal_down = False
            self.core.round.persistent(_F_JOURNAL_FAILED, False)
        return True

    def _failed(self):
        self._retry = _RETRY_SCANS
        self._journal_down = True
        self.core.round.persistent(_F_JOURNAL_FAILED, True)
        self.core.wake()

    def _show(self):
        core = self.core
        board = self.board
        if core.lamps_lo != self._lamps_lo or core.lamps_hi != self._lamps_hi:
            self._lamps_lo = core.lamps_lo
            self._lamps_hi = core.lamps_hi
            board.lamps(core.lamps_lo, core.lamps_hi)
        state = core.state
        if state.phase != _SHAKING or not core.agitator.pulsing:
            status = lights.status(state.phase, state.flags & _FLAG_SERVICE, core.round.t_ms)
            if status is not self._status:
                self._status = status
                board.status(status[0], status[1], status[2])

    def _chores(self):
        core = self.core
        phase = core.state.phase
        if not self._alive and core.round.t_s >= _ALIVE_S:
            self._alive = True
            try:
                self.journal.mark(_MARK_ALIVE)
            except OSError:
                self._failed()
        if core.bolts_stay and core.round.judged and phase != _FAULT:
            core.bolts_stay = False  # they may have stopped half-way, and nothing has moved them since
            core.bolts.drive_once(_BOLTS)
            core.wake()
        if phase != _IDLE:
            self._leaving = 0  # a round began meanwhile; the restart waits for its end
        elif self._leaving:
            self._leaving -= 1
        elif self.device.reboot_asked:
            self._leaving = _REBOOT_SCANS

    def stop(self):
        """Record that the firmware stops because it was asked to, everything safe."""
        self.board.safe()
        if self.queue.count:
            self.journal.append(self.queue)
        self.journal.mark(_MARK_CLEAN)

    def may_be_serviced(self):
        """True when a technician's Ctrl-C is a wish, not an accident: service key on and no round open.

        Without sound settings a round cannot go on: then the phase does not matter.
        """
        s = self.core.state
        if s.phase == _FAULT and (s.origin == _IDLE or s.faults >> (_F_SETTINGS_INVALID - 1) & 1):
            return self.core.inputs.levels & _SERVICE
        return s.phase == _IDLE and s.service()

    def crash(self, name, place):
        """Record an exception that reached the top: its type name and its place (at most 18 characters)."""
        self.board.safe()
        kind = ERRORS.index(name) if name in ERRORS else 0
        if self.core.round.fault(_F_INTERNAL_ERROR, kind):
            self.queue.text(place.encode())
        self.journal.append(self.queue)
