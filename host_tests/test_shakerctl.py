"""shakerctl's other commands on the virtual board, and what it says when something is wrong."""

import csv
import io
import json
import re
import resource
import shlex
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

import interpreter
from conftest import KEY, in_service, mpremote, on_board, process, shakerctl, slot_of, to_bench
from shakerctl import flash, line, protocol, provision, release, send, trouble, usb
from shakerctl.__main__ import main
from shakerctl.events import Store
from shakerctl.firmware import settings
from shakerctl.voice import Voice
from virtualboard import VirtualBoard

COMMANDS = ("flash", "deploy", "provision", "verify", "bench-test", "monitor", "events", "send")


@pytest.mark.parametrize("words", [(), *((name,) for name in COMMANDS)])
def test_every_command_explains_itself(words, capsys):
    with pytest.raises(SystemExit) as left:
        main([*words, "--help"])
    assert left.value.code == 0
    assert "usage: shakerctl" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("dance",),
        ("deploy",),
        ("send", "--port", "x", "result", "1,2"),
        ("send", "--port", "x", "result", "1,2,7"),
        ("send", "--port", "x", "rounds"),
        ("send", "--port", "x", "status", "now"),
        ("send", "--port", "x", "statsu"),
        ("send", "--port", "x", "rounds", "0"),
        ("monitor", "--port", "x", "--seconds", "nan"),
        ("monitor", "--port", "x", "--seconds", "-1"),
        ("send", "--port", "x", "status", "--json", "1"),
        ("send", "--port", "x", "rounds", "--json", "1", "2"),
        ("send", "--port", "x", "rounds", "--jsno", "1"),
        ("send", "--port", "x", "paid"),
        ("send", "--port", "x", "--key-file", "no-such-file", "paid"),
        ("provision", "--port", "x"),
        ("provision", "--port", "x", "--set", "table"),
        ("provision", "--port", "x", "--settings", "no-such-file"),
        ("flash", "--port", "x", "--image", "no-such-file"),
        *(
            ("flash", "--port", "x", "--image", "x", "--baud", baud)
            for baud in ("-5", "0", "9599", "2000001", "1_0", "٣")
        ),
    ],
)
def test_a_wrong_call_exits_with_2_and_one_line(words, capsys):
    try:
        code = main(words)
    except SystemExit as left:
        code = left.code
    assert code == 2
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("cmd", "word"),
    [
        *(("result", word) for word in ("٣,1,1", " 1,2,3", "1,2,+3", "1,2,3,")),
        *(
            (cmd, word)
            for cmd in ("rounds", "replay", "ack", "time")
            for word in ("٣", "²", " 1", "1_0", "+1", "")
        ),
        ("ack", "9" * 5000),
        *(("verify", word) for word in ("ä", "a\nb", '"', "\\")),
    ],
)
def test_an_argument_that_no_line_carries_is_refused_before_anything_is_sent(cmd, word):
    with pytest.raises(trouble.Usage, match=f"^{cmd} needs "):
        send.argument(cmd, word)


# -- The line ----------------------------------------------------------------------------------------------


def test_send_verify_monitor_and_events_on_one_shaker(served, releases, key_file, tmp_path):
    port = ("--port", served.uart)
    status = json.loads(shakerctl("send", *port, "--json", "status").out)
    assert status["ok"]["ph"] == "IDLE"
    assert "ok" in json.loads(shakerctl("send", *port, "replay", "--json", "1").out), "options stand anywhere"
    assert shakerctl("send", *port, "--key-file", key_file, "time", "1795000000").code == 0
    refused = shakerctl("send", *port, "--key-file", key_file, "paid")
    assert (refused.code, "wrong-phase" in refused.err) == (1, True)

    wrong = tmp_path / "wrong"
    wrong.write_text(KEY[::-1])
    refused = shakerctl("send", *port, "--key-file", wrong, "time", "1795000000")
    assert (refused.code, "wrong key" in refused.err, refused.err.count("\n")) == (1, True, 1)

    known = json.loads(shakerctl("verify", *port, "--image", releases["one"], "--json").out)
    assert (known["ok"], known["device"]) == (True, "240ac4000001")
    other = shakerctl("verify", *port, "--image", releases["two"])
    assert (other.code, slot_of(releases["two"]) in other.err) == (1, True)

    lines = shakerctl("monitor", *port, "--json", "--seconds", "1.5").out.splitlines()
    beats = [json.loads(line) for line in lines if '"phase"' in line]
    assert beats[0]["inputs"]["dome"] == "closed"
    assert beats[0]["outputs"]["dome_lock"] == "on"
    assert "IDLE" in shakerctl("monitor", *port, "--plain", "--seconds", "1.5").out
    assert "dome_lock" in shakerctl("monitor", *port, "--seconds", "1.5").out

    out = tmp_path / "events.jsonl"
    words = ("events", *port, "--key-file", key_file, "--out", out, "--json")
    first = json.loads(shakerctl(*words).out)
    assert first["events"] == first["last"] > 2
    stored = [json.loads(line) for line in out.read_text().splitlines()]
    assert [event["seq"] for event in stored] == list(range(1, first["last"] + 1))
    assert {"boot", "settings", "time"} <= {event["ev"] for event in stored}
    status = json.loads(shakerctl("send", *port, "--json", "status").out)
    assert status["ok"]["ack"] >= first["last"]
    served.set(service="on")
    served.wait(lambda seen: seen["out"]["dome_lock"] == "off")
    second = json.loads(shakerctl(*words).out)
    assert second["events"] >= 1
    numbers = [json.loads(line)["seq"] for line in out.read_text().splitlines()]
    assert numbers == list(range(1, second["last"] + 1)), "each once, after a second run too"

    table = tmp_path / "events.csv"
    assert shakerctl("events", *port, "--out", table, "--format", "csv").code == 0, (
        "also what was acknowledged"
    )
    with open(table, newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["seq"]) for row in rows][: len(numbers)] == numbers
    assert json.loads(rows[0]["more"])["cause"]


def test_a_line_that_keeps_nothing_acknowledges_nothing(served):
    """`send` and `provision` have the key, and throw events away."""
    with line.client(served.uart, bytes.fromhex(KEY)) as link:
        line.request(link, served.uart, "time", at=1795000000)
        end = time.monotonic() + 1.5
        while time.monotonic() < end:
            link.pump()
        assert link.receiver.last > 0
        assert line.request(link, served.uart, "status")["ack"] == 0


def test_events_are_acknowledged_only_when_they_are_safe(served, key_file, tmp_path):
    out = tmp_path / "events.jsonl"
    words = ("events", "--port", served.uart, "--key-file", key_file, "--out", out)
    full = shakerctl(*words, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200)))
    assert (full.code, "cannot be written" in full.err, full.err.count("\n")) == (1, True, 1)
    stored = out.read_text().splitlines()
    assert all(json.loads(line)["seq"] for line in stored)
    status = json.loads(shakerctl("send", "--port", served.uart, "--json", "status").out)
    assert status["ok"]["ack"] <= len(stored)
    assert shakerctl(*words).code == 0
    numbers = [json.loads(line)["seq"] for line in out.read_text().splitlines()]
    assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.parametrize("as_csv", [False, True])
def test_a_file_cut_short_by_a_crash_goes_on_at_its_last_whole_line(tmp_path, as_csv):
    path = tmp_path / "events"
    event = {
        "seq": 1,
        "boot": 1,
        "t": 0,
        "at": None,
        "ev": "boot",
        "ph": "IDLE",
        "rd": 0,
        "rep": 0,
        "ver": 'a,"b',
    }
    store = Store(path, as_csv)
    store.keep(event)
    store.keep({**event, "seq": 2})
    store.close()
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    store = Store(path, as_csv)
    assert store.last == 1
    store.keep({**event, "seq": 2})
    store.close()
    assert path.read_bytes() == whole


def test_a_file_of_something_else_is_left_alone(tmp_path):
    path = tmp_path / "diary"
    for text in ("dear diary\n", "dear diary"):
        path.write_text(text)
        for as_csv in (False, True):
            with pytest.raises(trouble.Usage):
                Store(path, as_csv)
        assert path.read_text() == text


EVENT = '{"seq":1,"boot":1,"t":0,"at":null,"ev":"boot","ph":"IDLE","rd":0,"rep":0}\n'
HEADING = "seq,boot,t,at,ev,ph,rd,rep,more\n"


@pytest.mark.parametrize(
    ("text", "as_csv", "place"),
    [
        *((EVENT + '{"seq":%s}\n' % number, False, 2) for number in ("1.9", "-5", "2", "true", '"2"')),
        (EVENT.replace("1", "1.9", 1), False, 1),
        (EVENT.replace("1", "0", 1), False, 1),
        ("[1]\n", False, 1),
        ('{"seq":1,"note":"my notes"}', False, 1),
        (EVENT + "my notes", False, 2),
        (EVENT, True, 1),
        (HEADING + "1,2\n", True, 2),
        (HEADING + "-5,1,0,,boot,IDLE,0,0,\n", True, 2),
        (HEADING + "1,1,0,,boot,IDLE,0,0,\nmy notes", True, 3),
    ],
)
def test_a_line_that_is_no_event_is_named_and_left_alone(tmp_path, text, as_csv, place):
    path = tmp_path / "events"
    path.write_text(text)
    with pytest.raises(trouble.Usage, match=f"events:{place} is no event"):
        Store(path, as_csv)
    assert path.read_text() == text


@pytest.mark.parametrize("as_csv", [False, True])
def test_a_file_cut_short_anywhere_in_its_first_line_begins_anew(tmp_path, as_csv):
    path = tmp_path / "events"
    whole = HEADING + "1,1,0,,boot,IDLE,0,0,\n" if as_csv else EVENT
    for size in range(len(whole)):
        path.write_text(whole[:size])
        Store(path, as_csv).close()
        assert path.read_text() == (HEADING if as_csv else ""), size


def test_what_is_no_file_is_refused_before_it_is_read(capsys):
    assert main(["events", "--port", "x", "--out", "/dev/full"]) == 2
    assert "/dev/full does not serve: it is no regular file" in capsys.readouterr().err


def test_following_ends_at_ctrl_c_with_its_summary(served, key_file, tmp_path):
    out = tmp_path / "events.jsonl"
    words = [
        "events",
        "--port",
        served.uart,
        "--key-file",
        str(key_file),
        "--out",
        str(out),
        "--follow",
        "--json",
    ]
    with subprocess.Popen(
        [sys.executable, "-m", "shakerctl", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as following:
        served.wait(lambda seen: (out.exists() and out.stat().st_size) or following.poll() is not None)
        served.rest(300)
        following.send_signal(signal.SIGINT)
        said, err = following.communicate(timeout=30)
    assert (following.returncode, err) == (0, "")
    told = json.loads(said)
    assert told["last"] == told["events"] == len(out.read_text().splitlines()) > 0
    status = json.loads(shakerctl("send", "--port", served.uart, "--json", "status").out)
    assert status["ok"]["ack"] == told["last"]


def test_a_silent_line_says_what_to_look_at(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("shakerctl.line.ANSWER_S", 1.0)
    with VirtualBoard(tmp_path / "board") as board:
        for words in (["verify"], ["monitor", "--plain"], ["events", "--out", str(tmp_path / "e")]):
            assert main([*words, "--port", board.uart]) == 1
            assert "is silent" in capsys.readouterr().err
    assert main(["send", "--port", str(tmp_path / "none"), "status"]) == 1
    assert "no port" in capsys.readouterr().err


def one_line(done, *words):
    assert "Traceback" not in done.err, done.err
    assert done.err.count("\n") == 1, done.err
    for word in words:
        assert word in done.err


def test_an_argument_too_long_for_the_line(served):
    done = shakerctl("send", "--port", served.uart, "verify", "a" * 5000)
    assert done.code == 2
    one_line(done, "shorter")


def test_output_that_cannot_be_written_takes_one_line_and_a_reader_that_goes_none(served):
    port = ("--port", served.uart)
    with open("/dev/full", "w") as full:
        for words in (
            ("send", *port, "--json", "status"),
            ("send", *port, "status"),
            ("monitor", *port, "--json"),
        ):
            done = subprocess.run(
                [sys.executable, "-m", "shakerctl", *words],
                stdout=full, stderr=subprocess.PIPE, text=True, timeout=60,
            )  # fmt: skip
            assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
            assert "No space left" in done.stderr
    words = [sys.executable, "-m", "shakerctl", "monitor", *port, "--json"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as monitor:
        monitor.stdout.readline()
        monitor.stdout.close()
        assert (monitor.wait(30), monitor.stderr.read()) == (0, "")


def test_a_place_that_does_not_serve_for_events_is_left_as_it_was(tmp_path):
    words = ("events", "--port", "x", "--format", "csv", "--out")
    path = tmp_path / "events.csv"
    full = shakerctl(*words, path, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10)))
    assert (full.code, path.exists()) == (1, False)
    one_line(full, "does not serve")
    pipe = shakerctl(*words, "/dev/stdout", preexec_fn=lambda: None)
    assert pipe.code == 2
    one_line(pipe, "no regular file")


def test_damage_that_is_nested_deep_is_damage(tmp_path):
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "manifest.json").write_text("[" * 100_000)
    with pytest.raises(trouble.Trouble, match="no release"):
        release.load(tmp_path)
    assert protocol.decode(protocol.frame(b"[" * 100_000)[:-2]) is None
    (tmp_path / "events").write_text("[" * 100_000 + "\n")
    with pytest.raises(trouble.Usage):
        Store(tmp_path / "events", False)


def test_ctrl_c_is_ours_from_the_first_moment(monkeypatch, capsys):
    done = process([sys.executable, "-c", "import sys, shakerctl.__main__; print(*sys.modules)"])
    assert not {"rich", "serial", "mpremote"} & set(done.out.split()), "slow to import"

    def pressed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("argparse.ArgumentParser.parse_known_args", pressed)
    assert main(["send"]) == 1
    assert "interrupted" in capsys.readouterr().err


# -- Provisioning ------------------------------------------------------------------------------------------


def test_provision_gives_a_table_its_key_and_asks_the_shaker_whether_it_took_it(served, tmp_path):
    key = tmp_path / "new.key"
    served.set(service="on")
    served.wait(lambda seen: seen["out"]["dome_lock"] == "off")
    done = shakerctl(
        "provision", "--port", served.usb, "--yes", "--new-key", key, "--set", "table=T42",
        "--set", "pulse_ms=200", "--uart", served.uart, "--json",
    )  # fmt: skip
    assert done.code == 0, done
    told = json.loads(done.out)
    assert (told["table"], told["authorised"]) == ("T42", False)
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert key.read_text().strip() not in done.out + done.err
    assert shakerctl("send", "--port", served.uart, "--key-file", key, "time").code == 0


RECORD = {"ref": "DICJ 1/2026", "requested": "2026-01-05", "granted": "2026-01-06", "adopted": "2026-01-08"}


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({"pulse_ms": 301}, ("pulse_ms", "100-300")),
        ({"colour": 1}, ("colour", "no such setting")),
        ({"front_board": 1}, ("front_board", "true or false")),
        ({"authorisation": {**RECORD, "adopted": "2026-01-07"}}, ("Article 8", "2026-01-08")),
        ({"authorisation": {"ref": "x"}}, ("authorisation",)),
    ],
)
def test_what_the_device_or_the_calendar_would_refuse_is_refused_here(found, words):
    with pytest.raises(trouble.Trouble) as refused:
        provision.check(found, provision.date(2026, 2, 1))
    for word in words:
        assert word in str(refused.value)


def test_a_good_record_passes_and_not_before_its_day():
    provision.check({"actuation": "lever", "authorisation": RECORD}, provision.date(2026, 1, 8))
    with pytest.raises(trouble.Trouble, match="today"):
        provision.check({"authorisation": RECORD}, provision.date(2026, 1, 7))


def test_an_existing_key_is_never_overwritten(tmp_path):
    path = tmp_path / "key"
    path.write_text("precious")
    for act in (provision.key_is_free, lambda path: provision.keep_key(path, KEY)):
        with pytest.raises(trouble.Usage, match="never overwritten"):
            act(path)
    assert path.read_text() == "precious"


def in_service_mode(board):
    board.set(service="on")
    board.wait(lambda seen: seen["out"]["dome_lock"] == "off")


def test_what_is_not_named_stays_as_it_is_and_a_whole_file_says_what_it_changes(served, tmp_path, key_file):
    def settings():
        return json.loads(shakerctl("send", "--port", served.uart, "--json", "settings").out)["ok"]

    words = ("provision", "--port", served.usb, "--yes", "--uart", served.uart, "--json")
    in_service_mode(served)
    done = shakerctl(*words, "--set", "actuation=lever", "--set", "host=required", "--set", "layouts=2")
    assert done.code == 0, done
    in_service_mode(served)
    done = shakerctl(*words, "--set", "table=18")
    assert done.code == 0, done
    assert json.loads(done.out)["changes"] == {"table": ["T1", "18"]}
    assert 'table: "T1" becomes "18"' in done.err
    have = settings()
    named = [have[name] for name in ("table", "actuation", "host", "layouts")]
    assert named == ["18", "lever", "required", 2]
    whole = tmp_path / "whole.json"
    whole.write_text('{"table":"T19","layouts":2}')
    in_service_mode(served)
    done = shakerctl(*words, "--settings", whole)
    assert done.code == 0, done
    assert set(json.loads(done.out)["changes"]) == {"table", "actuation", "host"}
    assert settings()["actuation"] == "electronic"
    assert shakerctl("send", "--port", served.uart, "--key-file", key_file, "time").code == 0, "the same key"


def test_what_cannot_be_is_refused_before_the_shaker_stops(tmp_path):
    with pytest.raises(trouble.Usage, match="there is no folder"):
        provision.key_is_free(tmp_path / "no" / "key")
    for found, words in (({"": 5}, "without a name"), ({"table": '"T"'}, "without quotes and backslashes")):
        with pytest.raises(trouble.Trouble, match=words):
            provision.check(found, provision.today())
    with pytest.raises(trouble.Usage, match="is no key"):
        line.key_of(Path("/dev/zero"))
    with pytest.raises(trouble.Usage, match="is no JSON"):
        provision.read_json(Path("/dev/zero"))
    assert "what they were" in provision.when(None, False)


def test_what_replaces_damaged_settings_is_told_and_nothing_else():
    changed = provision.changes({}, {"duty": 60})
    assert (changed["duty"], changed["front_board"]) == ([None, 60], [None, True])
    assert "authorisation" not in changed, "none before, none then"


DATA = """
import os, sys
sys.path.insert(0, "/" + open("/current").read().strip())
from shaker.board import mount_data
_at = globals().get("_at") or mount_data()
print(*os.listdir(_at[0]))
"""


def test_what_the_shaker_would_refuse_is_refused_before_anything_is_changed(served, tmp_path):
    record = tmp_path / "record.json"
    record.write_text(json.dumps(RECORD))
    words = ("provision", "--port", served.usb, "--yes")
    in_service_mode(served)
    done = shakerctl(*words, "--authorisation", record, "--uart", served.uart, "--json")
    assert (done.code, json.loads(done.out)["authorised"]) == (0, True), done
    key = tmp_path / "key"
    in_service_mode(served)
    done = shakerctl(*words, "--new-key", key, "--set", "actuation=lever")
    assert (done.code, key.exists()) == (1, False), done
    assert "would refuse this (authorisation" in done.err
    assert done.err.count("\n") == 1
    have = json.loads(shakerctl("send", "--port", served.uart, "--json", "settings").out)["ok"]
    assert have["actuation"] == "electronic"
    to_bench(served)
    assert not {"settings.new", "settings.bad"} & set(on_board(served, DATA).split())


def test_settings_by_hand_as_the_readme_says(served, tmp_path, monkeypatch):
    page = (interpreter.FIRMWARE / "README.md").read_text("utf-8")
    (words,) = re.findall("^mpremote connect PORT (.*)$", page, re.MULTILINE)
    (tmp_path / "settings.new").write_text('{"table":"T8"}')
    monkeypatch.chdir(tmp_path)
    to_bench(served)
    done = mpremote(served.usb, *shlex.split(words))
    assert done.code == 0 and "/data" in done.out, done
    served.wait(in_service)
    have = json.loads(shakerctl("send", "--port", served.uart, "--json", "settings").out)["ok"]
    assert have["table"] == "T8"


ANOTHER = '{"seq":%d,"boot":1,"t":5,"at":null,"ev":"uncovered","ph":"IDLE","rd":0,"rep":0}'


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_a_file_of_another_table_is_refused_before_anything_is_acknowledged(served, key_file, tmp_path, form):
    words = ("events", "--port", served.uart, "--key-file", key_file, "--format", form, "--out")
    status = json.loads(shakerctl("send", "--port", served.uart, "--json", "status").out)["ok"]
    out = tmp_path / "other"
    if form == "csv":
        out.write_text(HEADING + "1,1,5,,uncovered,IDLE,0,0,\n")
    else:
        out.write_text(ANOTHER % 1 + "\n")
    before = out.read_text()
    done = shakerctl(*words, out)
    assert done.code == 1 and "Event 1 of this shaker is not the one in" in done.err, done
    assert out.read_text() == before
    have = json.loads(shakerctl("send", "--port", served.uart, "--json", "status").out)["ok"]
    assert have["ack"] == status["ack"] < have["seq"]
    mine = tmp_path / "mine"
    assert shakerctl(*words, mine).code == 0
    assert shakerctl(*words, mine).code == 0, "and again"


def test_a_file_has_one_writer(tmp_path):
    store = Store(tmp_path / "events", False)
    with pytest.raises(trouble.Trouble, match="being written by another command"):
        Store(tmp_path / "events", False)
    store.close()
    Store(tmp_path / "events", False).close()


def test_an_event_that_comes_again_as_another_one_is_told(tmp_path):
    path = tmp_path / "events"
    path.write_text("".join(ANOTHER % n + "\n" for n in (1, 2, 3)))
    store = Store(path, False)
    event = json.loads(ANOTHER % 2)
    store.again(event)
    store.again(json.loads(ANOTHER % 9))
    with pytest.raises(trouble.Trouble, match="Event 2 of this shaker is not the one"):
        store.again({**event, "ev": "covered"})
    store.keep(json.loads(ANOTHER % 4))
    with pytest.raises(trouble.Trouble, match="Event 4"):
        store.again({**json.loads(ANOTHER % 4), "t": 6})
    store.close()


def test_a_file_that_was_made_for_nothing_goes(tmp_path):
    out = tmp_path / "new"
    assert main(["events", "--port", str(tmp_path / "none"), "--out", str(out)]) == 1
    assert not out.exists()


def test_the_uart_given_for_usb_is_named_as_that(served):
    to_bench(served)
    served.order(restart=1)
    served.wait(in_service)
    done = shakerctl("bench-test", "--port", served.uart, "--yes")
    assert (
        done.code == 1 and f"{served.uart} is the shaker's UART 2: give the port of its own USB" in done.err
    )


def test_monitor_begins_with_the_newest_events(served, key_file):
    for _ in range(30):
        assert shakerctl("send", "--port", served.uart, "--key-file", key_file, "time").code == 0
    newest = json.loads(shakerctl("send", "--port", served.uart, "--json", "status").out)["ok"]["seq"]
    said = shakerctl("monitor", "--port", served.uart, "--json", "--seconds", "6").out.splitlines()
    numbers = [thing["seq"] for thing in map(json.loads, said) if "ev" in thing]
    assert sorted(numbers) == list(range(newest - 11, newest + 1)), "each once"


def turn_key(board, *positions):
    """Turn the service key, once the firmware runs and has judged the table."""
    board.wait(lambda seen: any(seen["status"]))
    for position in positions:
        board.rest(500)
        board.set(service=position)
    board.rest(500)


def test_settings_that_wait_for_a_fault_to_be_cleared_are_not_forgotten(served, tmp_path, key_file):
    words = ("provision", "--port", served.usb, "--yes")
    done = shakerctl(*words, "--set", "table=T3")  # the service key forgotten
    assert (done.code, "not in service mode" in done.err) == (1, True)
    turn_key(served, "on")
    done = shakerctl(*words, "--set", "table=T3", "--key-file", key_file)
    assert (done.code, "wait: the shaker is in FAULT" in done.out) == (0, True), done
    done = shakerctl(*words, "--set", "pulse_ms=200")
    assert (done.code, "still wait" in done.err) == (1, True), done
    turn_key(served, "off", "on", "off")
    served.wait(in_service, "the fault is cleared")
    in_service_mode(served)
    done = shakerctl(*words, "--set", "pulse_ms=200")
    assert (done.code, "still wait" in done.err) == (1, True), "cleared, but not started again yet"
    have = json.loads(shakerctl("send", "--port", served.uart, "--json", "settings").out)["ok"]
    assert (have["table"], have["pulse_ms"]) == ("T3", 250), "now it has taken them in"
    in_service_mode(served)
    done = shakerctl(*words, "--set", "key=null", "--uart", served.uart)
    assert (done.code, "key: taken away" in done.out) == (0, True), done
    done = shakerctl("send", "--port", served.uart, "--key-file", key_file, "time")
    assert "has no key" in done.err


class Told(usb.Usb):
    """A board whose firmware has these settings in force."""

    def __init__(self, in_force):
        self.voice = Voice()
        self.in_force = in_force

    def exec(self, code, timeout=None):
        """Take it."""
        return ""

    def eval(self, expression, timeout=None):
        """Answer what provision asks."""
        return {"_program()": "/fw-00000000", "_at[0]": "/data", "_now()": (self.in_force, False)}[expression]


@pytest.mark.parametrize(
    ("more", "less", "word"),
    [("extra_ms", None, "newer than this tool"), (None, "duty", "older than this tool")],
)
def test_firmware_of_another_release_is_told_from_a_wrong_setting(more, less, word):
    have = dict(settings.Settings().public())
    have.update({more: 1} if more else {})
    have.pop(less, None)
    with pytest.raises(trouble.Trouble, match=word) as refused:
        place = provision.Place(Told(have))
        place.put(place.in_force(True), {"duty": 50})
    assert (more or less) in str(refused.value)


def test_a_uart_that_cannot_be_opened_is_found_before_anything_is_done(served, tmp_path):
    key = tmp_path / "key"
    done = shakerctl("provision", "--port", served.usb, "--new-key", key, "--uart", tmp_path / "none")
    assert (done.code, "with --uart" in done.err, key.exists(), served.resets) == (1, True, False, [])


def test_a_new_key_is_made_only_for_a_board_that_takes_it(tmp_path):
    key = tmp_path / "new.key"
    with VirtualBoard(tmp_path / "board") as board:
        done = shakerctl("provision", "--port", board.usb, "--new-key", key)
    assert (done.code, "no firmware" in done.err, key.exists()) == (1, True, False)


@pytest.mark.parametrize("pair", ["pulse_ms=--5", "pulse_ms=²", "pulse_ms=" + "9" * 5000, "table=²"])
def test_a_value_that_is_none_takes_one_line(pair, capsys):
    assert main(["provision", "--port", "x", "--set", pair]) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_a_setting_given_twice_is_refused(capsys):
    assert main(["provision", "--port", "x", "--set", "table=A", "--set", "table=B"]) == 2
    assert "table is refused: given twice" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "word"),
    [("[" * 100_000, "deep"), ('{"table":"a","table":"b"}', "table is refused: given twice")],
)
@pytest.mark.parametrize("option", ["--settings", "--authorisation"])
def test_a_file_that_is_none_takes_one_line(tmp_path, capsys, text, word, option):
    path = tmp_path / "file"
    path.write_text(text)
    assert main(["provision", "--port", "x", option, str(path)]) == 2
    err = capsys.readouterr().err
    assert (word in err, err.count("\n")) == (True, 1)


# -- Flashing ----------------------------------------------------------------------------------------------


YES = Voice(assume_yes=True)


def esp_image(path, chip=0, size=200_000, magic=0xE9):
    data = bytearray(size)
    data[0] = magic
    data[12:14] = chip.to_bytes(2, "little")
    path.write_bytes(data)
    return path


def test_an_image_for_another_chip_is_refused_before_anything_is_written(tmp_path):
    flash.check_image(esp_image(tmp_path / "good"))
    with pytest.raises(trouble.Trouble, match="ESP32-S3"):
        flash.check_image(esp_image(tmp_path / "s3", chip=9))
    for name, options in (("uf2", {"magic": 0x55}), ("short", {"size": 5000})):
        with pytest.raises(trouble.Trouble, match="no image"):
            flash.check_image(esp_image(tmp_path / name, **options))


def test_esptool_at_a_board_that_does_not_answer(tmp_path):
    with VirtualBoard(tmp_path / "board") as board:
        board.order(power="off")
        image = esp_image(tmp_path / "image")
        done = shakerctl("flash", "--port", board.usb, "--image", image, "--json", "--yes")
        assert done.code == 1
        assert "silent" in done.err.splitlines()[-1]
        assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("said", "word"),
    [
        ("A fatal error occurred: This chip is ESP32-S3, not ESP32. Wrong chip argument?", "Wrong chip"),
        ("A fatal error occurred: Failed to connect to ESP32: No serial data received.", "silent"),
        ("Lost connection, retrying...\nA serial exception error occurred: device disconnected", "went away"),
        ("A fatal error occurred: The firmware is bigger than the flash", "gave up"),
    ],
)
def test_what_esptool_says_becomes_one_line_that_says_what_to_do(tmp_path, said, word):
    port = tmp_path / "port"
    port.write_text("")
    with pytest.raises(trouble.Trouble, match=word) as refused:
        flash.flash(str(port), esp_image(tmp_path / "i"), 115200, False, YES, lambda words, line: (2, said))
    assert "\n" not in str(refused.value)


def test_what_esptool_is_told(tmp_path):
    port = tmp_path / "port"
    port.write_text("")
    told = []

    def run(words, line):
        told.extend(words)
        return 0, ""

    assert flash.flash(str(port), esp_image(tmp_path / "i"), 115200, False, YES, run) == 0
    assert told[:2] == ["--chip", "esp32"]
    assert told[-3:] == ["write-flash", "0x1000", str(tmp_path / "i")]


@pytest.mark.parametrize(("erase", "word"), [(False, "settings and key stay"), (True, "go for ever")])
def test_nothing_is_flashed_that_nobody_agreed_to(tmp_path, monkeypatch, capsys, erase, word):
    port = tmp_path / "port"
    port.write_text("")
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    with pytest.raises(trouble.Trouble, match="Nothing was done"):
        flash.flash(
            str(port), esp_image(tmp_path / "i"), 115200, erase, Voice(), lambda *_: pytest.fail("flashed")
        )
    said = " ".join(capsys.readouterr().out.split())
    assert "no round open" in said
    assert word in said
