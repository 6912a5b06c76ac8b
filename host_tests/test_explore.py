"""The exhaustive search finds nothing in the firmware, something in every mutant, and leaves no state out."""

import multiprocessing
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

import exploration
import explore_mutants
import explore_parts
import explore_scenario
import explore_walk
import play
import scenario
from shaker import names as n
from shaker.record import FLAG_BETS

SPAWN = multiprocessing.get_context("spawn")
HERE = pathlib.Path(__file__).resolve().parent


def _explore(job):
    name, config = job
    keep = set()
    return exploration.search(name, config, keep=keep), keep


@pytest.fixture(scope="module")
def reached():
    """{name: (Found, every live state)} of the standard search, in two processes."""
    with SPAWN.Pool(2) as pool:
        results = pool.map(_explore, exploration.CONFIGS, chunksize=1)
    return {found.name: (found, keep) for found, keep in results}


@pytest.mark.parametrize("name", [name for name, _ in exploration.CONFIGS])
def test_every_reachable_state_keeps_i1_to_i8_and_leads_back_to_idle(reached, name):
    found, keep = reached[name]
    assert found.violation is None, explore_scenario.text(found, dict(exploration.CONFIGS)[name])
    assert all(found.phases), "every phase was visited"
    assert found.states == len(keep)


def test_the_search_visits_faults_from_every_phase_and_every_key_and_latch(reached):
    for _, keep in reached.values():
        assert {t[exploration.ORIGIN] for t in keep if t[exploration.PHASE] == n.FAULT} == set(range(7))
        assert {t[exploration.HOLD] for t in keep} == {0, 1, 2}
        assert {exploration._latch(t[exploration.LEVELS], i) for t in keep for i in (0, 1)} == set(range(4))


@pytest.mark.parametrize(
    "part", ["prove_inputs", "prove_guard", "prove_may_shake", "prove_bolt", "prove_shake"]
)
def test_the_parts_are_what_the_search_takes_them_for(part):
    assert getattr(explore_parts, part)(exploration.load())


def _live(phase, flags=0):
    return (0, phase, n.IDLE, flags)


WAYS = {
    "idle": _live(n.IDLE),
    "covered": _live(n.COVERED),
    "shaking": _live(n.SHAKING),
    "betting": _live(n.BETTING, FLAG_BETS),
    "void": _live(n.VOID, FLAG_BETS),
    "covered again": _live(n.COVERED, FLAG_BETS),
    "shaking again": _live(n.SHAKING, FLAG_BETS),
}
ROUNDS = (
    "idle covered",
    "covered shaking",
    "shaking idle",  # opened in the shake
    "shaking betting",
    "betting void",
    "void idle",  # abandoned
    "void covered again",
    "covered again shaking again",
    "shaking again void",
    "shaking again betting",
)


@pytest.mark.parametrize(
    ("without", "goal", "dead"),
    [
        (None, None, []),
        ("void idle", "IDLE", list(WAYS)[3:]),
        ("idle covered", "BETTING", ["idle"]),
        ("shaking betting", "BETTING", ["idle"]),
        ("void covered again", "BETTING", ["void"]),
        ("shaking again betting", "BETTING", ["void"]),
    ],
)
def test_a_table_that_refuses_every_shake_is_a_dead_end(without, goal, dead):
    """From VOID giving the round up is no way to the bets that stand."""
    names = list(WAYS)
    ways = [
        (names.index(a), names.index(b))
        for a in names
        for b in names
        if f"{a} {b}" in ROUNDS and f"{a} {b}" != without
    ]
    found = exploration._dead_ends(list(WAYS.values()), *zip(*ways, strict=True))
    assert (found[0], [names[i] for i in found[1]]) == (goal, dead)


# -- The abstraction ------------------------------------------------------------------------------------


def test_a_restored_core_is_put_as_a_new_one():
    modules = exploration.load()
    config = dict(exploration.CONFIGS)["electronic, motion"]
    rig = exploration.Rig(modules, config)
    rig.step(
        rig.judge(exploration.BLANK, (n.DOME | 0x6000, 0x6000)),
        exploration.Act("idle", None, n.DOME | 0x6000),
    )
    rig.put_restored(exploration.BLANK)
    settings = modules["settings"].Settings()
    settings.set({**exploration.FAST, **config})
    fresh, _ = exploration.build(modules, settings, lambda: True)
    fresh.state.die1, fresh.state.die2, fresh.state.die3 = exploration.DICE  # stale ones: the worst value
    fresh.begin((exploration.NOW - 10) & 0x3FFFFFFF)
    other = (
        fresh,
        fresh.inputs,
        fresh.round,
        fresh.agitator,
        fresh.bolts,
        fresh.bolts._lock,
        fresh.bolts._bar,
        fresh.bolts._dome,
    )
    for mine, theirs in zip(rig.parts, other, strict=True):
        for name, value in vars(theirs).items():
            if isinstance(value, (int, list)):
                assert vars(mine)[name] == value, name


@pytest.mark.parametrize("name", [name for name, _ in exploration.CONFIGS])
def test_plain_walks_meet_no_state_that_the_search_has_not(reached, name):
    _check_walks(reached[name][1], name, range(12), 5000)


@pytest.mark.long
@pytest.mark.xdist_group("reached")  # one process makes the search they share
@pytest.mark.parametrize("name", [name for name, _ in exploration.CONFIGS])
def test_long_walks_meet_no_state_that_the_search_has_not(reached, name):
    _check_walks(reached[name][1], name, range(100, 300), 8000)


def _check_walks(known, name, seeds, scans):
    modules = exploration.load()
    phases = set()
    for seed in seeds:
        walk = explore_walk.Walk(modules, dict(exploration.CONFIGS)[name], seed)
        for scan in range(scans):
            state = walk.step()
            assert state is None or state in known, f"seed {seed}, scan {scan}: {state}"
        phases |= walk.phases
    assert phases == set(range(8)), "the walks visit every phase"


# -- It bites -----------------------------------------------------------------------------------------------


def _label(mutant):
    return mutant[0] + ": " + " ".join(mutant[1].split())[:40]


@pytest.mark.parametrize("mutant", explore_mutants.THIN, ids=_label)
def test_a_mutant_is_caught(mutant):
    assert explore_mutants.caught(mutant)


@pytest.mark.long
def test_all_mutants_are_caught():
    with SPAWN.Pool(2) as pool:
        results = pool.map(explore_mutants.caught, explore_mutants.ALL, chunksize=1)
    survivors = [mutant for mutant, rule in zip(explore_mutants.ALL, results, strict=True) if not rule]
    assert not survivors


def test_a_mutant_that_cannot_be_made_is_not_caught():
    with pytest.raises(exploration.NoPlace):
        explore_mutants.caught(("bolts", "no such text", ""))


@pytest.mark.parametrize("module", sorted({module for module, _, _ in explore_mutants.ALL}))
def test_every_mutant_has_its_place(module):
    text = (exploration.FIRMWARE / "shaker" / f"{module}.py").read_text("utf-8")
    assert [old for name, old, _ in explore_mutants.ALL if name == module and text.count(old) != 1] == []


def test_every_line_of_the_guard_has_a_mutant():
    text = (exploration.FIRMWARE / "shaker" / "interlock.py").read_text("utf-8")
    body = text[text.index("def guard") :]
    body = body[body.index('"""', body.index('"""') + 3) + 3 :]
    olds = [old for module, old, _ in explore_mutants.ALL if module == "interlock"]
    for line in body.splitlines():
        code = line.split("#")[0].strip()
        if code and code not in ("else:", "return out"):
            assert any(
                code in re.sub(r"\s*#.*", "", part) or part.strip() in line
                for old in olds
                for part in old.split("\n")
                if part.strip()
            ), line


# -- What it finds can be played ----------------------------------------------------------------------------

SEEDED = {
    "no bar in PAYOUT": ("interlock", "out |= _COVER_BAR  #", "pass  #"),
    "paid with the cover on": (
        "round",
        "        if levels & _COVER:\n            return _WHY_COVER_ON\n        s.flags",
        "        s.flags",
    ),
    "a latch may open while bets are open": (
        "round",
        "            if levels & _COVERING != _COVERING:\n                self.fault(_F_OPENED_IN_BETTING)",
        "            if not levels & _COVER:\n                self.fault(_F_OPENED_IN_BETTING)",
    ),
    "opened while off is forgotten": (
        "round",
        "elif found == _BETTING and levels & _COVERING != _COVERING:",
        "elif False:",
    ),
    "another key ends the hold of paid": (
        "round",
        "        if toggled & _VOID_KEY:\n",
        "        if not toggled & _PAID:\n            self._hold = 0\n        if toggled & _VOID_KEY:\n",
    ),
}


@pytest.mark.parametrize("bug", SEEDED, ids=str)
def test_a_seeded_bug_becomes_a_scenario_that_the_player_reproduces(bug, tmp_path, monkeypatch):
    module, old, new = mutant = SEEDED[bug]
    name, config = exploration.CONFIGS[0]
    found = exploration.search(name, config, mutant=mutant, speakable=True, hunt=True)
    assert found.violation
    file = tmp_path / "found.scn"
    file.write_text(explore_scenario.text(found, config), "utf-8")
    scenario.parse(file.read_text("utf-8"), str(file))

    monkeypatch.setenv(
        "PATH", os.pathsep.join((str(pathlib.Path(sys.executable).parent), os.environ["PATH"]))
    )
    assert play.play([file]) == (1, 0), "the firmware as it is passes"
    firmware = tmp_path / "firmware"
    for path in [*exploration.FIRMWARE.glob("*.py"), *(exploration.FIRMWARE / "shaker").glob("*.py")]:
        to = firmware / path.relative_to(exploration.FIRMWARE)
        to.parent.mkdir(parents=True, exist_ok=True)
        text = path.read_text("utf-8")
        to.write_text(text.replace(old, new) if path.name == module + ".py" else text, "utf-8")
    monkeypatch.setattr(play, "FIRMWARE", firmware)
    assert play.play([file]) == (0, 1), "the firmware with the bug fails"


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        ("interlock", "elif where == _SHAKING or where == _BETTING:", "elif where == _BETTING:"),
        ("round", "        if levels & _SERVICE:\n            return _WHY_SERVICE\n", ""),
    ],
    ids=["no cover lock in SHAKING", "start in service mode"],
)
def test_the_command_itself_says_what_is_broken_and_how_to_see_it(module, old, new, tmp_path):
    """As a person would: change the firmware, `explore.py`, then the player with the scenario it wrote."""
    for part in ("firmware", "host_tests", "tools"):
        ignored = shutil.ignore_patterns("scenarios", "__pycache__", "test_*.py")
        shutil.copytree(play.ROOT / part, tmp_path / part, ignore=ignored)
    changed = tmp_path / "firmware" / "shaker" / f"{module}.py"
    text = changed.read_text("utf-8")
    assert text.count(old) == 1
    changed.write_text(text.replace(old, new), "utf-8")
    out = tmp_path / "out"

    def run(where, *words):
        command = [sys.executable, where / "host_tests" / words[0], *words[1:]]
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600
        )
        return done.returncode, done.stdout

    code, said = run(tmp_path, "explore.py", "--scenario-out", out)
    assert code == 1, said
    files = sorted(out.glob("*.scn"))
    assert len(files) == len(exploration.CONFIGS), said
    for file in files:
        text = file.read_text("utf-8")
        assert f"BROKEN {text.splitlines()[0][2:]}\n{text}" in said
    code, said = run(play.ROOT, "play.py", out)
    assert code == 0, said
    code, said = run(tmp_path, "play.py", out)
    assert code == 1 and f"0 passed, {len(files)} failed" in said, said
