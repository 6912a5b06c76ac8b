"""The queue of records between a scan and the journal: in order, never losing what changes the state."""

import struct

from hypothesis import given
from hypothesis import strategies as st

from rig import Event
from shaker import names, record
from shaker.events import SLOTS, Queue
from shaker.state import State

MINOR = (names.EV_REFUSED, names.EV_KEY_STUCK, names.EV_LINK)


def numbered(queue):
    """The x of every waiting record, oldest first."""
    return [struct.unpack_from("<I", queue.buf, queue.slot(i) + record.OFF_X)[0] for i in range(queue.count)]


@given(st.lists(st.one_of(st.just("put"), st.integers(1, 8)), max_size=300))
def test_what_goes_in_comes_out_in_order(steps):
    queue, state = Queue(), State()
    expected, number = [], 0
    for step in steps:
        if step == "put":
            number += 1
            taken = queue.put(state, 0, 0, names.EV_RESULT, 0, 0, number)
            assert taken == (len(expected) < SLOTS)
            if taken:
                expected.append(number)
        else:
            n = min(step, queue.count)
            queue.drop(n)
            del expected[:n]
        assert queue.count == len(expected)
        assert numbered(queue) == expected


def test_when_room_runs_short_what_changes_nothing_is_dropped_first():
    queue, state = Queue(), State()
    put = 0
    while queue.put(state, 0, 0, names.EV_REFUSED):
        put += 1
    assert queue.dropped == 1
    left = SLOTS - put
    # Everything one scan can raise at once, each fault and each clear, still fits.
    assert left >= 2 * (len(names.FAULTS) - 1) or left >= 17
    for event in MINOR:
        assert not queue.put(state, 0, 0, event)
    for _ in range(left):
        assert queue.put(state, 0, 0, names.EV_FAULT, 1)
    assert queue.count == SLOTS
    assert queue.dropped == 1 + len(MINOR)


def test_too_few_strokes_change_the_phase_so_their_refusal_is_kept():
    queue, state = Queue(), State()
    while queue.put(state, 0, 0, names.EV_REFUSED):
        pass
    state.pack()
    state.rec[record.OFF_EVENT] = names.EV_REFUSED
    assert not queue.add(state.rec)
    state.rec[record.OFF_B] = names.WHY_TOO_FEW
    assert queue.add(state.rec)
    assert queue.put(state, 0, 0, names.EV_REFUSED, 0, names.WHY_TOO_FEW)


def test_a_full_queue_keeps_the_old_and_counts_what_it_lost():
    queue, state = Queue(), State()
    for i in range(SLOTS):
        queue.put(state, 0, 0, names.EV_COVERED, 0, 0, i)
    assert not queue.put(state, 0, 0, names.EV_PAID, 0, 0, 999)
    assert queue.dropped == 1
    assert numbered(queue) == list(range(SLOTS))


def test_a_record_carries_the_whole_state_after_its_event():
    queue, state = Queue(), State()
    state.phase, state.origin, state.flags = (
        names.FAULT,
        names.CLOSED,
        record.FLAG_BETS | record.FLAG_DISTURBED,
    )
    state.boot, state.round, state.repeat = 70000, 1_000_000, 300
    state.fault, state.faults = names.F_JOURNAL_FAILED, 0x1FFFF
    state.die1, state.die2, state.die3 = 1, 4, 6
    queue.put(state, 4_000_000, 999, names.EV_FAULT, 17, 5, 0xFFFFFFFF, 0x80000000)
    event = Event(queue.buf, queue.slot(0), 0)
    assert (event.name, event.phase, event.origin, event.flags) == ("fault", "FAULT", "CLOSED", 3)
    assert (event.boot, event.round, event.repeat, event.t) == (70000, 1_000_000, 300, 4_000_000_999)
    assert (event.fault, event.faults, event.dice) == ("journal-failed", 0x1FFFF, (1, 4, 6))
    assert (event.a, event.b, event.x, event.y) == (17, 5, 0xFFFFFFFF, 0x80000000)


def test_a_state_comes_back_from_its_record():
    queue, state = Queue(), State()
    state.phase, state.origin, state.flags = names.FAULT, names.PAYOUT, record.FLAG_BETS
    state.boot, state.round, state.repeat = 9, 12, 2
    state.fault, state.faults = 5, 0x30
    state.die1, state.die2, state.die3 = 6, 5, 4
    queue.put(state, 0, 0, names.EV_FAULT)
    back = State()
    back.boot = 10
    back.load(bytes(queue.buf[queue.slot(0) : queue.slot(0) + record.SIZE]))
    assert back.boot == 10
    for name in ("phase", "origin", "flags", "round", "repeat", "fault", "faults", "die1", "die2", "die3"):
        assert getattr(back, name) == getattr(state, name)
    assert back.owed()


def test_a_slot_used_again_holds_nothing_of_before():
    queue, state = Queue(), State()
    for _ in range(SLOTS):
        queue.put(state, 0, 0, names.EV_BOOT, 1, 1)
        queue.text(b"x" * record.TEXT_SIZE)
        queue.drop(1)
    queue.put(state, 0, 0, names.EV_COVERED)
    at = queue.slot(0)
    assert queue.buf[at + record.OFF_X : at + record.OFF_X + record.TEXT_SIZE] == bytes(record.TEXT_SIZE)


def test_text_goes_into_the_newest_record_and_is_cut():
    queue, state = Queue(), State()
    queue.put(state, 0, 0, names.EV_COVERED, 0, 0, 7)
    queue.put(state, 0, 0, names.EV_BOOT)
    queue.text(b"0123456789abcdefGHIJ")
    at = queue.slot(1)
    assert queue.buf[at + record.OFF_TEXT : at + record.OFF_CRC] == b"0123456789abcdefGH"
    assert numbered(queue)[0] == 7
    queue.text(b"ab")
    assert queue.buf[at + record.OFF_TEXT : at + record.OFF_CRC] == b"ab" + bytes(16)
