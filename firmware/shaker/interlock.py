"""The interlock: the last word over what the round asks for (SPEC section 4, I1-I8).

Pure functions of the present inputs, the phase, the fault, whether payout is outstanding and whether each
latch has been seen open. Knows no host, no settings, no time, no pins. Everything that acts passes here in
every scan; a mistake above this layer can refuse a game, never open a dome or move the dice.
"""

from micropython import const

# Numbers of names.py and record.py, as literals: they cost nothing here, and test_literals.py compares them.
_AGITATOR = const(0x01)
_AGITATOR_ENABLE = const(0x02)
_ALARM = const(0x40)
_BETTING = const(3)
_COVER = const(0x0010)
_COVER_BAR = const(0x08)
_COVER_LOCK = const(0x04)
_DOME = const(0x0020)
_DOME_LOCK = const(0x10)
_DRIVE = const(0x03)
_FAULT = const(7)
_FRONT_BOARD = const(0x20)
_IDLE = const(0)
_OK = const(0)
_SECURED = const(0x0035)
_SHAKING = const(2)
_WHY_LATCH_NOT_SEEN_OPEN = const(4)
_WHY_NOT_COVERED = const(7)
_WHY_WRONG_PHASE = const(1)


def may_shake(levels, owed, seen_open):
    """May a shake begin? Returns names.OK or the reason (names.WHYS) it may not.

    levels: settled inputs; owed: payout outstanding; seen_open: both latches seen open since the last shake.
    """
    if owed:
        return _WHY_WRONG_PHASE
    if levels & _SECURED != _SECURED:
        return _WHY_NOT_COVERED
    if not seen_open:
        return _WHY_LATCH_NOT_SEEN_OPEN
    return _OK


def guard(wanted, levels, phase, origin, owed, service, told):
    """Return the outputs (names mask) that may act, given the outputs the round wants.

    origin: the phase a FAULT came from; owed: payout outstanding; service: service mode;
    told: the outputs of the scan before (a bolt's standing command).
    """
    # The bolts are not the round's to choose: they follow from the phase alone.
    out = wanted & (_DRIVE | _FRONT_BOARD | _ALARM)
    where = origin if phase == _FAULT else phase
    if owed:
        out |= _COVER_BAR  # I3, and I6: never together with the lock
    elif where == _SHAKING or where == _BETTING:
        out |= _COVER_LOCK  # I2
    # I4: the dome is bolted but in service mode. A dome that is off is not locked empty: the lock follows.
    if phase == _IDLE:
        if not service:
            out |= _DOME_LOCK
    elif phase != _FAULT or origin != _IDLE or levels & _DOME or told & _DOME_LOCK:
        out |= _DOME_LOCK
    # I1: everything must hold at once, or both channels are off in this same scan.
    if phase != _SHAKING or owed or levels & _SECURED != _SECURED or not out & _COVER_LOCK:
        out &= ~_DRIVE
    elif not told & _COVER_LOCK:
        out &= ~_DRIVE  # the lock has had no time to travel
    if not out & _AGITATOR_ENABLE:
        out &= ~_AGITATOR
    if phase != _BETTING:
        out &= ~_FRONT_BOARD  # I5
    if phase == _FAULT or (owed and levels & _COVER):
        out |= _ALARM
    return out
