"""A power cut at each flash operation of the whole firmware's stories, on both interpreters."""

import pytest

import whole

SHARE = 22


@pytest.mark.parametrize(("interpreter", "seed"), [("CPython", 0), ("MicroPython", 11)])
def test_no_power_cut_loses_or_invents_anything(interpreter, seed):
    lines = whole.run(interpreter, "cuts", SHARE, seed)
    assert len(lines) == 8 and int(lines[-1].split()[1]) >= 14


@pytest.mark.long
@pytest.mark.parametrize("interpreter", whole.INTERPRETERS)
def test_no_power_cut_anywhere_loses_or_invents_anything(interpreter):
    lines = whole.run(interpreter, "cuts")
    operations = sum(int(line.split(":")[1].split()[0]) for line in lines[:-1])
    assert lines[-1] == f"cuts {3 * operations}" and operations > 100


MUTANTS = {
    "a state that is not restored": (
        "shaker/state.py",
        "self.phase = values[2] & 15",
        "self.phase = min(values[2] & 15, 4)",
    ),
    "a number given twice": (
        "shaker/journal.py",
        "                    last += 1\n                    self._seal(queue.buf, at, last)",
        "                    last += self.boot < 2 or i > 0 or last < 6\n"
        "                    self._seal(queue.buf, at, last)",
    ),
    "told before it is durable": (
        "shaker/app.py",
        "            if not self._commit():\n",
        "            self._write(outputs, core.driving)\n            if not self._commit():\n",
    ),
}


@pytest.mark.parametrize("what", MUTANTS)
def test_a_firmware_that_forgets_is_found_out(what, tmp_path):
    program = whole.mutant(tmp_path, *MUTANTS[what])
    with pytest.raises(whole.Wrong):
        whole.run("CPython", "cuts", 4, program=program)
