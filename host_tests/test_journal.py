"""The journal: durable, restorable, honest about what it lost, through cuts, damage and a full chip."""

import binascii
import struct

import pytest

import journal_bench
from flash import Flash
from interpreter import InterpreterError, run
from journal_bench import (
    DEFAULT,
    PARTITION,
    Bench,
    alike,
    fail_everywhere,
    inspect,
    prove,
    round_script,
    small,
    tally,
    wear,
)
from shaker import names, record
from shaker.journal import Journal, segment_name
from storage import Storage

NEVER = 16 * 5  # more rounds than any loop here needs


def seq_of(rec):
    """Return the event number in a record."""
    return struct.unpack_from("<I", rec, 4)[0]


def events(journal):
    """Return all events held as (name, record)."""
    found = []
    for seq in range(journal.first, journal.last + 1):
        buf = bytearray(64)
        if journal.read(seq, buf):
            found.append((names.EVENTS[buf[1]], bytes(buf)))
    return found


def two_segments(segment):
    """Return a bench whose journal has just begun its second segment; each is full at `segment` events."""
    bench = Bench(DEFAULT, segment=segment)
    bench.start()
    while len(bench.journal._segments) < 2:
        bench.one(names.EV_COVERED)
    return bench


def lost(journal):
    """Return the (from, to) of all `lost` events held."""
    return [struct.unpack_from("<II", rec, 42) for name, rec in events(journal) if name == "lost"]


def rewrite(bench, name, change):
    """Change a file's content: change(bytearray) -> bytes."""
    with bench.files.open(name, "rb") as f:
        data = bytearray(f.read())
    with bench.files.open(name, "wb") as f:
        f.write(bytes(change(data)))


# -- power cuts -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.long)])
def test_a_cut_at_any_operation_loses_nothing_and_invents_nothing(step):
    assert prove(step) > 1200 // step


@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.long)])
def test_the_same_under_the_real_interpreter(step):
    code = f"import journal_bench\nprint(journal_bench.prove({step}))"
    assert int(run(code, heap_bytes=32_000_000, timeout_s=600).split()[-1]) > 1200 // step


def test_the_proof_notices_a_journal_that_loses(monkeypatch):
    monkeypatch.setattr(Journal, "_extend_tail", lambda self, queue, waiting, extra: None)
    with pytest.raises(journal_bench.Broken):
        prove(7)


def test_a_write_that_fails_is_tried_again_without_loss_or_a_number_twice():
    for sizes in (DEFAULT, PARTITION):
        assert fail_everywhere(small(sizes), lambda b: (b.start(), b.round(), b.round())) > 20


def test_and_under_the_real_interpreter():
    code = (
        "from journal_bench import *\n"
        "script = lambda b: (b.start(), b.round(), b.round())\n"
        "print(sum(fail_everywhere(small(s), script) for s in (DEFAULT, PARTITION)))"
    )
    assert int(run(code, heap_bytes=32_000_000).split()[-1]) > 40


# -- capacity, loss, room -------------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [DEFAULT, PARTITION])
def test_a_thousand_events_and_ten_rounds_are_held_after_a_segment_was_dropped(sizes):
    bench = Bench(sizes)
    bench.start()
    paid = 0
    for _ in range(2):
        first = bench.journal.first
        while bench.journal.first == first:
            paid += 1
            bench.round((paid % 6 + 1, 2, 3))
            bench.journal.ack(bench.journal.last)
        bench.boot()
        assert bench.journal.last + 1 - bench.journal.first >= 1000
        assert len(events(bench.journal)) == bench.journal.last + 1 - bench.journal.first
        for n in range(1, 11):
            summary = bench.journal.summary(n)
            number = paid + 1 - n
            assert summary["round"] == number and summary["dice"] == (number % 6 + 1, 2, 3)
        assert bench.journal.summary(11) is None and bench.journal.summary(0) is None
    assert len(bench.files.listdir()) <= 6


@pytest.mark.parametrize(("segment", "second"), [(16, 17), (17, 20), (18, 20), (19, 20), (20, 23)])
def test_a_segment_is_full_when_it_holds_that_many_events(segment, second):
    bench = two_segments(segment)  # two in the tail, then three to the segment
    assert bench.journal._segments == [1, second]


def test_lost_tells_from_the_first_never_acknowledged_to_the_last_dropped():
    bench = Bench(PARTITION, segment=16, keep=3)
    bench.start()
    bench.round()
    bench.journal.ack(5)
    while bench.journal.first == 1:
        assert lost(bench.journal) == []
        bench.round()
    assert lost(bench.journal) == [(6, bench.journal.first - 1)]
    first = bench.journal.first
    while bench.journal.first == first:
        bench.round()
    bench.boot()
    assert lost(bench.journal)[-1] == (6, bench.journal.first - 1)
    assert bench.journal.last == len(bench.events) + 2
    bench.journal.ack(bench.journal.last)
    first = bench.journal.first
    while bench.journal.first == first:
        bench.round()
        bench.journal.ack(bench.journal.last)
    bench.boot()
    assert len(lost(bench.journal)) == 2, "no loss is told again"


@pytest.mark.parametrize(("at_once", "size"), [(32, 256), (51, 306)])
def test_unless_told_otherwise_it_holds_five_segments_of_256_and_two_records_in_the_tail(at_once, size):
    bench = Bench()
    journal = Journal(bench.files)
    journal.open()
    while journal.last < 6 * size:
        for _ in range(at_once):
            bench.put(names.EV_COVERED)
        journal.append(bench.queue)
        journal.ack(journal.last)
    assert journal._segments == [1 + n * size for n in range(1, 6)]
    bench.put(names.EV_BOOT)
    journal.append(bench.queue)  # begins the next one
    for held in (64, 128, 128):
        bench.put(names.EV_COVERED)
        journal.append(bench.queue)
        assert bench.files.size("tail.log") == held
    assert journal._tail_n == 0


def test_a_single_event_more_that_is_lost_is_told():
    bench = Bench(DEFAULT, segment=1, keep=3)
    bench.start()
    for _ in range(4):
        bench.one(names.EV_COVERED)
    assert bench.journal._segments == [3, 4, 6] and lost(bench.journal) == [(1, 1), (1, 2)]


def test_lost_has_the_state_of_the_event_before_it_and_arguments_of_its_own():
    bench = Bench(DEFAULT, segment=1, keep=3)
    bench.start()
    bench.one(names.EV_COVERED)
    bench.one(names.EV_COVERED)
    bench.state.phase = names.PAYOUT
    bench.state.round = 12
    bench.put(names.EV_RESULT, 1, b=2)
    bench.queue.text(b"eighteen letters..")
    bench.append()
    (_, result), (name, rec) = events(bench.journal)[-2:]
    assert name == "lost" and seq_of(rec) == seq_of(result) + 1
    assert rec[40:60] == struct.pack("<BBII10x", 0, 0, 1, 1)
    assert rec[2:4] == result[2:4] and rec[8:40] == result[8:40]


def test_what_was_acknowledged_goes_without_a_word():
    bench = small(PARTITION, acked=True)
    assert bench.journal.first > 1 and lost(bench.journal) == []


def test_nothing_is_lost_where_all_that_goes_was_acknowledged_and_no_more():
    bench = Bench(PARTITION, segment=16, keep=3)
    bench.start()
    while len(bench.journal._segments) < 3:
        bench.one(names.EV_COVERED)
    second = bench.journal._segments[1]
    bench.journal.ack(second - 1)
    while bench.journal.first == 1:
        bench.one(names.EV_COVERED)
    assert bench.journal.first == second and lost(bench.journal) == []
    assert segment_name(1) not in bench.files.listdir()


def test_on_a_full_chip_one_of_two_segments_goes():
    bench = two_segments(256)
    bench.storage.fill()
    second = bench.journal._segments[1]
    while bench.journal.first == 1:
        bench.one(names.EV_COVERED)
    assert bench.journal.first == second and bench.journal.ok


def test_what_was_damaged_and_what_is_dropped_are_told_in_one_write():
    bench = small(PARTITION)
    journal = bench.journal
    while journal._tail_n or journal.last + 1 - journal._segments[-1] < 16:
        bench.one(names.EV_COVERED)
    damaged = journal._segments[-1] + 3
    at = 512 + 64 * 3
    newest = segment_name(journal._segments[-1])
    before = lost(journal)
    rewrite(bench, newest, lambda data: data[:at] + bytes(64) + data[at + 64 :])
    bench.boot()
    first, last = bench.journal.first, bench.journal.last
    sizes = len(bench.journal._scratch), len(bench.journal._tail)
    bench.one(names.EV_LINK)
    assert bench.journal.first > first
    assert lost(bench.journal)[-2:] == [(1, bench.journal.first - 1), (damaged, damaged)] != before
    assert bench.journal.last == last + 3
    bench.one(names.EV_TIME)
    bench.boot()
    assert bench.journal.ok and bench.journal.last == last + 4
    assert [name for name, _ in events(bench.journal)][-4:] == ["link", "lost", "lost", "time"]
    bench.journal.mark(record.MARK_ALIVE)
    assert (len(bench.journal._scratch), len(bench.journal._tail)) == sizes, "no buffer grows"


def test_what_is_lost_is_told_with_all_its_32_bits():
    bench = Bench()
    bench.start()
    bench.put(names.EV_LINK)
    size = len(bench.journal._scratch)
    bench.journal._lost(bench.queue, 1, 1, 99, 0x12345678, 0x9ABCDEF0, 0)
    assert len(bench.journal._scratch) == size, "it neither grows nor shrinks"
    assert struct.unpack_from("<II", bench.journal._scratch, 42) == (0x12345678, 0x9ABCDEF0)


def test_the_acknowledgement_survives_with_the_next_record():
    bench = Bench()
    bench.start()
    bench.round()
    bench.journal.ack(4)
    bench.journal.ack(3)
    bench.journal.ack(400)
    assert bench.journal.acked == 4
    bench.one(names.EV_TIME)
    bench.boot()
    assert bench.journal.acked == 4


def test_required_never_overwrites_and_a_round_in_progress_always_fits():
    bench = Bench(PARTITION, segment=128, keep=3)
    bench.required = True
    bench.boot()
    bench.start()
    rounds = 0
    while bench.journal.room(True):
        bench.round()
        rounds += 1
        assert rounds < 100
    assert bench.journal.room(False)
    held = bench.journal.last
    assert held >= 2 * 128
    for _ in range(40):  # a round with many repeats goes on although there is no room for a new one
        bench.round(void=True)
    assert bench.journal.first == 1 and len(events(bench.journal)) == bench.journal.last
    assert lost(bench.journal) == []
    assert not bench.journal.room(True)
    bench.boot()
    assert bench.journal.first == 1 and not bench.journal.room(True)
    segments = bench.journal._segments
    enough = segments[len(segments) + 1 - bench.journal._keep] - 1  # the last event that must go
    bench.journal.ack(enough - 1)
    assert not bench.journal.room(True)
    bench.journal.ack(enough)
    assert bench.journal.room(True)
    while bench.journal.first == 1:
        bench.round()
        bench.journal.ack(bench.journal.last)
    assert lost(bench.journal) == []


def test_room_ends_64_records_before_the_last_segment_that_may_begin_is_full():
    bench = Bench(PARTITION, segment=128, keep=3)
    bench.required = True
    bench.boot()
    bench.start()
    said = []
    while len(bench.journal._segments) < 4:
        bench.one(names.EV_BOOT)
        used = bench.journal.last + 1 - bench.journal._segments[-1]
        said.append(bench.journal.room(True))
        assert said[-1] == (
            len(bench.journal._segments) < 3 or (len(bench.journal._segments) == 3 and used < 64)
        )
    assert True in said and False in said


def test_a_full_required_journal_leaves_out_what_changes_no_state():
    bench = Bench(PARTITION, segment=16, keep=3)
    bench.required = True
    bench.boot()
    bench.start()
    for _ in range(12):
        bench.round()
    last = bench.journal.last
    dropped = bench.journal.dropped
    for _ in range(100):
        bench.put(names.EV_REFUSED, names.WHAT_START, b=names.WHY_JOURNAL_FULL)
        bench.journal.append(bench.queue)
    assert bench.journal.last == last and bench.journal.dropped == dropped + 100 and bench.queue.count == 0
    bench.put(names.EV_REFUSED, names.WHAT_LEVER, b=names.WHY_TOO_FEW)  # ends a shake
    bench.journal.append(bench.queue)
    last += 1
    assert bench.journal.last == last
    bench.put(names.EV_REFUSED)
    bench.put(names.EV_FAULT, names.F_DOME_OPENED)
    bench.put(names.EV_COVERED)
    bench.journal.append(bench.queue)
    assert bench.journal.last == last + 1 and events(bench.journal)[-1][0] == "fault"
    bench.boot()
    assert bench.journal.last == last + 1 and bench.journal.ok
    bench.journal.ack(bench.journal.last)
    bench.put(names.EV_REFUSED)
    bench.journal.append(bench.queue)
    assert bench.journal.last == last + 2


@pytest.mark.parametrize("flags", [0, 0xFE])
def test_what_is_left_out_leaves_no_trace_wherever_the_others_go(flags):
    bench = Bench(PARTITION, segment=16, keep=3)
    bench.required = True
    bench.boot()
    bench.start()
    for _ in range(12):
        bench.round()
    bench.state.flags = flags
    last = bench.journal.last
    for n in range(1, 2 * bench.tail):
        bench.put(names.EV_REFUSED)
        bench.put(names.EV_TIME)
        bench.put(names.EV_COVERED)
        bench.put(names.EV_LINK)
        bench.journal.append(bench.queue)
        bench.boot()
        assert bench.journal.ok and bench.journal.problem is None and bench.journal.last == last + n
        assert bench.journal.dropped == 0, "in this boot"
    for n in (3, 6):
        bench.put(names.EV_TIME)
        for _ in range(3):
            bench.put(names.EV_REFUSED)
        bench.journal.append(bench.queue)
        assert bench.journal.dropped == n and bench.journal.newest[1] == names.EV_TIME
    bench.boot()
    assert [name for name, _ in events(bench.journal)[last:]] == ["time"] * (2 * bench.tail + 1)


def test_what_is_left_out_only_when_a_write_is_tried_again_keeps_no_number():
    bench = Bench(PARTITION, segment=16, keep=3)
    bench.required = True
    bench.boot()
    bench.start()
    for _ in range(12):
        bench.round()
    files = Late(bench.files)
    bench.journal = Journal(files, bench.tail, 16, 3)
    bench.journal.open()
    last = bench.journal.last
    bench.put(names.EV_REFUSED)
    bench.put(names.EV_TIME)
    files.refusing = 1
    with pytest.raises(OSError):
        bench.journal.append(bench.queue)
    bench.journal.required = True
    bench.journal.append(bench.queue)
    bench.boot()
    assert [name for name, _ in events(bench.journal)[last:]] == ["time"] and bench.journal.last == last + 1


def test_a_full_required_journal_keeps_a_cover_on_or_off_open_bets():
    bench = Bench(PARTITION, segment=16, keep=3)
    bench.required = True
    bench.boot()
    bench.start()
    for _ in range(12):
        bench.round()
    for event, phase, flags in (
        (names.EV_COVERED, names.COVERED, 0),
        (names.EV_COVERED, names.COVERED, record.FLAG_BETS),
        (names.EV_UNCOVERED, names.VOID, record.FLAG_BETS),
        (names.EV_UNCOVERED, names.IDLE, 0),
        (names.EV_UNCOVERED, names.IDLE, 0xFF & ~record.FLAG_BETS),
    ):
        last = bench.journal.last
        bench.state.phase, bench.state.flags = phase, flags
        bench.one(event)
        assert bench.journal.last == last + (flags == record.FLAG_BETS)


def test_leaving_out_begins_two_segments_beyond_what_is_held():
    bench = Bench(PARTITION, segment=16, keep=3)
    bench.required = True
    bench.boot()
    bench.start()
    for _ in range(200):
        bench.put(names.EV_REFUSED)
        bench.journal.append(bench.queue)
    assert len(bench.journal._segments) == 3 + 2
    assert bench.journal.last > 4 * 16 and bench.journal.dropped == 201 - bench.journal.last


# -- a chip that is full, read-only, absent -------------------------------------------------------------


@pytest.mark.parametrize("sizes", [DEFAULT, PARTITION])
def test_a_full_file_system_costs_the_oldest_segment_and_says_so(sizes):
    bench = Bench(sizes, segment=64, keep=5)
    bench.start()
    while len(bench.journal._segments) < 4:
        bench.round()
    bench.storage.fill()
    bench.boot()
    for _ in range(30):
        bench.round()
    assert bench.journal.first > 1
    bench.boot()
    assert bench.journal.ok
    assert lost(bench.journal)[-1] == (1, bench.journal.first - 1)
    count = inspect(bench, len(bench.events), len(bench.events))
    assert count == len(bench.events)


class Around:
    """Files, or one file (`_inner`), in all that a subclass does not do otherwise."""

    def __init__(self, inner):
        self._inner = inner

    def __getattr__(self, name):
        return getattr(self._inner, name)


class Sticky(Around):
    """Files of which some cannot be removed."""

    def __init__(self, files, *names):
        super().__init__(files)
        self._names = names

    def remove(self, name):
        """Remove, or refuse."""
        if name in self._names:
            raise OSError(5)
        self._inner.remove(name)


def interrupted_drop():
    """Return a bench whose oldest segment was to go when the power was cut, on a chip that is then full."""
    bench = Bench(DEFAULT, segment=64, keep=3)
    bench.start()
    while not bench.journal._segments[1:]:
        bench.round()
    oldest = segment_name(1)
    with bench.files.open(oldest, "rb") as f:
        data = f.read()
    while bench.journal.first == 1:
        bench.round()
        bench.journal.ack(bench.journal.last)
    with bench.files.open(oldest, "wb") as f:
        f.write(data)
    bench.storage.fill()
    return bench, oldest


def test_on_a_full_chip_what_an_interrupted_drop_left_goes_first():
    bench, oldest = interrupted_drop()
    bench.boot()
    first = bench.journal.first
    assert first > 1 and bench.files.size(oldest) > 0
    bench.required = bench.journal.required = True  # nothing that is held may go now: nothing is acknowledged
    bench.journal.acked = 0
    while bench.files.size(oldest) > 0:
        bench.one(names.EV_KEY_STUCK)
    assert bench.journal.first == first and lost(bench.journal) == [] and bench.journal.room(True)
    bench.boot()
    assert bench.journal.ok and bench.journal.first == first
    assert len(events(bench.journal)) == bench.journal.last + 1 - first


@pytest.mark.parametrize("stuck", [1, 2])
def test_what_cannot_be_removed_keeps_nothing_else_from_going(stuck):
    bench = Bench(PARTITION, segment=16, keep=3)
    bench.start()
    while len(bench.journal._segments) < 3:
        bench.one(names.EV_COVERED)
    first, second, third = bench.journal._segments
    bench.journal._files = Sticky(bench.files, *(segment_name(n) for n in (first, second)[:stuck]))
    while bench.journal.first < third:
        bench.one(names.EV_COVERED)
    left = [name for name in bench.files.listdir() if name != "tail.log"]
    assert segment_name(first) in left and (segment_name(second) in left) == (stuck == 2)
    assert len(left) == 3 + stuck


def test_on_a_full_chip_from_which_nothing_can_be_removed_the_write_fails():
    bench = two_segments(256)
    bench.storage.fill()
    bench.journal._files = Sticky(bench.files, segment_name(1))
    with pytest.raises(OSError) as caught:
        for _ in range(255):
            bench.one(names.EV_COVERED)
    assert caught.value.args[0] == 28 and bench.journal.first == 1


def test_what_cannot_be_removed_from_a_full_chip_costs_the_oldest_that_is_held():
    bench, oldest = interrupted_drop()
    bench.files = Sticky(bench.files, oldest)
    bench.journal = Journal(bench.files, bench.tail, 64, 3)
    bench.journal.open()
    first, second = bench.journal._segments[:2]
    while bench.journal.first == first:
        bench.one(names.EV_KEY_STUCK)
    assert bench.journal.first == second and bench.files.size(segment_name(first)) == -1
    assert bench.files.size(oldest) > 0


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.long)])
def test_a_cut_anywhere_while_room_is_being_made(step):
    bench = Bench(DEFAULT, segment=16, keep=9)
    bench.start()
    while len(bench.journal._segments) < 5:
        bench.round()
    bench.storage.fill()
    first = bench.journal.first

    def script(bench, steps=None):
        def act():
            bench.start()
            while bench.journal.first == first:
                bench.round()

        journal_bench._noted(bench, steps, act)

    assert journal_bench.cut_everywhere(bench, script, step=step) > 20 // step


def test_full_and_required_refuses_the_round_and_keeps_everything():
    bench = Bench(PARTITION, segment=64, keep=5)
    bench.required = True
    bench.boot()
    bench.start()
    bench.round()
    bench.storage.fill()
    bench.boot()
    bench.start()
    with pytest.raises(OSError) as caught:
        for _ in range(NEVER):
            bench.round()
    assert caught.value.args[0] == 28
    assert not bench.journal.room(True)
    waiting = bench.queue.count
    last = bench.journal.last
    assert waiting and bench.journal.first == 1
    bench.journal.ack(last - 1)
    assert not bench.journal.room(True)
    bench.journal.ack(last)
    assert bench.journal.room(True), "now the oldest segment may go"
    for name in bench.files.listdir():
        if name.startswith("foreign"):
            bench.files.remove(name)
    bench.journal.append(bench.queue)
    assert bench.journal.room(True) and bench.journal.last == last + waiting
    bench.one(names.EV_LINK)
    assert bench.journal.room(True), "it is full no longer, whatever is acknowledged"
    bench.boot()
    inspect(bench, len(bench.events), len(bench.events))


def test_a_read_only_chip_is_read_and_a_later_try_succeeds():
    bench = Bench()
    bench.start()
    bench.round()
    bench.flash.read_only = True
    bench.boot()
    assert bench.journal.ok and bench.journal.newest[1] == names.EV_PAID
    bench.put(names.EV_BOOT)
    for _ in range(3):
        with pytest.raises(OSError):
            bench.journal.append(bench.queue)
        with pytest.raises(OSError):
            bench.journal.mark(record.MARK_ALIVE)
    assert bench.queue.count == 1
    last = bench.journal.last
    bench.flash.read_only = False
    bench.append()
    bench.boot()
    assert bench.journal.last == last + 1
    inspect(bench, len(bench.events), len(bench.events))


def test_without_a_file_system_it_opens_says_so_and_gives_no_numbers(tmp_path):
    from shaker.files import Files

    bench = Bench()
    bench.put(names.EV_BOOT)
    for files in (Files(str(tmp_path / "nothing")),):
        journal = Journal(files)
        journal.open()
        assert not journal.ok and journal.problem and journal.newest is None and journal.boot == 1
        assert (journal.first, journal.last, journal.acked, journal.blank, journal.short_boots) == (
            1,
            0,
            0,
            True,
            0,
        )
        with pytest.raises(OSError) as caught:
            journal.append(bench.queue)
        assert caught.value.args == (19,) and bench.queue.count == 1
        assert not journal.read(1, bytearray(64))


class Refusing(Around):
    """Files of which one can be opened `times` only."""

    def __init__(self, files, name, times=0):
        super().__init__(files)
        self._name = name
        self._times = times

    def open(self, name, mode):
        """Open, or refuse."""
        if name == self._name:
            self._times -= 1
            if self._times < 0:
                raise OSError(5)
        return self._inner.open(name, mode)


def test_an_older_segment_that_cannot_be_read_is_not_held():
    bench = small(PARTITION)
    oldest, second = bench.journal._segments[:2]
    journal = Journal(Refusing(bench.files, segment_name(oldest)), bench.tail, 16, 3)
    journal.open()
    assert journal.ok and journal.problem == segment_name(oldest) + ": 5"
    assert (journal.first, journal.last) == (second, bench.journal.last)
    assert not journal.read(oldest, bytearray(64)) and journal.read(second, bytearray(64))


def test_a_newest_segment_that_cannot_be_read_behind_its_header_uses_up_what_it_may_hold():
    bench = small(PARTITION)
    bench.files.remove("tail.log")
    newest = bench.journal._segments[-1]
    journal = Journal(Refusing(bench.files, segment_name(newest), times=2), bench.tail, 16, 3)
    journal.open()
    assert not journal.ok and journal.problem == segment_name(newest) + ": 5"
    assert journal.last == newest - 1 + 16 >= bench.journal.last - bench.journal._tail_n
    assert journal.newest is not None and seq_of(journal.newest) == newest - 1


def test_damage_before_a_newest_segment_that_cannot_be_read_counts_beside_it():
    bench = small(PARTITION)
    bench.files.remove("tail.log")
    older, newest = bench.journal._segments[-2:]
    rewrite(bench, segment_name(older), lambda data: data[:-64] + bytes(64))
    journal = Journal(Refusing(bench.files, segment_name(newest), times=1), bench.tail, 16, 3)
    journal.open()
    assert not journal.ok and seq_of(journal.newest) == newest - 2
    assert journal.last == newest - 1 + 16


@pytest.mark.parametrize("damaged", [0, 2])
def test_a_tail_that_cannot_be_read_uses_up_what_it_may_hold(damaged):
    bench = small(PARTITION)
    held = bench.journal.last - bench.journal._tail_n
    newest = segment_name(bench.journal._segments[-1])
    rewrite(bench, newest, lambda data: data[: len(data) - 64 * damaged] + bytes(64 * damaged))
    journal = Journal(Refusing(bench.files, "tail.log"), bench.tail, 16, 3)
    journal.open()
    assert not journal.ok and journal.problem == (newest + ": damaged" if damaged else "tail.log: 5")
    assert journal.last == held + bench.tail >= bench.journal.last


@pytest.mark.parametrize("damaged", [7, 8, 9, 12])
def test_of_damage_at_the_end_leftovers_in_the_tail_make_up_for_what_they_hold_only(damaged):
    bench = Bench(PARTITION)
    bench.start()
    while bench.journal._tail_n or bench.journal.last < 16:
        bench.one(names.EV_COVERED)
    last = bench.journal.last
    assert bench.files.size("tail.log") == 7 * 64  # what the last write moved, and the event before the last
    rewrite(bench, segment_name(1), lambda data: data[: len(data) - 64 * damaged] + bytes(64 * damaged))
    bench.boot()
    assert not bench.journal.ok and bench.journal.last >= last
    bench.one(names.EV_LINK)
    assert bench.journal.last > last


def test_damage_at_the_end_of_the_segment_and_in_the_tail_adds_up():
    bench = small(PARTITION)
    bench.one(names.EV_COVERED)
    last = bench.journal.last
    assert bench.journal._tail_n == 1
    newest = segment_name(bench.journal._segments[-1])
    rewrite(bench, newest, lambda data: data[:-64] + bytes(64))
    rewrite(bench, "tail.log", lambda data: bytes(64))
    bench.boot()
    assert not bench.journal.ok and bench.journal.last == last


def test_of_a_journal_of_garbage_nothing_was_acknowledged():
    bench = Bench()
    with bench.files.open(segment_name(1), "wb") as f:
        f.write(b"\xff" * 700)
    bench.boot()
    assert (bench.journal.last, bench.journal.acked, bench.journal.ok) == (2, 0, False)


def test_a_segment_of_garbage_before_a_sound_tail_is_told():
    bench = small(PARTITION)
    while bench.journal.last + 1 - bench.journal._segments[-1] < 9 or not bench.journal._tail_n:
        bench.one(names.EV_COVERED)
    newest = segment_name(bench.journal._segments[-1])
    last = bench.journal.last
    rewrite(bench, newest, lambda data: b"\x5a" * len(data))
    bench.boot()
    assert not bench.journal.ok and newest in bench.journal.problem
    assert bench.journal.last == last == seq_of(bench.journal.newest)


def test_where_nothing_is_sound_behind_the_checkpoints_each_number_counts_once():
    bench = two_segments(16)
    while bench.journal.last - bench.journal._tail_n < bench.journal._segments[1] + 4:
        bench.one(names.EV_COVERED)
    last = bench.journal.last - bench.journal._tail_n
    bench.files.remove("tail.log")
    for first in bench.journal._segments:
        rewrite(bench, segment_name(first), lambda data: data[:512] + bytes(len(data) - 512))
    bench.boot()
    assert not bench.journal.ok and bench.journal.newest is None and bench.journal.last == last


def test_a_checkpoint_without_records_behind_it_is_not_added_to_what_the_records_before_it_say():
    bench = Bench(DEFAULT, segment=16)
    bench.start()
    while len(bench.journal._segments) < 2:
        bench.round()
    first, second = bench.journal._segments
    bench.files.remove("tail.log")
    rewrite(bench, segment_name(first), lambda data: bytes(512) + data[512:])
    rewrite(bench, segment_name(second), lambda data: data[:512])
    bench.boot()
    assert bench.journal.last == second - 1
    assert bench.journal.counts() == tally(bench.events[: second - 1])


def test_a_tail_alone_misses_nothing_but_what_was_before_it():
    bench = Bench(PARTITION)
    bench.start()
    bench.round()
    bench.one(names.EV_COVERED)
    assert bench.journal._tail_n
    last = bench.journal.last
    bench.files.remove(segment_name(1))
    bench.boot()
    bench.one(names.EV_LINK)
    assert bench.journal.ok and lost(bench.journal) == [(1, last)]
    bench.one(names.EV_TIME)
    bench.boot()
    assert bench.journal.ok and [name for name, _ in events(bench.journal)] == ["link", "lost", "time"]


class Backwards(Around):
    """Files whose names come in another order."""

    def listdir(self):
        """List from the last name to the first."""
        return sorted(self._inner.listdir(), reverse=True)


def test_segments_are_found_in_any_order():
    bench = small(PARTITION)
    journal = Journal(Backwards(bench.files), bench.tail, 16, 3)
    journal.open()
    assert journal.ok and journal.problem is None and journal._segments == bench.journal._segments
    assert events(journal) == events(bench.journal) and journal.counts() == bench.journal.counts()


def test_a_checkpoint_that_cannot_be_read_is_made_up_for_by_the_older_segments():
    bench = small(PARTITION)
    newest = segment_name(bench.journal._segments[-1])

    class Once(Refusing):
        """Files of which one refuses to be opened for a second time, and only then."""

        def open(self, name, mode):
            if name == newest:
                self._times += 1
                if self._times == 2:
                    raise OSError(5)
            return self._inner.open(name, mode)

    journal = Journal(Once(bench.files, newest), bench.tail, 16, 3)
    journal.open()
    assert journal.ok and newest in journal.problem
    assert journal.counts() == bench.journal.counts() and journal.last == bench.journal.last


def test_an_event_whose_segment_cannot_be_read_is_not_read():
    bench = small(PARTITION)
    oldest = bench.journal._segments[0]
    files = Refusing(bench.files, segment_name(oldest), times=99)
    journal = Journal(files, bench.tail, 16, 3)
    journal.open()
    assert journal.first == oldest
    files._times = 0
    assert not journal.read(oldest, bytearray(64))


def test_what_is_no_longer_held_is_not_read_out_of_the_buffer():
    bench = small(PARTITION)
    old = bench.journal.first + 12
    assert bench.journal.read(old - 12, bytearray(64))  # the buffer now holds both
    while bench.journal.first < old:
        bench.one(names.EV_COVERED)
    assert not bench.journal.read(old, bytearray(64))


class Sizeless(Around):
    """Files whose sizes cannot be told."""

    def size(self, name):
        """Fail as Files does."""
        return -1


def test_where_a_segment_of_unknown_size_goes_on_its_records_keep_their_places():
    bench = small(PARTITION)
    bench.journal = Journal(Sizeless(bench.files), bench.tail, 16, 3)
    bench.journal.open()
    bench.journal.ack(bench.journal.last)
    for _ in range(8):
        bench.one(names.EV_KEY_STUCK)
    last = bench.journal.last
    bench.boot()
    assert bench.journal.ok and bench.journal.last == last
    assert [seq_of(rec) for _, rec in events(bench.journal)] == list(range(bench.journal.first, last + 1))


def test_a_segment_of_garbage_and_of_unknown_size_uses_up_a_whole_one():
    bench = small(PARTITION)
    before, newest = bench.journal._segments[-2:]
    bench.files.remove("tail.log")
    rewrite(bench, segment_name(newest), lambda data: b"\x5a" * len(data))
    journal = Journal(Sizeless(bench.files), bench.tail, 16, 3)
    journal.open()
    assert not journal.ok and journal._segments[-1] == before and journal.last == newest - 1 + 16


class Unreadable:
    """A folder with a file name that is no text."""

    def listdir(self):
        """Fail as either interpreter does."""
        raise UnicodeError("utf-8")


def test_a_file_name_that_is_no_text_is_no_reason_to_raise():
    bench = Bench()
    bench.put(names.EV_BOOT)
    journal = Journal(Unreadable())
    journal.open()
    assert not journal.ok and journal.problem == "file system: utf-8" and journal.boot == 1
    with pytest.raises(OSError):
        journal.append(bench.queue)


def test_what_could_not_be_read_at_the_start_is_not_written_over_later():
    bench = Bench()
    bench.start()
    bench.round()
    bench.flash.failing = True
    journal = Journal(bench.files, bench.tail)
    journal.open()
    assert not journal.ok and journal.last == 0
    bench.flash.failing = False
    bench.put(names.EV_BOOT)
    with pytest.raises(OSError):
        journal.append(bench.queue)
    bench.boot()
    inspect(bench, len(bench.events), len(bench.events))


def test_a_chip_that_fails_later_loses_nothing_known():
    bench = Bench()
    bench.start()
    bench.round()
    last = bench.journal.last
    bench.flash.failing = True
    bench.put(names.EV_COVERED)
    for _ in range(2):
        with pytest.raises(OSError):
            bench.journal.append(bench.queue)
    assert bench.journal.last == last and bench.journal.newest[1] == names.EV_PAID
    bench.flash.failing = False
    bench.append()
    assert bench.journal.last == last + 1


class Late(Around):
    """Files that fail when all is written, `failing` times, or before, `refusing` times; or tell no names."""

    def __init__(self, files, code=5):
        super().__init__(files)
        self.code = code
        self.failing = 0
        self.refusing = 0
        self.blind = False

    def listdir(self):
        """List, or refuse."""
        if self.blind:
            raise OSError(19)
        return self._inner.listdir()

    def open(self, name, mode):
        """Open, failing late."""
        file = self._inner.open(name, mode)
        return _LateFile(self, file) if self.failing or self.refusing else file


class _LateFile(Around):
    def __init__(self, late, file):
        super().__init__(file)
        self._late = late

    def write(self, data):
        """Write, or fail."""
        if self._late.refusing:
            self._late.refusing -= 1
            raise OSError(self._late.code)
        return self._inner.write(data)

    def close(self):
        """Close, and perhaps fail."""
        self._inner.close()
        if self._late.failing:
            self._late.failing -= 1
            raise OSError(self._late.code)


def late(before, code=5, segment=4):
    """Return a bench with a boot and `before` other events, a journal over Late files, and these."""
    bench = Bench(DEFAULT, segment=segment, keep=5)
    bench.start()
    for _ in range(before):
        bench.one(names.EV_COVERED)
    files = Late(bench.files, code)
    bench.journal = Journal(files, bench.tail, segment, 5)
    bench.journal.open()
    return bench, files


@pytest.mark.parametrize("waiting", [1, 2])
@pytest.mark.parametrize("before", range(12))
def test_a_write_that_failed_when_it_was_durable_is_not_made_again(before, waiting):
    bench, files = late(before)
    for event in (names.EV_KEY_STUCK, names.EV_LINK, names.EV_TIME)[:waiting]:
        bench.put(event)
    files.failing = 1
    with pytest.raises(OSError):
        bench.journal.append(bench.queue)
    assert bench.queue.count == waiting
    for event in (names.EV_KEY_STUCK, names.EV_LINK, names.EV_TIME)[waiting:]:
        bench.put(event)
    bench.journal.append(bench.queue)
    assert bench.queue.count == 0
    bench.boot()
    said = [name for name, _ in events(bench.journal)]
    assert said == ["boot"] + ["covered"] * before + ["key-stuck", "link", "time"]
    assert bench.journal.last == before + 4 and bench.journal.ok


@pytest.mark.parametrize("before", range(8, 12))
def test_what_was_durable_on_a_chip_that_said_it_was_full_is_not_written_again(before):
    bench, files = late(before, code=28)
    bench.put(names.EV_KEY_STUCK)
    bench.put(names.EV_LINK)
    files.failing = 1
    bench.journal.append(bench.queue)
    assert bench.queue.count == 0
    bench.boot()
    assert bench.journal.first == 5, "the oldest segment was given up"
    said = [name for name, _ in events(bench.journal)]
    assert said == ["covered"] * (before - 3) + ["key-stuck", "link"] and bench.journal.ok


def test_a_write_that_failed_leaves_what_the_tail_held():
    bench, files = late(1, segment=64)
    rewrite(bench, "tail.log", lambda data: data + b"damage")
    bench.journal.open()
    bench.put(names.EV_LINK)
    bench.journal.append(bench.queue)  # goes to the segment with what the tail held
    bench.put(names.EV_TIME)
    bench.journal.append(bench.queue)  # writes the damaged file over
    bench.put(names.EV_KEY_STUCK)
    files.refusing = 1
    with pytest.raises(OSError):
        bench.journal.append(bench.queue)
    bench.boot()
    assert [name for name, _ in events(bench.journal)] == ["boot", "covered", "link", "lost", "time"]
    assert bench.journal.ok and bench.journal.problem is None


def test_after_a_write_that_failed_nothing_is_written_until_the_flash_was_read():
    bench, files = late(3)
    bench.put(names.EV_KEY_STUCK)
    files.failing = 1
    with pytest.raises(OSError):
        bench.journal.append(bench.queue)
    files.blind = True
    for act in (lambda: bench.journal.append(bench.queue), lambda: bench.journal.mark(record.MARK_ALIVE)):
        with pytest.raises(OSError) as caught:
            act()
        assert caught.value.args == (5,) and bench.queue.count == 1 and not bench.journal.ok
    files.blind = False
    bench.journal.append(bench.queue)
    bench.boot()
    assert [name for name, _ in events(bench.journal)] == ["boot"] + ["covered"] * 3 + ["key-stuck"]


def _no_checkpoints(bench):
    for first in bench.journal._segments:
        rewrite(bench, segment_name(first), lambda data: bytes(100) + data[100:])


def _damaged_end(bench):
    rewrite(bench, segment_name(bench.journal._segments[-1]), lambda data: data[:-100] + bytes(100))
    rewrite(bench, "tail.log", lambda data: data[:-20] + bytes(20))


def _nothing_left(bench):
    for name in bench.files.listdir():
        bench.files.remove(name)


@pytest.mark.parametrize("segment", [64, 256])
@pytest.mark.parametrize("damage", [None, _no_checkpoints, _damaged_end, _nothing_left])
def test_what_is_read_anew_after_a_write_failed_is_what_the_flash_says_alone(damage, segment):
    bench, files = late(0, segment=segment)
    bench.round()
    bench.round(void=True)
    bench.one(names.EV_SETTINGS, 1, 5, 6)
    while bench.journal.last < 100:
        bench.round()
    bench.one(names.EV_FAULT, names.F_OPENED_IN_SHAKE, 2)
    bench.journal.mark(record.MARK_ALIVE, 99)
    bench.one(names.EV_CLEAR, names.F_OPENED_IN_SHAKE)
    if damage:
        damage(bench)
    bench.put(names.EV_LINK)
    files.refusing = 1
    with pytest.raises(OSError):
        bench.journal.append(bench.queue)
    bench.queue.drop(1)
    bench.journal.append(bench.queue)  # nothing: the flash is read all the same
    fresh = Journal(bench.files, bench.tail, segment, 5)
    fresh.open()
    # Files and buffers are each journal's own; how it began, and what the host has said, is not in the flash.
    own = [
        "_files",
        "_block",
        "_scratch",
        "_state",
        "_tail",
        "acked",
        "blank",
        "boot",
        "clean",
        "short_boots",
    ]
    known, told = (
        {name: value for name, value in vars(journal).items() if name not in own}
        for journal in (bench.journal, fresh)
    )
    assert known == told


def test_after_a_mark_that_failed_nothing_is_written_until_the_flash_was_read():
    bench, files = late(3)
    files.failing = 1
    with pytest.raises(OSError):
        bench.journal.mark(record.MARK_ALIVE)
    files.blind = True
    bench.put(names.EV_LINK)
    with pytest.raises(OSError) as caught:
        bench.journal.append(bench.queue)
    assert caught.value.args == (5,)


# -- blank, foreign, damaged ----------------------------------------------------------------------------


def test_blank():
    journal = Bench().journal
    assert journal.ok and journal.problem is None and journal.blank and journal.clean
    assert (journal.last, journal.first, journal.acked, journal.boot, journal.newest) == (0, 1, 0, 1, None)
    assert journal.summary(1) is None and journal.counts() == tally([])
    journal.mark(record.MARK_ALIVE)
    assert journal.last == 0


def test_before_it_is_opened_it_knows_nothing_and_gives_no_numbers():
    bench = Bench()
    bench.start()
    journal = Journal(bench.files)
    assert (journal.required, journal.unix_base, journal.dropped) == (False, None, 0)
    assert (journal.boot, journal.acked, journal.blank, journal.clean, journal.short_boots) == (
        0,
        0,
        True,
        True,
        0,
    )
    assert (journal.ok, journal.problem, journal.newest, journal.first, journal.last) == (
        False,
        None,
        None,
        1,
        0,
    )
    assert (journal.options_word, journal.options_auth) == (0, 0)
    bench.put(names.EV_COVERED)
    with pytest.raises(OSError):
        journal.append(bench.queue)
    assert bench.queue.count == 1


def test_foreign_and_nonsensical_files_are_left_alone():
    bench = Bench()
    strange = {
        "00000000.log": b"x" * 900,
        "0000ABCD.log": b"\xff" * 5000,
        "FFFFFFFF.log": bytes(700),
        "00000002.log": b"",
        "0000000g.log": b"1",
        "000000FF.LOG": b"1",
        "notes.txt": b"by the technician",
        "00000007.log": b"SHKJ",
        "00000030.log": b"by hand:" + b"\x30\0\0\0" * 9,
    }
    for name, data in strange.items():
        with bench.files.open(name, "wb") as f:
            f.write(data)
    bench.boot()
    assert bench.journal.ok and bench.journal.blank and bench.journal.problem
    bench.start()
    for _ in range(3):
        bench.round()
    bench.boot()
    assert bench.journal.ok and bench.journal.last == len(bench.events) == len(events(bench.journal))
    for name, data in strange.items():
        with bench.files.open(name, "rb") as f:
            assert f.read() == data


@pytest.mark.parametrize("name", ["00000005.txt", "000000FE00.log", "0000000z.log", "5.log"])
def test_a_file_that_is_not_named_as_a_segment_is_no_problem(name):
    bench = Bench()
    with bench.files.open(name, "wb") as f:
        f.write(b"by the technician")
    bench.boot()
    assert bench.journal.ok and bench.journal.problem is None


def test_a_damaged_byte_anywhere_in_the_newest_segment_or_the_tail():
    bench = small(PARTITION)
    bench.start()
    segment = segment_name(bench.journal._segments[-1])
    good = events(bench.journal)
    assert bench.journal.newest is not None
    good_state = bytes(bench.journal.newest)
    last = bench.journal.last
    kept = bench.keep_here()
    sizes = {name: bench.files.size(name) for name in (segment, "tail.log")}
    for name, size in sizes.items():
        for at in range(0, size, 23):
            bench.back_to(kept)

            def change(data, at=at):
                data[at] ^= 1 << (at & 7)
                return data

            rewrite(bench, name, change)
            bench.boot()
            journal = bench.journal
            if not journal.problem:  # a leftover in the tail, or a byte nothing reads
                assert journal.newest == good_state and events(journal) == good
                continue
            assert journal.last >= last, "a number would be used twice"
            if journal.ok:
                assert journal.newest == good_state
            sound = events(journal)
            assert all(event in good for event in sound)
            assert len(sound) >= len(good) - 1
            bench.one(names.EV_BOOT)
            bench.boot()
            assert bench.journal.ok, "the newest record is sound again"
            assert seq_of(bench.journal.newest) > last
            if len(sound) < len(good):
                (start, end) = lost(bench.journal)[-1]
                missing = [seq_of(rec) for _, rec in good if rec not in [r for _, r in sound]]
                assert start <= missing[0] <= end
                count = len(lost(bench.journal))
                bench.one(names.EV_BOOT)
                bench.boot()
                bench.one(names.EV_BOOT)
                assert len(lost(bench.journal)) == count, "said once"


def test_a_damaged_checkpoint_is_made_up_for_by_the_older_segments():
    bench = small(PARTITION)
    counts = bench.journal.counts()
    summary = bench.journal.summary(3)
    newest = segment_name(bench.journal._segments[-1])
    rewrite(bench, newest, lambda data: data[:40] + bytes([data[40] ^ 1]) + data[41:])
    bench.boot()
    assert bench.journal.ok and newest in bench.journal.problem
    assert bench.journal.counts() == counts and bench.journal.summary(3) == summary


@pytest.mark.parametrize("at", [4, 8])
def test_a_checkpoint_of_another_form_or_segment_is_not_taken(at):
    """Version or first number differ, and the checksum is right."""
    bench = small(PARTITION)
    counts = bench.journal.counts()
    newest = segment_name(bench.journal._segments[-1])

    def change(data):
        data[at] += 1
        data[36:40] = b"\x77\0\0\0"  # another number of rounds
        data[508:512] = struct.pack("<I", binascii.crc32(data[:508]))
        return data

    rewrite(bench, newest, change)
    bench.boot()
    assert bench.journal.ok and newest in bench.journal.problem
    assert bench.journal.counts() == counts


@pytest.mark.parametrize("damaged", [1, 2, 5])
def test_damaged_records_at_the_very_end_use_up_their_numbers(damaged):
    bench = small(PARTITION)
    while bench.journal.last + 1 - bench.journal._segments[-1] - bench.journal._tail_n < 9:
        bench.round()
    last = bench.journal.last - bench.journal._tail_n
    bench.files.remove("tail.log")
    newest = segment_name(bench.journal._segments[-1])
    rewrite(bench, newest, lambda data: data[: len(data) - 64 * damaged] + bytes(64 * damaged))
    bench.boot()
    assert not bench.journal.ok and bench.journal.last == last
    assert seq_of(bench.journal.newest) == last - damaged


@pytest.mark.parametrize("damaged", [0, 1])
def test_a_newest_segment_of_garbage_uses_up_the_numbers_it_may_have_held(damaged):
    bench = small(PARTITION)
    while bench.journal.last + 1 - bench.journal._segments[-1] - bench.journal._tail_n < 5:
        bench.round()
    before, newest = bench.journal._segments[-2:]
    last = bench.journal.last - bench.journal._tail_n
    bench.files.remove("tail.log")
    rewrite(bench, segment_name(newest), lambda data: b"\x5a" * len(data))
    rewrite(bench, segment_name(before), lambda data: data[: len(data) - 64 * damaged] + bytes(64 * damaged))
    bench.boot()
    assert not bench.journal.ok and bench.journal.last == last


def test_a_newest_segment_of_garbage_is_not_counted_over_again():
    bench = small(PARTITION)
    while bench.journal.last + 1 - bench.journal._segments[-1] < 9:
        bench.round()
    newest = segment_name(bench.journal._segments[-1])
    bench.files.remove("tail.log")
    last = bench.journal.last
    size = bench.files.size(newest)
    rewrite(bench, newest, lambda data: b"\x5a" * size)
    bench.boot()
    assert not bench.journal.ok and bench.journal.newest is not None
    assert bench.journal.last >= last - bench.tail
    held = bench.journal.last
    bench.one(names.EV_BOOT)
    bench.boot()
    assert bench.journal.last > held


def test_events_behind_skipped_numbers_are_found():
    bench = Bench(PARTITION)
    bench.start()
    for _ in range(4):
        bench.one(names.EV_COVERED)
    size = bench.files.size("tail.log")
    rewrite(bench, "tail.log", lambda data: data[: size - 128] + bytes(128))
    bench.boot()
    held = bench.journal.last
    assert not bench.journal.ok and held == 5
    for _ in range(40):
        bench.one(names.EV_COVERED)
    bench.boot()
    assert bench.journal.ok
    assert [seq_of(rec) for _, rec in events(bench.journal)] == [1, 2, 3, *range(6, 47)]
    assert lost(bench.journal) == [(4, 5)]
    assert [rec[40:42] for name, rec in events(bench.journal) if name == "lost"] == [b"\0\1"]


@pytest.mark.parametrize(("acked", "told"), [(3, [(4, 5)]), (4, [(5, 5)]), (5, [])])
def test_damaged_events_that_the_host_has_are_not_told_of(acked, told):
    bench = Bench(PARTITION)
    bench.start()
    for _ in range(4):
        bench.one(names.EV_COVERED)
    rewrite(bench, "tail.log", lambda data: data[:-128] + bytes(128))
    bench.boot()
    assert bench.journal.last == 5
    bench.journal.ack(acked)
    for _ in range(2):
        bench.one(names.EV_LINK)
        assert lost(bench.journal) == told
    bench.boot()
    assert bench.journal.last == 7 + len(told) and bench.journal.ok


@pytest.mark.parametrize(("later", "told"), [(8, (5, 8)), (20, (20, 20))])
def test_damage_before_what_was_told_is_told_with_it_and_damage_behind_it_alone(later, told):
    bench = Bench(DEFAULT)

    def damaged(seq):
        at = 512 + 64 * (seq - 1)
        rewrite(bench, segment_name(1), lambda data: data[:at] + bytes(64) + data[at + 64 :])
        bench.boot()
        bench.one(names.EV_LINK)

    bench.start()
    for _ in range(12):
        bench.one(names.EV_COVERED)
    damaged(5)
    assert lost(bench.journal) == [(5, 5)]
    while bench.journal.last < 24:
        bench.one(names.EV_COVERED)
    damaged(later)
    assert lost(bench.journal) == [(5, 5), told]


def test_damaged_leftovers_in_the_tail_are_told_of_once():
    bench = Bench(PARTITION)
    bench.start()
    for _ in range(9):  # the first in the segment, seven in the tail, all moved, one in the tail again
        bench.one(names.EV_COVERED)
    assert bench.files.size("tail.log") == 7 * 64
    rewrite(bench, "tail.log", lambda data: data[:64] + bytes(256) + data[320:])
    bench.boot()
    assert not bench.journal.ok and bench.journal.newest is not None and bench.journal.last >= 10
    bench.one(names.EV_COVERED)
    bench.boot()
    assert bench.journal.ok and bench.journal.problem is None


def test_behind_a_sound_leftover_in_the_tail_damage_means_nothing():
    bench = Bench(PARTITION)
    bench.start()
    for _ in range(9):  # as above: one in the tail, six leftovers behind it
        bench.one(names.EV_COVERED)
    rewrite(bench, "tail.log", lambda data: data[:128] + bytes(len(data) - 128))
    bench.boot()
    assert bench.journal.ok and bench.journal.problem is None and bench.journal.last == 10


def test_of_a_tail_that_is_all_leftovers_only_the_first_needs_to_be_sound():
    bench = Bench(PARTITION)
    bench.start()
    for _ in range(8):
        bench.one(names.EV_COVERED)
    assert bench.journal._tail_n == 0 and bench.files.size("tail.log") == 7 * 64
    rewrite(bench, "tail.log", lambda data: data[:64] + bytes(6 * 64))
    bench.boot()
    assert bench.journal.ok and bench.journal.problem is None and bench.journal.last == 9


def test_names_tell_which_numbers_are_used_when_records_do_not():
    bench = small(PARTITION)
    last = bench.journal.last
    bench.files.remove("tail.log")
    first, second = bench.journal._segments[-2:]
    rewrite(bench, segment_name(first), lambda data: data[:700])
    rewrite(bench, segment_name(second), lambda data: data[:512])
    bench.boot()
    assert not bench.journal.ok and second - 1 <= bench.journal.last <= last
    assert bench.journal.newest is not None and seq_of(bench.journal.newest) < second - 1


@pytest.mark.parametrize("length", [0, 1, 300, 511, 512, 513, 600, 700])
def test_a_segment_cut_short(length):
    bench = small(PARTITION)
    newest = segment_name(bench.journal._segments[-1])
    rewrite(bench, newest, lambda data: data[:length])
    bench.boot()
    assert bench.journal.newest is not None
    for _ in range(3):
        bench.round()
    last = bench.journal.last
    bench.boot()
    assert bench.journal.ok and bench.journal.last == last
    seqs = [seq_of(rec) for _, rec in events(bench.journal)]
    assert seqs[-20:] == list(range(last - 19, last + 1))


def test_bits_flipped_anywhere_on_the_chip():
    bench = small(PARTITION)
    bench.start()
    kept = bench.keep_here()
    good = events(bench.journal)
    tried = 0
    used = [i for i in range(0, len(kept[0]), 4096) if kept[0][i : i + 4096] != b"\xff" * 4096]
    for block in used:
        for at in range(block, block + 4096, 211):
            bench.flash.data[:] = kept[0]
            bench.flash.data[at] ^= 1 << (at % 8)
            try:
                files = bench.storage.mount()
            except OSError:
                continue  # no file system: see the test without one
            journal = Journal(files, bench.tail, 16, 3)
            journal.open()
            for name, rec in events(journal):  # LittleFS may fall back to an older commit
                assert (name, rec) in good or name == "lost" or any(alike(rec, e) for e in bench.events)
            tried += 1
    assert tried > 100


def test_a_flip_in_the_last_write_undoes_that_write_alone_or_is_told():
    """What JOURNAL.md says it cannot know: LittleFS goes back by one commit, to the append before."""
    bench = Bench(PARTITION)
    bench.start()
    undone = told = 0
    for n in range(16):
        assert bench.journal.newest is not None
        before = bytes(bench.journal.newest)
        bench.flash.trace = trace = []
        for _ in range(n % 3):
            bench.put(names.EV_COVERED)
        bench.one(names.EV_UNCOVERED)
        bench.flash.trace = None
        after = bytes(bench.journal.newest)
        kept = bench.keep_here()
        for kind, block, offset, size in trace:
            for at in range(block * 4096 + offset, block * 4096 + offset + size, 61):
                if kind != "program" or kept[0][at] == 0xFF:
                    continue
                bench.flash.data[:] = kept[0]
                bench.flash.data[at] ^= 1 << (at % 8)
                journal = Journal(bench.storage.mount(), bench.tail)
                journal.open()
                if journal.problem:
                    told += 1
                    assert journal.last >= seq_of(before)
                else:
                    undone += journal.newest == before
                    assert journal.newest in (before, after) and journal.last == seq_of(journal.newest)
        bench.back_to(kept)
    assert undone > 20 and told > 20


def test_stale_tail_and_marks_never_come_back():
    bench = Bench(DEFAULT)
    bench.start()
    bench.one(names.EV_COVERED)
    bench.journal.mark(record.MARK_ALIVE, 60)  # now in the tail
    bench.journal.mark(record.MARK_CLEAN, 61)  # moves all to the segment; the tail keeps a leftover
    bench.boot()
    assert bench.journal.clean and bench.journal.newest[1] == record.MARK_CLEAN
    assert bench.journal.last == 2
    bench.one(names.EV_COVERED)
    with bench.files.open("tail.log", "rb") as f:
        assert seq_of(f.read()) == 3, "what a segment holds is not written again"


def test_a_longer_tail_of_another_configuration_is_taken_over():
    bench = Bench(PARTITION)
    bench.start()
    for _ in range(7):
        bench.one(names.EV_COVERED)
    bench.tail = 2
    bench.boot()
    assert bench.journal.last == 8
    bench.one(names.EV_UNCOVERED)
    bench.boot()
    assert bench.journal.ok and len(events(bench.journal)) == 9


# -- state, boots, marks --------------------------------------------------------------------------------


def test_the_newest_record_is_the_state():
    bench = Bench()
    bench.start()
    bench.state.phase = names.PAYOUT
    bench.state.round = 12
    bench.state.die1, bench.state.die2, bench.state.die3 = 1, 4, 6
    bench.one(names.EV_RESULT)
    bench.journal.mark(record.MARK_ALIVE, 61, 5)
    bench.boot()
    assert (bench.state.phase, bench.state.round) == (names.PAYOUT, 12)
    assert (bench.state.die1, bench.state.die2, bench.state.die3) == (1, 4, 6)
    assert not bench.journal.clean


def test_a_mark_repeats_the_state_and_has_a_time_and_no_arguments_of_its_own():
    bench = Bench()
    bench.start()
    bench.state.phase = names.PAYOUT
    bench.state.round = 12
    bench.put(names.EV_RESULT, 1, 0x01020304, 0x05060708, b=2)
    bench.queue.text(b"eighteen letters..")
    bench.append()
    result = bytes(bench.journal.newest or b"")
    bench.boot()
    bench.journal.unix_base = 1_900_000_000
    for what in (record.MARK_ALIVE, record.MARK_CLEAN):
        bench.journal.mark(what, 61, 5)
        mark = bytes(bench.journal.newest or b"")
        assert mark[:2] == bytes([record.KIND_MARK, what])
        assert struct.unpack_from("<IIIH", mark, 4) == (2, 2, 61, 5)
        assert struct.unpack_from("<I", mark, 20) == (1_900_000_061,)
        assert mark[2:4] == result[2:4] and mark[24:40] == result[24:40] and mark[40:60] == bytes(20)
    bench.journal.mark(record.MARK_CLEAN)
    assert struct.unpack_from("<IH", bench.journal.newest or b"", 12) == (0, 0)


def test_clean_and_short_boots():
    bench = Bench()
    expected = [0, 1, 2, 3, 4, 5]
    for n in expected:
        assert bench.journal.short_boots == n and bench.journal.boot == n + 1
        bench.start()
        bench.boot()
        assert not bench.journal.clean
    assert bench.journal.short_boots == 6
    bench.start()
    bench.journal.mark(record.MARK_ALIVE, 60)
    bench.boot()
    assert bench.journal.short_boots == 0 and not bench.journal.clean
    bench.start()
    bench.boot()
    assert bench.journal.short_boots == 1
    bench.start()
    bench.journal.mark(record.MARK_CLEAN, 3)
    bench.boot()
    assert bench.journal.short_boots == 0 and bench.journal.clean
    for _ in range(5):
        bench.start()
        bench.boot()
    assert bench.journal.short_boots == 5
    bench.start()
    bench.one(names.EV_CLEAR, names.F_OPENED_IN_SHAKE)
    bench.one(names.EV_FAULT, names.F_RESTART_STORM)
    bench.boot()
    assert bench.journal.short_boots == 6
    bench.start()
    bench.one(names.EV_CLEAR, names.F_RESTART_STORM)
    bench.boot()
    assert bench.journal.short_boots == 1
    bench.start()
    bench.t_s = 58
    bench.one(names.EV_COVERED)  # at 59 s
    bench.boot()
    assert bench.journal.short_boots == 2
    bench.start()
    bench.t_s = 59
    bench.one(names.EV_COVERED)  # at 60 s
    bench.boot()
    assert bench.journal.short_boots == 0


@pytest.mark.parametrize(("what", "short"), [(record.MARK_ALIVE, 0), (record.MARK_CLEAN, 0), (3, 1)])
def test_a_mark_tells_whatever_its_time_that_a_boot_was_no_short_one(what, short):
    bench = Bench()
    bench.start()
    bench.journal.mark(what, 3)
    bench.one(names.EV_COVERED)
    bench.boot()
    assert bench.journal.short_boots == short and not bench.journal.clean


def test_short_boots_are_counted_over_segment_changes():
    bench = Bench(PARTITION, segment=4, keep=3)
    for n in range(30):
        assert bench.journal.short_boots == n
        bench.start()
        bench.boot()


def test_a_boot_that_was_no_short_one_is_remembered_by_the_next_segment():
    begun = 0
    for before in range(2, 9):
        bench = Bench(PARTITION, segment=4, keep=3)
        bench.start()
        bench.boot()
        bench.start()  # one short boot, then this one, which lasts
        for n in range(before):
            bench.t_s = 60 + n
            bench.one(names.EV_COVERED)
        bench.boot()
        assert bench.journal.short_boots == 0
        bench.start()
        begun += bench.journal._segments[-1] == bench.journal.last  # all else is in the checkpoint
        bench.boot()
        assert bench.journal.short_boots == 1, "only the last one was short"
    assert begun


def test_time_is_filled_in_from_the_base():
    bench = Bench()
    bench.start()
    bench.journal.unix_base = 1_900_000_000
    bench.one(names.EV_TIME)
    bench.boot()
    at = [struct.unpack_from("<I", rec, 20)[0] for _, rec in events(bench.journal)]
    assert at == [0, 1_900_000_002]


def test_options_in_force():
    bench = Bench(PARTITION, segment=4, keep=3)
    bench.start()
    bench.one(names.EV_SETTINGS, 1, 0x1234, 0xDEADBEEF)
    bench.one(names.EV_SETTINGS, 0, 0x9999, 0x1111)
    for _ in range(20):
        bench.round()
        bench.boot()
        assert (bench.journal.options_word, bench.journal.options_auth) == (0x1234, 0xDEADBEEF)


# -- counters and rounds --------------------------------------------------------------------------------


def test_dice_are_counted_once_when_paid():
    bench = Bench()
    bench.start()
    bench.round((1, 1, 6))
    bench.state.phase = names.PAYOUT
    bench.state.die1 = bench.state.die2 = bench.state.die3 = 2
    for _ in range(3):
        bench.one(names.EV_RESULT)
    assert bench.journal.counts()["dice"] == {1: 2, 2: 0, 3: 0, 4: 0, 5: 0, 6: 1}
    bench.state.die3 = 3
    bench.one(names.EV_RESULT)
    bench.one(names.EV_PAID)
    assert bench.journal.counts()["dice"] == {1: 2, 2: 2, 3: 1, 4: 0, 5: 0, 6: 1}
    assert bench.journal.counts()["rounds"] == 2


def test_pulses_come_from_shakes_done_and_shakes_stopped():
    bench = Bench()
    bench.start()
    bench.one(names.EV_SHAKE_DONE, 3)
    bench.one(names.EV_FAULT, names.F_OPENED_IN_SHAKE, 2)
    bench.put(names.EV_FAULT, names.F_INTERNAL_ERROR)
    bench.queue.text(b"app.py:77")
    bench.append()
    counts = bench.journal.counts()
    assert counts["pulses"] == 5
    assert counts["faults"] == {names.F_OPENED_IN_SHAKE: 1, names.F_INTERNAL_ERROR: 1}
    bench.boot()
    assert bench.journal.counts() == counts


def test_round_summaries():
    bench = Bench()
    bench.start()
    bench.journal.unix_base = 1_800_000_000
    bench.round((6, 5, 4))
    state = bench.state
    bench.round(void=True)  # round 2: void, then repeated and paid
    state.repeat = 1
    state.phase = names.SHAKING
    bench.one(names.EV_SHAKE_START)
    state.phase = names.PAYOUT
    state.die1, state.die2, state.die3 = 3, 3, 1
    bench.one(names.EV_RESULT)
    state.phase = names.IDLE
    state.flags = 0
    bench.one(names.EV_PAID)
    state.round += 1  # round 3: the shake is aborted before bets opened
    state.repeat = 0
    state.die1 = state.die2 = state.die3 = 0
    state.phase = names.SHAKING
    bench.one(names.EV_SHAKE_START)
    state.phase = names.FAULT
    state.origin = names.SHAKING
    bench.one(names.EV_FAULT, names.F_OPENED_IN_SHAKE, 1)
    state.phase = names.IDLE
    state.origin = 0
    bench.one(names.EV_CLEAR, names.F_OPENED_IN_SHAKE)
    bench.round(void=True)  # round 4: void and given up
    state.phase = names.IDLE
    state.flags = 0
    bench.one(names.EV_ABANDONED)
    bench.boot()
    got = [bench.journal.summary(n) for n in range(1, 6)]
    assert all(s["at"] > 1_800_000_000 for s in got[:4])
    assert [(s["round"], s["repeat"], s["dice"], s["voids"], s["end"]) for s in got[:4]] == [
        (4, 0, None, 1, "abandoned"),
        (3, 0, None, 0, "aborted"),
        (2, 1, (3, 3, 1), 1, "paid"),
        (1, 0, (6, 5, 4), 0, "paid"),
    ]
    assert got[4] is None
    assert bench.journal.counts()["voids"] == 2


@pytest.mark.parametrize("face", [0, 7])
def test_what_is_no_face_is_not_counted(face):
    bench = Bench()
    bench.start()
    bench.round((face, face, 6))
    counts = bench.journal.counts()
    assert counts["dice"] == {1: 0, 2: 0, 3: 0, 4: 0, 5: 0, 6: 1} and counts["faults"] == {}


def test_voids_are_counted_by_round_and_only_where_the_round_is_known():
    bench = Bench()
    bench.start()
    bench.one(names.EV_VOID)  # of a round whose shake is not in this journal
    bench.round(void=True)
    bench.one(names.EV_VOID)
    bench.state.phase = names.IDLE
    bench.state.flags = 0
    bench.one(names.EV_PAID)
    assert bench.journal.summary(1)["voids"] == 2 and bench.journal.counts()["voids"] == 3


def test_a_round_that_another_follows_unpaid_tells_no_dice():
    bench = Bench()
    bench.start()
    bench.round(void=True)
    bench.state.repeat = 2
    bench.state.die1, bench.state.die2, bench.state.die3 = 1, 2, 3
    bench.one(names.EV_KEY_STUCK)
    bench.round()
    summary = bench.journal.summary(2)
    assert (summary["round"], summary["end"], summary["repeat"], summary["dice"]) == (1, "aborted", 0, None)


def test_a_shake_that_a_fault_ended_is_told_of_at_once():
    bench = Bench()
    bench.start()
    bench.state.round = 1
    bench.state.phase = names.SHAKING
    bench.one(names.EV_SHAKE_START)
    assert bench.journal.summary(1) is None
    bench.state.phase = names.FAULT
    bench.state.origin = names.SHAKING
    bench.one(names.EV_FAULT, names.F_OPENED_IN_SHAKE, 1)
    for _ in range(2):
        summary = bench.journal.summary(1)
        assert summary is not None and (summary["round"], summary["end"]) == (1, "aborted")
        assert bench.journal.summary(2) is None
        bench.one(names.EV_CLEAR, names.F_OPENED_IN_SHAKE)


def test_an_end_of_a_round_that_is_not_known_is_no_round():
    bench = Bench(PARTITION, segment=16, keep=3)
    bench.start()
    bench.round()
    first, _ = header(bench)

    def change(data):
        assert data[215] == 1  # paid
        data[215] = 4
        data[508:512] = struct.pack("<I", binascii.crc32(data[:508]))
        return data

    rewrite(bench, segment_name(first), change)
    bench.boot()
    assert bench.journal.problem is None and bench.journal.summary(1) is None


def test_no_fault_is_no_fault():
    bench = Bench()
    bench.start()
    bench.one(names.EV_FAULT, 0)
    bench.one(names.EV_FAULT, 1)
    bench.one(names.EV_FAULT, 1)
    assert bench.journal.counts()["faults"] == {1: 2}


def test_faults_of_a_later_firmware_are_counted_as_far_as_there_is_room():
    bench = Bench()
    bench.start()
    for code in (31, 32):
        bench.one(names.EV_FAULT, code)
    counts = bench.journal.counts()
    assert counts["faults"] == {31: 1} and not any(counts["dice"].values())


def test_a_key_in_a_shake_ends_no_round():
    bench = Bench()
    bench.start()
    state = bench.state
    state.round = 1
    state.phase = names.SHAKING
    bench.one(names.EV_SHAKE_START)
    bench.one(names.EV_REFUSED, names.WHAT_BELL)
    assert bench.journal.summary(1) is None
    state.phase = names.IDLE
    bench.one(names.EV_PAID)
    assert bench.journal.summary(1)["end"] == "paid" and bench.journal.summary(2) is None


def test_the_voids_of_an_open_round_are_counted_over_segment_changes():
    bench = Bench(PARTITION, segment=4, keep=3)
    bench.start()
    bench.round(void=True)
    for _ in range(12):
        bench.one(names.EV_KEY_STUCK)
    bench.boot()
    bench.state.phase = names.IDLE
    bench.state.flags = 0
    bench.one(names.EV_ABANDONED)
    summary = bench.journal.summary(1)
    assert summary is not None and (summary["voids"], summary["end"]) == (1, "abandoned")


# -- the form in flash, as firmware/JOURNAL.md gives it: what an older firmware wrote must be read ----------


def header(bench):
    """Begin a new segment by an event that means nothing; return its first number and its file."""
    count = bench.journal._segments[-1]
    while bench.journal._segments[-1] == count:
        bench.journal.read(bench.journal.last - 40, bytearray(64))  # leaves records in the block buffer
        bench.one(names.EV_KEY_STUCK)
    first = bench.journal._segments[-1]
    with bench.files.open("%08X.log" % first, "rb") as f:
        return first, f.read()


def test_a_checkpoint_has_the_form_of_its_page():
    bench = Bench(PARTITION, segment=64, keep=5)
    for _ in range(2):
        bench.start()
        bench.boot()
    bench.journal.unix_base = 1_900_000_000
    bench.start()
    bench.one(names.EV_SETTINGS, 1, 0x01020304, 0xDEADBEEF)
    for n in range(11):
        bench.round((n % 6 + 1, 2, 5), void=n == 8)
    bench.one(names.EV_FAULT, names.F_JOURNAL_FAILED, 7)
    bench.one(names.EV_FAULT, names.F_OPENED_IN_SHAKE, 2)
    bench.round(void=True)
    bench.t_s = 60
    first, data = header(bench)
    assert data[:4] == b"SHKJ"
    assert struct.unpack_from("<HHIIIIHBBIHH", data, 4) == (1, 512, first, 1, 0, 3, 2, 1, 0, 12, 1, 0)
    counts = [0] * 41
    counts[:3] = 10, 2, 12 * 3 + 7 + 2
    counts[3 + names.F_JOURNAL_FAILED] = counts[3 + names.F_OPENED_IN_SHAKE] = 1
    counts[35:] = 2, 12, 1, 2, 12, 1
    assert list(struct.unpack_from("<41I", data, 36)) == counts
    paid = {seq_of(rec): rec for name, rec in events(bench.journal) if name == "paid"}
    at = [struct.unpack_from("<I", rec, 20)[0] for rec in paid.values()][::-1]
    numbers = [11, 10, 9, 8, 7, 6, 5, 4, 3, 2]
    for i, number in enumerate(numbers):
        row = struct.unpack_from("<IIHHBBBBI", data, 200 + 20 * i)
        if number == 9:  # void, and no further shake until the next round's: given up without a word
            assert row[0] == 9 and row[3:] == (1, 0, 0, 0, 3, 0)
        else:
            n = number - 1
            assert row == (number, at[i - (number < 9)], 0, 0, n % 6 + 1, 2, 5, 1, 0)
    assert struct.unpack_from("<II", data, 400) == (0x01020304, 0xDEADBEEF)
    assert data[408:508] == bytes(100)
    assert struct.unpack_from("<I", data, 508) == (binascii.crc32(data[:508]),)
    assert data[512] == record.KIND_EVENT and struct.unpack_from("<I", data, 516) == (first,)
    bench.boot()
    assert [bench.journal.summary(n)["round"] for n in range(1, 11)] == numbers
    assert bench.journal.summary(10)["dice"] == (2, 2, 5)


def test_the_first_checkpoint_of_a_device_is_all_zero_but_for_its_form():
    bench = Bench()
    bench.start()
    with bench.files.open(segment_name(1), "rb") as f:
        data = f.read()
    assert data[:20] == b"SHKJ" + struct.pack("<HHIII", 1, 512, 1, 1, 0) and data[20:508] == bytes(488)


def test_a_checkpoint_that_holds_nothing_does_not_cost_its_own_segment():
    bench = Bench()
    bench.start()
    bench.one(names.EV_COVERED)

    def change(data):
        data[12:16] = struct.pack("<I", 1000)
        data[508:512] = struct.pack("<I", binascii.crc32(data[:508]))
        return data

    rewrite(bench, segment_name(1), change)
    bench.boot()
    assert bench.journal.ok and bench.journal.first == 1
    bench.one(names.EV_LINK)
    assert [name for name, _ in events(bench.journal)] == ["boot", "covered", "link"]


@pytest.mark.parametrize(("number", "ours"), [(4, False), (5, True), (21, True), (22, False)])
def test_a_segment_without_its_header_is_known_by_a_number_near_its_name(number, ours):
    bench = Bench()
    bench.start()
    rec = bytearray(bench.journal.newest or b"")
    rec[4:8] = struct.pack("<I", number)
    rec[60:] = struct.pack("<I", binascii.crc32(rec[:60]))
    bench.files.remove(segment_name(1))
    with bench.files.open(segment_name(5), "wb") as f:
        f.write(b"\x5a" * 512 + rec)
    bench.boot()
    assert bench.journal.blank != ours and bench.journal.problem == segment_name(5) + ": damaged"
    assert bench.journal.last == (number if ours else 0)


def test_a_checkpoint_tells_what_is_held_and_what_was_told_as_lost():
    bench = Bench(PARTITION, segment=16, keep=3)
    bench.start()
    told = []
    for _ in range(8):
        _, data = header(bench)
        held, lost_to = struct.unpack_from("<II", data, 12)
        assert held == bench.journal.first
        assert lost_to == (told[-1] if told else 0)
        told = [end for _, end in lost(bench.journal)]
    assert len(told) >= 3


# -- cost -----------------------------------------------------------------------------------------------


class Watched(Around):
    """Files that count what is read of which file."""

    def __init__(self, files):
        super().__init__(files)
        self.read = {}
        self.largest = 0

    def open(self, name, mode):
        """Open, watching."""
        return _WatchedFile(self, name, self._inner.open(name, mode))


class _WatchedFile(Around):
    def __init__(self, watch, name, file):
        super().__init__(file)
        self._watch = watch
        self._name = name

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self._inner.close()

    def readinto(self, buf):
        """Read, counting."""
        n = self._inner.readinto(buf)
        self._watch.read[self._name] = self._watch.read.get(self._name, 0) + n
        self._watch.largest = max(self._watch.largest, len(buf))
        return n


def test_a_boot_reads_the_newest_segment_and_the_tail_only():
    bench = Bench()
    bench.start()
    while bench.journal.last < 1270:
        bench.round()
    watch = Watched(bench.files)
    journal = Journal(watch, bench.tail)
    journal.open()
    assert journal.last == bench.journal.last and journal.ok
    newest = segment_name(journal._segments[-1])
    assert len(journal._segments) == 5
    for name, size in watch.read.items():
        if name not in (newest, "tail.log"):
            assert size <= 1024
    assert watch.read[newest] <= bench.files.size(newest) + 1024 + 512
    assert watch.largest <= 1024
    watch.read.clear()
    buf = bytearray(64)
    assert journal.read(300, buf) and seq_of(buf) == 300
    assert sum(watch.read.values()) <= 2048
    watch.read.clear()
    assert journal.read(301, buf) and seq_of(buf) == 301
    assert watch.read == {}, "what was read along is not read again"
    assert journal.read(journal.last, buf) and watch.read == {}, "the newest are in memory"


def test_events_behind_many_marks_are_found():
    bench = Bench()
    for n in range(120):
        bench.start()
        bench.journal.mark(record.MARK_ALIVE, n)
        bench.journal.mark(record.MARK_CLEAN, n)
        bench.boot()
    assert [seq_of(rec) for _, rec in events(bench.journal)] == list(range(1, 121))


@pytest.mark.parametrize(
    ("sizes", "programs", "erases", "years"), [(DEFAULT, 70, 3.2, 30), (PARTITION, 12, 2.4, 40)]
)
def test_flash_cost_of_a_round(sizes, programs, erases, years):
    figures = wear(sizes, 60)
    assert figures["writes_per_round"] <= 12
    assert figures["programs_per_round"] <= programs
    assert figures["erases_per_round"] <= erases
    assert figures["life_years"] > years


def test_memory_stays_flat_under_the_real_interpreter():
    code = (
        "import gc, journal_bench as j\n"
        "b = j.Bench(segment=32, keep=3)\n"
        "b.append = lambda: b.journal.append(b.queue)\n"
        "b.start()\n"
        "def used():\n"
        "    gc.collect()\n"
        "    return gc.mem_alloc()\n"
        "for i in range(40): b.round()\n"
        "before = used()\n"
        "for i in range(400): b.round()\n"
        "print(used() - before, b.journal.first)\n"
    )
    grown, first = run(code, heap_bytes=2_000_000).split()
    assert int(first) > 3000
    assert int(grown) <= 512


def test_a_failing_proof_ends_the_interpreter_with_an_error():
    with pytest.raises(InterpreterError):
        run("import journal_bench\njournal_bench.need(False, 'x')")


def test_round_script_has_the_seven_appends_the_figures_speak_of():
    bench = Bench()
    steps = []
    round_script(bench, steps)
    assert len(steps) == 1 + journal_bench.ROUND_APPENDS


def test_storage_can_be_small():
    storage = Storage(Flash(40))
    storage.format()
    journal = Journal(storage.mount())
    journal.open()
    assert journal.ok
