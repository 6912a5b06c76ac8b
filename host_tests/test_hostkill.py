"""Hosts that die and devices that restart at each event, on a bad line, on both interpreters."""

import pytest

import whole


@pytest.mark.parametrize("interpreter", whole.INTERPRETERS)
def test_each_event_reaches_the_book_once_and_no_command_acts_twice(interpreter):
    lines = whole.run(interpreter, "hostkill", 10)
    assert lines[-1] == "stories 6"
    assert all(int(line.split(": ")[1].split()[0]) >= 8 for line in lines[:2])  # deaths
    assert sum(" 1 restarts" in line for line in lines[2:-1]) >= 3


@pytest.mark.long
@pytest.mark.parametrize("interpreter", whole.INTERPRETERS)
def test_at_every_event(interpreter):
    lines = whole.run(interpreter, "hostkill")
    assert lines[-1] == "stories 42"
    restarted = [line for line in lines[2:-1] if " 1 restarts" in line]
    assert len(restarted) >= 38


MUTANTS = {
    "a command said again acts again": (
        "shaker/session.py",
        """        if number == self._last and body == self._body:
            return self._reply
        if name != "hello":
            if number < self._last:
                return _answer(number, _error("id-old"))
            if number == self._last:
                return _answer(number, _error("id-reused"))
""",
        """        if name != "hello":
""",
    ),
    "any mac is right": ("shaker/session.py", "        return wrong == 0", "        return True"),
}


@pytest.mark.parametrize("what", MUTANTS)
def test_a_firmware_that_acts_twice_is_found_out(what, tmp_path):
    program = whole.mutant(tmp_path, *MUTANTS[what])
    with pytest.raises(whole.Wrong):
        whole.run("CPython", "hostkill", 10, program=program)
