"""The interlock: the last word over what the round asks for (SPEC section 4, I1-I8).

Pure functions of the present inputs, the phase, the fault, whether payout is outstanding and whether each
latch has been seen open. Knows no host, no settings, no time, no pins. Everything that acts passes here in
every scan; a mistake above this layer can refuse a game, never open a dome or move the dice.
"""

from shaker.names import (
    AGITATOR,
    AGITATOR_ENABLE,
    ALARM,
    BETTING,
    COVER,
    COVER_BAR,
    COVER_LOCK,
    DOME,
    DOME_LOCK,
    DRIVE,
    FAULT,
    FRONT_BOARD,
    IDLE,
    OK,
    SECURED,
    SHAKING,
    WHY_LATCH_NOT_SEEN_OPEN,
    WHY_NOT_COVERED,
    WHY_WRONG_PHASE,
)


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
