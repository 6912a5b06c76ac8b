"""The host's side in tools/, against the firmware's; and PROTOCOL.md, against both."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from host import Noise
from linebench import KEY, Bench, Pipe
from shaker import frame as device_frame
from shaker import lines, names, session
from shaker import record as records
from shakerctl import protocol
from shakerctl.protocol import Client, LineReader, ProtocolError, Receiver, Silent
from test_link import rec

PAGE = (Path(__file__).parent.parent / "firmware" / "docs" / "PROTOCOL.md").read_text("utf-8")


class Cable:
    """A serial port to a bench device: each read lets one scan pass. `noise` damages both ways."""

    def __init__(self, key: bytes | None = KEY, ppm=0, seed=1):
        self.pipe = Pipe(rate=57)
        self.bench = Bench(pipe=self.pipe, key=key)
        self.up, self.down = Noise(ppm, seed), Noise(ppm, seed + 1)
        self.cut = False
        self.now = 0.0

    def clock(self):
        return self.now

    def read(self, size=1, /):
        self.now += 0.005
        self.bench.scan()
        data = self.down.damage(self.pipe.from_device())
        return b"" if self.cut else data

    def write(self, data, /):
        if not self.cut:
            self.pipe.to_device(self.up.damage(data))
        return len(data)

    def restart(self):
        """The device restarts; its journal stays."""
        self.bench.journal.boot += 1
        self.pipe.rx, self.pipe.tx = bytearray(), bytearray()
        self.bench = Bench(journal=self.bench.journal, pipe=self.pipe)
        self.bench.device.emit(names.EV_BOOT)


def client(cable, key: bytes | None = KEY, **more):
    kept = []
    return Client(cable, key, keep=kept.append, clock=cable.clock, **more), kept


def taken(line):
    """What the firmware makes of one whole line."""
    splitter = device_frame.Splitter()
    splitter.take(line + bytes(256 - len(line)), 0, 255, len(line))
    found = splitter.decode()
    assert found is not None
    return found


def pump(there, cable, seconds):
    end = cable.now + seconds
    while cable.now < end:
        there.pump()


# -- The codec -------------------------------------------------------------------------------------


@given(
    st.binary(max_size=60), st.text("0123456789abcdef", min_size=32, max_size=32), st.integers(0, 2**32 - 1)
)
def test_both_sides_sign_alike(key, nonce, number):
    line = protocol.encode(number, "paid", None, key, nonce)
    body, mac, thing = taken(line)
    assert thing == {"id": number, "cmd": "paid"}
    assert session.hmac_sha256(key, nonce.encode() + body).hex()[:16].encode() == mac


def test_what_is_too_long_for_the_device_is_not_sent():
    with pytest.raises(ValueError, match=r"verify: 1\d+ bytes"):
        protocol.encode(1, "verify", {"nonce": "a" * 90})


@given(st.lists(st.binary(max_size=50) | st.sampled_from([b"$", b"\r\n", b"\n"]), max_size=10), st.data())
def test_the_reader_takes_what_the_device_says_however_it_is_cut(noise, data):
    texts = ['{"re":7,"ok":{}}', '{"hb":5,"seq":1}', '{"re":8,"err":"busy"}']
    stream = b"".join(noise) + b"\n" + b"".join(device_frame.wrap(text) for text in texts)
    reader = LineReader()
    found = []
    while stream:
        n = data.draw(st.integers(1, len(stream)))
        found += reader.feed(stream[:n])
        stream = stream[n:]
    assert found[-3:] == [json.loads(text) for text in texts]


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "1",
        "{}",
        '{"re":true,"ok":{}}',
        '{"re":1}',
        '{"re":1,"ok":{},"err":"x"}',
        '{"hb":"1"}',
        '{"ev":"x"}',
    ],
)
def test_a_sound_line_that_is_no_message_is_dropped(text):
    reader = LineReader()
    assert list(reader.feed(device_frame.wrap(text))) == [] and reader.damaged == 1


# -- The receiver ----------------------------------------------------------------------------------


@given(st.lists(st.integers(1, 12), max_size=80))
def test_the_receiver_keeps_each_event_once_and_in_order(order):
    kept = []
    receiver = Receiver(lambda event: kept.append(event["seq"]))
    for seq in order:
        receiver.take({"seq": seq})
    want = next(n for n in range(1, 14) if n not in order)
    assert kept == list(range(1, want)) and receiver.last == want - 1
    assert receiver.gap == any(seq > want for seq in order)


def test_an_event_that_could_not_be_kept_is_not_taken():
    full = [True]

    def keep(event):
        if full[0]:
            raise OSError(28, "no space")

    receiver = Receiver(keep)
    with pytest.raises(OSError, match="no space"):
        receiver.take({"seq": 1})
    assert receiver.last == 0
    full[0] = False
    receiver.take({"seq": 2})
    assert receiver.last == 2


# -- The client ------------------------------------------------------------------------------------


def test_a_command_is_answered_and_acts():
    cable = Cable()
    there, _ = client(cable)
    assert there.request("result", dice=[1, 4, 6]) == {}
    assert cable.bench.device.done == [("result", (1, 4, 6))]
    assert there.request("rounds", n=1)["rd"] == 12
    assert there.session is not None and there.session["id"] == "a1b2c3d4e5f6"


def test_refusals_and_silence_are_told_apart():
    cable = Cable()
    there, _ = client(cable)
    cable.bench.device.answer = "cover-on"
    with pytest.raises(ProtocolError, match="cover-on") as refused:
        there.request("paid")
    assert refused.value.code == "cover-on"
    cable.cut = True
    with pytest.raises(Silent):
        there.request("status")
    cable.cut = False
    assert there.request("status", timeout=1)["ph"] == "IDLE"


def test_a_wrong_key_is_said_to_be_one():
    cable = Cable()
    there, _ = client(cable, key=bytes(32))
    with pytest.raises(ProtocolError, match="bad-mac"):
        there.request("paid")
    assert cable.bench.device.done == []
    cable = Cable(key=None)
    there, _ = client(cable)
    with pytest.raises(ProtocolError, match="no-key"):
        there.request("paid")


def test_the_client_keeps_the_link_alive_and_hears_the_heartbeat():
    cable = Cable()
    there, _ = client(cable)
    pump(there, cable, 30)
    assert cable.bench.link.up and cable.bench.journal.last == 1
    assert there.heartbeat is not None and there.heartbeat["hb"] >= 29_000


def test_without_a_key_it_listens_and_acknowledges_nothing():
    cable = Cable()
    there, kept = client(cable, key=None)
    for _ in range(20):
        cable.bench.device.emit(names.EV_COVERED)
    pump(there, cable, 10)
    assert [event["seq"] for event in kept] == list(range(1, 22))  # by replay, beyond the window
    assert cable.bench.journal.acked == 0


def test_who_keeps_nothing_acknowledges_nothing():
    cable = Cable()
    there = Client(cable, KEY, clock=cable.clock)
    for _ in range(20):
        cable.bench.device.emit(names.EV_COVERED)
    pump(there, cable, 10)
    there.request("time", at=1)
    assert there.receiver.last > 0
    assert cable.bench.journal.acked == 0


@pytest.mark.parametrize(("ppm", "seed"), [(0, 1), (1000, 2), (10_000, 3), (10_000, 4)])
def test_every_event_is_kept_once_over_damage_and_restarts_of_both_sides(ppm, seed):
    cable = Cable(ppm=ppm, seed=seed)
    kept: list[dict] = []
    there, _ = client(cable)
    for life in range(6):
        there = Client(
            cable, KEY, kept.append, last=kept[-1]["seq"] if kept else 0, clock=cable.clock
        )  # knows what it kept, no more
        for _ in range(8):
            cable.bench.device.emit(names.EV_COVERED)
            pump(there, cable, 0.3)
        if life % 2:
            cable.bench.journal.append(cable.bench.queue)
            cable.restart()
    for _ in range(400):
        pump(there, cable, 1)
        if cable.bench.journal.acked == cable.bench.journal.last:
            break
    assert [event["seq"] for event in kept] == list(range(1, cable.bench.journal.last + 1))
    assert Counter(event["ev"] for event in kept)["covered"] == 48


def test_events_lost_for_good_are_stepped_over():
    cable = Cable()
    for _ in range(40):
        cable.bench.device.emit(names.EV_COVERED)
    cable.bench.journal.append(cable.bench.queue)
    cable.bench.journal.damaged = {1, 2, 9, 10, 30}
    there, kept = client(cable)
    pump(there, cable, 10)
    want = [seq for seq in range(1, cable.bench.journal.last + 1) if seq not in cable.bench.journal.damaged]
    assert [event["seq"] for event in kept] == want


# -- PROTOCOL.md -----------------------------------------------------------------------------------


def conversation():
    return re.findall(r"^([<>]) (\$.*)$", PAGE, re.MULTILINE)


def test_the_worked_frames_have_the_right_sums_and_macs():
    nonce = None
    said = conversation()
    assert len(said) > 8
    for side, line in said:
        if side == "<":
            message = protocol.decode(line.encode())
            assert message is not None, line
            nonce = message.get("ok", {}).get("nonce", nonce)
        else:
            body, mac, thing = taken(line.encode() + b"\r\n")
            assert (mac is not None) == (thing["cmd"] in session._SIGNED)
            if mac is not None:
                assert nonce is not None
                assert protocol.sign(KEY, nonce, body).encode() == mac


def test_the_worked_frames_are_what_the_firmware_says():
    texts = [line[1:-9] for side, line in conversation() if side == "<"]
    buf = rec(names.EV_RESULT, dice=(1, 4, 6), big=False)
    _, tail = lines.event(buf).split('"dice"')
    assert any(text.endswith('"dice"' + tail) and '"ev":"result"' in text for text in texts)
    hello = next(json.loads(text)["ok"] for text in texts if "nonce" in text)
    said = Cable()
    there, _ = client(said)
    there.request("status")
    assert list(hello) == list(there.session or {})
    beat = next(json.loads(text) for text in texts if '"hb"' in text)
    assert list(beat) == list(there.heartbeat or {})


def table(title):
    """Return the rows of the table whose first heading is `title`, as lists of cells."""
    part = PAGE.split(f"\n| {title} |", 1)[1].split("\n\n", 1)[0]
    return [[cell.strip() for cell in row.split("|")[1:-1]] for row in part.splitlines()[2:]]


def quoted_words(cell):
    return " ".join(re.findall(r"`([^`]*)`", cell)).split()


def keys(buf):
    return list(json.loads(lines.event(buf)))


def test_the_table_of_events_is_true():
    head = ["seq", "boot", "t", "at", "ev", "ph", "rd", "rep"]
    documented = {}
    for name, cell in table("event"):
        documented[name.strip("`")] = quoted_words(cell)
    others = documented.pop("all others")
    for number, event in enumerate(names.EVENTS):
        want = documented.pop(event, others)
        if event == "fault":
            assert keys(rec(number, 4)) == [*head, "code"]
            assert keys(rec(number, 1, x=1)) == [*head, "code", "pulses"]
            assert keys(rec(number, names.F_INTERNAL_ERROR, text=b"x")) == [*head, "code", "type", "place"]
            assert want == ["code", "pulses", "internal-error", "type", "place"]
        elif event == "settings":
            assert keys(rec(number, 1)) == [*head, "adopted"]
            assert keys(rec(number, 0)) == [*head, *want]
        else:
            dice = (1, 2, 3) if event == "result" else (0, 0, 0)
            text = b"1.0" if event == "boot" else None
            assert keys(rec(number, dice=dice, text=text)) == head + want, event
    assert not documented


def test_the_table_of_commands_is_true():
    cable = Cable()
    there, _ = client(cable)
    pump(there, cable, 0.5)
    arguments = {"n": 1, "from": 1, "nonce": "ab", "seq": 0, "dice": [1, 1, 1], "at": 1}
    seen = set()
    for row in table("says"):
        cmds, argument, ok = row
        for cmd in quoted_words(cmds):
            seen.add(cmd)
            name = (quoted_words(argument) or [None])[0]
            assert name == session._ARGUMENT[cmd] == protocol.ARGUMENTS.get(cmd)
            reply = there.request(cmd, **({name: arguments[name]} if name else {}))
            if cmd == "rounds":
                assert list(reply) == quoted_words(ok)[:8]
            elif cmd == "settings":
                assert "actuation" in reply and "key" not in reply
            else:
                assert list(reply) == quoted_words(ok), cmd
    assert seen == set(session._ARGUMENT) == protocol.COMMANDS
    assert set(session._SIGNED) == protocol.SIGNED


def test_the_page_lists_the_names_the_firmware_uses():
    for words in (names.CAUSES, names.WHATS):
        assert f"`{' '.join(words)}`" in PAGE
    for why in names.WHYS[1:]:
        assert f"`{why}`" in PAGE
    counters = Cable().bench.link.counters()
    for name in json.loads("{" + counters + "}")["line"]:
        assert f"`{name}`" in PAGE


def test_the_given_text_stands_at_the_top():
    assert PAGE.startswith("# The UART protocol\n") and "\n# As built\n" in PAGE
    assert records.TEXT_SIZE == 18 and "cut to 40 printable" in PAGE and lines.TEXT_MAX == 40
