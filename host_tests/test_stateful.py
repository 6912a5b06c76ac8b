"""Random people, contacts, lines, flash and supplies: walks on both interpreters, and hypothesis' own."""

import os
import subprocess

import pytest

import host
import play
import scenario
import walks
import whole

FAILURES = play.ROOT / "build" / "failures"
SEEDS = 10
LONG_SEEDS = 300


def complaints(seeds, folder):
    """Walk on both interpreters at once; return what is wrong, or where their traces differ."""
    program = whole.staged()
    said = []
    running = {}
    for name, command in play.interpreters().items():
        (folder / name).mkdir()
        running[name] = subprocess.Popen(
            [*command, play.HERE / "walks.py", program, folder / name, *map(str, seeds)],
            env=play.environment(program)[name],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
    for name, process in running.items():
        output = process.communicate()[0]
        for i, (passed, why) in enumerate(play.verdicts(output, len(seeds))):
            if not passed:
                said += [f"seed {seeds[i]} on {name}", *why]
    for i, seed in enumerate(seeds):
        differs = play.difference(*(folder / name / f"{i}.trace" for name in running))
        if differs:
            said += [f"seed {seed}", differs]
    return said


def test_the_same_walk_leaves_the_same_trace_on_both_interpreters(tmp_path):
    assert complaints(range(1, SEEDS + 1), tmp_path) == []
    traces = "".join(path.read_text() for path in tmp_path.glob("CPython/*.trace"))
    for word in ("bets-open", "paid", "void", "fault", "recovered", "refused"):
        assert f'"ev":"{word}"' in traces


@pytest.mark.long
def test_many_walks(tmp_path):
    assert complaints(range(1000, 1000 + LONG_SEEDS), tmp_path) == []


def test_everything_holds_whatever_happens():
    assert whole.run("CPython", "stateful", 20, 40, "stateful")[-1] == "examples 20"


def test_a_run_in_which_too_little_happens_fails():
    with pytest.raises(whole.Wrong, match="too little happens: no "):
        whole.run("CPython", "stateful", 1, 1, "few")


def test_only_a_whole_frame_signed_in_a_session_may_end_a_payout():
    line = host.encode(7, "paid", {}, walks.KEY, "0a1b")
    assert walks.signed(b"x" + line, [b"ff", b"0a1b"]) == ["paid"]
    assert walks.signed(line + host.encode(8, "void", {}, walks.KEY, "ff"), [b"ff", b"0a1b"]) == [
        "paid",
        "void",
    ]
    for bad in (line[:-2], line[1:], line.replace(b"paid", b"void"), host.encode(7, "paid", {}), b"\r\n" * 3):
        assert walks.signed(bad, [b"0a1b"]) == []
    assert walks.signed(line, [b"ff"]) == []


@pytest.mark.long
def test_everything_holds_whatever_happens_for_long():
    chosen = "always the same" if os.environ.get("CI") else "random"
    assert whole.run("CPython", "stateful", 600, 80, "stateful-long", chosen)[-1] == "examples 600"


BROKEN = {
    "opening counts late": (
        "shaker/inputs.py",
        "        now = (c1 & (((levels ^ _MOTION) & _EARNED) | _QUICK)) | (c2 & c0 & (c1 | _SLOW))",
        "        now = (c1 & ((~levels & _MOTION) | _QUICK)) | (c2 & c0 & (c1 | _SLOW | levels))",
    ),
    "the bar is forgotten": ("shaker/interlock.py", "        out |= _COVER_BAR", "        out |= 0"),
    "paid at once": ("shaker/round.py", "PAID_HOLD_MS = const(800)", "PAID_HOLD_MS = const(300)"),
    "bets open early": ("shaker/agitator.py", "PULSES = const(3)", "PULSES = const(2)"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_walks_find_a_broken_firmware(what, tmp_path):
    (tmp_path / "firmware").mkdir()
    program = whole.mutant(tmp_path / "firmware", *BROKEN[what])
    with pytest.raises(whole.Wrong, match="bad"):
        whole.run("CPython", "walks", tmp_path, "first", *range(1, 31), program=program)


@pytest.mark.long
def test_a_broken_firmware_ends_in_a_scenario_that_plays_again(tmp_path):
    (tmp_path / "firmware").mkdir()
    program = whole.mutant(tmp_path / "firmware", *BROKEN["the bar is forgotten"])
    with pytest.raises(whole.Wrong, match="mutant"):
        whole.run("CPython", "stateful", 20, 20, "mutant", program=program)
    found = FAILURES / "mutant.scn"
    scenario.parse(found.read_text(), str(found))
    with pytest.raises(whole.Wrong, match="bad 0"):
        whole.run("CPython", "walks", tmp_path, found, program=program)
    assert whole.run("CPython", "walks", tmp_path, found)[-1] == "ok 0"
    found.unlink()
