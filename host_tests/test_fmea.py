"""Failures of parts on the whole firmware (fmea_suite.py) on both interpreters; the table that names them."""

import re
import subprocess
from pathlib import Path

import pytest

import play

HERE = Path(__file__).resolve().parent
SUITE = HERE / "fmea_suite.py"
README = HERE.parent / "board" / "README.md"
CHECKS = re.findall(r"^def (check_\w+)", SUITE.read_text(), re.MULTILINE)
ROW = re.compile(
    r"^\| (?P<failure>[^|]+) \| (?P<seen>[^|]+) \| (?P<then>[^|]+) \| (?P<shown>[^|]+) \|$", re.MULTILINE
)


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """{interpreter: {check: its line}} of one run of the suite on each, both at a time."""
    program = tmp_path_factory.mktemp("program")
    play.stage(program)
    environments = play.environment(program)
    running = {
        name: subprocess.Popen(
            [*command, SUITE, str(program)], env=environments[name], stdout=subprocess.PIPE, text=True
        )
        for name, command in play.interpreters().items()
    }
    lines = {name: process.communicate()[0].splitlines() for name, process in running.items()}
    return {
        name: {x.split()[1]: x for x in said if x.startswith(("ok check_", "bad check_"))}
        for name, said in lines.items()
    }


@pytest.mark.parametrize("interpreter", ["CPython", "MicroPython"])
@pytest.mark.parametrize("name", CHECKS)
def test_part(told, name, interpreter):
    assert told[interpreter].get(name) == f"ok {name}"


def fmea():
    """Return the rows of the table in board/README.md."""
    text = README.read_text().split("<!-- fmea -->")[1].split("<!-- end of fmea -->")[0]
    rows = [m.groupdict() for m in ROW.finditer(text)]
    return rows[2:]  # heading and rule


def test_every_row_of_the_fmea_names_tests_that_exist():
    rows = fmea()
    assert len(rows) >= 20
    for row in rows:
        shown = re.findall(r"`([\w/]+\.(?:py|scn))(?:: (\w+))?`", row["shown"])
        assert shown, row["failure"]
        for file, name in shown:
            path = HERE / file
            assert path.exists(), f"{row['failure']}: no {file}"
            if name:
                assert re.search(rf"^def {name}\(", path.read_text(), re.MULTILINE), f"{file} has no {name}"


def test_every_check_of_a_part_stands_in_the_fmea():
    text = README.read_text()
    assert [name for name in CHECKS if f"`fmea_suite.py: {name}`" not in text] == []
