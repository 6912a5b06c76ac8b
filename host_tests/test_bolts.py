"""The bolts: never over bolt_ms at a time, never over a fifth of any minute; only a release may wait (I6)."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rig import ORIGINS
from shaker import names
from shaker.bolts import Bolt, Bolts
from shaker.ticks import fold

LOCK, BAR, DOME = names.COVER_LOCK, names.COVER_BAR, names.DOME_LOCK
MINUTE = 60000
bolt_times = st.sampled_from([200, 201, 203, 250, 600, 601, 1000, 1999, 2000])
origins = st.sampled_from([*ORIGINS, (1 << 30) - 30000, (1 << 29) - 30000])
# How long each command stands, ms: quick reversals, comfortable ones, long rests.
stands = st.lists(
    st.one_of(st.sampled_from([5, 10, 50, 200, 600, 605]), st.integers(1, 700).map(lambda n: n * 5)),
    max_size=150,
)


def play(bolt, stands, clock):
    """Step one bolt through commands that alternate; return [(ms, wanted, told, driving)]."""
    seen, now, wanted = [], 0, False
    for ms in stands:
        wanted = not wanted
        for _ in range(ms // 5):
            told = bolt.step(fold(clock + now), wanted)
            seen.append((now, wanted, told, bolt.driving))
            now += 5
    for _ in range(600):
        told = bolt.step(fold(clock + now), wanted)
        seen.append((now, wanted, told, bolt.driving))
        now += 5
    return seen


def drives(seen):
    """The intervals (from, to) in which the drive was on; the output stands until the next scan."""
    found, began = [], None
    for now, *_, driving in seen:
        if driving and began is None:
            began = now
        elif not driving and began is not None:
            found.append((began, now))
            began = None
    if began is not None:
        found.append((began, seen[-1][0] + 5))
    return found


def most_in_a_minute(intervals):
    """The most driving that any window of a minute holds."""
    worst = 0
    for start, _ in intervals:
        worst = max(worst, sum(max(0, min(b, start + MINUTE) - max(a, start)) for a, b in intervals))
    for _, end in intervals:
        worst = max(worst, sum(max(0, min(b, end) - max(a, end - MINUTE)) for a, b in intervals))
    return worst


@settings(deadline=None, max_examples=60)
@given(bolt_times, stands, origins)
def test_no_drive_and_no_minute_is_too_long(bolt_ms, stands, clock):
    found = drives(play(Bolt(bolt_ms), stands, clock))
    assert all(end - start <= bolt_ms for start, end in found)
    assert most_in_a_minute(found) <= MINUTE // 5


@settings(deadline=None, max_examples=60)
@given(bolt_times, stands, origins)
def test_locking_never_waits(bolt_ms, stands, clock):
    for _, wanted, told, _ in play(Bolt(bolt_ms), stands, clock):
        assert told or not wanted


@settings(deadline=None, max_examples=60)
@given(bolt_times, stands, origins)
def test_each_change_of_command_drives_the_bolt_for_its_whole_time(bolt_ms, stands, clock):
    """From the last change of command on; a reversal may rest the drive for one scan first."""
    seen = play(Bolt(bolt_ms), stands, clock)
    for i in range(1, len(seen)):
        told = seen[i][2]
        if told != seen[i - 1][2]:
            row = seen[i : i + (bolt_ms + 10) // 5]
            if len(row) == (bolt_ms + 10) // 5 and all(x[2] == told for x in row):
                assert 5 * sum(x[3] for x in row) == bolt_ms // 5 * 5
                assert not row[-1][3]


def busy_minute(bolt_ms, clock=0):
    """Change the command as fast as it is followed, for two minutes."""
    bolt = Bolt(bolt_ms)
    seen, now, wanted = [], 0, True
    while now < 2 * MINUTE:
        told = bolt.step(fold(clock + now), wanted)
        seen.append((now, wanted, told, bolt.driving))
        if told == wanted and not bolt.driving and not bolt.busy():
            wanted = not wanted
        now += 5
    return seen


@pytest.mark.parametrize("bolt_ms", [200, 600, 2000])
@pytest.mark.parametrize("clock", ORIGINS)
def test_a_release_waits_for_the_budget_and_then_comes(bolt_ms, clock):
    seen = busy_minute(bolt_ms, clock)
    waits = [now for now, wanted, told, _ in seen if told and not wanted]
    assert waits, "the budget was never felt"
    found = drives(seen)
    assert most_in_a_minute(found) <= MINUTE // 5
    assert len([a for a, _ in found if a > MINUTE + 2 * bolt_ms]) >= 2, "it never came back"
    first_wait = waits[0]
    used = sum(min(b, first_wait) - a for a, b in found if a < first_wait)
    assert used + 2 * bolt_ms > MINUTE // 5, "a release was postponed while there was room"


def _spend(bolts, seconds):
    """Lock and release as fast as slow bolts can until the lock's release waits; return the tick."""
    now = 0
    wanted = LOCK
    while now < seconds * 1000:
        bolts.step(now, wanted, DOME)
        if not wanted and bolts.told & LOCK:
            return now
        if not bolts.driving:
            wanted ^= LOCK
        now += 5
    raise AssertionError("the budget was never felt")


def test_the_lock_makes_way_for_the_bar_budget_or_not():
    bolts = Bolts(2000)
    now = _spend(bolts, 60) + 5
    bolts.step(now, BAR, DOME)
    assert bolts.told == BAR and bolts.driving == BAR | LOCK
    for later in range(now + 5, now + 2000, 5):
        bolts.step(later, BAR, DOME)
        assert bolts.told == BAR and bolts.driving == BAR | LOCK
    bolts.step(now + 2000, BAR, DOME)
    assert not bolts.driving


def test_a_lock_on_its_way_turns_for_the_bar_after_a_scans_rest():
    bolts = Bolts(600)
    bolts.step(0, LOCK, DOME)
    bolts.step(5, BAR, DOME)
    assert bolts.told == BAR and bolts.driving == BAR and bolts.turning(LOCK)
    bolts.step(10, BAR, DOME)
    assert bolts.driving == BAR | LOCK


def test_the_lock_is_ready_while_its_budget_bears_a_drive():
    bolts = Bolts(2000)
    now = 0
    drives = 0
    while bolts.lock_ready(now):
        bolts._lock.drive(now)
        drives += 1
        now += 2000
    assert drives == 6  # of 2 s: 20 % of a minute
    assert not bolts.lock_ready(61995) and bolts.lock_ready(62000)


def test_a_release_that_is_no_longer_wanted_is_forgotten():
    bolt = Bolt(2000)
    now = 0
    wanted = True
    while True:
        told = bolt.step(now, wanted)
        if told and not wanted:
            break
        if not bolt.busy():
            wanted = not wanted
        now += 5
    assert bolt.busy()
    bolt.step(now + 5, True)
    assert not bolt.driving and not bolt.busy()
    for later in range(now + 10, now + 2 * MINUTE, 5):
        assert bolt.step(later, True) and not bolt.driving


def test_a_bolt_stays_where_it_is_without_power_and_without_a_command():
    bolt = Bolt(600)
    for now in range(0, 5000, 5):
        bolt.step(now, False)
        assert not bolt.driving and not bolt.busy()


# -- all three ----------------------------------------------------------------------------------------


def test_each_bolt_follows_its_own_command():
    bolts = Bolts(600)
    bolts.step(0, DOME, True)
    assert (bolts.told, bolts.driving) == (DOME, DOME)
    bolts.step(600, DOME, True)
    assert (bolts.told, bolts.driving, bolts.busy) == (DOME, 0, False)
    bolts.step(1000, DOME | LOCK, True)
    assert (bolts.told, bolts.driving) == (DOME | LOCK, LOCK)
    bolts.step(1600, DOME | LOCK, True)
    bolts.step(2000, DOME | BAR, True)
    assert (bolts.told, bolts.driving) == (DOME | BAR, LOCK | BAR)


@pytest.mark.parametrize("stand", [0, DOME, LOCK | DOME, BAR | DOME])
def test_a_restart_moves_no_bolt_until_it_is_asked_to(stand):
    bolts = Bolts(600)
    bolts.assume(stand)
    assert bolts.told == stand
    bolts.step(0, stand, True)
    assert bolts.driving == 0 and bolts.told == stand


@pytest.mark.parametrize("clock", ORIGINS)
def test_after_a_restart_every_bolt_is_driven_once_to_where_it_is_wanted(clock):
    bolts = Bolts(600)
    bolts.assume(LOCK | DOME)
    bolts.drive_once(LOCK | BAR | DOME)
    seen = []
    for now in range(0, 2000, 5):
        bolts.step(fold(clock + now), LOCK | DOME, True)
        seen.append(bolts.driving)
    assert seen[:120] == [LOCK | BAR | DOME] * 120
    assert not any(seen[120:])


def restarted_with_the_dome_off():
    """Return bolts 2 s after a restart with the dome off: its drive waits."""
    bolts = Bolts(600)
    bolts.assume(DOME)
    bolts.drive_once(LOCK | BAR | DOME)
    for now in range(0, 2000, 5):
        bolts.step(now, DOME, False)
        assert not bolts.driving & DOME
    return bolts


def test_a_dome_that_is_off_is_not_locked_empty_by_a_restart():
    bolts = restarted_with_the_dome_off()
    bolts.step(2000, DOME, True)
    assert bolts.driving & DOME
    for now in range(2005, 5000, 5):
        bolts.step(now, DOME, True)
    assert not bolts.driving and not bolts.busy


def test_a_drive_that_is_owed_is_not_forgotten_for_another():
    bolts = restarted_with_the_dome_off()
    bolts.drive_once(BAR)
    bolts.step(2000, DOME | BAR, False)
    assert bolts.driving == BAR
    bolts.step(2005, DOME | BAR, True)
    assert bolts.driving == BAR | DOME


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.tuples(st.sampled_from([0, LOCK, BAR, DOME, LOCK | DOME, BAR | DOME]), st.integers(1, 300)))
)
def test_lock_and_bar_are_never_told_to_be_on_together(commands):
    bolts = Bolts(600)
    now = 0
    for wanted, scans in commands:
        for _ in range(scans):
            bolts.step(now, wanted, True)
            now += 5
            assert bolts.told & (LOCK | BAR) != LOCK | BAR
            assert bolts.told & wanted == wanted


def test_old_drives_are_forgotten_before_the_clock_comes_round_again():
    """Six days on, a drive of long ago must not look like one of this minute."""
    bolts = Bolts(2000)
    for start, wanted in ((0, LOCK), (2100, 0), (4200, LOCK), (6300, 0)):
        bolts.step(start, wanted, True)
        bolts.step(start + 2000, wanted, True)
    now = 10000
    while now < (1 << 30) - 500000:
        now += 64000
        bolts.tidy(fold(now))
    now = (1 << 30) + 1000
    told = []
    wanted = 0
    for _ in range(4):
        wanted ^= LOCK
        bolts.step(fold(now), wanted, True)
        told.append(bolts.told == wanted)
        bolts.step(fold(now + 2000), wanted, True)
        now += 2005
    assert all(told)
