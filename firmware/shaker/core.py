"""The functional core: one scan from contacts to outputs, with no hardware, no clock and no I/O of its own.

Puts the layers in their order (inputs -> round -> interlock -> bolts) and offers the link what it may see
and ask. Allocates nothing in scan(). Units: ms on the folded clock, one scan each 5 ms.
"""

from micropython import const

from shaker import interlock, rules
from shaker.agitator import Agitator
from shaker.bolts import Bolts
from shaker.inputs import Inputs
from shaker.names import (
    AGITATOR,
    AGITATOR_ENABLE,
    ALARM,
    BETTING,
    BOLTS,
    COVER_BAR,
    COVER_LOCK,
    DOME,
    DOME_LOCK,
    DRIVE,
    F_CLOCK_STALLED,
    F_SCAN_OVERRUN,
    FRONT_BOARD,
    SHAKING,
)
from shaker.round import Round
from shaker.ticks import ticks_diff

SCAN_MS = const(5)
_JUDGE_CALM = const(20)  # scans (100 ms) without a change, at most 1 s, before a restored phase is judged
_OVERRUN_MS = const(250)
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
        self.scans = 0
        self.bolts_stay = False  # after a restart storm, or without a known state, no bolt is driven at boot
        self._board = settings.front_board
        self._queue = queue
        self._word = -1
        self._last = 0
        self._still = 0
        self._rest = False
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
        dome = 0 if s.service() else DOME
        return interlock.guard(0, dome, s.phase, s.origin, s.owed(), s.service(), 0) & BOLTS

    def fault_at_boot(self, code):
        """Have fault `code` raised as soon as the restored phase has been judged."""
        self._pending |= 1 << (code - 1)

    def wake(self):
        """Something changed outside a scan (a host command): the next scan must decide again."""
        self._rest = False

    @property
    def pulsing(self):
        """True from the first pulse's start to the last one's end: no flash, no parsing, no formatting."""
        return self.agitator.pulsing

    def scan(self, now, word):
        """Take the contact word read at tick `now`; decide everything."""
        self._tick(now)
        if self._rest and word == self._word:
            self.inputs.calm += 1
            return
        self.decide(now, word)

    def decide(self, now, word):
        """The whole decision, which scan() leaves out while nothing can have changed."""
        inputs = self.inputs
        the_round = self.round
        s = self.state
        waiting = self._queue.count
        phase = s.phase
        self._word = word
        inputs.sample(word)
        levels = inputs.levels
        if not the_round.judged:
            self._judge(now, levels)
        the_round.told = self.outputs
        the_round.scan(now, inputs)

        wanted = 0
        if not the_round.judged:
            levels = 0  # nothing is believed of the table yet
        elif self.agitator.drive:
            wanted = DRIVE
        elif s.phase == BETTING and self._board:
            wanted = FRONT_BOARD
        owed = s.owed()
        out = interlock.guard(wanted, levels, s.phase, s.origin, owed, s.service(), self.outputs)
        bolts = self.bolts
        if the_round.judged:
            bolts.step(now, out, levels & DOME)
        self.outputs = (out & ~BOLTS) | bolts.told
        self.driving = bolts.driving
        self._light(owed)
        self._rest = (
            not bolts.busy
            and not inputs.counting
            and phase == s.phase
            and waiting == self._queue.count
            and the_round.at_rest(levels)
        )

    def _tick(self, now):
        dt = ticks_diff(now, self._last)
        self.scans += 1
        if dt > 0:
            self._last = now
            self.moved = True
            if self._still:
                self._still = 0
                self.round.clock_bad = False
            the_round = self.round
            ms = the_round.t_ms + dt
            if ms >= 1000:
                the_round.t_s += ms // 1000
                ms %= 1000
                if not the_round.t_s & 63:
                    self.bolts.tidy(now)
            the_round.t_ms = ms
            if dt > _OVERRUN_MS and self.agitator.begun and self.state.phase == SHAKING:
                the_round.fault(F_SCAN_OVERRUN)
                self._rest = False
        else:
            self.moved = False
            self._still += 1
            if self._still >= _STALLED_SCANS and not self.round.clock_bad:
                self.round.persistent(F_CLOCK_STALLED, True)
                self._rest = False

    def _judge(self, now, levels):
        the_round = self.round
        if self.inputs.calm < _JUDGE_CALM and not the_round.t_s:
            return
        the_round.judge(levels)
        code = 1
        while self._pending:
            if self._pending & 1:
                the_round.fault(code)
            self._pending >>= 1
            code += 1
        if not self.bolts_stay:
            self.bolts.drive_once(BOLTS)

    def _light(self, owed):
        s = self.state
        lit = owed and s.die1
        self.lamps_lo = self._won_lo if lit else 0
        self.lamps_hi = self._won_hi if lit else 0

    def relight(self):
        """The dice changed: work the lamps out, outside a scan because that allocates."""
        s = self.state
        if s.die1 and self.settings.layout_lamps:
            self._won_lo, self._won_hi = rules.lamps((s.die1, s.die2, s.die3))
        self._rest = False


def safe_part(before, after):
    """The part of a change of outputs that may act before its event is durable: whatever turns safe.

    Agitator and front board only go off, bolts and alarm only go on (SPEC section 7).
    """
    out = before & after & (AGITATOR | AGITATOR_ENABLE | FRONT_BOARD)
    out |= (before | after) & (COVER_LOCK | COVER_BAR | DOME_LOCK | ALARM)
    if out & COVER_BAR and out & COVER_LOCK:
        out &= ~(COVER_LOCK if after & COVER_BAR else COVER_BAR)
    return out
