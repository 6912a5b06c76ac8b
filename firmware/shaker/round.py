"""The round of Fish-Prawn-Crab: every transition between its eight phases, and why.

Theory of operation. `scan()` is called once per scan with settled inputs; it looks for faults, follows the
contacts, then the keys, in that order, so that danger always outruns a wish. A host command calls the same
functions as the croupier's key of the same name and meets the same refusals. Nothing here touches an output:
the round states what it wants (`drive`, phase) and the interlock below decides. Every change of state is one
row of TRANSITIONS and emits that row's event, which carries the whole state (record.py); so what is durable
and what happened cannot differ. A key that means nothing in a phase is reported as `refused` and forgotten.

Rules. A2: cover, latch, shake three times, open betting. A3: the bell closes it; lift; result; void and
repeat, bets stand. A4: the dome may not be covered until every prize is paid. SPEC sections 3 and 6.
Units: ms on the folded clock. Allocates nothing.
"""

from struct import pack_into

from micropython import const

from shaker import interlock
from shaker.ticks import ticks_diff

# Numbers of names.py and record.py, as literals: they cost nothing here, and test_literals.py compares them.
_BELL = const(0x0100)
_BETTING = const(3)
_CLOSED = const(4)
_COVER = const(0x0010)
_COVER_BAR = const(0x08)
_COVERED = const(1)
_COVERING = const(0x0015)
_DOME = const(0x0020)
_DOME_LOCK = const(0x10)
_EV_ABANDONED = const(13)
_EV_BETS_CLOSED = const(6)
_EV_BETS_OPEN = const(5)
_EV_CLEAR = const(17)
_EV_COVERED = const(1)
_EV_COVERED_UNPAID = const(11)
_EV_FAULT = const(16)
_EV_KEY_STUCK = const(15)
_EV_LIFTED = const(7)
_EV_PAID = const(10)
_EV_RECOVERED = const(18)
_EV_REFUSED = const(14)
_EV_RESULT = const(8)
_EV_SERVICE = const(19)
_EV_SHAKE_DONE = const(4)
_EV_SHAKE_START = const(3)
_EV_UNCOVERED = const(2)
_EV_UNCOVERED_UNPAID = const(12)
_EV_VOID = const(9)
_F_AGITATOR_RUNAWAY = const(9)
_F_DOME_OPENED = const(4)
_F_JOURNAL_FAILED = const(17)
_F_LATCH_A_WIRING = const(6)
_F_LATCH_B_WIRING = const(7)
_F_OPENED_IN_BETTING = const(2)
_F_OPENED_IN_SHAKE = const(1)
_F_OPENED_WHILE_OFF = const(3)
_F_POWER_LOST_IN_SHAKE = const(10)
_F_SETTINGS_INVALID = const(15)
_F_SHAKEN_LATE = const(5)
_FAULT = const(7)
_IDLE = const(0)
_KEYS = const(0x07C0)
_LATCH_A_INVALID = const(0x0002)
_LATCH_B_INVALID = const(0x0008)
_LEVER = const(0x0080)
_MOTION = const(0x1000)
_OK = const(0)
_PAID = const(0x0400)
_PAYOUT = const(5)
_SECURED = const(0x0035)
_SERVICE = const(0x0800)
_SHAKING = const(2)
_START = const(0x0040)
_VOID = const(6)
_VOID_KEY = const(0x0200)
_WHAT_BELL = const(2)
_WHAT_CLEAR = const(5)
_WHAT_LEVER = const(1)
_WHAT_PAID = const(4)
_WHAT_START = const(0)
_WHAT_VOID = const(3)
_WHY_CAUSE_PRESENT = const(3)
_WHY_COVER_ON = const(2)
_WHY_DOME_OPEN = const(6)
_WHY_FAULT = const(10)
_WHY_JOURNAL_FULL = const(9)
_WHY_NOT_COVERED = const(7)
_WHY_SERVICE = const(5)
_WHY_TOO_FEW = const(8)
_WHY_WRONG_PHASE = const(1)
_FLAG_BETS = const(0x01)
_FLAG_COVERED_UNPAID = const(0x08)
_FLAG_DISTURBED = const(0x02)
_FLAG_SERVICE = const(0x04)
_OFF_EVENT = const(1)
_OFF_PHASE = const(2)
_OFF_FLAGS = const(3)
_OFF_T_S = const(12)
_OFF_T_MS = const(16)
_OFF_A = const(40)
_OFF_B = const(41)
_OFF_X = const(42)

PAID_HOLD_MS = const(800)
STUCK_MS = const(10000)
_HANDS = const(0x0FC0)  # keys and service key
PAIR_MS = const(200)
STROKES = const(3)
_STROKES_MAX = const(255)  # what the event can say
_SEEN_BOTH = const(0x6000)  # inputs.LATCH_A_OPEN, LATCH_B_OPEN
_INVALID = const(0x000A)
_RUNAWAY_BIT = const(0x0100)  # of F_AGITATOR_RUNAWAY in the mask of faults
_LONG = const(1 << 28)  # ms: nothing will time out
_DISTURBING = (_F_DOME_OPENED, _F_AGITATOR_RUNAWAY, _F_SHAKEN_LATE)

# Every change of phase: (from, to, event). The comment gives the condition and the rule, and is what the
# state diagram prints. A fault leads from any phase to FAULT; out of FAULT see _resume().
TRANSITIONS = (
    (_IDLE, _COVERED, _EV_COVERED),  # cover on, both latches closed, dome closed, not in service mode | A2.1
    (_COVERED, _IDLE, _EV_UNCOVERED),  # cover or a latch opens | A2.1
    (_COVERED, _VOID, _EV_UNCOVERED),  # cover or a latch opens while a void round waits to be repeated | A3.3
    (_COVERED, _SHAKING, _EV_SHAKE_START),  # start pressed (lever: first stroke), the interlock agrees | A2.1
    (_SHAKING, _BETTING, _EV_BETS_OPEN),  # three pulses (strokes) done and the dice have settled | A2.1, A2.2
    (_SHAKING, _COVERED, _EV_REFUSED),  # lever: fewer than three strokes in the window | A2.1
    (_BETTING, _CLOSED, _EV_BETS_CLOSED),  # bell pressed | A3.1
    (_CLOSED, _PAYOUT, _EV_LIFTED),  # cover off | A3.2
    (_PAYOUT, _VOID, _EV_VOID),  # void pressed, or host says void, cover off | A3.3
    (_PAYOUT, _IDLE, _EV_PAID),  # paid held 800 ms, or host confirms, cover off | A4
    (_VOID, _COVERED, _EV_COVERED),  # cover on, both latches closed, dome closed | A3.3
    (_VOID, _IDLE, _EV_ABANDONED),  # paid held with the service key on, or host abandon | house rule
)
(
    T_COVER,
    T_UNCOVER,
    T_UNCOVER_VOID,
    T_SHAKE,
    T_OPEN,
    T_TOO_FEW,
    T_BELL,
    T_LIFT,
    T_VOID,
    T_PAID,
    T_COVER_VOID,
    T_ABANDON,
) = range(len(TRANSITIONS))

_NO_HOLD = const(0)
_HOLD_PAID = const(1)
_HOLD_ABANDON = const(2)


class Round:
    """The state machine over `state` (state.State), emitting into `queue` (events.Queue)."""

    def __init__(self, settings, state, queue, agitator, room):
        """room: callable, True when the journal has room for a further round."""
        self.state = state
        self.agitator = agitator
        self.judged = False
        self.told = 0  # outputs of the scan before, set by the owner
        self.lock_spent = False  # the lock's budget does not bear a shake now, set by the owner
        self.t_s = 0  # uptime: whole seconds, and the milliseconds of the next; set by the owner
        self.t_ms = 0
        self.settings_bad = False  # causes that persist outside the table
        self.journal_bad = False
        self.clock_bad = False
        self._queue = queue
        self._room = room
        self._lever = settings.lever
        self._window_ms = settings.lever_window_ms
        self._settle_ms = settings.settle_ms
        self._bolt_ms = settings.bolt_ms
        self._seen = 0  # which latches have been seen open since the last shake
        self._ignored = 0  # keys that do not count until they are released
        self._down_at = [0] * len(_KEY_BITS)
        self._pair_a_at = 0
        self._pair_b_at = 0
        self._pairs = 0  # latches whose pair is being timed
        self._hold = _NO_HOLD
        self._hold_at = 0
        self._turned_on = False  # service key turned on since the fault
        self._strokes = 0
        self._shake_at = 0
        self._stroke_at = 0

    # -- One scan ------------------------------------------------------------------------------------

    def scan(self, now, inputs, toggled):
        """Follow the settled `inputs` (inputs.Inputs) at tick `now`; `toggled`: those that just settled."""
        levels = inputs.levels
        if toggled & _SEEN_BOTH:
            self._seen |= levels & _SEEN_BOTH
        if (levels | self._pairs) & _INVALID:
            # What is on its way to another level has not lasted until now, however late this scan is.
            self._watch_pairs(now, levels, ~inputs.counting)
        if not levels & _DOME:
            self._watch_dome()
        if (levels | toggled) & _MOTION or self.state.phase == _SHAKING:
            code = self.agitator.watch(now, levels, inputs.counting)
            if code:
                self.fault(code)
        self._follow(now, levels)
        if toggled & _HANDS:
            self._keys(now, levels, toggled)
        elif levels & _KEYS & ~self._ignored:
            self._stuck(now, levels)
        if self._hold:
            self._holding(now, levels, ~inputs.counting)

    def touch(self, now, inputs, toggled):
        """scan(), when nothing has changed since a scan that changed nothing, and nothing timed out, but keys
        and the base's movement (`toggled`).
        """
        levels = inputs.levels
        if toggled & _MOTION:
            code = self.agitator.watch(now, levels, inputs.counting)
            if code:
                self.fault(code)
        if toggled & _KEYS:
            self._keys(now, levels, toggled)
        if self._hold:
            self._holding(now, levels, ~inputs.counting)

    def see(self, levels):
        """Remember which latches have been seen open."""
        self._seen |= levels & _SEEN_BOTH

    def left(self, now, levels):
        """Return the ms until something times out, if no input changes and no command comes."""
        s = self.state
        left = _LONG
        if s.phase == _SHAKING and self._lever:
            left = self._lever_left(now)
        elif s.phase == _SHAKING or levels & _MOTION:
            left = self.agitator.left(now, 0 if s.faults & _RUNAWAY_BIT else levels & _MOTION)
        if self._hold:
            left = _sooner(left, ticks_diff(self._hold_at, now) + PAID_HOLD_MS)
        if levels & _INVALID:
            left = _sooner(left, self._pairs_left(now, levels))
        levels &= _KEYS & ~self._ignored
        if levels:
            left = _sooner(left, self._stuck_left(now, levels))
        return left

    def emit(self, event, a=0, b=0, x=0, y=0):
        """Queue one event with the state as it is now."""
        return self._queue.put(self.state, self.t_s, self.t_ms, event, a, b, x, y)

    def _note(self, event, a=0, b=0):
        """Queue one event as emit() does, from the record that state keeps up to date: five times faster."""
        s = self.state
        if s.changed:
            s.pack()
        rec = s.rec
        if s.t_s != self.t_s:
            s.t_s = self.t_s
            pack_into("<I", rec, _OFF_T_S, self.t_s)
        rec[_OFF_EVENT] = event
        rec[_OFF_PHASE] = s.phase | s.origin << 4
        rec[_OFF_FLAGS] = s.flags
        rec[_OFF_T_MS] = self.t_ms & 255
        rec[_OFF_T_MS + 1] = self.t_ms >> 8
        rec[_OFF_A] = a
        rec[_OFF_B] = b
        return self._queue.add(rec)

    def _take(self, transition, a=0, b=0):
        row = TRANSITIONS[transition]
        self.state.phase = row[1]
        self._note(row[2], a, b)

    # -- After a restart -----------------------------------------------------------------------------

    def judge(self, levels):
        """Judge the restored phase, once, when all contacts have settled (SPEC section 7)."""
        self.judged = True
        s = self.state
        found = s.phase
        if found == _COVERED:
            if not s.flags & _FLAG_BETS:
                s.phase = _IDLE
            elif levels & _SECURED != _SECURED:
                s.phase = _VOID
        if found != _IDLE:
            self._note(_EV_RECOVERED, found)
        if found == _SHAKING:
            self.fault(_F_POWER_LOST_IN_SHAKE)
        elif found == _BETTING and levels & _COVERING != _COVERING:
            self.fault(_F_OPENED_WHILE_OFF)
        if s.owed() and levels & _COVER:
            s.flags |= _FLAG_COVERED_UNPAID
            self._note(_EV_COVERED_UNPAID)
        self.ignore(levels & _KEYS)

    def ignore(self, keys):
        """Let the keys of mask `keys` that are down count only once released; report each once."""
        keys &= ~self._ignored
        self._ignored |= keys
        i = 0
        while keys:
            if keys & _KEY_BITS[i]:
                keys &= ~_KEY_BITS[i]
                self._note(_EV_KEY_STUCK, i)
            i += 1

    # -- Faults --------------------------------------------------------------------------------------

    def fault(self, code, b=0):
        """Latch fault `code` (names.F_*): FAULT, and one event. A second one is reported, the first stays."""
        s = self.state
        bit = 1 << (code - 1)
        if s.faults & bit:
            return False
        s.faults |= bit
        if code in _DISTURBING:
            s.flags |= _FLAG_DISTURBED
        begun = 0
        if s.phase != _FAULT:
            if s.phase == _SHAKING:
                begun = self._strokes if self._lever else self.agitator.begun
            s.origin = s.phase
            s.phase = _FAULT
            s.fault = code
            self.agitator.stop()
            self._hold = _NO_HOLD
            self._turned_on = False
        s.pack_faults()
        s.rec[_OFF_X] = begun
        begun = self._note(_EV_FAULT, code, b)
        s.rec[_OFF_X] = 0
        return begun

    def _watch_dome(self):
        s = self.state
        # The one exception: taken off in service mode before the fault, and not locked since.
        if s.phase != _IDLE and (s.phase != _FAULT or s.origin != _IDLE or self.told & _DOME_LOCK):
            self.fault(_F_DOME_OPENED)

    def _watch_pairs(self, now, levels, lasting):
        if not levels & _LATCH_A_INVALID:
            self._pairs &= ~_LATCH_A_INVALID
        elif not self._pairs & _LATCH_A_INVALID:
            self._pairs |= _LATCH_A_INVALID
            self._pair_a_at = now
        elif lasting & _LATCH_A_INVALID and ticks_diff(now, self._pair_a_at) >= PAIR_MS:
            self.fault(_F_LATCH_A_WIRING)
        if not levels & _LATCH_B_INVALID:
            self._pairs &= ~_LATCH_B_INVALID
        elif not self._pairs & _LATCH_B_INVALID:
            self._pairs |= _LATCH_B_INVALID
            self._pair_b_at = now
        elif lasting & _LATCH_B_INVALID and ticks_diff(now, self._pair_b_at) >= PAIR_MS:
            self.fault(_F_LATCH_B_WIRING)

    def _pairs_left(self, now, levels):
        left = _LONG
        faults = self.state.faults
        if levels & _LATCH_A_INVALID and not faults >> (_F_LATCH_A_WIRING - 1) & 1:
            left = ticks_diff(self._pair_a_at, now) + PAIR_MS
        if levels & _LATCH_B_INVALID and not faults >> (_F_LATCH_B_WIRING - 1) & 1:
            left = _sooner(left, ticks_diff(self._pair_b_at, now) + PAIR_MS)
        return left

    def cause_present(self, levels):
        """True while the cause of any fault is still there, so that no fault may be cleared."""
        s = self.state
        if levels & _INVALID or self.settings_bad or self.journal_bad or self.clock_bad:
            return True
        if not levels & _DOME and (s.origin != _IDLE or s.faults >> (_F_DOME_OPENED - 1) & 1):
            return True
        return self.agitator.running_away()

    def _resume(self):
        s = self.state
        if s.origin == _PAYOUT:
            return _PAYOUT
        if s.origin == _CLOSED and not s.flags & _FLAG_DISTURBED:
            return _CLOSED
        return _VOID if s.flags & _FLAG_BETS else _IDLE

    def clear(self, levels):
        """Clear every latched fault, by the supervisor's key or the host. Returns OK or the reason not to."""
        s = self.state
        if s.phase != _FAULT:
            return _WHY_WRONG_PHASE
        if self.cause_present(levels):
            return _WHY_CAUSE_PRESENT
        first = s.fault
        if s.faults != 1 << (first - 1):
            self._clear_others(first)
        s.faults = 0
        s.fault = 0
        s.phase = self._resume()
        s.origin = _IDLE
        s.pack_faults()
        self._note(_EV_CLEAR, first)
        self.ignore(levels & _KEYS)
        return _OK

    def _clear_others(self, first):
        s = self.state
        others = s.faults & ~(1 << (first - 1))
        code = 1
        while others:
            if others & 1:
                s.faults &= ~(1 << (code - 1))
                s.pack_faults()
                self._note(_EV_CLEAR, code)
            others >>= 1
            code += 1

    # -- Contacts ------------------------------------------------------------------------------------

    def _follow(self, now, levels):
        s = self.state
        phase = s.phase
        if phase == _IDLE:
            if levels & _SERVICE or s.flags & _FLAG_SERVICE:
                self._service_mode(levels)
            if levels & _SECURED == _SECURED and not s.flags & _FLAG_SERVICE:
                self._take(T_COVER)
        elif phase == _COVERED:
            if levels & _COVERING != _COVERING:
                self._take(T_UNCOVER_VOID if s.flags & _FLAG_BETS else T_UNCOVER)
        elif phase == _SHAKING:
            if levels & _COVERING != _COVERING:
                self.fault(_F_OPENED_IN_SHAKE)
            elif self._lever:
                self._lever_shake(now)
            else:
                self.agitator.step(now)
                if self.agitator.done:
                    self._open_betting(self.agitator.begun)
        elif phase == _BETTING:
            if levels & _COVERING != _COVERING:
                self.fault(_F_OPENED_IN_BETTING)
        elif phase == _CLOSED:
            if not levels & _COVER:
                self._take(T_LIFT)
        elif phase == _VOID:
            if levels & _SECURED == _SECURED:
                self._take(T_COVER_VOID)
        elif phase == _FAULT:
            if s.origin == _CLOSED and not s.flags & _FLAG_DISTURBED and not levels & _COVER:
                s.origin = _PAYOUT
                self._note(_EV_LIFTED)
            if s.flags & _FLAG_SERVICE:
                self._service_mode(levels)
            if s.origin == _PAYOUT:
                self._watch_cover(levels)
        else:  # PAYOUT
            self._watch_cover(levels)

    def _watch_cover(self, levels):
        s = self.state
        if levels & _COVER:
            if not s.flags & _FLAG_COVERED_UNPAID:
                s.flags |= _FLAG_COVERED_UNPAID
                self._note(_EV_COVERED_UNPAID)
        elif s.flags & _FLAG_COVERED_UNPAID:
            s.flags &= ~_FLAG_COVERED_UNPAID
            self._note(_EV_UNCOVERED_UNPAID)

    def _service_mode(self, levels):
        s = self.state
        if s.flags & _FLAG_SERVICE:
            if levels & _DOME and not levels & _SERVICE:
                s.flags &= ~_FLAG_SERVICE
                self._note(_EV_SERVICE, 0)
        elif levels & _SERVICE:
            s.flags |= _FLAG_SERVICE
            self._note(_EV_SERVICE, 1)

    # -- The shake -----------------------------------------------------------------------------------

    def _may_start(self, levels):
        s = self.state
        phase = s.phase
        if phase == _FAULT:
            return _WHY_FAULT
        if phase == _IDLE or phase == _VOID:
            if s.flags & _FLAG_SERVICE:
                return _WHY_SERVICE
            return _WHY_NOT_COVERED if levels & _DOME else _WHY_DOME_OPEN
        if phase != _COVERED:
            return _WHY_WRONG_PHASE
        if levels & _SERVICE:
            return _WHY_SERVICE
        if self.told & _COVER_BAR or self.lock_spent:
            # The bar's release still waits for its budget, or the lock's is spent: it could not be locked.
            return _WHY_NOT_COVERED
        # COVERED: no payout is outstanding.
        why = interlock.may_shake(levels, False, self._seen == _SEEN_BOTH)
        if not why and not s.flags & _FLAG_BETS and not self._room():
            why = _WHY_JOURNAL_FULL
        return why

    def _begin_shake(self, now):
        s = self.state
        if s.flags & _FLAG_BETS:
            s.repeat += 1
        else:
            s.round += 1
            s.repeat = 0
        s.flags &= ~_FLAG_DISTURBED
        if s.die1:
            s.die1 = s.die2 = s.die3 = 0
            s.pack_dice()
        s.pack_round()
        self._seen = 0
        self._shake_at = now
        self._stroke_at = now
        self._strokes = 1
        if not self._lever:
            self.agitator.start(now)
        self._take(T_SHAKE)

    def _lever_shake(self, now):
        if self._strokes >= STROKES:
            if (
                ticks_diff(now, self._stroke_at) >= self._settle_ms
                and ticks_diff(now, self._shake_at) >= self._bolt_ms
            ):
                self._open_betting(self._strokes)
        elif ticks_diff(now, self._shake_at) > self._window_ms:
            # Too few strokes are no shake: the latches have been seen open since the last real one.
            self._seen = _SEEN_BOTH
            self._take(T_TOO_FEW, _WHAT_LEVER, _WHY_TOO_FEW)

    def _lever_left(self, now):
        if self._strokes >= STROKES:
            left = ticks_diff(self._shake_at, now) + self._bolt_ms
            return max(left, ticks_diff(self._stroke_at, now) + self._settle_ms)
        return ticks_diff(self._shake_at, now) + self._window_ms + 1

    def _open_betting(self, strokes):
        self._note(_EV_SHAKE_DONE, strokes)
        self.agitator.stop()
        self.state.flags |= _FLAG_BETS
        self._take(T_OPEN)

    # -- Keys ----------------------------------------------------------------------------------------

    def _refuse(self, what, why):
        self._note(_EV_REFUSED, what, why)

    def _keys(self, now, levels, toggled):
        """Keys and service key that were pressed or released just now."""
        if self._ignored:
            self._ignored &= ~toggled | levels
        if toggled & _SERVICE:
            self._service_key(levels)
        toggled &= levels & _KEYS & ~self._ignored
        if not toggled:
            return
        if toggled & _VOID_KEY:
            self._down_at[_WHAT_VOID] = now
            why = self.void(levels)
            if why:
                self._refuse(_WHAT_VOID, why)
        if toggled & _PAID:
            self._down_at[_WHAT_PAID] = now
            self._press_paid(now, levels)
        if toggled & _BELL:
            self._down_at[_WHAT_BELL] = now
            why = self._bell()
            if why:
                self._refuse(_WHAT_BELL, why)
        if toggled & _START:
            self._down_at[_WHAT_START] = now
            why = self._may_start(levels) if not self._lever else self._means_nothing()
            if why:
                self._refuse(_WHAT_START, why)
            else:
                self._begin_shake(now)
        if toggled & _LEVER:
            self._down_at[_WHAT_LEVER] = now
            self._stroke(now, levels)

    def _means_nothing(self):
        return _WHY_FAULT if self.state.phase == _FAULT else _WHY_WRONG_PHASE

    def _bell(self):
        if self.state.phase != _BETTING:
            return self._means_nothing()
        self._take(T_BELL)
        return _OK

    def _stroke(self, now, levels):
        phase = self.state.phase
        if not self._lever:
            self._refuse(_WHAT_LEVER, self._means_nothing())
        elif phase == _SHAKING:
            self._strokes = min(self._strokes + 1, _STROKES_MAX)
            self._stroke_at = now
        elif phase == _BETTING or phase == _CLOSED:
            self.fault(_F_SHAKEN_LATE)
        else:
            why = self._may_start(levels)
            if why:
                self._refuse(_WHAT_LEVER, why)
            else:
                self._begin_shake(now)

    def _press_paid(self, now, levels):
        phase = self.state.phase
        if phase == _PAYOUT:
            if levels & _COVER:
                self._refuse(_WHAT_PAID, _WHY_COVER_ON)
                return
            self._hold = _HOLD_PAID
        elif phase == _VOID and levels & _SERVICE:
            self._hold = _HOLD_ABANDON
        else:
            self._refuse(_WHAT_PAID, self._means_nothing())
            return
        self._hold_at = now

    def _holding(self, now, levels, lasting):
        # All 800 ms must lie in the phase, cover off (abandon: service key on); else press again.
        phase = self.state.phase
        if not levels & _PAID:
            self._hold = _NO_HOLD
        elif self._hold == _HOLD_PAID:
            if phase != _PAYOUT:
                self._hold = _NO_HOLD
            elif levels & _COVER:
                self._hold = _NO_HOLD
                self._refuse(_WHAT_PAID, _WHY_COVER_ON)
            elif lasting & _PAID and ticks_diff(now, self._hold_at) >= PAID_HOLD_MS:
                self._hold = _NO_HOLD
                self.paid(levels)
        elif phase != _VOID or not levels & _SERVICE:
            self._hold = _NO_HOLD
        elif lasting & _PAID and ticks_diff(now, self._hold_at) >= PAID_HOLD_MS:
            self._hold = _NO_HOLD
            self.abandon()

    def _stuck(self, now, levels):
        levels &= _KEYS & ~self._ignored
        i = 0
        while levels:
            bit = _KEY_BITS[i]
            if levels & bit:
                levels &= ~bit
                if ticks_diff(now, self._down_at[i]) >= STUCK_MS:
                    self.ignore(bit)
            i += 1

    def _stuck_left(self, now, levels):
        left = _LONG
        i = 0
        while levels:
            if levels & _KEY_BITS[i]:
                levels &= ~_KEY_BITS[i]
                left = _sooner(left, ticks_diff(self._down_at[i], now) + STUCK_MS)
            i += 1
        return left

    def _service_key(self, levels):
        if self.state.phase != _FAULT:
            self._turned_on = False
        elif levels & _SERVICE:
            self._turned_on = True
        elif self._turned_on:
            self._turned_on = False
            why = self.clear(levels)
            if why:
                self._refuse(_WHAT_CLEAR, why)

    # -- What the croupier's key and the host's command share ------------------------------------------

    def result(self, die1, die2, die3):
        """Take the dice (1-6 each) of the lifted round; a later one corrects it. Returns OK or a reason."""
        s = self.state
        if s.phase != _PAYOUT:
            return _WHY_WRONG_PHASE
        s.die1 = die1
        s.die2 = die2
        s.die3 = die3
        s.pack_dice()
        self._note(_EV_RESULT)
        return _OK

    def void(self, levels):
        """Declare the round void (A3.3): stacked or tilted dice. Returns OK or a reason."""
        s = self.state
        if s.phase != _PAYOUT:
            return self._means_nothing()
        if levels & _COVER:
            return _WHY_COVER_ON
        if s.die1:
            s.die1 = s.die2 = s.die3 = 0
            s.pack_dice()
        self._take(T_VOID)
        return _OK

    def paid(self, levels):
        """Confirm that every prize is paid (A4). Returns OK or a reason."""
        s = self.state
        if s.phase != _PAYOUT:
            return self._means_nothing()
        if levels & _COVER:
            return _WHY_COVER_ON
        s.flags &= ~_FLAG_BETS
        self._take(T_PAID)
        return _OK

    def abandon(self):
        """Give up a void round that cannot be repeated (house rule). Returns OK or a reason."""
        s = self.state
        if s.phase != _VOID:
            return self._means_nothing()
        s.flags &= ~_FLAG_BETS
        self._take(T_ABANDON)
        return _OK

    def persistent(self, code, present):
        """Note that a cause outside the table (journal, settings, clock) begins, which raises it, or ends."""
        if code == _F_JOURNAL_FAILED:
            self.journal_bad = present
        elif code == _F_SETTINGS_INVALID:
            self.settings_bad = present
        else:
            self.clock_bad = present
        if present:
            self.fault(code)


def _sooner(left, other):
    return left if left < other else other


_KEY_BITS = (_START, _LEVER, _BELL, _VOID_KEY, _PAID)  # in the order of names.WHATS
