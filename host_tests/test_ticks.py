"""The folded clock: right at every origin, and never outside a 32-bit MicroPython's small integers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rig import ORIGINS, Rig
from shaker.ticks import fold, ticks_add, ticks_diff

WRAP = 1 << 30
HALF = 1 << 29
ticks = st.one_of(
    st.integers(0, WRAP - 1),
    st.integers(0, 20),
    st.integers(WRAP - 20, WRAP - 1),
    st.integers(HALF - 20, HALF + 20),
)
deltas = st.one_of(st.integers(0, HALF - 1), st.integers(0, 20), st.integers(HALF - 20, HALF - 1))


@given(ticks, deltas)
def test_add_goes_forward_round_the_circle(start, delta):
    assert ticks_add(start, delta) == (start + delta) % WRAP


@given(ticks, deltas)
def test_diff_is_how_far_the_end_lies_after_the_start(start, delta):
    end = (start + delta) % WRAP
    assert ticks_diff(end, start) == delta
    if delta:
        assert ticks_diff(start, end) == -delta


@given(ticks)
def test_half_the_circle_away_is_the_past(start):
    assert ticks_diff((start + HALF) % WRAP, start) == -HALF
    assert ticks_diff(start, start) == 0


@pytest.mark.parametrize(
    ("raw", "folded"),
    [
        (0, 0),
        (5, 5),
        (WRAP - 1, WRAP - 1),
        (WRAP, 0),
        (WRAP + 7, 7),
        ((1 << 62) - 1, WRAP - 1),
        (3 * WRAP + 9, 9),
    ],
)
def test_fold_takes_the_ticks_of_any_port(raw, folded):
    assert fold(raw) == folded


class Small(int):
    """An integer that refuses to leave the small integers of a 32-bit MicroPython."""

    def _kept(self, value):
        if not -WRAP <= value <= WRAP - 1:
            raise OverflowError(f"{value} would be allocated")
        return Small(value)

    def __add__(self, other):
        return self._kept(int(self) + int(other))

    def __sub__(self, other):
        return self._kept(int(self) - int(other))

    def __rsub__(self, other):
        return self._kept(int(other) - int(self))

    def __mul__(self, other):
        return self._kept(int(self) * int(other))

    def __and__(self, other):
        return self._kept(int(self) & int(other))

    def __or__(self, other):
        return self._kept(int(self) | int(other))

    def __xor__(self, other):
        return self._kept(int(self) ^ int(other))

    def __lshift__(self, other):
        return self._kept(int(self) << int(other))

    def __neg__(self):
        return self._kept(-int(self))

    def __invert__(self):
        return self._kept(~int(self))

    __radd__ = __add__
    __rand__ = __and__
    __ror__ = __or__
    __rxor__ = __xor__


def test_the_watcher_of_small_integers_sees_an_overflow():
    with pytest.raises(OverflowError):
        Small(WRAP - 1) + 1
    with pytest.raises(OverflowError):
        -Small(-WRAP)


@given(ticks, deltas)
def test_no_step_on_the_way_leaves_31_bits(start, delta):
    end = ticks_add(Small(start), Small(delta))
    assert end == (start + delta) % WRAP
    assert ticks_diff(Small(end), Small(start)) == delta
    assert ticks_diff(Small(start), Small(end)) == -delta


@given(ticks, ticks)
def test_no_difference_of_two_readings_leaves_31_bits(a, b):
    assert -HALF <= ticks_diff(Small(a), Small(b)) < HALF


class SmallRig(Rig):
    """A core whose clock readings watch every step that is made with them."""

    def scan(self, late=0):
        self.now += 5 + late
        self._plant()
        self.core.scan(Small(fold(self.clock + self.now)), self.word)
        self.drain()


@pytest.mark.parametrize("lever", [False, True])
@pytest.mark.parametrize("clock", ORIGINS)
def test_no_clock_arithmetic_of_a_whole_round_leaves_31_bits(clock, lever):
    rig = SmallRig(clock=clock - 3000, lever=lever)
    rig.go("PAYOUT")
    rig.press("paid", 1000)
    assert rig.phase == "IDLE"
