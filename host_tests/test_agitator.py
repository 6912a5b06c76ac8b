"""Three pulses, alike and on time; what the motion sensor says about them (SPEC section 5)."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rig import ORIGINS, Options
from shaker import names
from shaker.agitator import Agitator
from shaker.ticks import fold, ticks_add

STALLED = names.F_AGITATOR_STALLED
RUNAWAY = names.F_AGITATOR_RUNAWAY


def shake(options, start=0, lateness=lambda scan: 0, ms=12000):
    """Play one shake; return (edges of the drive as [(ms, on)], ms when done, agitator)."""
    agitator = Agitator(options)
    agitator.start(fold(start))
    edges, done, last, scan, now = [], None, False, 0, 0
    while now < ms and done is None:
        agitator.step(fold(start + now))
        if agitator.drive != last:
            last = agitator.drive
            edges.append((now, last))
        assert agitator.pulsing == (1 <= len(edges) <= 5)
        if agitator.done:
            done = now
        scan += 1
        now = 5 * scan + lateness(scan)
    return edges, done, agitator


@pytest.mark.parametrize("start", [*ORIGINS, (1 << 30) - 900, (1 << 29) - 1500])
def test_the_time_line_of_a_default_shake_at_every_clock(start):
    edges, done, agitator = shake(Options(), start)
    assert edges == [(600, True), (850, False), (1200, True), (1450, False), (1800, True), (2050, False)]
    assert done == 2750
    assert agitator.begun == 3


def test_a_shake_that_follows_another_is_neither_done_nor_begun():
    _, done, agitator = shake(Options())
    assert done and agitator.done and agitator.begun == 3
    agitator.start(done)
    assert not agitator.done and agitator.begun == 0
    agitator.step(done + 600)
    assert not agitator.done and agitator.begun == 1


settings = st.fixed_dictionaries(
    {
        "bolt_ms": st.integers(200, 2000),
        "pulse_ms": st.integers(100, 300),
        "gap_ms": st.integers(200, 1000),
        "settle_ms": st.integers(300, 3000),
    }
)


@given(settings, st.integers(0, (1 << 30) - 1), st.lists(st.integers(0, 4), min_size=1, max_size=50))
def test_every_edge_is_within_a_scan_of_its_time(chosen, start, late):
    o = Options(**chosen)
    edges, done, _ = shake(o, start, lambda scan: late[scan % len(late)])
    assert [on for _, on in edges] == [True, False] * 3
    due = o.bolt_ms
    for i, (at, _) in enumerate(edges):
        assert due <= at <= due + 9  # the scan after it, up to 4 ms late
        due += o.pulse_ms if i % 2 == 0 else o.gap_ms
    assert due - o.gap_ms + o.settle_ms <= done <= due - o.gap_ms + o.settle_ms + 9


@given(st.integers(1, 400), st.integers(11, 240))
def test_a_late_scan_moves_the_rest_so_that_the_two_gaps_stay_alike(at_scan, late):
    """One scan that comes late (under the 250 ms of scan-overrun) shortens no pulse and no gap."""
    o = Options()
    agitator = Agitator(o)
    agitator.start(0)
    now, edges, last = 0, [], False
    for scan in range(900):
        now += 5 + (late if scan == at_scan else 0)
        agitator.step(now)
        if agitator.drive != last:
            last = agitator.drive
            edges.append(now)
    assert len(edges) == 6
    lengths = [b - a for a, b in pairwise(edges)]
    for length, due in zip(lengths, (250, 350, 250, 350, 250), strict=True):
        assert length >= due - 10
    assert sum(length > due + 10 for length, due in zip(lengths, (250, 350, 250, 350, 250), strict=True)) <= 1


@pytest.mark.parametrize(("late", "end"), [(0, 850), (10, 850), (11, 861)])
def test_an_edge_more_than_10_ms_late_moves_the_next(late, end):
    agitator = Agitator(Options())
    agitator.start(0)
    agitator.step(600 + late)
    assert agitator.drive and agitator.left(650, names.MOTION) == 150 + late
    agitator.watch(660, names.MOTION, 0)
    assert agitator.left(700, names.MOTION) == end - 700


@given(st.integers(0, 2700))
def test_a_stopped_shake_is_never_resumed(when):
    agitator = Agitator(Options())
    agitator.start(0)
    now = 0
    while now < when:
        now += 5
        agitator.step(now)
    agitator.stop()
    assert not agitator.drive and not agitator.pulsing and not agitator.done
    for _ in range(1000):
        now += 5
        agitator.step(now)
        assert not agitator.drive and not agitator.done and not agitator.pulsing


def test_until_a_shake_begins_nothing_is_wanted_and_nothing_missed():
    agitator = Agitator(Options())
    for now in (0, 5, 1 << 29):
        assert not (agitator.drive or agitator.pulsing or agitator.done or agitator.begun)
        assert not agitator.running_away() and agitator.watch(now, 0, 0) == names.OK
        assert agitator.left(now, 0) >= 1 << 27, "nothing will time out"
        agitator.step(now)


@pytest.mark.parametrize("start", ORIGINS)
def test_what_is_left_is_the_time_to_the_next_edge_or_verdict(start):
    def left(ms, moving=0):
        return agitator.left(fold(start + ms), moving)

    agitator = Agitator(Options())
    agitator.start(fold(start))
    assert left(0) == 600 and left(595) == 5
    agitator.step(fold(start + 600))
    assert left(600) == 200 and left(795) == 5, "the base should have moved by then"
    assert agitator.watch(fold(start + 650), names.MOTION, 0) == names.OK
    assert left(650) == left(650, names.MOTION) == 200, "the end of the pulse"
    agitator.step(fold(start + 850))
    assert left(850) == 350
    agitator.watch(fold(start + 900), names.MOTION, 0)
    assert left(900, names.MOTION) == 300 and left(900) == 300
    agitator.watch(fold(start + 1000), names.MOTION, 0)
    assert left(1000, names.MOTION) == 200
    assert left(1150, names.MOTION) == 50
    agitator.stop()
    assert left(1150, names.MOTION) == 50 and left(1150) >= 1 << 27
    agitator.start(fold(start))
    for ms in range(0, 2755, 5):
        agitator.step(fold(start + ms))
        agitator.watch(fold(start + ms), names.MOTION if agitator.drive else 0, 0)
    assert agitator.done and left(2750) >= 1 << 27


def test_a_second_shake_is_whole_again():
    agitator = Agitator(Options())
    for start in (0, 10000):
        agitator.start(start)
        assert agitator.begun == 0 and not agitator.done
        rises, last = 0, False
        for scan in range(600):
            agitator.step(start + 5 * scan)
            rises += agitator.drive and not last
            last = agitator.drive
        assert rises == 3 and agitator.done
        agitator.stop()
        assert not agitator.done


# -- the motion sensor -------------------------------------------------------------------------------


def watch(moving_at, start=0, end=4000, **options):
    """Play a shake with the base moving when `moving_at(ms, drive)`; return [(ms, fault)]."""
    agitator = Agitator(Options(**options))
    agitator.start(fold(start))
    found = []
    for now in range(0, end, 5):
        moving = names.MOTION if moving_at(now, agitator.drive) else 0
        code = agitator.watch(fold(start + now), moving, 0)
        agitator.step(fold(start + now))
        if code:
            found.append((now, code))
    return found


@pytest.mark.parametrize("start", [0, (1 << 30) - 700, (1 << 29) - 700])
def test_a_base_that_does_not_move_within_200_ms_is_stalled(start):
    assert watch(lambda now, drive: False, start) == [(800, STALLED), (1400, STALLED), (2000, STALLED)]


def test_a_short_pulse_that_moves_nothing_is_stalled_too():
    assert watch(lambda now, drive: False, pulse_ms=100, gap_ms=1000)[0] == (800, STALLED)


def test_a_base_that_moves_in_time_is_not_stalled():
    assert watch(lambda now, drive: drive) == []
    assert watch(lambda now, drive: any(s + 195 <= now < s + 250 for s in (600, 1200, 1800))) == []


def test_each_pulse_is_judged_by_its_own_movement():
    found = watch(lambda now, drive: drive and now < 1700)
    assert found and found[0] == (2000, STALLED)


def test_movement_for_300_ms_without_drive_is_a_runaway():
    found = watch(lambda now, drive: drive or now >= 2050)
    assert found[0] == (2050 + 300 + 5, RUNAWAY) or found[0] == (2050 + 300, RUNAWAY)


def test_coasting_to_a_stop_is_no_runaway():
    def moving(now, drive):
        return drive or any(end <= now < end + 290 for end in (850, 1450, 2050))

    assert watch(moving) == []


def test_movement_that_a_pulse_goes_on_with_is_timed_from_its_end():
    assert watch(lambda now, drive: drive or 1150 <= now < 1700) == []


@pytest.mark.parametrize("start", [0, (1 << 30) - 100, (1 << 29) - 100])
def test_a_base_that_moves_at_rest_runs_away_at_every_clock(start):
    agitator = Agitator(Options())
    found = [
        now for now in range(0, 1000, 5) if agitator.watch(fold(start + now), names.MOTION, 0) == RUNAWAY
    ]
    assert found[0] == 300
    assert agitator.running_away()
    agitator.watch(fold(start + 1000), 0, 0)
    assert not agitator.running_away()


def test_movement_that_is_about_to_end_has_not_lasted():
    agitator = Agitator(Options())
    assert not agitator.watch(0, names.MOTION, 0)
    assert not agitator.watch(300, names.MOTION, names.MOTION | names.COVER)
    assert agitator.watch(305, names.MOTION, names.COVER) == RUNAWAY, "it did not end"


def test_movement_that_is_about_to_be_seen_came_in_time():
    agitator = Agitator(Options())
    agitator.start(0)
    agitator.step(600)
    assert not agitator.watch(800, 0, names.MOTION)
    assert agitator.watch(805, 0, names.COVER) == STALLED, "it was a glitch"


def test_movement_that_pauses_is_timed_anew():
    agitator = Agitator(Options())
    for now in range(0, 5000, 5):
        assert not agitator.watch(now, 0 if now % 300 == 295 else names.MOTION, 0)


@pytest.mark.parametrize("options", [{"motion": False}, {"lever": True}])
def test_without_the_sensor_or_with_the_lever_movement_says_nothing(options):
    agitator = Agitator(Options(**options))
    for now in range(0, 2000, 5):
        assert not agitator.watch(now, names.MOTION, 0)
        assert agitator.left(now, names.MOTION) > 100000
    assert watch(lambda now, drive: False, **options) == []


def test_once_stopped_nothing_is_missed_and_nothing_runs_out():
    agitator = Agitator(Options())
    agitator.start(0)
    agitator.step(600)
    assert agitator.left(600, 0) == 200
    agitator.stop()
    assert agitator.left(600, 0) > 100000
    assert not agitator.watch(900, 0, 0)


def test_ticks_of_the_edge_wrap():
    agitator = Agitator(Options(bolt_ms=200))
    start = (1 << 30) - 100
    agitator.start(start)
    agitator.step(ticks_add(start, 195))
    assert not agitator.drive
    agitator.step(ticks_add(start, 200))
    assert agitator.drive
