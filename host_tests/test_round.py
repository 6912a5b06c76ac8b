"""The round, row by row of SPEC section 3, and its faults, refusals and recoveries (sections 6 and 7)."""

import pytest

from rig import ORIGINS, Rig
from shaker import names, record
from shaker.round import TRANSITIONS
from shaker.state import State
from shaker.ticks import fold

RESTING = ("IDLE", "COVERED", "BETTING", "CLOSED", "PAYOUT", "VOID")
BETS = record.FLAG_BETS
ALL = ("IDLE", "COVERED", "SHAKING", "BETTING", "CLOSED", "PAYOUT", "VOID")


def repeat(rig, phase):
    """Play a void round, and its repeat as far as `phase`."""
    rig.go("VOID")
    return rig.go(phase)


# -- the phase table ------------------------------------------------------------------------------------


@pytest.mark.parametrize("lever", [False, True])
@pytest.mark.parametrize("clock", [*ORIGINS, (1 << 30) - 4000, (1 << 29) - 4000])
def test_a_whole_round_in_order(clock, lever):
    rig = Rig(clock=clock, lever=lever)
    rig.go("PAYOUT")
    assert rig.device.command("result", (1, 4, 6)) is None
    rig.press("paid", 1000)
    assert rig.phase == "IDLE"
    assert rig.said() == [
        "covered",
        "shake-start",
        "shake-done 3",
        "bets-open",
        "bets-closed",
        "lifted",
        "result",
        "paid",
    ]
    assert [e.phase for e in rig.events] == [
        "COVERED",
        "SHAKING",
        "SHAKING",
        "BETTING",
        "CLOSED",
        "PAYOUT",
        "PAYOUT",
        "IDLE",
    ]
    assert [e.round for e in rig.events] == [0, 1, 1, 1, 1, 1, 1, 1]
    assert [e.flags for e in rig.events] == [0, 0, 0] + [record.FLAG_BETS] * 4 + [0]
    assert [(e.a, e.b, e.x, e.y) for e in rig.events if e.name != "shake-done"] == [(0, 0, 0, 0)] * 7
    assert rig.last("shake-done").b == 0
    assert all(e.t == e.now for e in rig.events if e.name != "result"), "that came between two scans"


def test_the_dice_stay_until_the_next_shake_or_a_void():
    rig = Rig().go("PAYOUT")
    rig.device.command("result", (1, 4, 6))
    rig.press("paid", 1000)
    rig.go("PAYOUT")
    rig.device.command("result", (2, 2, 5))
    rig.press("void")
    none = (0, 0, 0)
    before, after = [none] * 6 + [(1, 4, 6)] * 2, [none] * 5 + [(2, 2, 5), none]
    assert [e.dice for e in rig.events] == before + [(1, 4, 6)] + after


@pytest.mark.parametrize("lever", [False, True])
def test_a_whole_round_drives_the_outputs_of_its_phases(lever):
    rig = Rig(lever=lever)
    on = rig.on
    assert on("dome_lock") and not on("cover_lock") and not on("cover_bar") and not on("front_board")
    rig.go("COVERED")
    assert not on("cover_lock") and on("dome_lock")
    rig.shake()
    assert on("cover_lock") and on("dome_lock") and not on("front_board")
    rig.until("BETTING")
    assert on("cover_lock") and on("front_board") and not on("agitator") and not on("agitator_enable")
    rig.press("bell")
    assert not on("cover_lock") and not on("front_board") and not on("cover_bar") and on("dome_lock")
    rig.uncover()
    assert on("cover_bar") and not on("cover_lock") and on("dome_lock") and not on("alarm")
    rig.press("paid", 1000)
    assert not on("cover_bar") and on("dome_lock")


@pytest.mark.parametrize("missing", ["latch_a", "latch_b", "cover", "dome"])
def test_idle_becomes_covered_only_with_all_four(missing):
    values = {"latch_a": "closed", "latch_b": "closed", "cover": "on", "dome": "closed"}
    rig = Rig()
    rig.set(**{**values, missing: {"cover": "off"}.get(missing, "open")})
    rig.run(500)
    assert rig.phase == "IDLE"
    rig.set(**values)
    rig.run(40)
    assert rig.phase == "COVERED"


@pytest.mark.parametrize("lost", [{"latch_a": "open"}, {"latch_b": "open"}, {"cover": "off"}])
@pytest.mark.parametrize("repeated", [False, True])
def test_covered_opens_back_to_where_it_came_from(lost, repeated):
    rig = Rig()
    repeat(rig, "COVERED") if repeated else rig.go("COVERED")
    rig.said()
    rig.set(**lost)
    rig.run(10)
    assert rig.phase == ("VOID" if repeated else "IDLE")
    assert rig.said() == ["uncovered"]


def test_closing_the_cover_starts_nothing():
    rig = Rig().go("COVERED")
    rig.run(20000)
    assert rig.phase == "COVERED" and rig.said() == ["covered"]


def test_the_shake_is_lock_first_then_three_pulses_then_bets():
    rig = Rig().go("COVERED")
    rig.trace.clear()
    rig.press("start", 30)
    start = rig.last("shake-start").now
    rig.until("BETTING")
    edges = []
    for now, outputs in rig.trace:
        drive = outputs & names.DRIVE
        assert drive in (0, names.DRIVE)
        if bool(drive) != (len(edges) % 2 == 1):
            edges.append(now - start)
    assert edges == [600, 850, 1200, 1450, 1800, 2050]
    assert rig.last("bets-open").now - start == 2750


def test_the_front_board_lights_no_later_than_bets_are_reported_open():
    rig = Rig().go("COVERED")
    rig.shake()
    rig.until("BETTING")
    assert rig.on("front_board") and rig.last("bets-open").now == rig.now


def test_a_first_shake_takes_the_next_number_and_a_repeat_keeps_it():
    rig = Rig()
    repeat(rig, "BETTING")
    assert (rig.state.round, rig.state.repeat) == (1, 1)
    rig.press("bell")
    rig.uncover()
    rig.press("void")
    assert rig.last("void").repeat == 1
    rig.go("PAYOUT")
    assert (rig.state.round, rig.state.repeat) == (1, 2)
    assert rig.last("shake-start").repeat == 2 and rig.last("bets-open").repeat == 2
    rig.press("paid", 1000)
    rig.go("BETTING")
    assert (rig.state.round, rig.state.repeat) == (2, 0)


def test_void_takes_the_dice_away_and_releases_the_bar_at_once():
    rig = Rig().go("PAYOUT")
    rig.device.command("result", (2, 2, 2))
    rig.press("void", 25)
    assert rig.phase == "VOID"
    assert not rig.on("cover_bar") and rig.device.dice is None and rig.device.lamps == 0
    assert rig.last("void").dice == (0, 0, 0)


def test_a_result_is_corrected_until_payout_is_confirmed():
    rig = Rig().go("PAYOUT")
    for dice in ((1, 1, 1), (1, 4, 6)):
        assert rig.device.command("result", dice) is None
        rig.run(10)
        assert rig.device.dice == dice
        lamps = [n for i, n in enumerate(names.LAMPS) if rig.device.lamps >> i & 1]
        assert ("n3" in lamps, "triple" in lamps) == (False, dice == (1, 1, 1))
    assert lamps == ["big", "fish", "coin", "rooster", "red2", "blue1", "n11"]
    rig.press("paid", 1000)
    assert rig.device.lamps == 0
    assert rig.device.command("result", (1, 1, 1)) == "wrong-phase"


def test_a_cover_put_on_before_payout_alarms_until_it_is_off_again():
    rig = Rig().go("PAYOUT")
    rig.said()
    rig.set(cover="on")
    rig.run(40)
    assert rig.phase == "PAYOUT" and rig.on("alarm") and rig.on("cover_bar")
    rig.set(cover="off")
    rig.run(10)
    assert not rig.on("alarm") and rig.on("cover_bar")
    assert rig.said() == ["covered-unpaid", "uncovered-unpaid"]
    assert [e.flags for e in rig.events[-2:]] == [BETS | record.FLAG_COVERED_UNPAID, BETS]


@pytest.mark.parametrize("by", ["key", "host"])
def test_a_void_round_is_given_up_by_the_supervisor_or_the_host(by):
    rig = Rig().go("VOID")
    rig.said()
    if by == "host":
        assert rig.device.command("abandon") is None
        rig.run(20)
        assert rig.phase == "IDLE" and rig.said() == ["abandoned"]
    else:
        rig.set(service="on")
        rig.run(100)
        rig.press("paid", 1000)
        assert rig.phase == "IDLE" and rig.said() == ["abandoned", "service 1"]
        rig.set(service="off")
        rig.run(100)
    rig.go("BETTING")
    assert (rig.state.round, rig.state.repeat) == (2, 0)


def test_paid_in_void_without_the_key_is_refused():
    rig = Rig().go("VOID")
    rig.said()
    rig.press("paid", 1000)
    assert rig.phase == "VOID" and rig.said() == ["refused paid wrong-phase"]


def test_every_change_of_phase_that_was_seen_is_a_row_of_the_table():
    rows = {(names.PHASES[a], names.PHASES[b], names.EVENTS[e]) for a, b, e in TRANSITIONS}
    assert len(rows) == len(TRANSITIONS)
    seen = set()
    for lever in (False, True):
        rig = Rig(lever=lever)
        repeat(rig, "COVERED")
        rig.set(cover="off")
        rig.run(20)
        rig.device.command("abandon")
        rig.run(40)
        rig.set(cover="on")
        rig.run(40)
        rig.set(latch_a="open", latch_b="open")
        rig.run(40)
        rig.go("COVERED")
        if lever:
            rig.press("lever")
            rig.until("COVERED", 11000)
        rig.go("PAYOUT")
        rig.press("paid", 1000)
        before = "IDLE"
        for event in rig.events:
            if event.phase != before:
                seen.add((before, event.phase, event.name))
            before = event.phase
    assert seen == rows


# -- keys in phases ---------------------------------------------------------------------------------------

# What a key says in a phase where it means nothing, electronic build; a dash: it means something.
KEYS = {
    "IDLE": "not-covered wrong-phase wrong-phase wrong-phase wrong-phase",
    "COVERED": "- wrong-phase wrong-phase wrong-phase wrong-phase",
    "SHAKING": "wrong-phase wrong-phase wrong-phase wrong-phase wrong-phase",
    "BETTING": "wrong-phase wrong-phase - wrong-phase wrong-phase",
    "CLOSED": "wrong-phase wrong-phase wrong-phase wrong-phase wrong-phase",
    "PAYOUT": "wrong-phase wrong-phase wrong-phase - -",
    "VOID": "not-covered wrong-phase wrong-phase wrong-phase wrong-phase",
    "FAULT": "fault fault fault fault fault",
}
LEVER_KEYS = {
    "IDLE": "wrong-phase not-covered wrong-phase wrong-phase wrong-phase",
    "COVERED": "wrong-phase - wrong-phase wrong-phase wrong-phase",
    "SHAKING": "wrong-phase - wrong-phase wrong-phase wrong-phase",
    "BETTING": "wrong-phase - - wrong-phase wrong-phase",
    "CLOSED": "wrong-phase - wrong-phase wrong-phase wrong-phase",
    "PAYOUT": "wrong-phase wrong-phase wrong-phase - -",
    "VOID": "wrong-phase not-covered wrong-phase wrong-phase wrong-phase",
    "FAULT": "fault fault fault fault fault",
}
MEANINGLESS = [
    (lever, phase, key, why)
    for lever, table in ((False, KEYS), (True, LEVER_KEYS))
    for phase, whys in table.items()
    for key, why in zip(("start", "lever", "bell", "void", "paid"), whys.split(), strict=True)
    if why != "-"
]


@pytest.mark.parametrize(("lever", "phase", "key", "why"), MEANINGLESS)
def test_a_key_that_means_nothing_does_nothing_and_says_so(lever, phase, key, why):
    rig = Rig(lever=lever)
    if phase == "FAULT":
        rig.go("BETTING")
        rig.set(latch_a="open")
        rig.run(50)
    else:
        rig.go(phase)
    rig.said()
    state = (rig.phase, rig.state.round, rig.state.repeat, rig.state.flags)
    rig.press(key)
    assert rig.said() == [f"refused {key} {why}"]
    assert state == (rig.phase, rig.state.round, rig.state.repeat, rig.state.flags)


@pytest.mark.parametrize("phase", ["IDLE", "COVERED", "CLOSED", "VOID"])
def test_a_refused_key_is_never_queued_for_later(phase):
    rig = Rig().go(phase)
    for key in ("bell", "void", "paid"):
        rig.press(key)
    rig.said()
    rig.go("BETTING") if phase != "CLOSED" else rig.uncover()
    rig.run(3000)
    assert rig.phase == ("PAYOUT" if phase == "CLOSED" else "BETTING")
    assert not [word for word in rig.said() if word.startswith(("void", "paid", "bets-closed"))]


def test_bell_and_start_together_are_a_bell_and_a_refusal():
    rig = Rig().go("BETTING")
    rig.said()
    rig.set(bell="pressed", start="pressed")
    rig.run(100)
    assert rig.phase == "CLOSED"
    assert sorted(rig.said()) == ["bets-closed", "refused start wrong-phase"]


# -- refusals of the shake -----------------------------------------------------------------------------


def test_the_dome_must_be_on():
    rig = Rig()
    rig.set(dome="open")
    rig.run(50)
    rig.cover_up()
    rig.said()
    rig.press("start")
    assert rig.phase == "IDLE" and rig.said() == ["refused start dome-open"]


@pytest.mark.parametrize("welded", ["latch_a", "latch_b"])
def test_each_latch_must_have_been_seen_open_since_the_last_shake(welded):
    rig = Rig().go("PAYOUT")
    rig.press("paid", 1000)
    rig.go("COVERED")
    rig.run(50)
    assert rig.phase == "COVERED"
    rig.press("start", 30)
    rig.until("BETTING")
    rig.press("bell")
    other = "latch_b" if welded == "latch_a" else "latch_a"
    rig.set(**{other: "open"})
    rig.run(50)
    rig.set(cover="off")
    rig.run(50)
    rig.press("paid", 1000)
    rig.set(**{other: "closed"}, cover="on")
    rig.run(50)
    assert rig.phase == "COVERED"
    rig.said()
    rig.press("start")
    assert rig.phase == "COVERED" and rig.said() == ["refused start latch-not-seen-open"]
    rig.set(**{welded: "open"})
    rig.run(50)
    rig.set(**{welded: "closed"})
    rig.run(50)
    rig.press("start")
    assert rig.phase == "SHAKING"


def test_latches_that_were_never_seen_open_since_power_on_do_not_shake():
    rig = Rig(rest=0)
    rig.set(latch_a="closed", latch_b="closed", cover="on")
    rig.run(1000)
    assert rig.phase == "COVERED"
    rig.said()
    rig.press("start")
    assert rig.said() == ["refused start latch-not-seen-open"]


def test_a_wrong_pair_is_not_seen_open():
    rig = Rig(rest=0)
    rig.set(latch_a="invalid", latch_b="open")
    rig.run(150)
    rig.cover_up()
    rig.until("COVERED")
    rig.said()
    rig.press("start")
    assert rig.said() == ["refused start latch-not-seen-open"]


@pytest.mark.parametrize("motion", [True, False])
def test_no_shake_while_the_bars_release_waits_for_its_budget(motion):
    """Void after void with slow bolts: a shake that could not be locked would be no shake (I2, I5, I6)."""
    rig = Rig(bolt_ms=2000, motion=motion)
    for _ in range(3):
        rig.go("CLOSED")
        rig.set(latch_a="open", latch_b="open", cover="off")
        rig.run(50)
        rig.press("void")
    assert rig.phase == "VOID" and rig.on("cover_bar")
    rig.cover_up()
    rig.said()
    rig.press("start")
    assert rig.phase == "COVERED" and rig.said() == ["refused start not-covered"]
    while rig.on("cover_bar"):
        rig.scan()
    rig.trace.clear()
    rig.shake()
    assert rig.on("cover_lock")
    rig.until("BETTING")
    assert sum(outputs & names.DRIVE == names.DRIVE for _, outputs in rig.trace) == 3


def test_no_shake_while_the_locks_budget_is_spent():
    rig = Rig().go("COVERED")
    rig.core.bolts.lock_ready = lambda now: False
    rig.press("start")
    assert rig.phase == "COVERED" and rig.said()[-1] == "refused start not-covered"


def test_start_is_refused_while_the_service_key_is_on():
    rig = Rig().go("COVERED")
    rig.set(service="on")
    rig.run(100)
    rig.said()
    rig.press("start")
    assert rig.phase == "COVERED" and rig.said() == ["refused start service"]
    rig.set(service="off")
    rig.run(100)
    rig.press("start")
    assert rig.phase == "SHAKING"


def test_no_new_round_without_room_in_the_journal_but_a_repeat_goes_on():
    rig = Rig()
    rig.has_room = False
    rig.go("COVERED")
    rig.said()
    rig.press("start")
    assert rig.phase == "COVERED" and rig.said() == ["refused start journal-full"]
    rig.has_room = True
    rig.press("start", 30)
    rig.until("BETTING")
    rig.press("bell")
    rig.uncover()
    rig.press("void")
    rig.has_room = False
    rig.go("BETTING")
    assert rig.state.repeat == 1


# -- service mode ---------------------------------------------------------------------------------------


def test_service_mode_lasts_until_key_off_and_dome_closed():
    rig = Rig()
    rig.set(service="on")
    rig.run(30)
    assert rig.said() == ["service 1"] and not rig.on("dome_lock")
    rig.set(dome="open")
    rig.run(100)
    rig.set(service="off")
    rig.run(1000)
    assert not rig.on("dome_lock") and rig.phase == "IDLE" and rig.said() == []
    rig.cover_up()
    rig.run(500)
    assert rig.phase == "IDLE"
    rig.press("start")
    assert rig.said() == ["refused start service"]
    rig.uncover()
    rig.set(dome="closed")
    rig.run(50)
    assert rig.on("dome_lock") and rig.said() == ["service 0"]


def test_a_covered_cup_stays_idle_in_service_mode():
    rig = Rig()
    rig.set(service="on")
    rig.run(50)
    rig.cover_up()
    rig.run(500)
    assert rig.phase == "IDLE" and rig.said() == ["service 1"]
    rig.press("start")
    assert rig.said() == ["refused start service"]


@pytest.mark.parametrize("phase", ["COVERED", "BETTING", "CLOSED", "PAYOUT", "VOID"])
def test_the_service_key_releases_no_dome_outside_idle(phase):
    rig = Rig().go(phase)
    rig.set(service="on")
    rig.run(1000)
    assert rig.on("dome_lock") and not rig.state.service()


def test_service_mode_follows_a_round_that_ends_with_the_key_on():
    rig = Rig().go("PAYOUT")
    rig.set(service="on")
    rig.run(100)
    rig.press("paid", 1000)
    assert rig.phase == "IDLE" and rig.state.service() and not rig.on("dome_lock")


# -- the lever build ------------------------------------------------------------------------------------


def test_three_strokes_shake_and_nothing_is_driven():
    rig = Rig(lever=True).go("COVERED")
    rig.trace.clear()
    times = []
    for _ in range(3):
        times.append(rig.now + 25)
        rig.press("lever")
    rig.until("BETTING")
    assert rig.last("bets-open").now == max(times[2] + 700, times[0] + 600)
    assert rig.last("shake-done").a == 3
    assert not any(outputs & names.DRIVE for _, outputs in rig.trace)


def test_bets_do_not_open_before_the_lock_has_travelled():
    rig = Rig(lever=True, bolt_ms=2000, settle_ms=300).go("COVERED")
    first = rig.now + 25
    for _ in range(3):
        rig.press("lever", 30)
    rig.until("BETTING")
    assert rig.now == first + 2000


def test_a_further_stroke_starts_the_settling_again():
    rig = Rig(lever=True, settle_ms=1000).go("COVERED")
    for _ in range(3):
        rig.press("lever")
    rig.run(600)
    fourth = rig.now + 25
    rig.press("lever")
    rig.until("BETTING")
    assert rig.now == fourth + 1000 and rig.last("shake-done").a == 4


def test_a_lever_pumped_hundreds_of_times_is_still_a_shake():
    rig = Rig(lever=True).go("COVERED")
    for _ in range(300):
        rig.press("lever", 30)
    rig.until("BETTING")
    assert rig.last("shake-done").a == 255


@pytest.mark.parametrize("strokes", [1, 2])
@pytest.mark.parametrize("window", [1000, 10000])
def test_fewer_strokes_than_three_end_the_shake_and_use_its_number_up(strokes, window):
    rig = Rig(lever=True, lever_window_ms=window).go("COVERED")
    rig.always_decide = True
    first = rig.now + 25
    for _ in range(strokes):
        rig.press("lever")
    rig.until("COVERED", 20000)
    assert rig.now == first + window + 5, "in the window is all that is not later"
    assert rig.said()[-1] == "refused lever too-few"
    assert not rig.on("cover_lock")
    for _ in range(3):
        rig.press("lever")
    rig.until("BETTING")
    assert rig.state.round == 2 and rig.state.repeat == 0


def test_one_long_stroke_is_one():
    rig = Rig(lever=True).go("COVERED")
    rig.press("lever", 5000)
    rig.until("COVERED", 20000)
    assert "refused lever too-few" in rig.said()


@pytest.mark.parametrize("phase", ["BETTING", "CLOSED"])
def test_a_late_stroke_moves_unseen_dice(phase):
    rig = Rig(lever=True).go(phase)
    rig.said()
    rig.press("lever")
    assert rig.said() == ["fault shaken-late"]
    assert rig.on("cover_lock") == (phase == "BETTING")
    rig.turn_service()
    assert rig.last("clear").phase == "VOID"


def test_a_latch_that_opens_between_strokes_ends_the_shake():
    rig = Rig(lever=True).go("COVERED")
    rig.press("lever")
    rig.press("lever")
    rig.set(latch_b="open")
    rig.run(15)
    assert rig.fault == "opened-in-shake" and rig.last("fault").x == 2


# -- paid is held ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("ms", "phase"), [(100, "PAYOUT"), (795, "PAYOUT"), (830, "IDLE")])
def test_paid_counts_when_held_for_800_ms(ms, phase):
    rig = Rig().go("PAYOUT")
    rig.press("paid", ms)
    assert rig.phase == phase


def test_paid_confirms_at_800_ms_without_waiting_for_the_release():
    rig = Rig().go("PAYOUT")
    rig.set(paid="pressed")
    settled = rig.now + 25
    rig.until("IDLE")
    assert rig.now == settled + 800


@pytest.mark.parametrize("scans", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("apart", [0, 1, 5, 100])
def test_a_latch_was_open_when_it_read_open_for_two_scans(scans, apart):
    rig = Rig().go("CLOSED")
    for latch in ("latch_a", "latch_b"):
        rig.set(**{latch: "open"})
        rig.run(5 * scans)
        rig.set(**{latch: "closed"})
        rig.run(5 * apart)
    rig.run(100)
    rig.set(cover="off")
    rig.run(800)
    rig.press("void")
    rig.set(cover="on")
    rig.run(800)
    assert rig.phase == "COVERED"
    rig.said()
    rig.press("start")
    assert rig.said() == (["refused start latch-not-seen-open"] if scans < 2 else ["shake-start"])


def test_latches_that_were_open_one_after_the_other_while_contacts_settled_have_been_seen_open():
    rig = Rig(rest=0)
    for before, after in (("open", "closed"), ("closed", "open")):
        rig.set(latch_a=before, latch_b=after)
        rig.run(20)
    assert not rig.core.round.judged
    rig.set(latch_a="closed", latch_b="closed", cover="on")
    rig.run(1000)
    assert rig.phase == "COVERED"
    rig.said()
    rig.press("start")
    assert rig.said() == ["shake-start"]


def test_a_hold_that_was_let_go_leaves_nothing():
    rig = Rig().go("PAYOUT")
    rig.said()
    rig.press("paid", 300)
    assert left(rig) >= NEVER
    rig.set(cover="on")
    rig.run(100)
    rig.press("paid", 300)
    assert rig.said() == ["covered-unpaid", "refused paid cover-on"]


def test_abandoning_takes_800_ms_too():
    rig = Rig().go("VOID")
    rig.set(service="on")
    rig.run(100)
    rig.set(paid="pressed")
    settled = rig.now + 25
    rig.until("IDLE")
    assert rig.now == settled + 800


@pytest.mark.parametrize("begun_in", ["CLOSED", "PAYOUT with the cover on"])
def test_a_hold_that_began_elsewhere_does_not_count(begun_in):
    rig = Rig().go("CLOSED" if begun_in == "CLOSED" else "PAYOUT")
    if begun_in != "CLOSED":
        rig.set(cover="on")
        rig.run(50)
    rig.set(paid="pressed")
    rig.run(300)
    rig.set(latch_a="open", latch_b="open", cover="off")
    rig.run(3000)
    assert rig.phase == "PAYOUT"
    rig.set(paid="released")
    rig.run(50)
    rig.press("paid", 1000)
    assert rig.phase == "IDLE"


def test_a_hold_is_broken_by_the_cover():
    rig = Rig().go("PAYOUT")
    rig.said()
    rig.set(paid="pressed")
    rig.run(400)
    rig.set(cover="on")
    rig.run(50)
    rig.set(cover="off")
    rig.run(2000)
    assert rig.phase == "PAYOUT"
    assert "refused paid cover-on" in rig.said()


def test_two_short_presses_are_no_hold():
    rig = Rig().go("PAYOUT")
    for _ in range(4):
        rig.press("paid", 500)
    assert rig.phase == "PAYOUT"


def test_a_hold_across_the_wrap_of_the_clock():
    rig = Rig(clock=(1 << 30) - 8000)
    rig.go("PAYOUT")
    while (rig.clock + rig.now) % (1 << 30) < (1 << 30) - 400:
        rig.scan()
    rig.press("paid", 830)
    assert rig.phase == "IDLE"


@pytest.mark.parametrize("what", ["void", "paid"])
def test_with_the_cover_on_void_and_paid_are_refused(what):
    rig = Rig().go("PAYOUT")
    rig.set(cover="on")
    rig.run(50)
    rig.said()
    rig.press(what, 1000)
    assert rig.said() == [f"refused {what} cover-on"]
    assert rig.device.command(what) == "cover-on"
    assert rig.phase == "PAYOUT"


@pytest.mark.parametrize("late", [700, 1500, 2000])
def test_a_scan_that_comes_late_does_not_hold_paid_for_the_croupier(late):
    """Flash may stop the chip for long; a key let go meanwhile was not held for 800 ms."""
    rig = Rig().go("PAYOUT")
    rig.set(paid="pressed")
    rig.run(200)
    rig.set(paid="released")
    rig.scan(late)
    rig.run(100)
    assert rig.phase == "PAYOUT"


@pytest.mark.parametrize("late", [700, 1500])
def test_a_scan_that_comes_late_does_not_abandon(late):
    rig = Rig().go("VOID")
    rig.set(service="on")
    rig.run(100)
    rig.set(paid="pressed")
    rig.run(200)
    rig.set(paid="released")
    rig.scan(late)
    rig.run(100)
    assert rig.phase == "VOID"


def test_a_hold_that_lasts_over_a_late_scan_counts():
    rig = Rig().go("PAYOUT")
    rig.set(paid="pressed")
    rig.run(200)
    rig.scan(900)
    assert rig.phase == "IDLE"


@pytest.mark.parametrize(
    ("phase", "inputs", "scans", "ms", "said"),
    [
        ("PAYOUT", {"paid": "pressed"}, 5, 800, "paid"),
        ("IDLE", {"latch_a": "invalid"}, 2, 200, "fault latch-a-wiring"),
        ("IDLE", {"latch_b": "invalid"}, 2, 200, "fault latch-b-wiring"),
        ("IDLE", {"bell": "pressed"}, 5, 10000, "key-stuck bell"),
    ],
)
@pytest.mark.parametrize("clock", ORIGINS)
def test_what_has_to_last_lasts_to_the_millisecond(phase, inputs, scans, ms, said, clock):
    rig = Rig(clock=clock).go(phase)
    rig.set(**inputs)
    rig.run(5 * scans)  # now it has settled, and is timed
    rig.said()
    rig.run(ms - 5)
    rig.scan(-1)
    assert rig.said() == []
    rig.scan(-4)
    assert rig.said() == [said]


def test_paid_held_over_a_void_does_not_pay_the_next_payout():
    rig = Rig().go("PAYOUT")
    rig.set(paid="pressed")
    rig.run(200)
    assert rig.device.command("void") is None
    rig.go("PAYOUT")
    rig.run(2000)
    assert rig.phase == "PAYOUT" and "paid" not in rig.said()


@pytest.mark.parametrize(("first", "second"), [("latch_a", "latch_b"), ("latch_b", "latch_a")])
def test_each_latch_is_timed_by_itself(first, second):
    rig = Rig()
    rig.set(**{first: "invalid"})
    rig.run(10)  # now it has settled, and is timed
    rig.run(100)
    rig.set(**{second: "invalid"})
    rig.run(95)
    assert rig.said() == []
    rig.run(5)
    assert rig.said() == ["fault %s-wiring" % first.replace("_", "-")]
    rig.run(100)
    assert rig.said() == []
    rig.run(10)
    assert rig.said() == ["fault %s-wiring" % second.replace("_", "-")]


@pytest.mark.parametrize("latch", ["latch_a", "latch_b"])
def test_a_pair_that_agreed_again_is_timed_anew(latch):
    rig = Rig()
    for _ in range(3):
        rig.set(**{latch: "invalid"})
        rig.run(150)
        rig.set(**{latch: "open"})
        rig.run(150)
    assert rig.said() == []


def test_a_dome_that_was_taken_off_in_service_mode_is_no_cause():
    rig = Rig()
    rig.set(service="on")
    rig.run(100)
    rig.set(dome="open")
    rig.run(700)
    rig.set(latch_a="invalid")
    rig.run(300)
    assert rig.fault == "latch-a-wiring"
    rig.set(latch_a="open")
    rig.run(100)
    for code in range(1, len(names.FAULTS)):
        if code != names.F_DOME_OPENED:
            rig.core.round.fault(code)
    assert rig.device.command("clear") is None and rig.phase == "IDLE"


def test_what_is_not_said_of_an_event_is_0():
    rig = Rig().go("BETTING")
    rig.core.round.emit(names.EV_TIME)
    rig.drain()
    event = rig.events[-1]
    assert (event.name, event.a, event.b, event.x, event.y) == ("time", 0, 0, 0, 0)
    rig.set(dome="open")
    rig.run(100)
    event = next(e for e in rig.events if e.name == "fault")
    assert (event.b, event.x, event.y) == (0, 0, 0), "no shake, no pulses"


def test_only_the_fault_that_stops_a_shake_tells_of_pulses():
    rig = Rig().go("SHAKING")
    rig.run(1000)
    rig.set(cover="off")
    rig.run(100)
    rig.press("bell")
    rig.set(dome="open")
    rig.run(100)
    rig.set(dome="closed", latch_a="open", latch_b="open")
    rig.run(100)
    assert rig.device.command("clear") is None
    rig.drain()
    found = [(e.said(), e.x, e.y) for e in rig.events[-5:]]
    assert found == [
        ("fault opened-in-shake", 1, 0),
        ("refused bell fault", 0, 0),
        ("fault dome-opened", 0, 0),
        ("clear dome-opened", 0, 0),
        ("clear opened-in-shake", 0, 0),
    ]


def test_a_fault_that_is_latched_is_not_said_to_be_new():
    rig = Rig()
    assert rig.core.round.fault(names.F_INTERNAL_ERROR)
    assert not rig.core.round.fault(names.F_INTERNAL_ERROR)
    rig.drain()
    assert rig.said() == ["fault internal-error"]


@pytest.mark.parametrize("first", range(1, len(names.FAULTS)))
def test_the_others_are_cleared_one_by_one_and_the_first_one_last(first):
    rig = Rig()
    others = [code for code in range(1, len(names.FAULTS)) if code != first]
    for code in (first, *others):
        rig.core.round.fault(code)
    rig.drain()
    rig.said()
    took = len(rig.events)
    assert rig.device.command("clear") is None
    rig.drain()
    assert rig.said() == ["clear " + names.FAULTS[code] for code in (*others, first)]
    assert [e.faults for e in rig.events[took:]] == [
        sum(1 << (code - 1) for code in (first, *others[i + 1 :])) for i in range(len(others))
    ] + [0]


def test_a_service_key_turned_on_for_an_earlier_fault_clears_no_later_one():
    rig = Rig()
    rig.core.round.fault(names.F_INTERNAL_ERROR)
    rig.set(service="on")
    rig.run(100)
    assert rig.device.command("clear") is None
    rig.core.round.fault(names.F_INTERNAL_ERROR)
    rig.set(service="off")
    rig.run(100)
    assert rig.phase == "FAULT"
    rig.turn_service()
    assert rig.phase == "IDLE"


def test_a_service_key_that_was_on_before_the_fault_clears_nothing_whatever_is_pressed():
    rig = Rig().go("PAYOUT")
    rig.set(service="on")
    rig.run(100)
    runaway(rig)
    rig.press("bell")
    rig.set(service="off")
    rig.run(100)
    assert rig.fault == "agitator-runaway"


def test_a_hold_in_void_is_broken_by_the_service_key():
    rig = Rig().go("VOID")
    rig.set(service="on")
    rig.run(100)
    rig.set(paid="pressed")
    rig.run(500)
    rig.turn_service()
    rig.set(service="on")
    rig.run(1000)
    assert rig.phase == "VOID"


def test_a_paid_key_that_was_down_before_the_service_key_abandons_nothing():
    rig = Rig().go("VOID")
    rig.set(paid="pressed")
    rig.run(1000)
    rig.set(service="on")
    rig.run(1000)
    rig.press("bell")
    rig.run(1000)
    assert rig.phase == "VOID"
    rig.set(paid="released")
    rig.run(100)
    rig.press("paid", 1000)
    assert rig.phase == "IDLE"


# -- looking ahead ---------------------------------------------------------------------------------------

NEVER = 1 << 27  # ms, or more


def left(rig):
    """Return the ms until something times out."""
    return rig.core.round.left(fold(rig.clock + rig.now), rig.core.inputs.levels)


@pytest.mark.parametrize("phase", RESTING)
def test_nothing_times_out_at_rest(phase):
    rig = Rig().go(phase)
    rig.run(1000)
    assert left(rig) >= NEVER


@pytest.mark.parametrize("latch", ["latch_a", "latch_b"])
def test_a_pair_is_looked_at_again_when_its_200_ms_are_over(latch):
    rig = Rig()
    rig.set(**{latch: "invalid"})
    rig.run(10)
    began = rig.now
    for _ in range(39):
        rig.scan()
        assert left(rig) == began + 200 - rig.now
    rig.scan()
    assert rig.phase == "FAULT" and left(rig) >= NEVER


def test_of_two_pairs_the_one_that_is_over_first_counts():
    for first, second in (("latch_a", "latch_b"), ("latch_b", "latch_a")):
        rig = Rig()
        rig.set(**{first: "invalid"})
        rig.run(10)
        began = rig.now
        rig.run(50)
        rig.set(**{second: "invalid"})
        rig.run(50)
        assert left(rig) == began + 200 - rig.now
        rig.run(100)
        assert rig.phase == "FAULT" and left(rig) == began + 260 - rig.now
        rig.run(60)
        assert left(rig) >= NEVER


@pytest.mark.parametrize("key", ["start", "lever", "bell", "void", "paid"])
def test_a_key_is_looked_at_again_when_it_has_been_down_for_10_s(key):
    rig = Rig()
    rig.set(**{key: "pressed"})
    down = rig.now + 25
    rig.run(1000)
    assert left(rig) == down + 10000 - rig.now
    other = "bell" if key != "bell" else "void"
    rig.set(**{other: "pressed"})
    rig.run(1000)
    assert left(rig) == down + 10000 - rig.now
    rig.run(8100)
    assert left(rig) == down + 11000 - rig.now
    rig.run(1000)
    assert rig.said()[2:] == ["key-stuck " + key, "key-stuck " + other] and left(rig) >= NEVER


@pytest.mark.parametrize("phase", ["PAYOUT", "VOID"])
def test_a_hold_is_looked_at_again_after_800_ms(phase):
    rig = Rig().go(phase)
    if phase == "VOID":
        rig.set(service="on")
        rig.run(100)
    rig.set(paid="pressed")
    down = rig.now + 25
    rig.run(200)
    assert left(rig) == down + 800 - rig.now
    rig.run(700)
    assert rig.phase == "IDLE" and left(rig) > 800


def test_a_base_that_moves_is_looked_at_again_after_300_ms():
    rig = Rig()
    rig.set(motion="moving")
    began = rig.now + 10
    rig.run(100)
    assert left(rig) == began + 300 - rig.now
    rig.run(1000)
    assert rig.phase == "FAULT" and left(rig) >= NEVER


@pytest.mark.parametrize(("bolt_ms", "settle_ms"), [(600, 700), (2000, 300)])
def test_a_lever_is_looked_at_again_when_window_travel_or_settling_is_over(bolt_ms, settle_ms):
    rig = Rig(lever=True, bolt_ms=bolt_ms, settle_ms=settle_ms).go("COVERED")
    down = rig.now + 25
    rig.press("lever")
    assert rig.phase == "SHAKING" and left(rig) == down + 10001 - rig.now
    rig.press("lever")
    rig.set(lever="pressed")
    stroke = rig.now + 25
    rig.run(100)
    assert rig.phase == "SHAKING" and left(rig) == max(down + bolt_ms, stroke + settle_ms) - rig.now


# -- stuck keys --------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["start", "lever", "bell", "void", "paid"])
def test_a_key_down_at_power_on_is_ignored_until_released(key):
    rig = Rig(rest=0)
    rig.set(**{key: "pressed"})
    rig.run(2000)
    assert rig.said() == ["key-stuck " + key]
    rig.run(20000)
    assert rig.said() == []
    rig.set(**{key: "released"})
    rig.run(100)
    rig.press(key)
    assert rig.said() == [f"refused {key} " + ("not-covered" if key == "start" else "wrong-phase")]


@pytest.mark.parametrize("key", ["start", "lever", "bell", "void", "paid"])
def test_a_key_down_for_more_than_10_s_is_stuck_and_reported_once(key):
    rig = Rig()
    rig.set(**{key: "pressed"})
    down = rig.now + 25
    rig.run(9900)
    assert rig.said() == [f"refused {key} " + ("not-covered" if key == "start" else "wrong-phase")]
    rig.run(30000)
    assert rig.said() == ["key-stuck " + key]
    assert down + 10000 <= rig.last("key-stuck").now <= down + 10010
    rig.set(**{key: "released"})
    rig.run(100)
    rig.press(key)
    assert len(rig.said()) == 1


@pytest.mark.parametrize("by", ["key", "host"])
def test_a_key_down_when_a_fault_clears_is_ignored(by):
    rig = Rig().go("PAYOUT")
    rig.set(latch_a="invalid")
    rig.run(300)
    rig.set(latch_a="open", paid="pressed")
    rig.run(100)
    rig.said()
    if by == "key":
        rig.turn_service()
    else:
        assert rig.device.command("clear") is None
    rig.run(3000)
    assert rig.phase == "PAYOUT"
    assert rig.said() == ["clear latch-a-wiring", "key-stuck paid"]
    rig.set(paid="released")
    rig.run(100)
    rig.press("paid", 1000)
    assert rig.phase == "IDLE"


def test_a_stuck_key_is_not_reported_again_when_a_fault_clears():
    rig = Rig()
    rig.set(bell="pressed")
    rig.run(11000)
    rig.core.round.fault(names.F_INTERNAL_ERROR)
    rig.set(paid="pressed")
    rig.run(100)
    rig.said()
    assert rig.device.command("clear") is None
    rig.drain()
    assert rig.said() == ["clear internal-error", "key-stuck paid"]


def test_the_service_key_is_never_stuck():
    rig = Rig(rest=0)
    rig.set(service="on")
    rig.run(20000)
    assert rig.said() == ["service 1"]


# -- faults ----------------------------------------------------------------------------------------------


def open_latch(rig):
    rig.set(latch_b="open")
    rig.run(20)
    rig.set(latch_b="closed")


def lift(rig):
    rig.set(cover="off")
    rig.run(20)
    rig.set(cover="on")


def open_dome(rig):
    rig.set(dome="open")
    rig.run(20)
    rig.set(dome="closed")
    rig.run(50)


def wiring(latch):
    def strike(rig):
        before = "closed" if rig.word & 1 else "open"
        rig.set(**{latch: "invalid"})
        rig.run(230)
        rig.set(**{latch: before})
        rig.run(50)

    return strike


def runaway(rig):
    rig.set(motion="moving")
    rig.run(330)
    rig.set(motion="still")
    rig.run(100)
    rig.pinned = None


STRIKES = {
    "opened-in-shake": [(("SHAKING",), open_latch), (("SHAKING",), lift)],
    "opened-in-betting": [(("BETTING",), open_latch), (("BETTING",), lift)],
    "dome-opened": [(("COVERED", "SHAKING", "BETTING", "CLOSED", "PAYOUT", "VOID"), open_dome)],
    "latch-a-wiring": [(("IDLE", "COVERED", "CLOSED", "PAYOUT", "VOID"), wiring("latch_a"))],
    "latch-b-wiring": [(("IDLE", "COVERED", "CLOSED", "PAYOUT", "VOID"), wiring("latch_b"))],
    "agitator-runaway": [(("IDLE", "COVERED", "BETTING", "CLOSED", "PAYOUT", "VOID"), runaway)],
}
DISTURBING = ("dome-opened", "agitator-runaway", "shaken-late")


def resumed(code, phase, bets, disturbed=False):
    if phase == "PAYOUT":
        return "PAYOUT"
    if phase == "CLOSED" and code not in DISTURBING and not disturbed:
        return "CLOSED"
    return "VOID" if bets else "IDLE"


CASES = [
    (code, phase, strike, repeated)
    for code, rows in STRIKES.items()
    for phases, strike in rows
    for phase in phases
    for repeated in (False, True)
    if not (repeated and phase in ("IDLE", "VOID"))
]


@pytest.mark.parametrize(
    ("code", "phase", "strike", "repeated"),
    CASES,
    ids=lambda x: x.__name__ if callable(x) else str(x),
)
def test_a_fault_latches_is_safe_and_resumes_where_it_must(code, phase, strike, repeated):
    rig = Rig()
    repeat(rig, phase) if repeated else rig.go(phase)
    rig.said()
    locks = rig.core.outputs & names.BOLTS
    number = (rig.state.round, rig.state.repeat)
    strike(rig)
    # A latch whose pair is invalid is not closed: COVERED is left before the fault comes.
    origin = phase
    if phase == "COVERED" and code.endswith("wiring"):
        origin = "VOID" if repeated else "IDLE"
        assert rig.said() == ["uncovered", "fault " + code]
    else:
        assert rig.said() == ["fault " + code]
    assert rig.phase == "FAULT" and rig.fault == code and rig.last("fault").origin == origin
    assert rig.on("alarm") and not rig.on("agitator") and not rig.on("agitator_enable")
    assert not rig.on("front_board")
    assert rig.core.outputs & names.BOLTS == locks
    rig.run(3000)
    assert rig.phase == "FAULT" and rig.said() == []
    rig.turn_service()
    bets = repeated or phase in ("BETTING", "CLOSED", "PAYOUT", "VOID")
    after = resumed(code, phase, bets)
    said = rig.said()
    assert said[0] == "clear " + code
    assert (rig.last("clear").phase, rig.last("clear").origin) == (after, "IDLE")
    if after in ("CLOSED", "PAYOUT"):
        assert rig.phase == after and said == ["clear " + code]
    assert rig.fault == "none" and rig.state.faults == 0 and not rig.on("alarm")
    assert (rig.state.round, rig.state.repeat) == number


@pytest.mark.parametrize("by", ["key", "host"])
@pytest.mark.parametrize("origin", ALL)
@pytest.mark.parametrize("code", names.FAULTS[1:])
def test_a_fault_of_any_code_resumes_where_it_must(code, origin, by):
    """Also those that no hand on the table makes; with every flag, whether play leads there or not."""
    rig = Rig()
    rig.set(cover="on")
    rig.run(100)
    for bets in (False, True):
        for disturbed in (False, True):
            rig.state.phase = names.PHASES.index(origin)
            rig.state.flags = BETS * bets | record.FLAG_DISTURBED * disturbed
            rig.core.round.fault(names.FAULTS.index(code))
            rig.core.wake()
            if by == "key":
                rig.turn_service()
            else:
                assert rig.device.command("clear") is None
            rig.drain()
            cleared = rig.last("clear")
            assert (cleared.phase, cleared.origin) == (resumed(code, origin, bets, disturbed), "IDLE")


def test_the_number_of_an_aborted_first_shake_is_not_used_again():
    rig = Rig().go("SHAKING")
    open_latch(rig)
    rig.turn_service()
    rig.uncover()
    rig.go("BETTING")
    assert rig.state.round == 2 and rig.state.repeat == 0


@pytest.mark.parametrize("when", range(0, 2760, 115))
@pytest.mark.parametrize("lost", ["latch_a", "latch_b", "cover", "dome"])
def test_what_opens_in_the_shake_cuts_both_channels_in_two_scans_for_good(when, lost):
    rig = Rig().go("COVERED")
    rig.press("start", 25)
    rig.run(when)
    assert rig.phase == "SHAKING"
    rig.set(**{lost: "off" if lost == "cover" else "open"})
    rig.run(10)
    assert not rig.on("agitator") and not rig.on("agitator_enable")
    assert rig.fault == ("dome-opened" if lost == "dome" else "opened-in-shake")
    assert not rig.device.pulsing, "flash and line would wait for ever"
    rig.set(**{lost: "on" if lost == "cover" else "closed"})
    rig.trace.clear()
    rig.run(5000)
    assert not any(outputs & names.DRIVE for _, outputs in rig.trace)
    assert rig.phase == "FAULT" and rig.on("cover_lock")


def test_a_pair_may_disagree_for_200_ms():
    rig = Rig()
    for _ in range(5):
        rig.set(latch_a="invalid")
        rig.run(200)
        rig.set(latch_a="open")
        rig.run(20)
    assert rig.fault == "none"
    rig.set(latch_a="invalid")
    rig.run(215)
    assert rig.fault == "latch-a-wiring"


@pytest.mark.parametrize("latch", ["latch_a", "latch_b"])
def test_a_pair_that_settled_while_flash_stopped_the_chip_is_no_fault(latch):
    """Opening a latch of a covered cup writes an event just while its pair changes over."""
    rig = Rig().go("COVERED")
    rig.set(**{latch: "invalid"})
    rig.until("IDLE")
    rig.set(**{latch: "open"})
    rig.scan(400)
    rig.run(500)
    assert rig.fault == "none"


def test_latch_a_against_latch_b_is_never_a_fault():
    rig = Rig()
    rig.set(latch_a="closed", cover="on")
    rig.run(60000)
    assert rig.fault == "none" and rig.phase == "IDLE"


def test_a_dome_off_in_idle_is_no_fault():
    rig = Rig()
    rig.set(dome="open")
    rig.run(1000)
    assert rig.fault == "none" and rig.phase == "IDLE"


def test_a_second_fault_is_reported_and_the_first_code_stays():
    rig = Rig().go("BETTING")
    rig.said()
    open_latch(rig)
    runaway(rig)
    open_latch(rig)
    assert rig.said() == ["fault opened-in-betting", "fault agitator-runaway"]
    assert rig.fault == "opened-in-betting"
    first, second = 1 << (names.F_OPENED_IN_BETTING - 1), 1 << (names.F_AGITATOR_RUNAWAY - 1)
    said = [(event.fault, event.faults) for event in rig.events[-2:]]
    assert said == [("opened-in-betting", first), ("opened-in-betting", first | second)]
    rig.turn_service()
    assert sorted(rig.said()[:2]) == ["clear agitator-runaway", "clear opened-in-betting"]
    assert rig.state.faults == 0


@pytest.mark.parametrize("cause", ["latch_a", "latch_b", "dome", "motion"])
@pytest.mark.parametrize("phase", ["CLOSED", "PAYOUT", "BETTING"])
def test_no_clear_while_any_cause_is_present(cause, phase):
    rig = Rig().go(phase)
    if phase == "BETTING":
        open_latch(rig)  # the first fault is momentary; another cause keeps it from being cleared
    value = {"dome": "open", "motion": "moving"}.get(cause, "invalid")
    rig.set(**{cause: value})
    rig.run(400)
    assert rig.phase == "FAULT"
    rig.said()
    rig.turn_service()
    assert rig.phase == "FAULT" and rig.said() == ["refused clear cause-present"]
    assert rig.device.command("clear") == "cause-present"
    after = {"dome": "closed", "motion": "still"}.get(cause, "open" if phase == "PAYOUT" else "closed")
    rig.set(**{cause: after})
    rig.run(100)
    assert rig.device.command("clear") is None
    assert rig.phase != "FAULT"


def test_only_a_turn_on_and_off_since_the_fault_clears():
    rig = Rig().go("CLOSED")
    rig.set(service="on")
    rig.run(100)
    wiring("latch_a")(rig)
    rig.set(service="off")
    rig.run(100)
    assert rig.phase == "FAULT"
    rig.set(service="on")
    rig.run(100)
    assert rig.phase == "FAULT"
    rig.set(service="off")
    rig.run(100)
    assert rig.phase == "CLOSED"


def test_a_cover_lifted_in_a_fault_from_closed_counts_as_lifted():
    rig = Rig().go("CLOSED")
    wiring("latch_a")(rig)
    rig.said()
    rig.uncover()
    assert rig.phase == "FAULT" and rig.on("cover_bar") and rig.device.outstanding
    assert rig.said() == ["lifted"]
    rig.set(cover="on")
    rig.run(50)
    assert rig.said() == ["covered-unpaid"]
    rig.set(cover="off")
    rig.run(50)
    rig.turn_service()
    assert rig.phase == "PAYOUT" and rig.said() == ["uncovered-unpaid", "clear latch-a-wiring"]


def test_a_cover_lifted_from_disturbed_dice_makes_no_payout():
    rig = Rig().go("CLOSED")
    runaway(rig)
    rig.uncover()
    assert not rig.on("cover_bar") and not rig.device.outstanding
    rig.turn_service()
    assert rig.phase == "VOID"


def test_dice_disturbed_by_a_second_fault_are_shaken_again():
    rig = Rig().go("CLOSED")
    wiring("latch_a")(rig)
    runaway(rig)
    rig.turn_service()
    assert rig.last("clear").phase == "VOID"


def test_the_next_shake_forgets_the_disturbance():
    rig = Rig().go("CLOSED")
    runaway(rig)
    rig.turn_service()
    rig.uncover()
    rig.go("CLOSED")
    wiring("latch_a")(rig)
    rig.turn_service()
    assert rig.phase == "CLOSED"


@pytest.mark.parametrize("phase", ["BETTING", "CLOSED", "PAYOUT", "VOID"])
def test_a_fault_ends_neither_payout_nor_the_domes_lock(phase):
    rig = Rig().go(phase)
    runaway(rig)
    assert rig.on("dome_lock") and rig.on("cover_bar") == (phase == "PAYOUT")
    assert rig.device.command("paid") and rig.device.command("void") and rig.device.command("abandon")
    assert rig.phase == "FAULT"


def test_a_dead_motor_is_a_stalled_agitator():
    rig = Rig()
    rig.motor = "dead"
    rig.go("COVERED")
    rig.press("start", 25)
    start = rig.last("shake-start").now
    rig.until("FAULT")
    assert rig.fault == "agitator-stalled" and 800 <= rig.now - start <= 810
    assert rig.last("fault").x == 1 and not rig.on("agitator_enable")


def test_a_base_that_will_not_stop_is_a_runaway():
    rig = Rig().go("COVERED")
    rig.press("start", 25)
    while not rig.on("agitator"):
        rig.scan()
    rig.run(50)
    rig.motor = "runaway"
    while rig.on("agitator"):
        rig.scan()
    off = rig.now
    rig.until("FAULT")
    assert rig.fault == "agitator-runaway" and 300 <= rig.now - off <= 310


@pytest.mark.parametrize("code", range(1, len(names.FAULTS)))
def test_a_runaway_is_noticed_in_time_whatever_else_is_latched(code):
    rig = Rig()
    rig.core.round.fault(code)
    rig.core.wake()
    rig.run(1000)
    rig.set(motion="moving")
    began = rig.now
    rig.said()
    while rig.now < began + 1000 and not rig.state.faults >> (names.F_AGITATOR_RUNAWAY - 1) & 1:
        rig.scan()
    if code == names.F_AGITATOR_RUNAWAY:
        rig.run(1000)
        assert rig.said() == []
    else:
        assert rig.said() == ["fault agitator-runaway"] and 300 <= rig.now - began <= 315


def test_a_fault_in_service_mode_locks_no_empty_base():
    rig = Rig()
    rig.set(service="on")
    rig.run(800)
    rig.set(dome="open")
    rig.run(100)
    rig.set(latch_a="invalid")
    rig.run(300)
    assert rig.phase == "FAULT" and not rig.on("dome_lock")
    rig.run(2000)
    assert rig.fault == "latch-a-wiring" and not rig.state.faults >> (names.F_DOME_OPENED - 1) & 1
    rig.set(dome="closed")
    rig.run(50)
    assert rig.on("dome_lock")
    rig.run(700)
    rig.set(dome="open")
    rig.run(50)
    assert rig.state.faults >> (names.F_DOME_OPENED - 1) & 1
    rig.set(latch_a="open")
    rig.run(50)
    assert rig.device.command("clear") == "cause-present"
    rig.set(dome="closed")
    rig.run(50)
    assert rig.device.command("clear") is None


def dome_off_in_service_mode_under_a_fault(**found):
    state = State()
    state.phase, state.origin, state.flags = names.FAULT, names.IDLE, record.FLAG_SERVICE
    state.fault, state.faults = names.F_LATCH_A_WIRING, 1 << (names.F_LATCH_A_WIRING - 1)
    rig = Rig(state=state, rest=0)
    rig.set(dome="open", **found)
    rig.run(2000)
    return rig


def test_service_mode_ends_under_a_fault_as_ever():
    rig = Rig()
    rig.set(service="on")
    rig.run(800)
    rig.set(dome="open")
    rig.run(50)
    runaway(rig)
    rig.said()
    rig.set(service="off")
    rig.run(100)
    assert rig.said() == [] and rig.state.service()
    rig.set(dome="closed")
    rig.run(100)
    assert rig.said() == ["service 0"] and rig.phase == "FAULT" and rig.on("dome_lock")
    rig.turn_service()
    assert rig.phase == "IDLE" and not rig.state.service()


@pytest.mark.parametrize("key", ["on", "off"])
def test_a_fault_in_service_mode_locks_no_empty_base_after_a_restart_either(key):
    rig = dome_off_in_service_mode_under_a_fault(service=key)
    assert rig.phase == "FAULT" and not rig.on("dome_lock")
    assert not rig.state.faults >> (names.F_DOME_OPENED - 1) & 1
    rig.set(dome="closed")
    rig.run(50)
    assert rig.on("dome_lock") and rig.core.driving & names.DOME_LOCK


@pytest.mark.parametrize("code", [names.F_JOURNAL_FAILED, names.F_SETTINGS_INVALID, names.F_CLOCK_STALLED])
def test_a_cause_outside_the_table_keeps_its_fault(code):
    rig = Rig()
    rig.core.round.persistent(code, True)
    rig.core.wake()
    rig.run(50)
    assert rig.fault == names.FAULTS[code] and rig.phase == "FAULT"
    assert rig.device.command("clear") == "cause-present"
    rig.core.round.persistent(code, False)
    assert rig.phase == "FAULT"
    assert rig.device.command("clear") is None


# -- after a restart -----------------------------------------------------------------------------------


def restored(phase, flags=0, origin="IDLE", fault=0, **inputs):
    """A rig that restarts in `phase` of round 7, with inputs as they are found."""
    state = State()
    state.phase = names.PHASES.index(phase)
    state.origin = names.PHASES.index(origin)
    state.flags = flags
    state.round = 7
    state.fault = fault
    state.faults = 1 << (fault - 1) if fault else 0
    rig = Rig(state=state, rest=0)
    rig.set(**inputs)
    return rig


COVERED: dict = {"latch_a": "closed", "latch_b": "closed", "cover": "on"}
RECOVERIES = [
    ("IDLE", 0, {}, "IDLE", "none", []),
    ("COVERED", 0, {}, "IDLE", "none", ["recovered COVERED"]),
    ("COVERED", 0, COVERED, "COVERED", "none", ["recovered COVERED", "covered"]),
    ("COVERED", BETS, COVERED, "COVERED", "none", ["recovered COVERED"]),
    (
        "COVERED",
        BETS,
        {**COVERED, "bell": "pressed"},
        "COVERED",
        "none",
        ["recovered COVERED", "key-stuck bell"],
    ),
    ("COVERED", BETS, {}, "VOID", "none", ["recovered COVERED"]),
    (
        "SHAKING",
        0,
        COVERED,
        "FAULT",
        "power-lost-in-shake",
        ["recovered SHAKING", "fault power-lost-in-shake"],
    ),
    ("SHAKING", 0, {}, "FAULT", "power-lost-in-shake", ["recovered SHAKING", "fault power-lost-in-shake"]),
    ("BETTING", BETS, COVERED, "BETTING", "none", ["recovered BETTING"]),
    ("BETTING", BETS, {}, "FAULT", "opened-while-off", ["recovered BETTING", "fault opened-while-off"]),
    (
        "BETTING",
        BETS,
        {**COVERED, "latch_b": "open"},
        "FAULT",
        "opened-while-off",
        ["recovered BETTING", "fault opened-while-off"],
    ),
    ("CLOSED", BETS, COVERED, "CLOSED", "none", ["recovered CLOSED"]),
    ("CLOSED", BETS, {}, "PAYOUT", "none", ["recovered CLOSED", "lifted"]),
    ("PAYOUT", BETS, {}, "PAYOUT", "none", ["recovered PAYOUT"]),
    ("PAYOUT", BETS, {"cover": "on"}, "PAYOUT", "none", ["recovered PAYOUT", "covered-unpaid"]),
    ("VOID", BETS, {}, "VOID", "none", ["recovered VOID"]),
    ("VOID", BETS, COVERED, "COVERED", "none", ["recovered VOID", "covered"]),
]


@pytest.mark.parametrize(("phase", "flags", "inputs", "after", "fault", "said"), RECOVERIES)
def test_recovery(phase, flags, inputs, after, fault, said):
    rig = restored(phase, flags, **inputs)
    rig.run(1000)
    assert (rig.phase, rig.fault) == (after, fault)
    assert rig.said() == said
    assert rig.state.round == 7
    assert rig.on("alarm") == (fault != "none" or "covered-unpaid" in said)
    assert rig.state.flags == flags | (record.FLAG_COVERED_UNPAID if "covered-unpaid" in said else 0)


def test_a_repeat_found_without_its_dome_is_not_covered():
    rig = restored("COVERED", BETS, **COVERED, dome="open")
    rig.run(1000)
    assert rig.last("recovered").phase == "VOID" and rig.last("fault").origin == "VOID"


def test_the_first_event_after_a_restart_carries_the_whole_state():
    state = State()
    state.phase, state.flags, state.origin = names.FAULT, BETS, names.PAYOUT
    state.boot, state.round, state.repeat = 3, 7, 2
    state.die1, state.die2, state.die3 = 1, 4, 6
    state.fault, state.faults = names.F_SHAKEN_LATE, 1 << (names.F_SHAKEN_LATE - 1) | 1
    event = Rig(state=state).events[0]
    assert (event.name, event.boot, event.round, event.repeat) == ("recovered", 3, 7, 2)
    assert (event.dice, event.fault, event.faults) == ((1, 4, 6), "shaken-late", state.faults)


@pytest.mark.parametrize("lever", [False, True])
def test_of_a_shake_before_the_restart_no_pulses_are_known(lever):
    state = State()
    state.phase = names.SHAKING
    rig = Rig(state=state, lever=lever)
    assert rig.said() == ["recovered SHAKING", "fault power-lost-in-shake"] and rig.last("fault").x == 0


@pytest.mark.parametrize("latch", ["latch_a", "latch_b"])
def test_a_pair_that_disagrees_at_power_on_is_timed_from_there(latch):
    rig = Rig(clock=100_000, rest=0)
    rig.set(**{latch: "invalid"})
    while not rig.core.round.judged:
        rig.scan()
    rig.run(195)
    assert rig.said() == []
    rig.run(10)
    assert rig.fault == latch.replace("_", "-") + "-wiring"


@pytest.mark.parametrize("origin", ALL)
def test_a_fault_survives_with_the_phase_it_came_from(origin):
    covered = {} if origin in ("IDLE", "PAYOUT", "VOID") else COVERED
    bets = 0 if origin in ("IDLE", "COVERED", "SHAKING") else BETS
    rig = restored("FAULT", bets, origin, names.F_AGITATOR_STALLED, **covered)
    rig.run(1000)
    assert rig.phase == "FAULT" and rig.fault == "agitator-stalled" and rig.on("alarm")
    assert rig.on("cover_lock") == (origin in ("SHAKING", "BETTING"))
    assert rig.on("cover_bar") == (origin == "PAYOUT")
    assert rig.on("dome_lock")
    rig.turn_service()
    after = rig.last("clear").phase
    assert after == resumed("agitator-stalled", origin, bool(bets))


def test_a_closed_round_found_lifted_under_a_fault_is_owed():
    rig = restored("FAULT", BETS, "CLOSED", names.F_LATCH_A_WIRING)
    rig.run(1000)
    assert rig.device.outstanding and rig.on("cover_bar")
    rig.turn_service()
    assert rig.phase == "PAYOUT"


def test_nothing_is_judged_while_contacts_settle():
    rig = restored("BETTING", BETS)
    for _ in range(40):
        rig.set(**COVERED)
        rig.run(10)
        rig.set(latch_a="open", latch_b="open", cover="off")
        rig.run(5)
    assert rig.said() == [] and rig.phase == "BETTING"
    rig.set(**COVERED)
    rig.run(300)
    assert rig.said() == ["recovered BETTING"]


def test_contacts_that_never_rest_are_judged_after_a_second():
    rig = restored("BETTING", BETS)
    for _ in range(110):
        rig.set(cover="on")
        rig.run(5)
        rig.set(cover="off")
        rig.run(5)
    assert rig.fault == "opened-while-off"


def test_no_bolt_moves_before_the_phase_is_judged_and_then_each_once():
    rig = restored("PAYOUT", BETS)
    seen = []
    for _ in range(400):
        rig.scan()
        seen.append((rig.core.round.judged, rig.core.driving))
    assert all(driving == 0 for judged, driving in seen if not judged)
    driven = [driving for judged, driving in seen if judged]
    assert driven[:120] == [names.BOLTS] * 120 and not any(driven[120:])


def test_a_repeat_that_was_covered_needs_its_latches_seen_open_again():
    rig = restored("COVERED", BETS, **COVERED)
    rig.run(1000)
    rig.said()
    rig.press("start")
    assert rig.said() == ["refused start latch-not-seen-open"]


def test_results_survive():
    state = State()
    state.phase, state.flags, state.round = names.PAYOUT, BETS, 7
    state.die1, state.die2, state.die3 = 1, 4, 6
    rig = Rig(state=state)
    assert rig.device.dice == (1, 4, 6) and rig.device.lamps


def test_reboot_is_for_idle():
    for phase in RESTING[1:]:
        rig = Rig().go(phase)
        assert rig.device.command("reboot") in ("round-open", "wrong-phase")
        assert not rig.device.reboot_asked
