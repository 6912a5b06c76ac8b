"""Small mistakes in the firmware, each of which the exhaustive search must find.

A row: module, a piece of its text that occurs once, what stands there instead. Every line of the guard is
among them, deleted or negated. THIN: the rows that `make test` runs; the rest is for `make test-long`.
"""

import exploration
import explore_parts
import explore_rules

INTERLOCK = (
    # may_shake
    ("if owed:\n        return WHY_WRONG_PHASE", "if not owed:\n        return WHY_WRONG_PHASE"),
    (
        "if levels & SECURED != SECURED:\n        return WHY_NOT_COVERED",
        "if False:\n        return WHY_NOT_COVERED",
    ),
    ("if not seen_open:", "if False:"),
    # guard, line by line
    ("out = wanted & (DRIVE | FRONT_BOARD | ALARM)", "out = wanted"),
    ("out = wanted & (DRIVE | FRONT_BOARD | ALARM)", "out = wanted & (FRONT_BOARD | ALARM)"),
    ("out = wanted & (DRIVE | FRONT_BOARD | ALARM)", "out = wanted & (DRIVE | ALARM)"),
    ("where = origin if phase == FAULT else phase", "where = phase"),
    ("where = origin if phase == FAULT else phase", "where = origin"),
    ("    if owed:\n        out |= COVER_BAR", "    if not owed:\n        out |= COVER_BAR"),
    ("out |= COVER_BAR  #", "pass  #"),
    ("elif where == SHAKING or where == BETTING:", "if where == SHAKING or where == BETTING or owed:"),
    ("elif where == SHAKING or where == BETTING:", "elif where == BETTING:"),
    ("elif where == SHAKING or where == BETTING:", "elif where == SHAKING:"),
    ("out |= COVER_LOCK  # I2", "pass"),
    ("    if phase == IDLE:\n        if not service:", "    if phase != IDLE:\n        if not service:"),
    ("if not service:", "if service:"),
    ("if not service:\n            out |= DOME_LOCK", "if not service:\n            pass"),
    (
        "elif phase != FAULT or origin != IDLE or levels & DOME or told & DOME_LOCK:",
        "elif phase != FAULT or origin != IDLE or levels & DOME:",
    ),
    (
        "elif phase != FAULT or origin != IDLE or levels & DOME or told & DOME_LOCK:",
        "elif phase != FAULT or levels & DOME or told & DOME_LOCK:",
    ),
    (
        "elif phase != FAULT or origin != IDLE or levels & DOME or told & DOME_LOCK:",
        "elif phase != FAULT or origin != IDLE or told & DOME_LOCK:",
    ),
    (
        "elif phase != FAULT or origin != IDLE or levels & DOME or told & DOME_LOCK:",
        "elif origin != IDLE or levels & DOME or told & DOME_LOCK:",
    ),
    ("told & DOME_LOCK:\n        out |= DOME_LOCK", "told & DOME_LOCK:\n        pass"),
    ("if phase != SHAKING or owed or", "if owed or"),
    ("or levels & SECURED != SECURED or not out & COVER_LOCK:", "or not out & COVER_LOCK:"),
    (
        "or levels & SECURED != SECURED or not out & COVER_LOCK:",
        "or levels & SECURED == SECURED or not out & COVER_LOCK:",
    ),
    ("or not out & COVER_LOCK:\n        out &= ~DRIVE", "or not out & COVER_LOCK:\n        pass"),
    ("elif not told & COVER_LOCK:", "elif False:"),
    ("elif not told & COVER_LOCK:", "elif told & COVER_LOCK:"),
    ("out &= ~DRIVE  #", "pass  #"),
    ("if not out & AGITATOR_ENABLE:", "if out & AGITATOR_ENABLE:"),
    ("out &= ~AGITATOR\n", "pass\n"),
    ("if phase != BETTING:", "if phase == BETTING:"),
    ("out &= ~FRONT_BOARD  # I5", "pass"),
    ("if phase == FAULT or (owed and levels & COVER):", "if owed and levels & COVER:"),
    ("if phase == FAULT or (owed and levels & COVER):", "if phase == FAULT or owed:"),
    ("if phase == FAULT or (owed and levels & COVER):", "if phase == FAULT:"),
    ("out |= ALARM\n", "pass\n"),
)

ROUND = (
    ("if s.faults & bit:\n            return False", "if False:\n            return False"),
    ("if code in _DISTURBING:", "if False:"),
    ("            s.origin = s.phase\n            s.phase = FAULT", "            s.phase = FAULT"),
    (
        "            self.agitator.stop()\n            self._hold = _NO_HOLD\n            self._turned_on",
        "            self._hold = _NO_HOLD\n            self._turned_on",
    ),
    (
        "            self._turned_on = False\n        s.pack_faults()",
        "        s.pack_faults()",
    ),
    ("if s.phase != IDLE and (s.phase != FAULT", "if s.phase not in (IDLE, VOID) and (s.phase != FAULT"),
    ("or self.told & DOME_LOCK):", "or False):"),
    (
        "if levels & _INVALID or self.settings_bad or self.journal_bad or self.clock_bad:",
        "if self.settings_bad or self.journal_bad or self.clock_bad:",
    ),
    (
        "if levels & _INVALID or self.settings_bad or self.journal_bad or self.clock_bad:",
        "if levels & _INVALID or self.settings_bad or self.clock_bad:",
    ),
    ("return self.agitator.running_away()", "return False"),
    ("if s.origin == PAYOUT:\n            return PAYOUT", "if False:\n            return PAYOUT"),
    (
        "if s.origin == CLOSED and not s.flags & FLAG_DISTURBED:\n            return CLOSED",
        "if s.origin == CLOSED:\n            return CLOSED",
    ),
    ("return VOID if s.flags & FLAG_BETS else IDLE", "return IDLE"),
    (
        "        self._note(EV_CLEAR, first)\n        self.ignore(levels & KEYS)",
        "        self._note(EV_CLEAR, first)",
    ),
    ("if levels & SECURED == SECURED and not s.flags & FLAG_SERVICE:", "if levels & SECURED == SECURED:"),
    ("self._take(T_UNCOVER_VOID if s.flags & FLAG_BETS else T_UNCOVER)", "self._take(T_UNCOVER)"),
    (
        "            if levels & COVERING != COVERING:\n                self.fault(F_OPENED_IN_BETTING)",
        "            if not levels & COVER:\n                self.fault(F_OPENED_IN_BETTING)",
    ),
    (
        "            if levels & COVERING != COVERING:\n                self.fault(F_OPENED_IN_SHAKE)",
        "            if False:\n                self.fault(F_OPENED_IN_SHAKE)",
    ),
    (
        "            if not levels & COVER:\n                self._take(T_LIFT)",
        "            if levels & COVER:\n                self._take(T_LIFT)",
    ),
    ("s.origin = PAYOUT\n", "s.origin = CLOSED\n"),
    (
        "if s.origin == CLOSED and not s.flags & FLAG_DISTURBED and not levels & COVER:",
        "if s.origin == CLOSED and not levels & COVER:",
    ),
    ("if levels & DOME and not levels & SERVICE:", "if not levels & SERVICE:"),
    ("        if levels & SERVICE:\n            return WHY_SERVICE\n", ""),
    ("if self.told & COVER_BAR or self.lock_spent:", "if False:"),
    ("self._seen == _SEEN_BOTH)", "self._seen != 0)"),
    ("        self._seen = 0\n        self._shake_at", "        self._shake_at"),
    (
        "        if s.flags & FLAG_BETS:\n            s.repeat += 1",
        "        if False:\n            s.repeat += 1",
    ),
    ("s.round += 1", "s.round += 0"),
    ("s.flags &= ~FLAG_DISTURBED\n        s.die1", "s.die1"),
    ("        self._strokes = 1\n", ""),
    (
        "if self._strokes >= STROKES:\n            if (",
        "if self._strokes >= STROKES - 1:\n            if (",
    ),
    (">= self._settle_ms\n", ">= 0\n"),
    ("and ticks_diff(now, self._shake_at) >= self._bolt_ms", "and True"),
    ("        self.state.flags |= FLAG_BETS\n", ""),
    (
        "if self.state.phase != BETTING:\n            return self._means_nothing()",
        "if self.state.phase == CLOSED:\n            return self._means_nothing()",
    ),
    ("        if levels & COVER:\n            return WHY_COVER_ON\n        s.die1", "        s.die1"),
    ("        if levels & COVER:\n            return WHY_COVER_ON\n        s.flags", "        s.flags"),
    (
        "                self._hold = _NO_HOLD\n                self._refuse(WHAT_PAID, WHY_COVER_ON)\n",
        "                pass\n",
    ),
    (
        ">= PAID_HOLD_MS:\n                self._hold = _NO_HOLD\n                self.paid(levels)",
        ">= 400:\n                self._hold = _NO_HOLD\n                self.paid(levels)",
    ),
    (
        "        elif phase == VOID and levels & SERVICE:\n            self._hold",
        "        elif phase == VOID:\n            self._hold",
    ),
    (
        "elif phase == BETTING or phase == CLOSED:\n            self.fault(F_SHAKEN_LATE)",
        "elif phase == BETTING:\n            self.fault(F_SHAKEN_LATE)",
    ),
    ("        elif self._turned_on:\n", "        else:\n"),
    ("toggled &= levels & KEYS & ~self._ignored", "toggled &= levels & KEYS"),
    (
        "        if found == SHAKING:\n            self.fault(F_POWER_LOST_IN_SHAKE)\n        elif",
        "        if",
    ),
    ("elif found == BETTING and levels & COVERING != COVERING:", "elif False:"),
    (
        "elif levels & SECURED != SECURED:\n                s.phase = VOID",
        "else:\n                s.phase = VOID",
    ),
    ("        self.ignore(levels & KEYS)\n\n    def ignore", "\n    def ignore"),
    (
        "        if toggled & KEYS:\n            self._keys(now, levels, toggled)\n",
        "",
    ),
    (
        "            self._holding(now, levels, ~inputs.counting)\n\n    def see",
        "            pass\n\n    def see",
    ),
)

CORE = (
    ("if toggled & ~_TOUCH:", "if False:"),
    (
        "        if self._waiting != self._queue.count:\n            self._act(",
        "        if False:\n            self._act(",
    ),
)

AGITATOR = (
    ("PULSES = const(3)", "PULSES = const(2)"),
    ("PULSES = const(3)", "PULSES = const(4)"),
    ("self._edge = ticks_add(now, self._bolt_ms)", "self._edge = now"),
    ("self._edge = ticks_add(at, self._gap_ms)", "self._edge = ticks_add(at, self._pulse_ms)"),
    (
        "        self.begun = 0\n        self.done = False\n\n    def stop",
        "        self.done = False\n\n    def stop",
    ),
    ("        self._watching = False\n        self.drive = False", "        self._watching = False"),
    ("                return F_AGITATOR_RUNAWAY", "                return OK"),
    ("            self._watching = False\n            return F_AGITATOR_STALLED", "            return OK"),
    ("return self._moving\n", "return False\n"),
)

BOLTS = (
    ("and self._spend(now) + 2 > self._size", "and False"),
    ("if not (on or self.hasty) and", "if"),
    ("self._lock.hasty = wanted & COVER_BAR", "self._lock.hasty = 0"),
    ("self._step(now, COVER_BAR, self._bar, wanted)", "self._step(now, COVER_BAR, self._bar, wanted << 1)"),
    (
        "elif turn and ticks_diff(now, self._until) >= 0:",
        "elif turn and ticks_diff(now, self._until) > 60:",
    ),
)

INPUTS = (
    ("_QUICK = const(0x600A)", "_QUICK = const(0x2002)"),
    ("(c2 & c0 & (c1 | _SLOW))", "(c2 & ~c0 & (c1 | _SLOW))"),
    ("now = (c1 & (((", "now = (c0 & ((("),
    ("((levels ^ _MOTION) & _EARNED)", "_EARNED"),
    ("    0x000A, 0x0009, 0x2008, 0x000A,\n    0x0006", "    0x000A, 0x0008, 0x2008, 0x000A,\n    0x0006"),
    ("    0x0006, 0x0005, 0x2004, 0x0006,", "    0x0005, 0x0005, 0x2004, 0x0006,"),
    ("            word ^= now\n            c0 &= word\n", "            word ^= now\n"),
    ("self.fell = now & levels", "self.fell = now"),
)

ALL = tuple(
    (module, old, new)
    for module, rows in (
        ("interlock", INTERLOCK),
        ("round", ROUND),
        ("agitator", AGITATOR),
        ("bolts", BOLTS),
        ("core", CORE),
        ("inputs", INPUTS),
    )
    for old, new in rows
)

# For `make test`: a few of each module, found within a second or two.
THIN = tuple(ALL[i] for i in range(0, len(ALL), 6))


def caught(mutant):
    """Return the rule that the search finds broken in `mutant`, or None. Stops at the first."""
    try:
        modules = exploration.load(mutant)
        for _ in explore_parts.prove(modules):
            pass
    except explore_rules.Violation as violation:
        return str(violation)
    except Exception as error:  # a mistake may also break the firmware outright
        return f"{type(error).__name__}: {error}"
    # A short look at both builds first: most mistakes show at once, in one of them.
    tries = [(build, most) for most in (60000, None) for build in exploration.CONFIGS[:2]]
    for (name, config), most in tries:
        found = exploration.search(name, config, mutant=mutant, modules=modules, hunt=True, most=most)
        if found.violation:
            return str(found.violation)
    return None
