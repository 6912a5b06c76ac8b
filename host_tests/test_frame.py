"""Frames: what is a line, what is dropped, and that every interpreter draws the same border."""

import binascii
import json
import random
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import interpreter
from shaker import frame

RING = 4096


def line(body: bytes) -> bytes:
    return b"$" + body + b"*%08X\r\n" % binascii.crc32(body)


def split(data: bytes, cuts=()):
    """Feed `data`, cut at the given places; return what was accepted, and the splitter."""
    splitter = frame.Splitter()
    found = []
    ring = bytearray(RING)
    at = 0
    for start, end in zip((0, *cuts), (*cuts, len(data)), strict=True):
        piece = data[start:end]
        for i, byte in enumerate(piece):
            ring[(at + i) % RING] = byte
        left = len(piece)
        while left:
            n = splitter.take(ring, at, RING - 1, left)
            at = (at + n) % RING
            left -= n
            if splitter.length:
                found.append(splitter.decode())
    return [item for item in found if item], splitter


def reference(data: bytes) -> list[bytes]:
    """What PROTOCOL's words say, written another way: the bodies (with mac) of all frames in `data`."""
    bodies = []
    for match in re.finditer(rb"\$([^$\n]*)\*([0-9A-F]{8})\r\n", data):
        body, crc = match.groups()
        if len(match.group()) <= frame.LINE_MAX and b"%08X" % binascii.crc32(body) == crc:
            bodies.append(body)
    return bodies


STATUS = b'{"id":7,"cmd":"status"}'
RESULT = b'{"id":8,"cmd":"result","dice":[1,4,6]}'


def test_a_frame_is_taken_with_its_values():
    ((body, mac, thing),), splitter = split(line(RESULT))
    assert (body, mac, thing) == (RESULT, None, {"id": 8, "cmd": "result", "dice": [1, 4, 6]})
    assert splitter.good == 1


def test_a_signed_frame_gives_its_mac_apart():
    ((body, mac, _),), _ = split(line(RESULT + b"~0123456789abcdef"))
    assert (body, mac) == (RESULT, b"0123456789abcdef")


def test_an_integer_has_ten_digits_at_most():
    assert frame.parse(b'{"a":9999999999,"b":-9999999999}') == {"a": 9999999999, "b": -9999999999}
    assert frame.parse(b'{"a":10000000000}') == {"a": frame.ODD}


def test_wrap_makes_what_decode_takes():
    assert frame.wrap('{"re":7,"ok":{}}') == line(b'{"re":7,"ok":{}}')


@pytest.mark.parametrize(
    ("data", "counter"),
    [
        (line(STATUS)[:-2] + b"\n", "broken"),
        (line(STATUS)[:-2] + b"\r\r\n", "broken"),
        (line(STATUS)[:-2] + b"\0\r\n", "broken"),
        (line(STATUS)[:-2] + b"X\n", "broken"),
        (line(STATUS).replace(b"7", b"8", 1), "crc"),
        (line(STATUS)[:-10].replace(b"*", b"") + b"*00000000\r\n", "crc"),
        (b"$" + STATUS + b"*%08x\r\n" % binascii.crc32(STATUS), "crc"),
        (b"$\r\n", "broken"),
        (b"$*00000000\r\n", "broken"),
        (line(b"{}")[1:], "noise"),
        (b"\0\0ets Jun  8 2016 00:22:57\r\n", "noise"),
        (line(b"{"), "broken"),
        (line(b"[]"), "form"),
        (line(STATUS + b" "), "form"),
        (line(STATUS + b"~0123456789abcde"), "form"),
        (line(b'{"id":7,"cmd":"\xe9"}'), "form"),
        (line(b'{"id":7,"cmd":"\x00"}'), "form"),
        (line(b'{"id":7,"x":"' + b"a" * (frame.LINE_MAX - 25) + b'"}'), "long"),
    ],
)
def test_what_is_no_frame_is_dropped_and_counted(data, counter):
    found, splitter = split(data + line(RESULT))
    assert [item[0] for item in found] == [RESULT]  # and the next line is none the worse
    counters = {name: getattr(splitter, name) for name in ("broken", "crc", "form", "long", "noise")}
    assert counters == {**dict.fromkeys(counters, 0), counter: 1}


def test_the_longest_line_is_120_bytes_whole():
    head = b'{"id":7,"cmd":"verify","nonce":"'
    body = head + b"a" * (frame.LINE_MAX - 14 - len(head)) + b'"}'
    body = body[: frame.LINE_MAX - 12 - 2] + b'"}'
    assert len(line(body)) == frame.LINE_MAX
    found, splitter = split(line(body))
    assert len(found) == 1 and splitter.long == 0
    body = body[:-2] + b'a"}'
    found, splitter = split(line(body))
    assert (found, splitter.long) == ([], 1)


def test_the_tail_of_a_long_line_is_never_read():
    tail = line(STATUS)[1:]
    found, splitter = split(b"$" + b"x" * 300 + tail + line(RESULT))
    assert [item[0] for item in found] == [RESULT]
    assert (splitter.long, splitter.noise) == (1, 0)


def test_a_dollar_starts_anew_wherever_it_stands():
    found, splitter = split(b"$" + b"x" * 300 + line(STATUS) + b"$abc" + line(RESULT) + b"abc" + line(STATUS))
    assert [item[0] for item in found] == [STATUS, RESULT, STATUS]
    assert (splitter.long, splitter.broken, splitter.noise) == (1, 1, 1)


def test_merged_and_repeated_frames_are_all_taken():
    found, _ = split(line(STATUS) * 3 + line(RESULT) * 2)
    assert [item[0] for item in found] == [STATUS] * 3 + [RESULT] * 2


def test_memory_does_not_grow_with_a_line():
    _, splitter = split(b"$" + b"x" * 100_000 + b"\r\n")
    assert len(splitter.buf) == frame.LINE_MAX


PIECES = st.one_of(
    st.binary(max_size=150),
    st.sampled_from(
        [line(STATUS), line(RESULT), line(STATUS)[:20], line(RESULT)[9:], b"$", b"\r\n", b"\n", b"\0"]
    ),
)


@given(st.lists(PIECES, max_size=8), st.lists(st.integers(0, 600), max_size=10))
@example([b"$" + b"x" * 119, line(STATUS)], [])
@example([b"$" + b"x" * 118 + b"\n", b"y", line(STATUS)], [])
def test_however_the_bytes_are_cut_the_frames_are_the_same(pieces, cuts):
    data = b"".join(pieces)
    cuts = sorted(cut for cut in cuts if cut <= len(data))
    found, _ = split(data, cuts)
    want = [body for body in reference(data) if body.startswith(b"{") and frame.parse(body) is not None]
    assert [body for body, _, _ in found] == want


@given(st.binary(max_size=117))
def test_a_right_sum_around_random_bytes_is_an_object_or_dropped(body):
    found, _ = split(line(body))
    for _, _, thing in found:
        assert isinstance(thing, dict)


SCALARS = st.one_of(
    st.integers(-(2**40), 2**40),
    st.booleans(),
    st.none(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=8),
)


def strictly(body: bytes):
    """What CPython's json makes of a body that is spelled canonically; None for anything else."""
    try:
        thing = json.loads(body)
    except ValueError:
        return None
    if not isinstance(thing, dict):
        return None
    return thing if json.dumps(thing, separators=(",", ":")).encode() == body else None


def plain(value):
    """Fold what no command takes to one value, as the firmware does."""
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, float) or (type(value) is int and len(str(abs(value))) > frame.INT_DIGITS):
        return frame.ODD
    return value


@given(st.dictionaries(st.sampled_from(["id", "cmd", "n", "dice"]), SCALARS | st.lists(SCALARS, max_size=4)))
def test_the_parser_agrees_with_json_on_what_is_canonical(thing):
    body = json.dumps(thing, separators=(",", ":")).encode()
    want = None if b"\\" in body else plain_dict(thing)
    assert frame.parse(body) == want


def plain_dict(thing):
    return {key: plain(value) for key, value in thing.items()}


@given(st.text(st.sampled_from('{}[]",:0123456789-+.eE_ tfnrulsa\\'), max_size=30))
@example('{"a":1_0}')
@example('{"a":07}')
@example('{"a":-0}')
@example('{"a":1,"a":1}')
@example('{"a":1,}')
@example('{"a":[1,]}')
@example('{"a": 1}')
@example('{"a":+1}')
@example('{"a":1.}')
@example('{"a":1e}')
@example('{"a":"\\u0041"}')
@example('{"a":{}}')
@example('{"a":nullx}')
def test_the_parser_takes_nothing_that_is_not_json(text):
    body = text.encode()
    thing = frame.parse(body)
    if thing is None:
        return
    loaded = json.loads(body)
    assert thing == {
        key: value if thing[key] is not frame.ODD else frame.ODD for key, value in loaded.items()
    } or any(isinstance(value, list) for value in loaded.values())
    if all(value is not frame.ODD and not isinstance(value, list) for value in thing.values()):
        assert strictly(body) == thing


def corpus() -> list[bytes]:
    """Lines of every kind, good and bad, the same each time."""
    dice = random.Random(59)
    seeds = [
        STATUS,
        RESULT,
        b'{"id":1,"cmd":"hello"}',
        b'{"id":9,"cmd":"ack","seq":4294967295}~0123456789abcdef',
        b'{"id":9,"cmd":"verify","nonce":"aB3"}',
        b'{"id":true,"cmd":null,"dice":[1.5,"2",false]}',
        b'{"id":1,"cmd":"time","at":1.5e+3}',
        b'{"id":1_0,"cmd":"status"}',
        b'{"id":07,"cmd":"status"}',
        b'{"id":1,"id":1,"cmd":"status"}',
        b'{"id":1,"cmd":"status",}',
        b'{"id":1,"cmd":"status"}}',
        b'{"id":1,"cmd":{"a":1}}',
        b'{"id":NaN,"cmd":"status"}',
        b'{"id":-Infinity,"cmd":"status"}',
        b'{"id":1,"cmd":"st\\u0061tus"}',
        '{"id":1,"cmd":"é"}'.encode(),
        b"{'id':1}",
        b"[1]",
        b"1",
        b"",
    ]
    alphabet = b'{}[]",:0123456789-+.eE_ tfnrulsa\\$*~\r\n\x00\xff'
    lines = [line(seed) for seed in seeds]
    for _ in range(1500):
        body = bytearray(dice.choice(seeds))
        for _ in range(dice.randint(1, 3)):
            if body:
                at = dice.randrange(len(body))
                body[at : at + dice.randint(0, 2)] = bytes([dice.choice(alphabet)]) * dice.randint(0, 2)
        whole = line(bytes(body))
        if dice.random() < 0.3:  # damage on the line, after the sum was made
            whole = bytearray(whole)
            whole[dice.randrange(len(whole))] ^= 1 << dice.randrange(8)
        lines.append(bytes(whole))
    return lines


JUDGE = """
import sys
from shaker import frame

def show(value):
    if value is frame.ODD:
        return "ODD"
    if isinstance(value, dict):
        return "{" + ",".join([key + ":" + show(value[key]) for key in sorted(value)]) + "}"
    if isinstance(value, list):
        return "[" + ",".join([show(item) for item in value]) + "]"
    return type(value).__name__ + ":" + str(value)

def judge(lines, say):
    splitter = frame.Splitter()
    ring = bytearray(256)
    for text in lines:
        data = bytes([int(text[i : i + 2], 16) for i in range(0, len(text), 2)])
        ring[: len(data)] = data
        at = 0
        while at < len(data):
            at += splitter.take(ring, at, 255, len(data) - at)
            if splitter.length:
                found = splitter.decode()
                say("-" if found is None else str(found[0]) + str(found[1]) + show(found[2]))
    say(str([splitter.good, splitter.broken, splitter.crc, splitter.form, splitter.long, splitter.noise]))
"""


def test_both_interpreters_accept_and_refuse_the_same():
    lines = [whole.hex() for whole in corpus() if len(whole) <= 256]
    place: dict = {}
    exec(JUDGE, place)
    here: list[str] = []
    place["judge"](lines, here.append)
    code = JUDGE + 'judge(sys.stdin.read().split("\\n"), print)'
    there = interpreter.run(code, "\n".join(lines), heap_bytes=8_000_000)
    assert there.splitlines() == here
    assert sum(text != "-" for text in here) > 60 and here.count("-") > 500


def test_cutting_lines_allocates_nothing():
    code = """
import micropython
from shaker import frame
splitter = frame.Splitter()
ring = bytearray(1024)
data = b"$abc$" + b"x" * 200 + b"\\r\\nnoise\\0\\n" + frame.wrap('{"id":7,"cmd":"status"}')
ring[: len(data)] = data
at = 0
lines = 0
micropython.heap_lock()
while at < len(data):
    at += splitter.take(ring, at, 1023, len(data) - at)
    if splitter.length:
        lines += 1
micropython.heap_unlock()
print(lines, splitter.long, splitter.noise, splitter.broken)
"""
    assert interpreter.run(code).split() == ["1", "1", "1", "1"]
