"""Mutation testing: a mistake is noticed, what changes nothing is not, and the score is entered as found."""

import hashlib
import json
import re
import subprocess
import sys

import pytest

import interpreter
import mutants
import score

OUTCOMES = [
    ("elif total <= 10:", "elif total < 10:", "killed"),
    ("elif total <= 10:", "elif not total > 10:", "survived"),
    ("elif total <= 10:", "elif this is no Python:", "killed"),
    ("total = 0\n", "total = 0\n    while not total:\n        pass\n", "endless"),
]


@pytest.mark.parametrize(("old", "new", "outcome"), OUTCOMES)
def test_a_mutant_made_by_hand_is_judged(old, new, outcome):
    script = interpreter.HERE / "mutants.py"
    command = [sys.executable, script, "rules", "--cpu", "2", "--replace", old, new]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.split() == [outcome]


def test_a_mutant_is_named_by_what_it_changes_and_not_by_its_line():
    source = "X = 1\n\n\nclass A:\n    def f(self):\n        return 2\n"
    mutant = source.replace("2", "3")
    mark, place, was, now = mutants.describe("rules", source, mutant)
    assert (place, was, now) == ("rules.py:6 A.f", "return 2", "return 3")
    assert mutants.describe("rules", "# more\n" + source, "# more\n" + mutant)[0] == mark
    assert mutants.describe("rules", source, source.replace("1", "3"))[0] != mark
    assert mutants.describe("round", source, mutant)[0] != mark


def test_each_explanation_has_an_id_of_its_own_and_a_reason():
    rows = re.findall(r"^\| `(.+?)` \|(.+)\|(.+)\|$", mutants.EXPLAINED.read_text("utf-8"), re.MULTILINE)
    assert rows and {row[0] for row in rows} == mutants.explained()
    assert len(rows) == len(mutants.explained())
    assert all(len(row[2].strip()) > 10 for row in rows)


TEXT = b"X = 1\n"
ROW = {
    "module": "rules",
    "sha256": hashlib.sha256(TEXT).hexdigest(),
    "mutants": 8,
    "tried": 8,
    "killed": 6,
    "endless": 1,
    "survivors": [],
    "explained": 2,
}
README = f"# X\n\n{score.BEGIN}\nold\n{score.END}\n\nrest\n"


def write(root, found):
    (root / "README.md").write_text(README)
    (root / "build").mkdir()
    (root / "firmware/shaker").mkdir(parents=True)
    (root / "firmware/shaker/rules.py").write_bytes(TEXT)
    if found is not None:
        (root / "build/mutants.json").write_text(found)
    return score.main(root)


def test_the_score_is_entered_between_its_marks(tmp_path):
    assert write(tmp_path, json.dumps({"on": "x", "modules": [ROW, ROW]})) == 0
    text = (tmp_path / "README.md").read_text()
    assert "of 16 small mistakes" in text and "notice 12 (75.0 %); of the other 4, 4 are explained" in text
    assert f"| rules | 8 | 6 | 2 | 75.0 % | `{ROW['sha256'][:8]}…` |\n{score.END}\n\nrest\n" in text


def test_a_score_of_an_older_text_is_refused(tmp_path, capsys):
    older = ROW | {"sha256": hashlib.sha256(TEXT + b"\n").hexdigest()}
    assert write(tmp_path, json.dumps({"on": "x", "modules": [ROW, older]})) == 1
    assert (tmp_path / "README.md").read_text() == README
    assert 'ARGS="rules"' in capsys.readouterr().err


def test_modules_tried_at_different_times_are_kept_in_their_order(tmp_path, monkeypatch):
    monkeypatch.setattr(mutants, "RESULT", tmp_path / "mutants.json")
    for row in ({"module": "journal", "n": 1}, {"module": "rules", "n": 2}, {"module": "journal", "n": 3}):
        mutants.enter(row)
    assert list(mutants.found().values()) == [{"module": "rules", "n": 2}, {"module": "journal", "n": 3}]


@pytest.mark.parametrize("found", [None, "", "{}", '{"modules": []}', '{"modules": [{}]}', "[]"])
def test_without_a_score_the_readme_stays_as_it_is(tmp_path, found, capsys):
    assert write(tmp_path, found) == 1
    assert (tmp_path / "README.md").read_text() == README
    assert "mutants.json" in capsys.readouterr().err


def test_the_readme_has_a_block_for_the_score():
    score.enter((interpreter.ROOT / "README.md").read_text("utf-8"), {"modules": [ROW]})
