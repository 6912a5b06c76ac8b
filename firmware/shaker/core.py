"""The functional core: one scan from contacts to outputs, with no hardware, no clock and no I/O of its own.

Puts the layers in their order (inputs -> round -> interlock -> bolts) and offers the link what it may see
and ask. Allocates nothing in scan(). Units: ms on the folded clock, one scan each 5 ms.
"""

from micropython import const

from shaker import interlock, rules
from shaker.agitator import Agitator
from shaker.bolts import Bolts
from shaker.inputs import Inputs
from shaker.round import Round
from shaker.ticks import ticks_diff

# Numbers of names.py and record.py, as literals: they cost nothing here, and test_literals.py compares them.
_AGITATOR = const(0x01)
_AGITATOR_ENABLE = const(0x02)
_ALARM = const(0x40)
_BETTING = const(3)
_BOLTS = const(0x1C)
_COVER_BAR = const(0x08)
_COVER_LOCK = const(0x04)
_DOME = const(0x0020)
_DOME_LOCK = const(0x10)
_DRIVE = const(0x03)
_F_CLOCK_STALLED = const(12)
_F_SCAN_OVERRUN = const(13)
_FRONT_BOARD = const(0x20)
_SHAKING = const(2)
_FAULT = const(7)
_PAYOUT = const(5)
_FLAG_SERVICE = const(0x04)

SCAN_MS = const(5)
_JUDGE_CALM = const(20)  # scans (100 ms) without a change, at most 1 s, before a restored phase is judged
_OVERRUN_MS = const(250)
_LOOK_MS = const(250)  # scan() is called at least at each quarter of a second
_BEGINNING = const(0x00C0)  # start and lever: with them a shake may begin
_TOUCH = const(0x17C0)  # keys and motion
_DECIDE = const(0)
_LOOK = const(1)
_REST = const(2)
_STALLED_SCANS = const(40)  # scans in a row that saw the same tick


class Core:
    """The table as the firmware sees it. After scan(): `outputs` (names.OUTPUTS mask), `driving` (bolts whose
    drive is on now), `lamps_lo`, `lamps_hi` (the 39 lamps as 20 + 19 bits), `moved` (the clock moved).
    """

    def __init__(self, settings, state, queue, room):
        """room: callable, True when the journal has room for a further round."""
        self.settings = settings
        self.state = state
        self.inputs = Inputs()
        self.agitator = Agitator(settings)
        self.round = Round(settings, state, queue, self.agitator, room)
        self.bolts = Bolts(settings.bolt_ms)
        self.outputs = 0
        self.driving = 0
        self.lamps_lo = 0
        self.lamps_hi = 0
        self._won_lo = 0  # the lamps of the dice, lit or not
        self._won_hi = 0
        self.moved = True
        self.bolts_stay = False  # after a restart storm, or without a known state, no bolt is driven at boot
        self._board = _FRONT_BOARD if settings.front_board else 0
        self._queue = queue
        self._waiting = 0  # events in it before this scan
        self._word = -1
        self._last = 0
        self._still = 0
        # What the last decision left. While something changes (_DECIDE) each scan decides. Once nothing has,
        # the scan after it looks ahead (_LOOK); then nothing is decided (_REST) until an input settles,
        # someone wakes it, or the millisecond _due of this second has come, with the deadline _left ms away.
        self._rest = _DECIDE
        self._due = 0
        self._left = 0
        self._pending = 0  # faults (mask) found at boot, raised once the phase is judged

    def begin(self, now):
        """Start scanning at tick `now`, with the state restored."""
        self._last = now
        self.bolts.assume(self._resting_bolts())
        self.outputs = self.bolts.told
        self.relight()

    def _resting_bolts(self):
        # Where the bolts stand, by the state before the restart: it moved none of them.
        # In service mode the dome may be off: then its lock has not been driven on.
        s = self.state
        dome = 0 if s.service() else _DOME
        return interlock.guard(0, dome, s.phase, s.origin, s.owed(), s.service(), 0) & _BOLTS

    def fault_at_boot(self, code):
        """Have fault `code` raised as soon as the restored phase has been judged."""
        self._pending |= 1 << (code - 1)

    def wake(self):
        """Something changed outside a scan (a host command): the next scan must decide again."""
        self._rest = _DECIDE
        self._due = 0

    @property
    def pulsing(self):
        """True from the first pulse's start to the last one's end: no flash, no parsing, no formatting."""
        return self.agitator.pulsing

    def scan(self, now, word):
        """Take the contact word read at tick `now`; decide what may have changed with it or with time."""
        the_round = self.round
        dt = now - self._last
        ms = the_round.t_ms + dt
        if 0 < dt <= _OVERRUN_MS and ms < 1000 and self.moved:
            the_round.t_ms = ms
            self._last = now
        else:
            self._tick(now)
            ms = the_round.t_ms
        dt = 0  # from here on: what has settled at another level
        if word != self._word:
            inputs = self.inputs
            dt = inputs.sample(word)
            # Whatever counts, or was an edge in this scan, makes the next scan sample as well.
            self._word = -1 if dt or inputs.counting else word
        if dt and ms < self._due and self._rest == _REST:
            self.touch(now, dt)
        elif dt or self._rest == _DECIDE or (ms >= self._due and self._is_due(now, ms)):
            self.decide(now, dt)

    def turns(self, read, write):
        """Return a generator whose send(now) is one scan with its own read() and, at rest, write().

        It returns False when nothing had to be decided and what was on has been asserted again; else the
        caller writes. The same as scan(), at a third of the price: a generator keeps what it needs in locals.
        """
        the_round = self.round
        inputs = self.inputs
        sample = inputs.sample
        decide = self.decide
        touch = self.touch
        is_due = self._is_due
        due = outputs = driving = toggled = 0
        now = yield False
        word = self._word
        last = self._last
        ms = the_round.t_ms
        while True:
            seen = read()
            toggled = now - last
            ms += toggled
            if toggled > 0 and ms < due and self._due:
                the_round.t_ms = ms
                last = now
                toggled = 0
                if seen != word:
                    toggled = sample(seen)
                    word = -1 if toggled or inputs.counting else seen
                if not toggled:
                    write(outputs, driving)
                    now = yield False
                    continue
                touch(now, toggled)
            elif 0 < toggled <= _OVERRUN_MS and ms < 1000 and self.moved and the_round.judged:
                the_round.t_ms = ms
                last = now
                toggled = 0
                if seen != word:
                    toggled = sample(seen)
                    word = -1 if toggled or inputs.counting else seen
                if toggled or is_due(now, ms):
                    decide(now, toggled)
            else:
                self._last = last
                self._word = word
                self.scan(now, seen)
                word = self._word
                last = self._last
                ms = the_round.t_ms
            due = self._due
            outputs = self.outputs
            driving = self.driving
            now = yield True

    def decide(self, now, toggled=0):
        """The whole decision, which scan() leaves out while nothing can have changed.

        toggled: the inputs that have settled at another level in this scan.
        """
        told = self.outputs
        the_round = self.round
        self._waiting = self._queue.count
        if not the_round.judged and not self._judge(now):
            return
        the_round.told = told
        if toggled & _BEGINNING:
            the_round.lock_spent = not self.bolts.lock_ready(now)
        the_round.scan(now, self.inputs, toggled)
        self._act(now, told)

    def touch(self, now, toggled):
        """decide() for a scan at rest, in which inputs have settled and no deadline has come.

        Where only keys or the base's movement did, the contacts need not be followed, and without an event
        the outputs are what they were.
        """
        if toggled & ~_TOUCH:
            self.decide(now, toggled)
            return
        the_round = self.round
        told = self.outputs
        self._waiting = self._queue.count
        the_round.told = told
        if toggled & _BEGINNING:
            the_round.lock_spent = not self.bolts.lock_ready(now)
        the_round.touch(now, self.inputs, toggled)
        if self._waiting != self._queue.count:
            self._act(now, told)
        else:
            self._due = 0
            self._rest = _LOOK

    def _act(self, now, told):
        """Work out the outputs after the round has decided; `told`: those before."""
        out = self._guarded()
        bolts = self.bolts
        if (out ^ told) & _BOLTS or bolts.busy:
            bolts.step(now, out, self.inputs.levels & _DOME)
            self.driving = bolts.driving
            out = (out & ~_BOLTS) | bolts.told
        self.outputs = out
        if self.lamps_hi or self.state.die1:
            self._light()
        self._due = 0
        self._rest = _LOOK if told == out and self._waiting == self._queue.count else _DECIDE

    def _guarded(self):
        """What may act, by the interlock's last word."""
        s = self.state
        return interlock.guard(
            _DRIVE if self.agitator.drive else self._board if s.phase == _BETTING else 0,
            self.inputs.levels,
            s.phase,
            s.origin,
            s.phase == _PAYOUT or (s.phase == _FAULT and s.origin == _PAYOUT),
            s.flags & _FLAG_SERVICE,
            self.outputs,
        )

    def _is_due(self, now, ms):
        """Is there something to decide at `ms` of this second? If not, look again in a while."""
        if self._rest == _REST:
            left = self._left + self._due - ms
        elif self._rest == _LOOK:
            # Nothing has changed: nothing will, until an input settles or the next deadline comes.
            left = self.round.left(now, self.inputs.levels)
            if self.bolts.busy and left > 0:
                soon = self.bolts.left(now)
                if soon < left:
                    left = soon
        else:
            return True
        if left <= 0:
            return True
        step = _LOOK_MS - ms % _LOOK_MS
        if left < step:
            step = left
        self._rest = _REST
        self._due = ms + step
        self._left = left - step
        return False

    def _tick(self, now):
        """Count the time that has passed since the last scan, and see whether it passes as it should."""
        dt = ticks_diff(now, self._last)
        if dt > 0:
            self._last = now
            self.moved = True
            if self._still:
                self._still = 0
                self.round.clock_bad = False
            the_round = self.round
            ms = the_round.t_ms + dt
            if ms >= 1000:
                self._due -= ms - ms % 1000
                the_round.t_s += ms // 1000
                ms %= 1000
                if not the_round.t_s & 63:
                    self.bolts.tidy(now)
            the_round.t_ms = ms
            if dt > _OVERRUN_MS and self.agitator.begun and self.state.phase == _SHAKING:
                the_round.fault(_F_SCAN_OVERRUN)
                self._rest = _DECIDE
                self._due = 0
        else:
            self.moved = False
            self._still += 1
            if self._still >= _STALLED_SCANS and not self.round.clock_bad:
                self.round.persistent(_F_CLOCK_STALLED, True)
                self._rest = _DECIDE
                self._due = 0

    def _judge(self, now):
        """Judge the restored phase once the contacts have settled; True when it has been judged.

        Until then nothing is believed of the table, and no bolt moves.
        """
        inputs = self.inputs
        self.round.see(inputs.levels)
        self._word = -1
        if inputs.calm < _JUDGE_CALM and not self.round.t_s:
            out = self._unjudged(self.state)
            self.outputs = (out & ~_BOLTS) | self.bolts.told
            return False
        self.round.judge(inputs.levels)
        code = 1
        while self._pending:
            if self._pending & 1:
                self.round.fault(code)
            self._pending >>= 1
            code += 1
        if not self.bolts_stay:
            self.bolts.drive_once(_BOLTS)
        return True

    def _unjudged(self, s):
        return interlock.guard(0, 0, s.phase, s.origin, s.owed(), s.flags & _FLAG_SERVICE, self.outputs)

    def _light(self):
        s = self.state
        lit = s.die1 and s.owed()
        self.lamps_lo = self._won_lo if lit else 0
        self.lamps_hi = self._won_hi if lit else 0

    def relight(self):
        """The dice changed: work the lamps out, outside a scan because that allocates."""
        s = self.state
        if s.die1 and self.settings.layout_lamps:
            self._won_lo, self._won_hi = rules.lamps((s.die1, s.die2, s.die3))
        self.wake()


def safe_part(before, after):
    """The part of a change of outputs that may act before its event is durable: whatever turns safe.

    Agitator and front board only go off, bolts and alarm only go on (SPEC section 7).
    """
    out = before & after & (_AGITATOR | _AGITATOR_ENABLE | _FRONT_BOARD)
    out |= (before | after) & (_COVER_LOCK | _COVER_BAR | _DOME_LOCK | _ALARM)
    if out & _COVER_BAR and out & _COVER_LOCK:
        out &= ~(_COVER_LOCK if after & _COVER_BAR else _COVER_BAR)
    return out
