"""The bench test on the virtual board: it passes a good one and finds each way to wire it wrong."""

import contextlib
import json
import shutil
import signal
import subprocess
import sys
import threading
import time

import pytest

from conftest import in_service, shakerctl, to_bench
from shakerctl import benchtest, trouble, usb, voice
from virtualboard import VirtualBoard

PASTE = b"R\x01"  # what the raw REPL answers to each request
RATE = 4  # nobody is on the line, so time may run faster than the wall's


@pytest.fixture
def bench(tmp_path, served_image):
    """A deployed board at its prompt, as after Ctrl-C in service mode."""
    flash = tmp_path / "flash.bin"
    shutil.copyfile(served_image, flash)
    with VirtualBoard(tmp_path / "board", image=flash, rate=RATE) as board:
        board.wait(in_service)
        to_bench(board)
        yield board


def loopback(board, folder):
    """Run `shakerctl bench-test --loopback`; return (exit code, report, page)."""
    done = shakerctl("bench-test", "--port", board.usb, "--loopback", "--report", folder / "report", "--json")
    assert done.code in (0, 1), done
    assert "Traceback" not in done.err
    (page,) = (folder / "report").glob("*.html")
    (stored,) = (folder / "report").glob("*.json")
    told = json.loads(done.out)
    assert json.loads(stored.read_text())["checks"] == told["checks"]
    return done.code, told, page.read_text()


def bad(report):
    """Return {(part, name): detail} of what failed."""
    return {(check["part"], check["name"]): check["detail"] for check in report["checks"] if not check["ok"]}


def test_a_good_board_passes_and_the_report_says_what_was_tested(bench, tmp_path):
    code, report, page = loopback(bench, tmp_path)
    assert (code, report["passed"], bad(report)) == (0, True, {})
    assert report["board"] == "240ac4000001"
    assert len(report["manifest_sha256"]) == 64
    assert report["by"] == "loopback"
    assert {check["part"] for check in report["checks"]} == set(benchtest.PARTS)
    names = {check["name"] for check in report["checks"] if check["part"] == "input"}
    assert names == set(benchtest.REST)
    assert "PASSED" in page
    assert report["board"] in page
    latencies = [check["detail"] for check in report["checks"] if check["part"] == "latency"]
    assert len(latencies) == 2
    assert all("opened-in-shake" in detail for detail in latencies)
    bench.wait(lambda seen: seen["out"]["dome_lock"] == "on", "the shaker does not run again")


@pytest.mark.parametrize("pair", [("start", "bell"), ("latch_a_no", "latch_b_no")])
def test_two_swapped_wires_are_found_and_named_and_nothing_is_driven(bench, tmp_path, pair):
    bench.order(swap=pair)
    code, report, page = loopback(bench, tmp_path)
    assert (code, report["passed"]) == (1, False)
    found = bad(report)
    assert {name for part, name in found if part == "input"} == {
        pair[0].removesuffix("_no"),
        pair[1].removesuffix("_no"),
    }
    assert pair[1] in found["input", pair[0].removesuffix("_no")]
    assert not {"output", "interlock", "latency"} & {check["part"] for check in report["checks"]}
    assert "FAILED" in page


@pytest.mark.parametrize(
    ("fault", "where"),
    [
        ({"cut": "bell"}, ("input", "bell")),
        ({"stick": "paid"}, ("wiring", "paid")),
        ({"cut": "dome"}, ("wiring", "dome")),
    ],
)
def test_a_cut_wire_and_a_short_are_found(bench, tmp_path, fault, where):
    bench.order(**fault)
    code, report, _ = loopback(bench, tmp_path)
    assert code == 1
    assert list(bad(report)) == [where]


def test_a_motor_that_does_not_turn_is_found(bench, tmp_path):
    bench.order(motor="dead")
    code, report, _ = loopback(bench, tmp_path)
    assert code == 1
    assert list(bad(report)) == [("interlock", "three pulses, then betting opens")]
    assert "agitator-stalled" in bad(report)["interlock", "three pulses, then betting opens"]


@pytest.mark.parametrize(
    ("fault", "channel"),
    [({"motor": "welded"}, "drive (Q1)"), ({"q2_welded": 1}, "supply (Q2)")],
)
def test_a_welded_transistor_of_the_agitator_is_found(bench, tmp_path, fault, channel):
    bench.order(**fault)
    code, report, _ = loopback(bench, tmp_path)
    assert code == 1
    assert list(bad(report)) == [("interlock", f"with the {channel} off the base stays still")]
    bench.order(motor="ok")
    bench.wait(lambda seen: seen["out"]["dome_lock"] == "on", "the shaker does not run again")
    assert bench.output("agitator") == "off"


class Person(voice.Voice):
    """Does what the bench test says, on the virtual board; `sees`: its answers."""

    MOVES = {
        "Press START": (("start", "pressed"), ("start", "released")),
        "Press the BELL": (("bell", "pressed"), ("bell", "released")),
        "Seat the cover, close both latches": (("cover", "on"), ("latch_a", "closed"), ("latch_b", "closed")),
        "Put the cover on, latches open": (("cover", "on"),),
        "Take the cover off": (("cover", "off"),),
        "Hold PAID for a second": (("paid", "pressed"), 1200, ("paid", "released")),
        "Turn the service key on": (("service", "on"),),
        "Turn the service key off": (("service", "off"),),
        "Press START: the base must not move now": (("start", "pressed"), ("start", "released")),
        "Open the latches, take the cover off": (("latch_a", "open"), ("latch_b", "open"), ("cover", "off")),
        "Open both latches, take the cover off, turn the service key on and off": (
            ("latch_a", "open"), ("latch_b", "open"), ("cover", "off"),
            ("service", "on"), 300, ("service", "off"),
        ),
    }  # fmt: skip

    def __init__(self, board, sees=lambda question: True):
        super().__init__()
        self.board = board
        self.sees = sees
        self.threads = []
        for name, value, act, undo in benchtest.INPUTS:
            self.MOVES = {act: ((name, value),), undo: ((name, benchtest.REST[name]),), **self.MOVES}

    def say(self, text):
        """Hear an instruction and carry it out, a little later."""
        word = text.removeprefix("  >> ").removesuffix(".")
        moves = self.MOVES.get(word, ())
        if "while it shakes" in word:
            latch = "latch_a" if "latch A" in word else "latch_b"
            moves = (("start", "pressed"), ("start", "released"), "shakes", (latch, "open"))
        if moves:
            asked = self.board.heard(PASTE)
            last = self.threads[-1] if self.threads else None
            self.threads.append(threading.Thread(target=self._move, args=(moves, asked, last)))
            self.threads[-1].start()

    def _move(self, moves, asked, last):
        if last:
            last.join()  # one thing after the other
        self.board.expect(PASTE, asked + 1)  # however slow this machine: the board looks by now
        before = ""
        for move in moves:
            if before != "shakes":  # a pulse is short
                self.board.rest(150)
            before = move
            if move == "shakes":
                self.board.wait(lambda seen: seen["out"]["agitator"] == "on")
            elif isinstance(move, int):
                self.board.rest(move)
            elif move[0] == "motion" and move[1] == "still":
                self.board.order(unpin=1)
            else:
                self.board.set(**{move[0]: move[1]})

    def confirm(self, question):
        """Look, and answer."""
        return self.sees(question)


def by_hand(board, person):
    """Run the test with a person; return its report."""
    with usb.Usb(board.usb, person) as link:
        link.take()
        report = benchtest.BenchTest(link, person, False, 40.0).run()
    for thread in person.threads:
        thread.join()
    return report.thing()


def test_a_person_is_led_through_it_and_one_unlit_lamp_fails_it(bench):
    report = by_hand(bench, Person(bench, lambda question: "front board" not in question))
    assert bad(report) == {("output", "front_board"): ""}
    assert report["by"] == "operator"
    assert {check["part"] for check in report["checks"]} == set(benchtest.PARTS)


@pytest.mark.parametrize("moves", [False, True])
def test_without_a_motion_sensor_the_person_says_whether_one_channel_alone_moves_it(bench, moves):
    person = Person(bench, lambda question: "Did the base move" in question and moves)
    with usb.Usb(bench.usb, person) as link:
        link.take()
        test = benchtest.BenchTest(link, person, False, 40.0)
        link.exec("bench.settings.motion = False\nbench.begin()")
        test.motion = False
        with pytest.raises(benchtest.Failed) if moves else contextlib.nullcontext():
            test.channels()
    for thread in person.threads:
        thread.join()
    found = [(check["name"], check["ok"]) for check in test.report.thing()["checks"]]
    names = [name for _, _, name in benchtest.CHANNELS]
    assert found == ([(names[0], False)] if moves else [(name, True) for name in names])


def test_a_cup_is_open_only_with_both_latches_open_and_the_cover_off(bench):
    """A latch that was never seen open would have the next shake refused, and the transistors blamed."""
    with usb.Usb(bench.usb, Person(bench)) as link:
        link.take()
        benchtest.BenchTest(link, link.voice, False, 40.0)
        link.exec("bench.begin()")
        for name, value, arrived in (
            ("latch_b", "closed", False),
            ("latch_b", "open", True),
            ("cover", "on", False),
            ("cover", "off", True),
        ):
            bench.set(**{name: value})
            link.eval("bench.run(('never',), 300)")  # until the contacts have settled
            assert link.eval("bench.run(('IDLE', 'dome-locked', 'open'), 300)")[6] == arrived, (name, value)


def test_the_key_that_stopped_the_shaker_may_still_be_on(bench):
    """The technician needs longer than a wrong wire is given, and is told what is not at rest."""
    bench.set(service="on")
    person = Person(bench)
    told = []

    def say(text):
        told.append(text)
        if "Not at rest yet: service" in text:
            time.sleep(3 * benchtest.WRONG_S / 2)
            bench.set(service="off")

    person.say = say
    with usb.Usb(bench.usb, person) as link:
        link.take()
        test = benchtest.BenchTest(link, person, False, 40.0)
        test.wiring()
    assert bad(test.report.thing()) == {}
    assert any("Not at rest yet: service" in text for text in told)


@contextlib.contextmanager
def guided(board, folder, until, times=1):
    """Run the guided bench test as a process, and do what it says but for the `times`-th `until`."""
    words = ["bench-test", "--port", board.usb, "--yes", "--report", str(folder)]
    process = subprocess.Popen(
        [sys.executable, "-m", "shakerctl", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    person = Person(board)
    with process:
        try:
            for line in process.stdout:
                times -= until in line
                if not times:
                    break
                person.say(line.rstrip("\n"))
            for thread in person.threads:
                thread.join()
            yield process
        finally:
            process.kill()


def lit(board):
    """Return the outputs that are on, without the bolts."""
    board.order()
    return {name for name, value in board.seen["out"].items() if value == "on"} - {
        "cover_lock", "cover_bar", "dome_lock",
    }  # fmt: skip


def test_ctrl_c_stops_the_board_at_once_and_starts_its_shaker(bench, tmp_path):
    with guided(bench, tmp_path, "Press the BELL") as process:
        bench.wait(lambda seen: seen["out"]["front_board"] == "on")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert (process.returncode, "interrupted" in err, err.count("\n")) == (1, True, 1)
    bench.expect(b"running from /", 2)
    bench.wait(in_service)
    assert lit(bench) == set()


@pytest.mark.parametrize(("where", "times"), [("Press the BELL", 1), ("Take the cover off", 2)])
def test_a_host_that_is_gone_leaves_no_output_on(bench, tmp_path, where, times):
    with guided(bench, tmp_path, where, times) as process:
        bench.wait(lambda seen: {"front_board", "alarm"} & {n for n, v in seen["out"].items() if v == "on"})
        process.kill()
        process.communicate()
    bench.wait(lambda seen: "on" not in (seen["out"]["front_board"], seen["out"]["alarm"]), "lit", 8)
    bench.rest(4000)
    bench.press("start")
    bench.rest(2000)
    assert lit(bench) == set()


def test_a_report_that_cannot_be_written_is_found_before_the_test(bench, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    done = shakerctl("bench-test", "--port", bench.usb, "--loopback", "--report", tmp_path / "file")
    assert (done.code, "choose another --report" in done.err, done.err.count("\n")) == (1, True, 1)
    assert bench.resets == ["reset"], "nobody stopped it for that"

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(benchtest.BenchTest, "round", lambda test: None)
    monkeypatch.setattr(benchtest.BenchTest, "channels", lambda test: None)
    monkeypatch.setattr(benchtest.BenchTest, "latency", lambda *_: None)
    monkeypatch.setattr(benchtest.Path, "write_text", full)
    done = shakerctl("bench-test", "--port", bench.usb, "--loopback", "--report", tmp_path, "--json")
    assert (done.code, "No space left" in done.err) == (1, True)
    told = json.loads(done.out)
    assert (told["report"], len(told["checks"]) > 20) == ("", True)
    bench.expect(b"running from /", 2)


def test_a_round_that_is_open_is_not_touched(bench, tmp_path):
    bench.order(restart=1)
    bench.wait(lambda seen: seen["out"]["dome_lock"] == "on")
    bench.cover()
    bench.press("start")
    bench.wait(lambda seen: seen["out"]["front_board"] == "on")
    # The board comes to its prompt with the round open: its technician has cut main.py off at a restart.
    bench.order(cut_main=1)
    bench.order(restart=1)
    done = shakerctl("bench-test", "--port", bench.usb, "--loopback", "--report", tmp_path)
    assert done.code == 1
    assert "round is open" in done.err
    assert bench.output("cover_lock") == "on"


def test_without_firmware_or_jig_it_says_what_to_do(bench, tmp_path):
    with VirtualBoard(tmp_path / "empty") as empty:
        done = shakerctl("bench-test", "--port", empty.usb, "--loopback")
        assert done.code == 1
        assert "deploy" in done.err
    with usb.Usb(bench.usb, voice.Voice()) as link:
        link.take()
        link.exec("import sys\nsys.modules.pop('target_wiring')")
        with pytest.raises(trouble.Trouble, match="target_wiring"):
            benchtest.BenchTest(link, voice.Voice(), True, 1.0)
