"""The interlock: the last word over what the round asks for (SPEC section 4, I1-I8).

Pure functions of the present inputs, the phase, the fault, whether payout is outstanding and whether each
latch has been seen open. Knows no host, no settings, no time, no pins. Everything that acts passes here in
every scan; a mistake above this layer can refuse a game, never open a dome or move the dice.
"""

from micropython import const

# Numbers of names.py and record.py, as literals: they cost nothing here, and test_literals.py compares them.
AGITATOR = const(0x01)
AGITATOR_ENABLE = const(0x02)
ALARM = const(0x40)
BETTING = const(3)
COVER = const(0x0010)
COVER_BAR = const(0x08)
COVER_LOCK = const(0x04)
DOME = const(0x0020)
DOME_LOCK = const(0x10)
DRIVE = const(0x03)
FAULT = const(7)
FRONT_BOARD = const(0x20)
IDLE = const(0)
OK = const(0)
SECURED = const(0x0035)
SHAKING = const(2)
WHY_LATCH_NOT_SEEN_OPEN = const(4)
WHY_NOT_COVERED = const(7)
WHY_WRONG_PHASE = const(1)


def may_shake(levels, owed, seen_open):
    """May a shake begin? Returns names.OK or the reason (names.WHYS) it may not.

    levels: settled inputs; owed: payout outstanding; seen_open: both latches seen open since the last shake.
    """
    if owed:
        return WHY_WRONG_PHASE
    if levels & SECURED != SECURED:
        return WHY_NOT_COVERED
    if not seen_open:
        return WHY_LATCH_NOT_SEEN_OPEN
    return OK


def guard(wanted, levels, phase, origin, owed, service, told):
    """Return the outputs (names mask) that may act, given the outputs the round wants.

    origin: the phase a FAULT came from; owed: payout outstanding; service: service mode;
    told: the outputs of the scan before (a bolt's standing command).
    """
    # The bolts are not the round's to choose: they follow from the phase alone.
    out = wanted & (DRIVE | FRONT_BOARD | ALARM)
    where = origin if phase == FAULT else phase
    if owed:
        out |= COVER_BAR  # I3, and I6: never together with the lock
    elif where == SHAKING or where == BETTING:
        out |= COVER_LOCK  # I2
    # I4: the dome is bolted but in service mode. A dome that is off is not locked empty: the lock follows.
    if phase == IDLE:
        if not service:
            out |= DOME_LOCK
    elif phase != FAULT or origin != IDLE or levels & DOME or told & DOME_LOCK:
        out |= DOME_LOCK
    # I1: everything must hold at once, or both channels are off in this same scan.
    if phase != SHAKING or owed or levels & SECURED != SECURED or not out & COVER_LOCK:
        out &= ~DRIVE
    elif not told & COVER_LOCK:
        out &= ~DRIVE  # the lock has had no time to travel
    if not out & AGITATOR_ENABLE:
        out &= ~AGITATOR
    if phase != BETTING:
        out &= ~FRONT_BOARD  # I5
    if phase == FAULT or (owed and levels & COVER):
        out |= ALARM
    return out
