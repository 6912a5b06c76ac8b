"""Debouncing, against a slow model that looks at one input at a time (SPEC section 5)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shaker import names
from shaker.inputs import LATCH_A_OPEN, LATCH_B_OPEN, Inputs

# Scans of 5 ms: (to reach the closed, on, pressed, moving side; to leave it).
NEEDED = {
    "latch_a": (7, 2),
    "latch_b": (7, 2),
    "cover": (7, 2),
    "dome": (7, 2),
    "start": (5, 5),
    "lever": (5, 5),
    "bell": (5, 5),
    "void": (5, 5),
    "paid": (5, 5),
    "service": (5, 5),
    "motion": (2, 7),
}
BIT = {
    "cover": names.COVER,
    "dome": names.DOME,
    "start": names.START,
    "lever": names.LEVER,
    "bell": names.BELL,
    "void": names.VOID_KEY,
    "paid": names.PAID,
    "service": names.SERVICE,
    "motion": names.MOTION,
}
ALL = 0x7FFF


def contact(name):
    return 1 << names.CONTACTS.index(name)


OPEN = contact("latch_a_nc") | contact("latch_b_nc")
CLOSED = contact("latch_a_no") | contact("latch_b_no")


class Slow:
    """One yes-or-no input: settled only when the last `on` (or `off`) readings in a row say so."""

    def __init__(self, on, off):
        self.on, self.off = on, off
        self.level = False
        self.seen = []

    def sample(self, raw):
        self.seen.append(raw)
        if raw != self.level:
            row = self.seen[-(self.on if raw else self.off) :]
            if len(row) == (self.on if raw else self.off) and all(x == raw for x in row):
                self.level = raw
        return self.level


class Model:
    """Every input by itself, from the words of SPEC."""

    def __init__(self):
        self.parts = {name: Slow(*NEEDED[name]) for name in BIT}
        self.closed = {name: Slow(7, 2) for name in ("a", "b")}
        self.invalid = {name: Slow(2, 2) for name in ("a", "b")}
        self.open = {name: Slow(2, 2) for name in ("a", "b")}

    def sample(self, word):
        levels = 0
        for name, part in self.parts.items():
            if part.sample(bool(word & contact(name))):
                levels |= BIT[name]
        for latch, closed, invalid, opened in (
            ("a", names.LATCH_A_CLOSED, names.LATCH_A_INVALID, LATCH_A_OPEN),
            ("b", names.LATCH_B_CLOSED, names.LATCH_B_INVALID, LATCH_B_OPEN),
        ):
            no = bool(word & contact(f"latch_{latch}_no"))
            nc = bool(word & contact(f"latch_{latch}_nc"))
            if self.closed[latch].sample(no and not nc):
                levels |= closed
            if self.invalid[latch].sample(no == nc):
                levels |= invalid
            if self.open[latch].sample(nc and not no):
                levels |= opened
        return levels


words = st.integers(0, 0x1FFF)
runs = st.lists(st.tuples(words, st.integers(1, 9)), min_size=1, max_size=40)
one_bit_runs = st.lists(
    st.tuples(st.integers(0, 12).map(lambda i: 1 << i) | st.just(0), st.integers(1, 9)),
    min_size=1,
    max_size=60,
)


@given(runs)
def test_all_inputs_together_are_each_one_alone(runs):
    inputs, model = Inputs(), Model()
    for word, scans in runs:
        for _ in range(scans):
            before = inputs.levels
            inputs.sample(word)
            assert inputs.levels & ALL == model.sample(word)
            assert inputs.rose == inputs.levels & ~before
            assert inputs.fell == before & ~inputs.levels


@given(one_bit_runs)
def test_one_contact_that_bounces_is_counted_from_the_start_each_time(flips):
    inputs, model = Inputs(), Model()
    word = OPEN
    for flip, scans in flips:
        word ^= flip
        for _ in range(scans):
            inputs.sample(word)
            assert inputs.levels & ALL == model.sample(word)


def test_at_power_on_nothing_has_been_seen_yet():
    inputs = Inputs()
    for _ in range(2):
        assert (inputs.levels, inputs.rose, inputs.fell, inputs.calm) == (0, 0, 0, 0)
        assert (inputs.disturbances, inputs.counting & ~(LATCH_A_OPEN | LATCH_B_OPEN)) == (0, 0)
        inputs.sample(OPEN)
    assert inputs.rose == inputs.levels == LATCH_A_OPEN | LATCH_B_OPEN


def test_until_settled_after_power_on_everything_is_on_the_safe_side():
    inputs = Inputs()
    everything = CLOSED
    for name in BIT:
        everything |= contact(name)
    for scan in range(1, 8):
        inputs.sample(everything)
        guards = names.SECURED if scan >= 7 else 0
        keys = names.KEYS | names.SERVICE if scan >= 5 else 0
        assert inputs.levels & (names.SECURED | names.KEYS | names.SERVICE) == guards | keys


@pytest.mark.parametrize("name", BIT)
@pytest.mark.parametrize("to", [True, False])
def test_how_long_a_level_must_last(name, to):
    word = OPEN if to else OPEN | contact(name)
    inputs = Inputs()
    for _ in range(20):
        inputs.sample(word)
    assert bool(inputs.levels & BIT[name]) is not to
    need = NEEDED[name][0 if to else 1]
    for scan in range(1, need + 1):
        inputs.sample(word ^ contact(name))
        assert bool(inputs.levels & BIT[name]) is (to if scan == need else not to)
    if need <= 2 and not to:
        assert need * 5 <= 10  # an opening is acted on within 10 ms


@pytest.mark.parametrize("broken", ["latch_a_no", "latch_a_nc", "latch_b_no", "latch_b_nc"])
@pytest.mark.parametrize("closed", [True, False])
def test_a_cut_wire_never_reads_as_a_closed_latch(broken, closed):
    latch = broken[6]
    inputs = Inputs()
    word = (CLOSED if closed else OPEN) & ~contact(broken)
    for _ in range(20):
        inputs.sample(word)
    bits = inputs.levels >> (0 if latch == "a" else 2) & 3
    carries = broken.endswith("no") == closed  # the contact that would be made now
    expected = "invalid" if carries else ("closed" if closed else "open")
    assert names.LATCH_VALUES[bits] == expected
    other = inputs.levels >> (2 if latch == "a" else 0) & 3
    assert names.LATCH_VALUES[other] == ("closed" if closed else "open")


@pytest.mark.parametrize("word", [0, OPEN | CLOSED])
def test_equal_contacts_are_invalid_and_not_closed_within_two_scans(word):
    inputs = Inputs()
    for _ in range(20):
        inputs.sample(CLOSED)
    for _ in range(2):
        inputs.sample(word)
    assert inputs.levels & (names.LATCH_A_CLOSED | names.LATCH_B_CLOSED) == 0
    assert inputs.levels & names.LATCH_A_INVALID and inputs.levels & names.LATCH_B_INVALID
    assert not inputs.levels & (LATCH_A_OPEN | LATCH_B_OPEN)


def test_only_a_proper_pair_counts_as_seen_open():
    inputs = Inputs()
    for _ in range(20):
        inputs.sample(OPEN)
    assert inputs.levels & LATCH_A_OPEN and inputs.levels & LATCH_B_OPEN


@pytest.mark.parametrize("word", [CLOSED, OPEN, 0])
def test_a_release_that_is_swallowed_by_bouncing_still_counts(word):
    """Whatever came before, the level that persists wins (PITFALLS 28)."""
    inputs = Inputs()
    pressed = word | contact("bell")
    for _ in range(10):
        inputs.sample(pressed)
    for _ in range(30):
        inputs.sample(word)
        inputs.sample(pressed)
    assert inputs.levels & names.BELL
    for _ in range(5):
        inputs.sample(word)
    assert not inputs.levels & names.BELL


def test_what_bounced_back_before_it_counted_is_a_disturbance():
    inputs = Inputs()
    for _ in range(20):
        inputs.sample(OPEN)
    before = inputs.disturbances
    inputs.sample(OPEN | contact("start"))
    assert inputs.counting & names.START
    inputs.sample(OPEN)
    inputs.sample(OPEN)
    assert inputs.disturbances == before + 1
    assert not inputs.counting
    inputs.sample(OPEN | contact("start"))
    inputs.sample(OPEN)
    assert inputs.disturbances == before + 2


def test_calm_counts_scans_since_the_last_thing_that_had_to_settle():
    inputs = Inputs()
    for _ in range(7):
        inputs.sample(OPEN | contact("dome"))
    start = inputs.calm
    for _ in range(5):
        inputs.sample(OPEN | contact("dome"))
    assert inputs.calm == start + 5
    inputs.sample(OPEN | contact("dome") | contact("paid"))
    assert inputs.calm == 0


def test_a_moving_base_does_not_make_the_table_uncalm():
    inputs = Inputs()
    for _ in range(20):
        inputs.sample(OPEN)
    before = inputs.calm
    for i in range(20):
        inputs.sample(OPEN | (contact("motion") if i % 2 else 0))
    assert inputs.calm == before + 20
