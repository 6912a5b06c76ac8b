"""Small mistakes in the firmware, each of which the exhaustive search must find.

A row: module, a piece of its text that occurs once, what stands there instead. Every line of the guard is
among them, deleted or negated. THIN: the rows that `make test` runs; the rest is for `make test-long`.
"""

import exploration
import explore_parts
import explore_rules

INTERLOCK = (
    # may_shake
    ("if owed:\n        return _WHY_WRONG_PHASE", "if not owed:\n        return _WHY_WRONG_PHASE"),
    (
        "if levels & _SECURED != _SECURED:\n        return _WHY_NOT_COVERED",
        "if False:\n        return _WHY_NOT_COVERED",
    ),
    ("if not seen_open:", "if False:"),
    # guard, line by line
    ("out = wanted & (_DRIVE | _FRONT_BOARD | _ALARM)", "out = wanted"),
    ("out = wanted & (_DRIVE | _FRONT_BOARD | _ALARM)", "out = wanted & (_FRONT_BOARD | _ALARM)"),
    ("out = wanted & (_DRIVE | _FRONT_BOARD | _ALARM)", "out = wanted & (_DRIVE | _ALARM)"),
    ("where = origin if phase == _FAULT else phase", "where = phase"),
    ("where = origin if phase == _FAULT else phase", "where = origin"),
    ("    if owed:\n        out |= _COVER_BAR", "    if not owed:\n        out |= _COVER_BAR"),
    ("out |= _COVER_BAR  #", "pass  #"),
    ("elif where == _SHAKING or where == _BETTING:", "if where == _SHAKING or where == _BETTING or owed:"),
    ("elif where == _SHAKING or where == _BETTING:", "elif where == _BETTING:"),
    ("elif where == _SHAKING or where == _BETTING:", "elif where == _SHAKING:"),
    ("out |= _COVER_LOCK  # I2", "pass"),
    ("    if phase == _IDLE:\n        if not service:", "    if phase != _IDLE:\n        if not service:"),
    ("if not service:", "if service:"),
    ("if not service:\n            out |= _DOME_LOCK", "if not service:\n            pass"),
    (
        "elif phase != _FAULT or origin != _IDLE or levels & _DOME or told & _DOME_LOCK:",
        "elif phase != _FAULT or origin != _IDLE or levels & _DOME:",
    ),
    (
        "elif phase != _FAULT or origin != _IDLE or levels & _DOME or told & _DOME_LOCK:",
        "elif phase != _FAULT or levels & _DOME or told & _DOME_LOCK:",
    ),
    (
        "elif phase != _FAULT or origin != _IDLE or levels & _DOME or told & _DOME_LOCK:",
        "elif phase != _FAULT or origin != _IDLE or told & _DOME_LOCK:",
    ),
    (
        "elif phase != _FAULT or origin != _IDLE or levels & _DOME or told & _DOME_LOCK:",
        "elif origin != _IDLE or levels & _DOME or told & _DOME_LOCK:",
    ),
    ("told & _DOME_LOCK:\n        out |= _DOME_LOCK", "told & _DOME_LOCK:\n        pass"),
    ("if phase != _SHAKING or owed or", "if owed or"),
    ("or levels & _SECURED != _SECURED or not out & _COVER_LOCK:", "or not out & _COVER_LOCK:"),
    (
        "or levels & _SECURED != _SECURED or not out & _COVER_LOCK:",
        "or levels & _SECURED == _SECURED or not out & _COVER_LOCK:",
    ),
    ("or not out & _COVER_LOCK:\n        out &= ~_DRIVE", "or not out & _COVER_LOCK:\n        pass"),
    ("elif not told & _COVER_LOCK:", "elif False:"),
    ("elif not told & _COVER_LOCK:", "elif told & _COVER_LOCK:"),
    ("out &= ~_DRIVE  #", "pass  #"),
    ("if not out & _AGITATOR_ENABLE:", "if out & _AGITATOR_ENABLE:"),
    ("out &= ~_AGITATOR\n", "pass\n"),
    ("if phase != _BETTING:", "if phase == _BETTING:"),
    ("out &= ~_FRONT_BOARD  # I5", "pass"),
    ("if phase == _FAULT or (owed and levels & _COVER):", "if owed and levels & _COVER:"),
    ("if phase == _FAULT or (owed and levels & _COVER):", "if phase == _FAULT or owed:"),
    ("if phase == _FAULT or (owed and levels & _COVER):", "if phase == _FAULT:"),
    ("out |= _ALARM\n", "pass\n"),
)

ROUND = (
    ("if s.faults & bit:\n            return False", "if False:\n            return False"),
    ("if code in _DISTURBING:", "if False:"),
    ("            s.origin = s.phase\n            s.phase = _FAULT", "            s.phase = _FAULT"),
    (
        "            self.agitator.stop()\n            self._hold = _NO_HOLD\n            self._turned_on",
        "            self._hold = _NO_HOLD\n            self._turned_on",
    ),
    (
        "            self._turned_on = False\n        s.pack_faults()",
        "        s.pack_faults()",
    ),
    ("if s.phase != _IDLE and (s.phase != _FAULT", "if s.phase not in (_IDLE, _VOID) and (s.phase != _FAULT"),
    ("or self.told & _DOME_LOCK):", "or False):"),
    (
        "if levels & _INVALID or self.settings_bad or self.journal_bad or self.clock_bad:",
        "if self.settings_bad or self.journal_bad or self.clock_bad:",
    ),
    (
        "if levels & _INVALID or self.settings_bad or self.journal_bad or self.clock_bad:",
        "if levels & _INVALID or self.settings_bad or self.clock_bad:",
    ),
    ("return self.agitator.running_away()", "return False"),
    ("if s.origin == _PAYOUT:\n            return _PAYOUT", "if False:\n            return _PAYOUT"),
    (
        "if s.origin == _CLOSED and not s.flags & _FLAG_DISTURBED:\n            return _CLOSED",
        "if s.origin == _CLOSED:\n            return _CLOSED",
    ),
    ("return _VOID if s.flags & _FLAG_BETS else _IDLE", "return _IDLE"),
    (
        "        self._note(_EV_CLEAR, first)\n        self.ignore(levels & _KEYS)",
        "        self._note(_EV_CLEAR, first)",
    ),
    (
        "if levels & _SECURED == _SECURED and not s.flags & _FLAG_SERVICE:",
        "if levels & _SECURED == _SECURED:",
    ),
    ("self._take(T_UNCOVER_VOID if s.flags & _FLAG_BETS else T_UNCOVER)", "self._take(T_UNCOVER)"),
    (
        "            if levels & _COVERING != _COVERING:\n                self.fault(_F_OPENED_IN_BETTING)",
        "            if not levels & _COVER:\n                self.fault(_F_OPENED_IN_BETTING)",
    ),
    (
        "            if levels & _COVERING != _COVERING:\n                self.fault(_F_OPENED_IN_SHAKE)",
        "            if False:\n                self.fault(_F_OPENED_IN_SHAKE)",
    ),
    (
        "            if not levels & _COVER:\n                self._take(T_LIFT)",
        "            if levels & _COVER:\n                self._take(T_LIFT)",
    ),
    ("s.origin = _PAYOUT\n", "s.origin = _CLOSED\n"),
    (
        "if s.origin == _CLOSED and not s.flags & _FLAG_DISTURBED and not levels & _COVER:",
        "if s.origin == _CLOSED and not levels & _COVER:",
    ),
    ("if levels & _DOME and not levels & _SERVICE:", "if not levels & _SERVICE:"),
    ("        if levels & _SERVICE:\n            return _WHY_SERVICE\n", ""),
    ("if self.told & _COVER_BAR or self.lock_spent:", "if False:"),
    ("self._seen == _SEEN_BOTH)", "self._seen != 0)"),
    ("        self._seen = 0\n        self._shake_at", "        self._shake_at"),
    (
        "        if s.flags & _FLAG_BETS:\n            s.repeat += 1",
        "        if False:\n            s.repeat += 1",
    ),
    ("s.round += 1", "s.round += 0"),
    ("s.flags &= ~_FLAG_DISTURBED\n        if s.die1", "if s.die1"),
    ("        self._strokes = 1\n", ""),
    (
        "if self._strokes >= STROKES:\n            if (",
        "if self._strokes >= STROKES - 1:\n            if (",
    ),
    (">= self._settle_ms\n", ">= 0\n"),
    ("and ticks_diff(now, self._shake_at) >= self._bolt_ms", "and True"),
    ("        self.state.flags |= _FLAG_BETS\n", ""),
    (
        "if self.state.phase != _BETTING:\n            return self._means_nothing()",
        "if self.state.phase == _CLOSED:\n            return self._means_nothing()",
    ),
    ("        if levels & _COVER:\n            return _WHY_COVER_ON\n        if s.die1", "        if s.die1"),
    ("        if levels & _COVER:\n            return _WHY_COVER_ON\n        s.flags", "        s.flags"),
    (
        "                self._hold = _NO_HOLD\n                self._refuse(_WHAT_PAID, _WHY_COVER_ON)\n",
        "                pass\n",
    ),
    (
        ">= PAID_HOLD_MS:\n                self._hold = _NO_HOLD\n                self.paid(levels)",
        ">= 400:\n                self._hold = _NO_HOLD\n                self.paid(levels)",
    ),
    (
        "        elif phase == _VOID and levels & _SERVICE:\n            self._hold",
        "        elif phase == _VOID:\n            self._hold",
    ),
    (
        "elif phase == _BETTING or phase == _CLOSED:\n            self.fault(_F_SHAKEN_LATE)",
        "elif phase == _BETTING:\n            self.fault(_F_SHAKEN_LATE)",
    ),
    ("        elif self._turned_on:\n", "        else:\n"),
    ("toggled &= levels & _KEYS & ~self._ignored", "toggled &= levels & _KEYS"),
    (
        "        if found == _SHAKING:\n            self.fault(_F_POWER_LOST_IN_SHAKE)\n        elif",
        "        if",
    ),
    ("elif found == _BETTING and levels & _COVERING != _COVERING:", "elif False:"),
    (
        "elif levels & _SECURED != _SECURED:\n                s.phase = _VOID",
        "else:\n                s.phase = _VOID",
    ),
    ("        self.ignore(levels & _KEYS)\n\n    def ignore", "\n    def ignore"),
    (
        "        if toggled & _KEYS:\n            self._keys(now, levels, toggled)\n",
        "",
    ),
    (
        "            self._holding(now, levels, ~inputs.counting)\n\n    def see",
        "            pass\n\n    def see",
    ),
    # what the round should remember is forgotten, or kept too long
    ("        self._take(T_VOID)", "        self._seen = 0\n        self._take(T_VOID)"),
    (
        "                self._take(T_COVER_VOID)",
        "                self._seen = 0\n                self._take(T_COVER_VOID)",
    ),
    ("        first = s.fault\n", "        first = s.fault\n        self._seen = 0\n"),
    (
        "            self._turned_on = False\n        s.pack_faults()",
        "        self._turned_on = False\n        s.pack_faults()",
    ),
    ("self._ignored &= ~toggled | levels", "self._ignored = 0"),
    ("            self._turned_on = True", "            self._turned_on = not self.cause_present(levels)"),
    (
        "        if toggled & _VOID_KEY:\n",
        "        if not toggled & _PAID:\n            self._hold = 0\n        if toggled & _VOID_KEY:\n",
    ),
    # a fault of one code clears as no other
    ("s.phase = self._resume()", "s.phase = _IDLE if first == 12 else self._resume()"),
    ("s.phase = self._resume()", "s.phase = _IDLE if first in (14, 17) else self._resume()"),
    ("            if s.origin == _PAYOUT:\n", "            if s.origin == _PAYOUT and s.fault != 10:\n"),
    # three strokes that open no bets
    ("and ticks_diff(now, self._shake_at) >= self._bolt_ms", "and False"),
)

CORE = (
    ("if toggled & ~_TOUCH:", "if False:"),
    (
        "        if self._waiting != self._queue.count:\n            self._act(",
        "        if False:\n            self._act(",
    ),
)

DEVICE = (("        core.wake()\n        if why", "        if why"),)

STATE = (
    ("        self.repeat = values[8]\n", ""),
    ("self.fault, self.die1, self.die2, self.die3 = values[13:17]", "self.fault = values[13]"),
)

_AGITATOR = (
    ("PULSES = const(3)", "PULSES = const(2)"),
    ("PULSES = const(3)", "PULSES = const(4)"),
    ("self._edge = ticks_add(now, self._bolt_ms)", "self._edge = now"),
    ("ms = self._gap_ms", "ms = self._pulse_ms"),
    (
        "        self.begun = 0\n        self.done = False\n\n    def stop",
        "        self.done = False\n\n    def stop",
    ),
    ("        self._watching = False\n        self.drive = False", "        self._watching = False"),
    ("                return _F_AGITATOR_RUNAWAY", "                return _OK"),
    (
        "                self._watching = False\n                return _F_AGITATOR_STALLED",
        "                return _OK",
    ),
    ("return self._moving\n", "return False\n"),
)

_BOLTS = (
    ("and self._spend(now) + 2 > self._size", "and False"),
    ("if not (on or self.hasty) and", "if"),
    ("self._lock.hasty = wanted & _COVER_BAR", "self._lock.hasty = 0"),
    ("self._step(now, _COVER_BAR, self._bar, wanted)", "self._step(now, _COVER_BAR, self._bar, wanted << 1)"),
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
        ("agitator", _AGITATOR),
        ("bolts", _BOLTS),
        ("core", CORE),
        ("inputs", INPUTS),
        ("device", DEVICE),
        ("state", STATE),
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
    except exploration.NoPlace:
        raise  # a mistake that was not made is not caught
    except Exception as error:  # a mistake may also break the firmware outright
        return f"{type(error).__name__}: {error}"
    # A short look at both builds first: most mistakes show at once, in one of them.
    tries = [(build, most) for most in (60000, None) for build in exploration.CONFIGS[:2]]
    for (name, config), most in tries:
        found = exploration.search(name, config, mutant=mutant, modules=modules, hunt=True, most=most)
        if found.violation:
            return str(found.violation)
    return None
