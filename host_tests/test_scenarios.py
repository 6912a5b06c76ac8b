"""Every scenario file on both interpreters, and every way to write one wrongly."""

import inspect
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import pytest

import play
import scenario
import simrun
from shaker import lines

FOLDER = play.HERE / "scenarios"
FILES = sorted(FOLDER.glob("**/*.scn"))


@pytest.fixture(scope="session")
def found():
    """What is wrong with each file; all are played in one go."""
    return dict(zip(FILES, play.complaints(FILES), strict=True))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(FOLDER)))
def test_scenario(path, found):
    if found[path]:
        pytest.fail("\n".join(found[path]), pytrace=False)


def test_the_handed_scenarios_are_among_them():
    handed = "fault_in_closed_then_lifted latch_opens_in_shake no_cover_before_payout one_round"
    handed += " paid_hold_begun_before_lifting power_cut_in_closed service_mode_dome_off void_round"
    assert {f"{name}.scn" for name in handed.split()} <= {path.name for path in FILES}


def test_every_file_of_ours_says_what_it_shows():
    for path in FILES:
        if path.parent == FOLDER:
            continue  # handed over as they are
        assert path.read_text("utf-8").startswith("# "), path


def test_no_two_files_are_the_same():
    seen = {}
    for path in FILES:
        steps = "\n".join(line for line in path.read_text("utf-8").splitlines() if not line.startswith("#"))
        assert steps not in seen, f"{path} is {seen[steps]}"
        seen[steps] = path


# -- a player that always says yes would be no test: scenarios that must fail --------------------------------

# The first may begin some ms after its scan: it waits for the end of a servo's pulse.
SECOND_PULSE = "cover\npress start\nwait until agitator=on\nwait until agitator=off\nwait until agitator=on\n"
WRONG = {
    "phase": ("expect phase=COVERED", "expected phase=COVERED"),
    "input": ("expect cover=on", "expected cover=on"),
    "output": ("expect alarm=on", "expected alarm=on"),
    "lamps": ("expect lamps=small", "expected lamps=small"),
    "fault": ("expect fault=dome-opened", "expected fault=dome-opened"),
    "round": ("expect round=1", "expected round=1"),
    "within": ("expect phase=COVERED within 500", "expected phase=COVERED within 500 ms"),
    "wait until": ("wait until phase=COVERED within 500", "expected phase=COVERED"),
    "wait until, default limit": ("wait until phase=COVERED", "expected phase=COVERED within 10000 ms"),
    "event": ("expect event covered", "expected event covered"),
    "event, wrong field": ("expect event boot cause=watchdog", "expected event boot"),
    "event, field it does not have": ("expect event boot what=start", "expected event boot"),
    "event, taken already": ("expect event boot\nexpect event boot", "expected event boot"),
    "no event": ("press bell\nwait 300\nno event refused", "expected no event refused"),
    "reply": ("host paid\nexpect reply ok", "expected reply ok; seen reply wrong-phase"),
    "reply to nothing": ("expect reply ok", "expected reply ok"),
    "never": ("never cover=on\nwait 100\ncover", "expected never cover=on"),
    "never, a combination": ("never phase=COVERED cover_lock=off\ncover", "expected never phase=COVERED"),
    "always": ("always phase=IDLE\ncover", "expected always phase=IDLE"),
    "always, found at a scan": (
        "always dome_lock=on\nset service=on\nwait 100",
        "expected always dome_lock=on",
    ),
    "never, as the last line": ("never phase=IDLE", "expected never phase=IDLE"),
    "always, as the last line": ("always phase=COVERED", "expected always phase=COVERED"),
    "link absent": ("option link=absent\npress bell\nexpect event refused", "expected event refused"),
    "reply without a host": ("option link=absent\nhost status\nexpect reply ok", "expected reply ok"),
    "a limit a scan too short": (
        SECOND_PULSE + "set latch_a=open\nexpect agitator=off within 9",
        "expected agitator=off",
    ),
    "motion dead": (
        "option motion=dead\ncover\npress start\nwait until phase=BETTING within 5000",
        "expected phase=BETTING",
    ),
}
RIGHT = {
    "never is a combination": "never cover=on latch_a=open latch_b=closed\ncover",
    "release always": "always phase=IDLE\nwait 100\nrelease always\ncover",
    "a limit that the scan of its millisecond keeps": (
        SECOND_PULSE + "set latch_a=open\nexpect agitator=off agitator_enable=off within 10"
    ),
    "no event since": "press bell\nexpect event refused\nwait 500\nno event refused",
    "no event of another name": "press bell\nwait 300\nno event covered",
    "lamps in any order": "expect lamps=none",
    "comments and blank lines": "# a\n\n   # b\nwait 1  # c\n",
}


@pytest.fixture(scope="session")
def played(tmp_path_factory):
    """What the player says of small scenarios that are wrong, and of some that are right."""
    folder = tmp_path_factory.mktemp("scenarios")
    paths = []
    for i, text in enumerate([text for text, _ in WRONG.values()] + list(RIGHT.values())):
        paths.append(folder / f"{i}.scn")
        paths[-1].write_text(text + "\n")
    return dict(zip([*WRONG, *RIGHT], zip(paths, play.complaints(paths), strict=True), strict=True))


@pytest.mark.parametrize("what", WRONG)
def test_a_table_that_does_otherwise_fails_on_both_interpreters(what, played):
    path, lines = played[what]
    text, said = WRONG[what]
    for name in ("CPython", "MicroPython"):
        assert f"FAILED {path} on {name}" in lines
    blamed = [line for line in lines if f"{path}:" in line]
    assert len(blamed) == 2 and blamed[0] == blamed[1]
    assert said in blamed[0] and " ms: " in blamed[0]
    number = int(blamed[0].split(f"{path}:")[1].split(":")[0])
    assert 1 <= number <= len(text.splitlines())


@pytest.mark.parametrize("what", RIGHT)
def test_a_table_that_does_so_passes(what, played):
    assert played[what][1] == []


def test_a_long_file_leaves_room_for_the_next(tmp_path):
    events = (
        "".join(f"never phase=PAYOUT round={i}\n" for i in range(10)) + "press bell for 30\nwait 30\n" * 1400
    )
    (tmp_path / "long.scn").write_text("option link=absent\n" + events)
    (tmp_path / "next.scn").write_text("expect phase=IDLE\n")
    assert play.complaints(sorted(tmp_path.glob("*.scn"))) == [[], []]


def test_a_file_that_no_interpreter_survives_fails_alone(tmp_path, monkeypatch):
    for name in ("a", "b", "c", "d"):
        (tmp_path / f"{name}.scn").write_text("expect phase=IDLE\n")
    # As a trace for which there is no memory would: b and d end the interpreter that plays them.
    (tmp_path / "run_scenarios.py").write_text(
        "import sys\nimport scenario\nparse = scenario.parse\n"
        "def die(text, path):\n"
        "    if path[-5] in 'bd':\n        print('about to die')\n        raise MemoryError()\n"
        "    return parse(text, path)\n"
        "scenario.parse = die\n"
        f"__name__ = '__main__'\nexec(open({str(play.HERE / 'run_scenarios.py')!r}).read())\n"
    )
    start = play.subprocess.Popen

    def killing(words, **options):
        return start(
            [word.replace(str(play.HERE / "run_"), str(tmp_path / "run_")) for word in words], **options
        )

    monkeypatch.setattr(play.subprocess, "Popen", killing)
    found = play.complaints(sorted(tmp_path.glob("*.scn")))
    assert (found[0], found[2]) == ([], [])
    for said, name in ((found[1], "b"), (found[3], "d")):
        text = "\n".join(said)
        assert text.count(f"FAILED {tmp_path}/{name}.scn on ") == text.count("    about to die") == 2
        assert "MemoryError" in text


def playing(*words):
    return subprocess.Popen(
        [sys.executable, play.HERE / "play.py", *words],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip


def test_ctrl_c_is_one_line_and_leaves_no_process(tmp_path):
    (tmp_path / "long.scn").write_text("wait 86400000\n")
    with playing(tmp_path / "long.scn") as player:
        while len(children := simrun.children(player.pid)) < 2:
            assert player.poll() is None
            time.sleep(0.01)
        time.sleep(0.5)  # both run
        player.send_signal(signal.SIGINT)
        assert player.communicate(timeout=20) == ("", "make scenario: interrupted.\n")
    assert player.returncode == 130
    assert not any(pathlib.Path("/proc", child).exists() for child in children)


def test_a_reader_that_goes_takes_no_word(tmp_path):
    (tmp_path / "a.scn").write_text("press bell\n" * 200)
    with playing("--trace", tmp_path / "a.scn") as player:
        player.stdout.close()
        assert (player.stderr.read(), player.wait(30)) == ("", 1)


def test_ctrl_c_ends_the_round_in_one_word():
    with subprocess.Popen(
        [sys.executable, play.HERE / "run.py"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
    ) as running:  # fmt: skip
        for _ in range(3):  # it plays
            running.stdout.readline()
        os.killpg(running.pid, signal.SIGINT)
        said = running.communicate(timeout=20)[0]
    assert said.splitlines()[-1] == "stopped" and "Traceback" not in said
    assert running.returncode == 130


def test_every_field_of_an_event_can_be_asked_for():
    source = inspect.getsource(lines)
    said = re.findall(r'[{,]"([a-z]+)":', source[source.index("def event(") : source.index("def _text(")])
    assert set(scenario.EVENT_FIELDS) == set(said)


# -- lines that are no scenario -----------------------------------------------------------------------------

BAD = [
    ("jump", "jump"),
    ("COVER", "COVER"),
    ("set", "NAME=VALUE"),
    ("set cover", "cover"),
    ("set cover=", "cover="),
    ("set =on", "=on"),
    ("set cover=closed", "closed"),
    ("set latch_c=open", "latch_c"),
    ("set latch_a=on", "on"),
    ("set phase=IDLE", "phase"),
    ("set cover=on cover=off", "'cover' stands twice"),
    ("expect phase=IDLE phase=FAULT", "'phase' stands twice"),
    ("set agitator=on", "agitator"),
    ("set motion=dead", "dead"),
    ("cover now", "now"),
    ("uncover 5", "5"),
    ("restart now", "now"),
    ("press", "key"),
    ("press cover", "cover"),
    ("press service", "service"),
    ("press paid 1000", "1000"),
    ("press paid for", "for"),
    ("press paid for long", "long"),
    ("press paid for -5", "-5"),
    ("press paid for 1_000", "1_000"),
    ("press paid for 10 20", "for"),
    ("wait", "wait"),
    ("wait soon", "soon"),
    ("wait 1.5", "1.5"),
    ("wait ١", "١"),
    ("wait 5 6", "wait"),
    ("wait 86400001", "'86400001' is more than a day"),
    ("wait until phase=BETTING within 99999999999", "'99999999999' is more than a day"),
    ("expect event paid within 86400001", "more than a day"),
    ("press paid for 86400001", "more than a day"),
    ("wait until", "NAME=VALUE"),
    ("wait until phase=BETTING within", "within"),
    ("wait until phase=BETTING within x", "x"),
    ("wait until fase=BETTING", "fase"),
    ("expect", "NAME=VALUE"),
    ("expect phase=betting", "betting"),
    ("expect phase=OPEN", "OPEN"),
    ("expect fault=", "fault="),
    ("expect fault=wet", "wet"),
    ("expect round=one", "one"),
    ("expect round=-1", "-1"),
    ("expect lamps=n3", "n3"),
    ("expect lamps=small,", ""),
    ("expect cover_lock=closed", "closed"),
    ("expect agitator", "agitator"),
    ("expect event", "event"),
    ("expect event betsopen", "betsopen"),
    ("expect event paid rd", "rd"),
    ("expect event refused within", "within"),
    ("expect event refused reason=start", "no event has a field 'reason'"),
    ("expect event refused what=start what=bell", "'what' stands twice"),
    ("expect reply", "reply"),
    ("expect reply fine", "fine"),
    ("expect reply ok now", "reply"),
    ("no", "no"),
    ("no event", "event"),
    ("no event nothing", "nothing"),
    ("no paid", "paid"),
    ("never", "NAME=VALUE"),
    ("never agitator", "agitator"),
    ("never agitator=yes", "yes"),
    ("always", "NAME=VALUE"),
    ("always dome=shut", "shut"),
    ("release", "release"),
    ("release never", "never"),
    ("host", "command"),
    ("host result dice", "dice"),
    ("host result dice=1,2,3 dice=1,2,4", "'dice' stands twice"),
    ("host result dice=1,,2", "'dice=1,,2' lacks an item"),
    ("host status id=5", "'id' of a command is the player's own"),
    ("host status cmd=hello", "'cmd' of a command is the player's own"),
    ("raw \\xg0", "\\x"),
    ("raw \\x4", "\\x"),
    ("raw \\q", "\\q"),
    ("raw \\", "\\"),
    ("power", "power"),
    ("power up", "up"),
    ("power on now", "power"),
    ("power cut", "cut"),
    ("power cut at write", "cut"),
    ("power cut at write 0", "1"),
    ("power cut at write x", "x"),
    ("option", "NAME=VALUE"),
    ("option colour=red", "colour"),
    ("option duty=50 duty=60", "'duty' stands twice"),
    ("option actuation=manual", "actuation"),
    ("option bolt_ms=199", "bolt_ms"),
    ("option bolt_ms=2001", "bolt_ms"),
    ("option bolt_ms=fast", "bolt_ms"),
    ("option pulse_ms=301", "pulse_ms"),
    ("option gap_ms=199", "gap_ms"),
    ("option duty=101", "duty"),
    ("option settle_ms=299", "settle_ms"),
    ("option lever_window_ms=999", "lever_window_ms"),
    ("option layouts=0", "layouts"),
    ("option layouts=5", "layouts"),
    ("option front_board=1", "front_board"),
    ("option front_board=on", "front_board"),
    ("option host=sometimes", "host"),
    ("option motion=slow", "motion"),
    ("option link=slow", "slow"),
    ("option clock=late", "late"),
    ("option clock=1073741824", "clock"),
    ("option actuation", "actuation"),
]


@pytest.mark.parametrize(("line", "word"), BAD)
@pytest.mark.parametrize("before", ["", "# a comment\n\n"])
def test_a_bad_line_names_file_line_and_word(before, line, word):
    with pytest.raises(scenario.ScenarioError) as error:
        scenario.parse(before + line + "\n", "some/file.scn")
    number = 1 + before.count("\n")
    assert str(error.value).startswith(f"some/file.scn:{number}: ")
    assert word in str(error.value)


def test_a_day_may_be_waited_for():
    assert scenario.parse("wait 86400000", "f").steps[0].ms == 86400000


def test_an_option_after_the_first_other_line_is_an_error():
    with pytest.raises(scenario.ScenarioError, match=r"^f:2: .*option"):
        scenario.parse("wait 1\noption bolt_ms=600\n", "f")


def test_everything_is_checked_before_anything_is_played(tmp_path):
    good = tmp_path / "good.scn"
    bad = tmp_path / "bad.scn"
    good.write_text("expect phase=IDLE\n")
    bad.write_text("expect phase=IDLE\nfly\n")
    (tmp_path / "latin.scn").write_bytes(b"# caf\xe9\n")
    words = [good, bad, tmp_path / "missing.scn", tmp_path / "latin.scn"]
    done = subprocess.run(
        [sys.executable, play.HERE / "play.py", *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1 and done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[-1] == "1 passed, 3 failed"
    assert f"{bad}:2: unknown word 'fly'" in lines
    assert any(line.startswith(f"{tmp_path}/missing.scn: ") for line in lines)
    assert "Traceback" not in done.stdout


def test_traces_are_json_lines(tmp_path):
    import json

    file = tmp_path / "a.scn"
    file.write_text("cover\n")
    assert play.play([file], play.keep_in(tmp_path / "traces")) == (1, 0)
    lines = [json.loads(line) for line in (tmp_path / "traces" / "a.jsonl").read_text().splitlines()]
    times = [line["t"] for line in lines]
    assert times == sorted(times)
    assert {"phase": "COVERED"}.items() <= {
        k: v for line in lines for k, v in line.items() if k == "phase"
    }.items()


def test_a_place_where_no_trace_can_go_is_refused_at_once(tmp_path, capsys):
    path = tmp_path / "file"
    path.write_text("x")
    for folder in (path, path / "below"):
        with pytest.raises(SystemExit) as stopped:
            play.main(["--trace-dir", str(folder), "x.scn"])
        assert stopped.value.code == 2 and f"--trace-dir {folder}: " in capsys.readouterr().err
