"""I1 to I6, for every combination of what the interlock looks at."""

from itertools import product

import pytest

from shaker import interlock, names

IDLE, COVERED, SHAKING, BETTING, CLOSED, PAYOUT, VOID, FAULT = range(8)
PHASES = range(8)
DRIVE = names.AGITATOR | names.AGITATOR_ENABLE
LEVELS = [
    sum(bit for bit, on in zip((1, 4, names.COVER, names.DOME), pick, strict=True) if on)
    for pick in product((False, True), repeat=4)
]
INVALIDS = (0, names.LATCH_A_INVALID, names.LATCH_B_INVALID)
WANTED = (
    0,
    names.AGITATOR,
    names.AGITATOR_ENABLE,
    DRIVE,
    names.FRONT_BOARD,
    names.ALARM,
    names.COVER_LOCK | names.COVER_BAR | names.DOME_LOCK,
    0x7F,
)
TOLD = [
    sum(bit for bit, on in zip((4, 8, 16), pick, strict=True) if on)
    for pick in product((False, True), repeat=3)
]


def places():
    """(phase, origin, owed): owed also where the round says it cannot be."""
    for phase in PHASES:
        for origin in PHASES if phase == FAULT else (IDLE,):
            for owed in (False, True):
                yield phase, origin, owed


ALL = [
    (wanted, levels, phase, origin, owed, service, told)
    for phase, origin, owed in places()
    for wanted, levels, service, told in product(WANTED, LEVELS, (False, True), TOLD)
]


def each(check):
    """Call check(out, *arguments) for every combination; name the first that fails."""
    for args in ALL:
        out = interlock.guard(*args)
        assert check(out, *args), f"guard{args} = {out:#x}"


def test_i1_the_drive_needs_everything_at_once():
    def check(out, wanted, levels, phase, origin, owed, service, told):
        may = (
            phase == SHAKING
            and levels & names.SECURED == names.SECURED
            and not owed
            and out & names.COVER_LOCK
            and told & names.COVER_LOCK
        )
        return may or not out & DRIVE

    each(check)


def test_i1_the_drive_is_let_through_when_everything_holds():
    told = names.COVER_LOCK | names.DOME_LOCK
    out = interlock.guard(DRIVE, names.SECURED, SHAKING, IDLE, False, False, told)
    assert out & DRIVE == DRIVE


@pytest.mark.parametrize("lost", [1, 4, names.COVER, names.DOME])
def test_i1_each_guard_alone_takes_both_channels_away(lost):
    told = names.COVER_LOCK | names.DOME_LOCK
    assert not interlock.guard(DRIVE, names.SECURED & ~lost, SHAKING, IDLE, False, False, told) & DRIVE


def test_i1_one_channel_is_never_on_without_the_cut_off():
    each(lambda out, *args: not out & names.AGITATOR or out & names.AGITATOR_ENABLE)


def test_i2_the_cover_is_bolted_where_the_dice_must_not_be_seen():
    def check(out, wanted, levels, phase, origin, owed, service, told):
        where = origin if phase == FAULT else phase
        return bool(out & names.COVER_LOCK) == (where in (SHAKING, BETTING) and not owed)

    each(check)


def test_i2_no_pulse_before_the_lock_was_commanded():
    out = interlock.guard(DRIVE, names.SECURED, SHAKING, IDLE, False, False, names.DOME_LOCK)
    assert out & names.COVER_LOCK and not out & DRIVE


def test_i3_the_bar_is_on_exactly_while_payout_is_outstanding():
    each(lambda out, w, lv, ph, og, owed, sv, td: bool(out & names.COVER_BAR) == owed)


def test_i3_a_covered_unpaid_round_raises_the_alarm():
    def check(out, wanted, levels, phase, origin, owed, service, told):
        return not (owed and levels & names.COVER) or out & names.ALARM

    each(check)


def test_the_alarm_is_on_in_every_fault():
    each(lambda out, w, lv, phase, *rest: phase != FAULT or out & names.ALARM)


def test_the_alarm_is_the_rounds_to_ask_for_elsewhere():
    def check(out, wanted, levels, phase, origin, owed, service, told):
        if phase == FAULT or (owed and levels & names.COVER):
            return True
        return bool(out & names.ALARM) == bool(wanted & names.ALARM)

    each(check)


def test_i4_the_dome_is_bolted_everywhere_but_in_service_mode():
    def check(out, wanted, levels, phase, origin, owed, service, told):
        if phase == IDLE:
            return bool(out & names.DOME_LOCK) != service
        if phase == FAULT and origin == IDLE and not levels & names.DOME and not told & names.DOME_LOCK:
            return not out & names.DOME_LOCK  # off since service mode: not locked empty
        return out & names.DOME_LOCK

    each(check)


def test_i5_the_front_board_is_lit_only_while_betting_and_only_where_asked_for():
    def check(out, wanted, levels, phase, *rest):
        return bool(out & names.FRONT_BOARD) == bool(phase == BETTING and wanted & names.FRONT_BOARD)

    each(check)


def test_i6_lock_and_bar_are_never_on_together():
    each(lambda out, *args: out & 0x0C != 0x0C)


def test_the_round_cannot_choose_a_bolt():
    bolts = names.COVER_LOCK | names.COVER_BAR | names.DOME_LOCK
    for args in ALL:
        if args[0] == 0:
            assert interlock.guard(0, *args[1:]) & bolts == interlock.guard(bolts, *args[1:]) & bolts


def test_neither_drive_nor_front_board_acts_unasked():
    each(lambda out, wanted, *rest: not out & ~wanted & (DRIVE | names.FRONT_BOARD))


def test_i8_nothing_beyond_the_seven_outputs_ever_comes_out():
    each(lambda out, *args: 0 <= out < 0x80)


def test_may_shake():
    for levels, invalid, owed, seen in product(LEVELS, INVALIDS, (False, True), (False, True)):
        why = names.WHYS[interlock.may_shake(levels | invalid, owed, seen)]
        if owed:
            assert why == "wrong-phase"
        elif levels & names.SECURED != names.SECURED:
            assert why == "not-covered"
        elif not seen:
            assert why == "latch-not-seen-open"
        else:
            assert why == ""
