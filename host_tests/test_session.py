"""Commands: who may say what, in which order it is checked, and that nothing acts twice."""

import hashlib
import hmac as standard

import pytest
from hypothesis import given
from hypothesis import strategies as st

import host
from linebench import KEY, Bench
from shaker import frame, session

OTHER_KEY = bytes(32)


def told(line):
    """What one line says, which must be sound."""
    thing = host.decode(line)
    assert thing is not None, line
    return thing


class Talk:
    """One host program, written by hand: says lines, hears replies."""

    def __init__(self, key: bytes | None = KEY):
        self.bench = Bench(key=key)
        self.nonce = ""
        self.number = 0

    def raw(self, data):
        """Send bytes; return the replies they caused."""
        self.bench.pipe.to_device(data)
        self.bench.run(60)
        things = [told(line) for line in self.bench.heard()]
        return [thing for thing in things if "re" in thing]

    def say(self, cmd, number=None, key: bytes | None = KEY, **args):
        """Send one command, signed when it must be; return its reply without the number."""
        if number is None:
            self.number += 1
            number = self.number
        signed = cmd in host.SIGNED
        (reply,) = self.raw(host.encode(number, cmd, args, key if signed else None, self.nonce))
        assert reply.pop("re") == number
        return reply

    def hello(self, number=None):
        """Open a session."""
        reply = self.say("hello", number)
        self.nonce = reply["ok"]["nonce"]
        return reply["ok"]

    @property
    def done(self):
        return self.bench.device.done


@pytest.fixture
def talk():
    talk = Talk()
    talk.hello()
    return talk


@given(st.binary(max_size=64), st.binary(max_size=120))
def test_the_hmac_is_the_standard_one(key, message):
    assert session.hmac_sha256(key, message) == standard.new(key, message, hashlib.sha256).digest()


def test_hello_says_who_is_there():
    hello = Talk().hello()
    assert hello == {
        "id": "a1b2c3d4e5f6",
        "table": "T-17",
        "ver": session.VERSION,
        "mpy": hello["mpy"],
        "boot": 1,
        "first": 1,
        "last": 0,
        "ack": 0,
        "auth": False,
        "nonce": hello["nonce"],
    }
    assert len(hello["nonce"]) == 32 and int(hello["nonce"], 16)


def test_each_session_has_another_nonce_and_ends_the_one_before(talk):
    old = talk.nonce
    assert talk.hello() and talk.nonce != old
    talk.nonce = old
    assert talk.say("paid") == {"err": "bad-mac"}
    assert talk.done == []


def test_no_nonce_comes_twice_though_the_generator_says_the_same():
    """Over restarts too: what was recorded on the line would count again."""
    seen = set()
    for boot in (1, 2, 0xFFFFFFFF):
        talk = Talk()
        talk.bench.journal.boot = boot
        talk.bench.link.session._random = bytes
        seen.update(talk.hello()["nonce"] for _ in range(3))
    assert len(seen) == 9
    assert {len(nonce) for nonce in seen} == {32}


@pytest.mark.parametrize(
    ("cmd", "args", "does"),
    [
        ("result", {"dice": [1, 4, 6]}, ("result", (1, 4, 6))),
        ("void", {}, ("void", None)),
        ("paid", {}, ("paid", None)),
        ("clear", {}, ("clear", None)),
        ("abandon", {}, ("abandon", None)),
        ("time", {"at": 1800000000}, ("time", 1800000000)),
        ("reboot", {}, ("reboot", None)),
    ],
)
def test_a_signed_command_acts_once_however_often_it_is_said(talk, cmd, args, does):
    assert talk.say(cmd, **args) == {"ok": {}}
    assert talk.say(cmd, number=talk.number, **args) == {"ok": {}}
    assert talk.done == [does]


def test_the_device_s_refusal_is_the_reply_and_is_repeated(talk):
    talk.bench.device.answer = "cover-on"
    assert talk.say("paid") == {"err": "cover-on"}
    talk.bench.device.answer = None
    assert talk.say("paid", number=talk.number) == {"err": "cover-on"}
    assert len(talk.done) == 1
    assert talk.say("paid") == {"ok": {}}


SIGNED = [("ack", {"seq": 0}), ("result", {"dice": [1, 1, 1]}), ("time", {"at": 5})]
SIGNED += [(cmd, {}) for cmd in ("void", "paid", "clear", "abandon", "reboot")]


@pytest.mark.parametrize(("cmd", "args"), SIGNED)
def test_a_signed_command_needs_key_session_and_mac(cmd, args):
    talk = Talk(key=None)
    assert talk.say(cmd, **args) == {"err": "no-key"}
    talk = Talk()
    assert talk.say(cmd, **args) == {"err": "no-session"}
    talk.hello()
    assert talk.say(cmd, key=OTHER_KEY, **args) == {"err": "bad-mac"}
    assert talk.say(cmd, key=None, **args) == {"err": "bad-mac"}
    body = host.encode(90, cmd, args).split(b"$")[1].split(b"*")[0]
    mac = standard.new(KEY, talk.nonce.encode() + body, hashlib.sha256).hexdigest()[:16]
    for wrong in (mac[:-1] + "fe"[mac[-1] == "f"], mac[1:] + mac[0], "0" * 16):
        assert talk.raw(frame.wrap(body.decode() + "~" + wrong)) == [{"re": 90, "err": "bad-mac"}]
    assert talk.done == []
    assert talk.raw(frame.wrap(body.decode() + "~" + mac))[0]["re"] == 90


def test_refused_frames_leave_the_id_free(talk):
    talk.say("paid", number=50)
    for number, wrong in ((60, "frobnicate"), (61, "rounds"), (62, "hello2")):
        assert "err" in talk.say(wrong, number=number)
    assert talk.say("paid", number=63, key=OTHER_KEY) == {"err": "bad-mac"}
    assert talk.raw(frame.wrap('{"id":64}')) == [{"re": 64, "err": "bad-frame-kind"}]
    assert talk.say("void", number=51) == {"ok": {}}
    assert talk.done == [("paid", None), ("void", None)]


def test_an_id_below_the_last_is_old_and_the_last_with_other_content_is_reused(talk):
    talk.say("paid", number=50)
    assert talk.say("void", number=49) == {"err": "id-old"}
    assert talk.say("void", number=50) == {"err": "id-reused"}
    assert talk.say("status", number=50) == {"err": "id-reused"}
    assert talk.say("paid", number=50) == {"ok": {}}
    assert talk.done == [("paid", None)]


def test_hello_always_opens_a_session_but_repeated_it_is_the_same_one(talk):
    first = talk.hello(number=7)
    assert talk.hello(number=7) == first
    assert talk.hello(number=3) != first  # a host that has restarted counts from anywhere
    assert talk.say("void", number=4) == {"ok": {}}
    assert talk.hello(number=3)["nonce"] != first["nonce"]


BAD_ARGUMENTS = [
    '"cmd":"rounds"',
    '"cmd":"rounds","n":0',
    '"cmd":"rounds","n":11',
    '"cmd":"rounds","n":true',
    '"cmd":"rounds","n":"1"',
    '"cmd":"rounds","n":1.0',
    '"cmd":"rounds","n":1,"m":1',
    '"cmd":"rounds","m":1',
    '"cmd":"status","n":1',
    '"cmd":"replay","from":0',
    '"cmd":"replay","from":-1',
    '"cmd":"replay","from":9',  # no such event yet
    '"cmd":"replay","from":99999999999',
    '"cmd":"verify","nonce":""',
    '"cmd":"verify","nonce":7',
    '"cmd":"verify","nonce":"a b"',
    '"cmd":"verify","nonce":"' + "a" * 49 + '"',
    '"cmd":"ack","seq":-1',
    '"cmd":"ack","seq":null',
    '"cmd":"ack","seq":4294967296',
    '"cmd":"result","dice":[1,4,7]',
    '"cmd":"result","dice":[0,4,6]',
    '"cmd":"result","dice":[1,4]',
    '"cmd":"result","dice":[1,4,6,6]',
    '"cmd":"result","dice":[1,4,true]',
    '"cmd":"result","dice":[1,4,1.5]',
    '"cmd":"result","dice":["1","4","6"]',
    '"cmd":"result","dice":"146"',
    '"cmd":"result","dice":146',
    '"cmd":"result","dice":[]',
    '"cmd":"time","at":0',
    '"cmd":"time","at":4102444800',
    '"cmd":"time","at":1.7e9',
    '"cmd":"paid","n":1',
]


@pytest.mark.parametrize("rest", BAD_ARGUMENTS)
def test_arguments_are_exactly_those_of_the_command(talk, rest):
    assert talk.raw(frame.wrap('{"id":70,' + rest + "}")) == [{"re": 70, "err": "bad-argument"}]
    assert talk.done == []
    talk.say("status", number=2)  # and the id was not used


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ('{"id":70}', "bad-frame-kind"),
        ('{"id":70,"cmd":7}', "bad-frame-kind"),
        ('{"id":70,"cmd":["paid"]}', "bad-frame-kind"),
        ('{"id":70,"ev":"paid"}', "bad-frame-kind"),
        ('{"id":70,"cmd":""}', "unknown-command"),
        ('{"id":70,"cmd":"Paid"}', "unknown-command"),
        ('{"id":70,"cmd":"frobnicate","x":1}', "unknown-command"),
    ],
)
def test_what_is_no_command_gets_its_error(talk, body, code):
    assert talk.raw(frame.wrap(body)) == [{"re": 70, "err": code}]


@pytest.mark.parametrize("number", ["true", '"7"', "-1", "4294967296", "1.0", "null", "[7]"])
def test_without_a_usable_id_there_is_no_reply_but_a_count(talk, number):
    assert talk.raw(frame.wrap('{"id":' + number + ',"cmd":"hello"}')) == []
    assert talk.raw(frame.wrap('{"cmd":"hello"}')) == []
    assert talk.say("status")["ok"]["line"]["form"] == 2


def test_the_mac_covers_the_very_bytes_that_were_sent(talk):
    line = host.encode(70, "result", {"dice": [1, 4, 6]}, KEY, talk.nonce)
    body = line[1:-11].replace(b"[1,4,6]", b"[6,4,6]")
    assert talk.raw(frame.wrap(body.decode())) == [{"re": 70, "err": "bad-mac"}]


def test_ack_moves_forward_only_and_never_beyond_the_last(talk):
    bench = talk.bench
    for _ in range(5):
        bench.device.emit(1)
    bench.run(100)
    last = bench.journal.last
    assert talk.say("ack", number=70, seq=last + 1) == {"err": "bad-argument"}
    assert talk.say("ack", number=70, seq=2) == {"ok": {"ack": 2}}  # an error uses up nothing
    talk.number = 70
    assert talk.say("ack", seq=3) == {"ok": {"ack": 3}}
    assert talk.say("ack", seq=2) == {"ok": {"ack": 3}}
    assert bench.journal.acked == 3


def test_status_tells_a_technician_everything(talk):
    device = talk.bench.device
    device.state.phase, device.state.round, device.state.repeat = 7, 12, 1
    device.state.fault, device.state.faults = 4, 0b11000
    device.lamps, device.dice, device.outstanding = 1 << 38 | 1, (1, 4, 6), True
    talk.bench.queue.dropped, talk.bench.journal.dropped = 2, 3
    status = talk.say("status")["ok"]
    line = status.pop("line")
    assert set(line) == {"good", "crc", "form", "broken", "long", "noise", "overrun", "resent"}
    assert line["good"] == 2
    assert status.pop("up") > 0
    assert status == {
        "ph": "FAULT",
        "rd": 12,
        "rep": 1,
        "flt": "dome-opened",
        "faults": ["dome-opened", "shaken-late"],
        "in": "0020",
        "out": "10",
        "lamps": "4000000001",
        "dice": [1, 4, 6],
        "unpaid": True,
        "service": False,
        "auth": False,
        "at": None,
        "seq": 1,
        "ack": 0,
        "heap": status["heap"],
        "dropped": 5,
    }


def test_rounds_counts_and_settings_come_from_their_owners(talk):
    assert talk.say("rounds", n=1)["ok"]["win"]["red2"] == 3
    assert talk.say("rounds", n=2)["ok"]["dice"] is None
    assert talk.say("rounds", n=3)["ok"] == {"n": 3, "rd": None}
    counts = talk.say("counts")["ok"]
    assert counts["faults"] == {"dome-opened": 2}
    assert counts["dice"] == {"1": 0, "2": 1, "3": 2, "4": 3, "5": 4, "6": 5}
    assert talk.say("settings")["ok"] == {"actuation": "electronic", "front_board": True, "table": "T-17"}


def test_nothing_the_line_can_ask_for_holds_the_key(talk):
    bench = talk.bench
    for cmd, args in (("hello", {}), ("status", {}), ("settings", {}), ("counts", {}), ("rounds", {"n": 1})):
        bench.pipe.to_device(host.encode(500 + len(cmd), cmd, args))
        bench.run(100)
        assert KEY.hex().encode() not in bench.pipe.from_device().lower()


def test_while_a_verify_runs_others_are_busy_and_its_repeat_waits(talk):
    verifier = talk.bench.verifier
    verifier.steps = 10**6
    verify = host.encode(70, "verify", {"nonce": "cafe01"})
    assert talk.raw(verify) == []
    assert verifier.nonce == "cafe01"
    assert talk.raw(verify) == []
    assert talk.say("status", number=71) == {"err": "busy"}
    verifier.left = 2
    (reply,) = talk.raw(b"")
    assert reply == {"re": 70, "ok": {"ver": session.VERSION, "sha256": "ab" * 32}}
    assert talk.raw(verify) == [reply]
    assert "ok" in talk.say("status", number=71)


def test_a_verify_does_no_work_while_the_dice_are_shaken(talk):
    verifier = talk.bench.verifier
    talk.bench.device.state.phase = 2
    assert talk.raw(host.encode(70, "verify", {"nonce": "1"})) == []
    assert verifier.left == verifier.steps
    talk.bench.device.state.phase = 3
    assert talk.raw(b"")[0]["re"] == 70


def test_a_hello_ends_a_verify(talk):
    talk.bench.verifier.steps = 10**6
    talk.raw(host.encode(70, "verify", {"nonce": "1"}))
    talk.hello(number=1)
    assert "ok" in talk.say("status", number=2)


def test_a_file_that_cannot_be_read_gives_no_hash(talk):
    talk.bench.verifier.fails = True
    assert talk.raw(host.encode(70, "verify", {"nonce": "1"}))[0]["ok"]["sha256"] is None


def test_host_text_is_never_said_again(talk):
    for body in (
        '{"id":70,"cmd":"zebra"}',
        '{"id":71,"cmd":"verify","nonce":"zebra"}',
        '{"id":72,"zebra":1}',
    ):
        talk.bench.pipe.to_device(frame.wrap(body))
        talk.bench.run(100)
        assert b"zebra" not in talk.bench.pipe.from_device()


VALUES = st.one_of(
    st.integers(-2, 2**33), st.booleans(), st.none(), st.text("0aZ~*", max_size=3), st.just([1, 2, 3])
)


@given(
    st.lists(
        st.fixed_dictionaries(
            {},
            optional={
                "id": VALUES,
                "cmd": st.sampled_from([*session._ARGUMENT, "x", 7]),
                "dice": VALUES,
                "seq": VALUES,
                "n": VALUES,
                "from": VALUES,
                "at": VALUES,
                "nonce": VALUES,
            },
        ),
        max_size=6,
    )
)
def test_no_unsigned_object_ever_acts(things):
    import json

    talk = Talk()
    talk.hello()
    for thing in things:
        replies = talk.raw(frame.wrap(json.dumps(thing, separators=(",", ":"))))
        assert len(replies) <= 1
    assert talk.done == [] and talk.bench.journal.acked == 0
