"""The link: what is sent when, what waits, and that every event arrives exactly once in effect."""

import itertools
import json
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import host
import interpreter
from flash import Flash
from linebench import KEY, Bench, Device, Journal, Pipe
from shaker import frame, lines, names, record
from shaker import journal as journals
from shaker import settings as config
from storage import Storage

EVENT_MAX = 240
REPLY_MAX = 1000
U32 = 0xFFFFFFFF
ORIGINS = (0, 2**29 - 5, 2**29 - 2500, 2**30 - 5, 2**30 - 2500)


def watch(bench, ms, what="seq"):
    """Play `ms`; return (time, value of `what`) of each line that has it, stamped when it is whole."""
    seen = []
    for _ in range(ms // Bench.SCAN_MS):
        bench.scan()
        for line in bench.heard():
            thing = host.decode(line)
            assert thing is not None
            if what in thing and (what != "seq" or "ev" in thing):
                seen.append((bench.now, thing[what]))
    return seen


def emit(bench, n=1, event=names.EV_COVERED):
    """Make `n` durable events."""
    for _ in range(n):
        bench.device.emit(event)
        bench.journal.append(bench.queue)


# -- What need not be called ------------------------------------------------------------------------

deeds = st.lists(
    st.tuples(
        st.sampled_from(
            (
                "emit",
                "emit",
                "many",
                "ack",
                "hello",
                "status",
                "replay",
                "noise",
                "pulse",
                "fail",
                "lost",
                "verify",
            )
        ),
        st.integers(0, 12),
        st.sampled_from([5, 10, 50, 250, 255, 700, 1000, 2000, 6000]),
    ),
    min_size=1,
    max_size=14,
)


def do(bench, deed, n, number):
    """Let happen to the device what `deed` names."""
    pipe = bench.pipe
    if deed in ("emit", "many"):
        for _ in range(n if deed == "emit" else 20):
            bench.device.emit(names.EV_COVERED)
    elif deed == "ack":
        bench.journal.ack(min(bench.journal.last, bench.journal.acked + n))
    elif deed == "hello":
        pipe.to_device(host.encode(number, "hello", {"nonce": "a1b2c3d4e5f60718"}))
    elif deed == "status":
        pipe.to_device(host.encode(number, "status", {}))
    elif deed == "replay":
        pipe.to_device(host.encode(number, "replay", {"from": 1 + n}))
    elif deed == "verify":
        pipe.to_device(host.encode(number, "verify", {"nonce": "a1b2c3d4e5f60718"}))
    elif deed == "noise":
        pipe.to_device(b"$" + bytes(range(n * 9)))
    elif deed == "pulse":
        bench.device.pulsing = not bench.device.pulsing
    elif deed == "fail":
        bench.journal.fails = not bench.journal.fails
        bench.device.state.faults = n & 1 and 1 << (names.F_JOURNAL_FAILED - 1)
    else:
        bench.journal.damaged = set(range(bench.journal.last, bench.journal.last + 3 * n))


@settings(deadline=None, max_examples=150)
@given(deeds, st.sampled_from(ORIGINS), st.sampled_from([0, 57]))
def test_what_is_not_called_would_have_done_nothing(deeds, origin, rate):
    plain = Bench(origin=origin, pipe=Pipe(rate))
    quick = Bench(origin=origin, pipe=Pipe(rate))
    plain.plain = True
    for number, (deed, n, ms) in enumerate(deeds, 1):
        for bench in (plain, quick):
            do(bench, deed, n, number)
        for _ in range(ms // Bench.SCAN_MS):
            plain.scan()
            quick.scan()
            assert quick.pipe.from_device() == plain.pipe.from_device()
            assert quick.link.up == plain.link.up
    assert quick.link.counters() == plain.link.counters()
    assert quick.journal.records == plain.journal.records


def test_a_line_with_nothing_to_say_is_left_alone():
    bench = Bench()
    emit(bench)
    watch(bench, 100)
    filled = []
    fill = bench.link.fill
    bench.link.fill = lambda now: (filled.append(bench.now), fill(now))
    bench.run(10_000)
    assert len(filled) < 60


def test_the_search_for_a_readable_event_goes_on_in_the_next_scan():
    bench = Bench()
    bench.journal.damaged = set(range(1, 60))
    emit(bench, 60)
    assert [seq for _, seq in watch(bench, 60)] == [60]


# -- Delivery --------------------------------------------------------------------------------------


@pytest.mark.parametrize("origin", ORIGINS)
def test_an_event_is_resent_after_250_500_1000_and_then_every_2000_ms(origin):
    bench = Bench(origin=origin)
    emit(bench)
    times = [at for at, _ in watch(bench, 12_000)]
    gaps = [after - before for before, after in itertools.pairwise(times)]
    for gap, want in zip(gaps, [250, 500, 1000, 2000, 2000, 2000, 2000, 2000], strict=True):
        assert abs(gap - want) <= 20, gaps


def test_eight_events_are_in_flight_and_no_more():
    bench = Bench()
    emit(bench, 12)
    assert {seq for _, seq in watch(bench, 10_000)} == set(range(1, 9))
    bench.journal.ack(3)
    assert {seq for _, seq in watch(bench, 10_000)} == set(range(4, 12))


def test_what_is_acknowledged_is_never_sent_again():
    bench = Bench()
    emit(bench, 5)
    watch(bench, 200)
    bench.journal.ack(4)
    assert {seq for _, seq in watch(bench, 5000)} == {5}
    bench.journal.ack(5)
    assert watch(bench, 5000) == []


def test_resending_reads_no_flash():
    bench = Bench()
    emit(bench, 8)
    watch(bench, 200)
    reads = bench.journal.reads
    assert len(watch(bench, 10_000)) > 24
    assert bench.journal.reads == reads


def test_only_what_is_durable_is_sent():
    bench = Bench()
    bench.journal.fails = True
    bench.device.emit(names.EV_COVERED)
    assert watch(bench, 1000) == []
    bench.journal.fails = False
    assert watch(bench, 50) == [(bench.now - 30, 1)]


def test_replies_and_heartbeats_wait_until_everything_is_durable():
    bench = Bench()
    watch(bench, 2000)
    bench.pipe.to_device(host.encode(1, "status", {}))
    bench.journal.fails = True
    bench.device.emit(names.EV_COVERED)
    bench.run(3000)
    assert bench.pipe.from_device() == b""
    bench.journal.fails = False
    bench.run(50)
    first = bench.pipe.from_device().split(b"\r\n")[0]
    assert b'{"re":1,' in first


def test_a_device_whose_journal_has_failed_still_answers():
    bench = Bench()
    bench.journal.fails = True
    bench.device.emit(names.EV_FAULT, names.F_JOURNAL_FAILED)
    bench.device.state.faults = 1 << (names.F_JOURNAL_FAILED - 1)
    bench.pipe.to_device(host.encode(1, "status", {}))
    assert watch(bench, 1000, "re")[0][1] == 1
    assert watch(bench, 2000, "hb")


def test_a_reply_goes_before_a_heartbeat_and_that_before_events():
    bench = Bench()
    bench.link.up = True
    emit(bench, 3)
    bench.pipe.to_device(host.encode(1, "status", {}))
    bench.run(500)
    kinds = [line[1:6] for line in bench.pipe.from_device().split(b"\r\n")]
    assert kinds[:4] == [b'{"re"', b'{"hb"', b'{"seq', b'{"seq']


def test_a_new_session_hastens_what_is_in_flight():
    bench = Bench()
    emit(bench, 3)
    watch(bench, 5100)
    bench.pipe.to_device(host.encode(1, "hello", {}))
    assert [seq for _, seq in watch(bench, 150)] == [4, 1, 2, 3]  # 4 is the link event


@pytest.mark.parametrize("origin", ORIGINS)
def test_a_heartbeat_comes_each_second(origin):
    bench = Bench(origin=origin)
    times = [at for at, _ in watch(bench, 10_000, "hb")]
    assert len(times) == 10
    assert all(after - before == 1000 for before, after in itertools.pairwise(times))


def test_the_heartbeat_is_written_exactly_so():
    bench = Bench()
    device = bench.device
    device.inputs, device.outputs, device.lamps = 0x1ABC, 0x5A, 1 << 38 | 5
    device.state.phase, device.state.round, device.state.repeat, device.state.fault = 5, 12, 1, 7
    bench.journal.last, bench.journal.acked = 41, 40
    device.now = 123456
    assert lines.heartbeat(device, bench.journal) == (
        '{"hb":123456,"ph":"PAYOUT","rd":12,"rep":1,"seq":41,"ack":40,"flt":"latch-b-wiring",'
        '"in":"1abc","out":"5a","lamps":"4000000005"}'
    )


# -- Replay and loss -------------------------------------------------------------------------------


def ask(bench, number, cmd, **args):
    """Say an unsigned command; return its reply."""
    bench.pipe.to_device(host.encode(number, cmd, args))
    for _ in range(200):
        bench.scan()
        for line in bench.heard():
            thing = host.decode(line)
            if thing and thing.get("re") == number:
                return thing
    raise AssertionError("no reply")


def test_replay_sends_again_from_a_number_and_moves_no_acknowledgement():
    bench = Bench()
    emit(bench, 30)
    bench.journal.ack(30)
    ask(bench, 1, "status")
    bench.journal.ack(31)  # link up
    reply = ask(bench, 2, "replay", **{"from": 12})
    assert reply["ok"] == {"from": 12, "to": 31}
    assert [seq for _, seq in watch(bench, 4000)] == list(range(12, 32))
    assert bench.journal.acked == 31


def test_a_replay_leaves_out_what_is_acknowledged_while_it_runs_but_not_what_was():
    bench = Bench(pipe=Pipe(57))
    emit(bench, 60)
    bench.journal.ack(10)
    watch(bench, 500)
    bench.pipe.to_device(host.encode(1, "replay", {"from": 5}))
    before = [seq for _, seq in watch(bench, 150)]
    assert before[:8] == list(range(5, 13))
    bench.journal.ack(40)
    after = [seq for _, seq in watch(bench, 2000)]
    assert min(after) in (max(before) + 1, 41) and {seq for seq in after if seq <= 40} <= {max(before) + 1}
    assert set(range(41, 61)) <= set(after)


def test_replay_skips_what_cannot_be_read_and_says_so():
    bench = Bench()
    emit(bench, 30)
    bench.journal.ack(30)
    ask(bench, 1, "status")
    bench.journal.ack(31)
    bench.journal.forget(5)
    bench.journal.damaged = {5, 6, 20}
    reply = ask(bench, 2, "replay", **{"from": 1})
    assert reply["ok"] == {"from": 7, "to": 31}
    want = [seq for seq in range(7, 32) if seq != 20]
    assert [seq for _, seq in watch(bench, 3000)] == want


def test_a_host_gets_over_events_that_are_lost_for_good():
    bench = Bench()
    emit(bench, 60)
    bench.journal.damaged = {1, 2, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 40, 58}
    there = host.Host(KEY, bench.pipe)
    bench.run(20_000, there)
    want = [seq for seq in range(1, bench.journal.last + 1) if seq not in bench.journal.damaged]
    assert [event["seq"] for event in there.events] == want
    assert bench.journal.acked == bench.journal.last


def test_a_lost_stretch_at_the_oldest_end_is_stepped_over():
    bench = Bench()
    emit(bench, 60)
    bench.journal.forget(33)
    there = host.Host(KEY, bench.pipe)
    bench.run(10_000, there)
    assert [event["seq"] for event in there.events] == list(range(33, bench.journal.last + 1))
    assert bench.journal.reads < 60  # and was not looked for one by one


# -- Pulses ----------------------------------------------------------------------------------------


def test_between_first_and_last_pulse_nothing_is_parsed_or_formatted():
    bench = Bench()
    bench.run(100)
    bench.pipe.from_device()
    bench.device.pulsing = True
    command = host.encode(1, "status", {})
    many = 512 // len(command)
    for number in range(many):
        bench.pipe.to_device(host.encode(1 + number % 9, "status", {}))
    emit(bench, 3)
    bench.run(3000)
    assert bench.pipe.from_device() == b""
    assert (bench.link.splitter.good, bench.link.overrun) == (0, 0)
    bench.device.pulsing = False
    bench.run(3000)
    assert bench.link.splitter.good == many


def test_a_ring_that_is_full_drops_what_comes_and_counts_it():
    bench = Bench()
    bench.device.pulsing = True
    bench.pipe.to_device(b"\0" * 600)
    bench.run(100)
    assert bench.link.overrun == 88
    bench.device.pulsing = False
    bench.run(100)
    bench.pipe.to_device(host.encode(1, "status", {}))
    bench.run(100)
    assert bench.link.splitter.good == 1


def test_the_host_is_not_taken_for_dead_because_of_a_shake():
    bench = Bench()
    bench.pipe.to_device(host.encode(1, "status", {}))
    bench.run(100)
    bench.device.pulsing = True
    bench.run(3000)
    bench.pipe.to_device(host.encode(2, "status", {}))
    bench.run(3000)
    bench.device.pulsing = False
    bench.run(100)
    assert bench.link.up and bench.journal.last == 1


def test_the_host_is_judged_only_when_all_it_said_has_been_looked_at():
    bench = Bench()
    bench.pipe.to_device(host.encode(1, "status", {}))
    bench.run(2500)
    bench.device.pulsing = True
    bench.pipe.to_device(b"\0" * 400 + host.encode(2, "status", {}))
    bench.run(2900)
    bench.device.pulsing = False
    bench.run(100)
    assert bench.link.up and bench.journal.last == 1


# -- Is the host there? ----------------------------------------------------------------------------


@pytest.mark.parametrize("origin", ORIGINS)
def test_the_host_is_down_after_five_seconds_without_a_frame(origin):
    bench = Bench(origin=origin)
    bench.run(20_000)
    assert bench.journal.last == 0  # nobody was ever there
    bench.pipe.to_device(host.encode(1, "status", {}))
    bench.run(100)
    assert bench.link.up
    bench.run(4800)
    assert bench.link.up
    bench.pipe.to_device(b"$nonsense*00000000\r\n")
    bench.run(200)
    assert not bench.link.up
    bench.run(20_000)
    ups = [bench.journal.records[seq][record.OFF_A] for seq in (1, 2)]
    assert (ups, bench.journal.last) == ([1, 0], 2)


# -- Bytes -----------------------------------------------------------------------------------------


class Shy(Pipe):
    """A UART that takes little, or nothing, at a time."""

    def __init__(self):
        super().__init__()
        self.turn = 0

    def write(self, buf, off, n):
        self.turn += 1
        if self.turn % 3 == 0:
            return None
        return super().write(buf, off, min(n, 7))


def test_no_scan_writes_more_than_the_line_carries_and_a_full_uart_loses_nothing():
    bench = Bench()
    emit(bench, 8)
    watch(bench, 1000)
    assert bench.pipe.longest_write == 57
    bench.link._tx_at, bench.link._tx_end = 0, 58
    bench.link.send()
    bench.link.send()
    assert bench.pipe.longest_write == 57 and bench.link.idle
    bench = Bench(pipe=Shy())
    emit(bench, 8)
    assert [seq for _, seq in watch(bench, 4000)][:8] == list(range(1, 9))


def test_a_busy_line_is_kept_full():
    bench = Bench()
    emit(bench, 400)
    there = host.Host(KEY, bench.pipe)
    sent = 0
    bench.run(300, there)
    for _ in range(100):
        bench.scan()
        sent += len(bench.pipe.tx)
        there.step(bench.now)
    assert sent >= 57 * 98
    assert bench.pipe.longest_write == 57


@settings(max_examples=30, deadline=None)
@given(st.lists(st.one_of(st.binary(max_size=200), st.just(host.encode(1, "status", {}))), max_size=20))
def test_random_bytes_never_stop_the_link(pieces):
    bench = Bench()
    for piece in pieces:
        bench.pipe.to_device(piece)
        bench.run(20)
    bench.pipe.to_device(b"\r\n" + host.encode(2, "hello", {}))
    bench.run(500)
    assert b'{"re":2,"ok":{' in bench.pipe.from_device()


# -- Exactly once ----------------------------------------------------------------------------------


def deliver(ppm, seed, kill_at, journal=None, n=60, limit_ms=400_000, reboot_at=()):
    """Make `n` events while a host takes them on a damaged line and dies at each number in `kill_at`."""
    pipe = Pipe(rate=57)
    bench = Bench(journal=journal, pipe=pipe)
    there = host.Host(KEY, pipe, ppm, seed)
    kill_at, reboot_at = set(kill_at), set(reboot_at)
    offset = ms = made = 0
    while ms < limit_ms:
        if made < n and ms % 200 == 0:
            bench.device.emit(1 + made % 7)
            made += 1
        bench.scan()
        ms += Bench.SCAN_MS
        there.step(ms)
        if there.last in kill_at:
            kill_at.discard(there.last)
            there.kill()
            for _ in range(seed * 7 % 60):
                bench.scan()
                there.step(ms)
            there.restart()
        if there.last in reboot_at and not bench.queue.count:
            reboot_at.discard(there.last)
            bench.journal.boot += 1
            bench.journal.acked = max(0, bench.journal.acked - 2)  # it is persisted with the next record only
            pipe.rx, pipe.tx = bytearray(), bytearray(b"\0ets Jun  8 2016\r\n$garbage")
            bench = Bench(journal=bench.journal, pipe=pipe)
            offset += 1
        if made == n and not bench.queue.count and bench.journal.acked == bench.journal.last:
            break
    return bench, there


def check_exactly_once(bench, there):
    assert [event["seq"] for event in there.events] == list(range(1, bench.journal.last + 1))
    for event in there.events:
        buf = bytearray(record.SIZE)
        assert bench.journal.read(event["seq"], buf)
        assert json.loads(lines.event(buf)) == event


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_every_event_arrives_once_with_one_byte_in_a_hundred_damaged_and_a_host_killed_at_each(seed):
    bench, there = deliver(10_000, seed, range(1, 60))
    check_exactly_once(bench, there)
    assert there.bad_lines > 20 and bench.link.splitter.crc > 5  # the line was as bad as that


def test_every_event_arrives_once_when_the_device_restarts_too():
    bench, there = deliver(3000, 4, range(1, 60, 5), reboot_at=range(3, 60, 7))
    check_exactly_once(bench, there)
    assert bench.journal.boot > 5


def test_every_event_of_a_real_journal_arrives_once():
    flash = Flash(blocks=64)
    storage = Storage(flash)
    storage.format()
    storage.mount()
    journal = journals.Journal(storage.files)
    journal.open()
    bench, there = deliver(2000, 5, range(1, 30, 3), journal=journal, n=30)
    check_exactly_once(bench, there)
    reply = ask(bench, U32, "counts")
    assert reply["ok"]["rounds"] == 0
    reply = ask(bench, U32, "hello")
    assert reply["ok"]["last"] == reply["ok"]["ack"] == bench.journal.last


def test_a_command_is_repeated_on_a_damaged_line_and_acts_once():
    for seed in range(1, 11):
        pipe = Pipe(rate=57)
        bench = Bench(pipe=pipe)
        there = host.Host(KEY, pipe, 10_000, seed)
        for n in range(1, 4):
            there.command("result", dice=[n, n, n])
            for _ in range(6000):
                bench.run(5, there)
                if there.last_reply is not None:
                    break
            assert there.last_reply == "ok"
        assert bench.device.done == [("result", (n, n, n)) for n in range(1, 4)]


def test_a_host_with_the_wrong_key_learns_so_and_nothing_acts():
    bench = Bench()
    there = host.Host(bytes(32), bench.pipe)
    there.command("paid")
    bench.run(2000, there)
    assert there.last_reply == "bad-mac" and bench.device.done == []


def test_an_absent_host_hears_and_says_nothing():
    bench = Bench()
    there = host.Host(KEY, bench.pipe)
    there.absent = True
    emit(bench, 3)
    bench.run(3000, there)
    assert there.events == [] and bench.link.splitter.good == 0
    there.absent = False
    bench.run(3000, there)
    assert [event["seq"] for event in there.events] == [1, 2, 3, 4]


TRACE = """
from linebench import KEY, Bench, Pipe
import host

pipe = Pipe(rate=57)
bench = Bench(pipe=pipe)
there = host.Host(KEY, pipe, 10000, 3)
for i in range(40):
    bench.device.emit(1 + i % 7)
    bench.run(200, there)
bench.run(30000, there)
for event in there.events:
    say(there.text(event))
say(str([there.last, there.duplicates, there.bad_lines, there.retries]))
"""


def test_the_whole_conversation_is_the_same_on_both_interpreters():
    here: list[str] = []
    exec(TRACE, {"say": here.append})
    path = (interpreter.FIRMWARE, interpreter.HERE / "fakes", interpreter.HERE)
    there = interpreter.run("say = print\n" + TRACE, path=path, heap_bytes=4_000_000).splitlines()
    assert there[:-1] == here[:-1] and len(here) > 41


def test_receiving_and_sending_allocate_nothing():
    code = """
import micropython
from linebench import Bench
import host

class Uart:
    def __init__(self):
        self.data = host.encode(1, "status", {}) + b"\\0noise$" + b"x" * 130
        self.rx = bytearray(64)
        self.at = 0
        self.sent = 0
    def any(self):
        return len(self.data) - self.at
    def readinto(self, buf, n):
        i = 0
        while i < n:
            buf[i] = self.data[self.at + i]
            i += 1
        self.at += n
        return n
    def write(self, buf, off, n):
        self.sent += n
        return n

uart = Uart()
bench = Bench(pipe=uart)
bench.device.emit(1)
bench.journal.append(bench.queue)
link = bench.link
link.fill(5)
micropython.heap_lock()
for i in range(50):
    link.receive()
    link.send()
micropython.heap_unlock()
print(uart.at, uart.sent, link._tx_end)
bench.device.pulsing = True
link.fill(3000)
micropython.heap_lock()
for i in range(50):
    link.receive()
    link.handle(3000 + i)
    link.fill(3000 + i)
    link.send()
micropython.heap_unlock()
print(link.splitter.good)
"""
    took, sent, made, good = interpreter.run(code).split()
    assert int(took) > 150 and sent == made and good == "0"


# -- Texts -----------------------------------------------------------------------------------------


def rec(event, a=0, b=0, x=0, y=0, text=None, dice=(0, 0, 0), big=True):
    """One record, by default with the longest numbers there can be."""
    seq, repeat, t_ms = (U32, 0xFFFF, 999) if big else (41, 0, 56)
    t_s, boot, at, rnd = (U32, U32, U32, U32) if big else (123, 3, 0, 12)
    longest = max(range(8), key=lambda phase: len(names.PHASES[phase])) if big else names.BETTING
    body = (record.KIND_EVENT, event, longest, 0, seq, boot, t_s, t_ms, repeat, at, rnd, 0, 0, 0, *dice, a, b)
    buf = bytearray(record.SIZE)
    struct.pack_into(record.BODY, buf, 0, *body)
    struct.pack_into("<II", buf, record.OFF_X, x, y)
    if text is not None:
        buf[record.OFF_TEXT : record.OFF_TEXT + record.TEXT_SIZE] = text.ljust(record.TEXT_SIZE, b"\0")
    return buf


HEAD = '{"seq":41,"boot":3,"t":123056,"at":null,"ev":"%s","ph":"BETTING","rd":12,"rep":0%s}'


@pytest.mark.parametrize(
    ("event", "arguments", "tail"),
    [
        (
            "boot",
            {"a": 1, "b": 3, "text": b"1.0.0"},
            ',"cause":"reset","ver":"1.0.0","clean":true,"auth":true',
        ),
        ("covered", {}, ""),
        ("bets-open", {}, ""),
        ("shake-done", {"a": 3}, ',"pulses":3'),
        (
            "result",
            {"dice": (1, 4, 6)},
            ',"dice":[1,4,6],"win":{"big":1,"fish":1,"coin":1,"rooster":1,"red2":3,"blue1":1,"n11":6}',
        ),
        ("refused", {"a": 0, "b": 4}, ',"what":"start","why":"latch-not-seen-open"'),
        ("key-stuck", {"a": 2}, ',"key":"bell"'),
        ("fault", {"a": 4}, ',"code":"dome-opened"'),
        ("fault", {"a": 1, "x": 2}, ',"code":"opened-in-shake","pulses":2'),
        (
            "fault",
            {"a": 14, "b": 2, "text": b'round.py:1"\\$\n\xff'},
            ',"code":"internal-error","type":"OSError","place":"round.py:1?????"',
        ),
        ("clear", {"a": 4}, ',"code":"dome-opened"'),
        ("recovered", {"a": 5}, ',"was":"PAYOUT"'),
        ("service", {"a": 1}, ',"on":true'),
        ("settings", {"a": 1}, ',"adopted":true'),
        ("settings", {"a": 0, "b": 0}, ',"adopted":false,"field":"actuation"'),
        ("settings", {"a": 0, "b": 254, "text": b"colour"}, ',"adopted":false,"field":"colour"'),
        ("settings", {"a": 0, "b": 255}, ',"adopted":false,"field":null'),
        ("time", {"x": 1800000000}, ""),
        ("link", {"a": 0}, ',"up":false'),
        ("lost", {"x": 7, "y": 9}, ',"from":7,"to":9'),
    ],
)
def test_each_event_is_written_exactly_so(event, arguments, tail):
    assert lines.event(rec(names.EVENTS.index(event), big=False, **arguments)) == HEAD % (event, tail)


def worst_records():
    """A record of every kind with the longest arguments it can have."""
    text = b"X" * record.TEXT_SIZE
    for event in range(len(names.EVENTS)):
        if event == names.EV_RESULT:
            for dice in itertools.product(range(1, 7), repeat=3):
                yield rec(event, dice=dice)
        elif event == names.EV_FAULT:
            for code in range(1, len(names.FAULTS)):
                for kind in range(len(names.ERRORS)):
                    yield rec(event, code, kind, x=U32, text=text if code == names.F_INTERNAL_ERROR else None)
        elif event == names.EV_BOOT:
            for cause in range(len(names.CAUSES)):
                yield rec(event, cause, 0, text=text)
        elif event == names.EV_SETTINGS:
            for field in range(len(config.FIELDS)):
                yield rec(event, 0, field)
            yield rec(event, 0, config.NO_SUCH_FIELD, text=text)
        else:
            for a, b in itertools.product(range(18), range(11)):
                yield rec(event, a, b, x=U32, y=U32)


def test_no_event_is_longer_than_240_bytes_whole():
    sizes = {len(frame.wrap(lines.event(buf))) for buf in worst_records()}
    assert 200 < max(sizes) <= EVENT_MAX


def test_records_of_a_newer_firmware_are_still_sent():
    for buf in (rec(200), rec(names.EV_REFUSED, 99, 99), rec(names.EV_FAULT, 99), rec(names.EV_RESULT)):
        assert host.decode(frame.wrap(lines.event(buf))[:-2])


class Vast(Journal):
    """A journal in which everything has happened as often as can be."""

    def counts(self):
        faults = dict.fromkeys(range(1, len(names.FAULTS)), U32)
        return {
            "rounds": U32,
            "voids": U32,
            "pulses": U32,
            "faults": faults,
            "dice": dict.fromkeys(range(1, 7), U32),
        }

    def summary(self, n):
        return {"round": U32, "repeat": 65535, "dice": (3, 4, 6), "voids": U32, "end": "abandoned", "at": U32}


def test_no_reply_is_longer_than_1000_bytes():
    bench = Bench(journal=Vast())
    bench.journal.last = bench.journal.acked = bench.journal.boot = U32
    device = bench.device
    device.state.phase, device.state.round, device.state.repeat = names.BETTING, U32, 65535
    device.state.fault, device.state.faults = names.F_POWER_LOST_IN_SHAKE, (1 << len(names.FAULTS) - 1) - 1
    device.lamps, device.dice, device.unix = (1 << 39) - 1, (1, 4, 6), U32
    device.ident = "f" * 32
    real = config.Settings()
    real.key = KEY
    real.table = "W" * 16
    real.authorisation = {
        "ref": "W" * 40,
        "requested": "2026-01-01",
        "granted": "2026-01-02",
        "adopted": "2026-01-09",
    }
    bench = Bench(journal=bench.journal, settings=real)
    bench.device.__dict__.update(
        {name: value for name, value in device.__dict__.items() if not name.startswith("_")}
    )
    session = bench.link.session
    for name in ("good", "crc", "form", "broken", "long", "noise"):
        setattr(bench.link.splitter, name, U32)
    bench.link.overrun = bench.link.resent = bench.queue.dropped = bench.journal.dropped = U32
    bench.device.now = U32 * 1000
    longest = 0
    commands = ({"cmd": "hello"}, {"cmd": "status"}, {"cmd": "rounds", "n": 10}, {"cmd": "counts"})
    for i, args in enumerate((*commands, {"cmd": "settings"})):
        cmd = args.pop("cmd")
        body = host.encode(U32 - 9 + i, cmd, args)[1:-11]
        reply = session.handle(body, None, frame.parse(body))
        assert reply is not None and '"ok":' in reply
        json.loads(reply)
        longest = max(longest, len(frame.wrap(reply)))
    assert 500 < longest <= REPLY_MAX


def test_the_device_double_and_the_real_one_offer_the_same():
    from shaker.device import Device as Real

    wanted = {"phase", "round", "repeat", "fault", "faults", "inputs", "outputs", "lamps", "dice"}
    wanted |= {"service", "pulsing", "outstanding"}
    wanted |= {"uptime_ms", "unix_time", "emit", "command"}
    assert wanted <= set(dir(Real)) and wanted <= set(dir(Device(None)))
