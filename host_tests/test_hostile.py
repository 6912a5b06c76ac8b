"""Spoiled storage under the whole firmware, on both interpreters."""

import pytest

import whole

CASES = 87


@pytest.mark.parametrize(("interpreter", "first"), [("CPython", 0), ("MicroPython", 2)])
def test_it_boots_stays_safe_and_says_so(interpreter, first):
    lines = whole.run(interpreter, "hostile", 6, first, first, 4)
    assert int(lines[-1].split()[1]) >= CASES // 4


@pytest.mark.long
@pytest.mark.parametrize("interpreter", whole.INTERPRETERS)
def test_whatever_is_on_the_chip(interpreter):
    lines = whole.run(interpreter, "hostile", 300, 7)
    assert lines[-1] == f"cases {CASES + 300}"


MUTANTS = {
    "garbage is formatted": (
        "shaker/board.py",
        "        if buf != blank:\n            return False\n",
        "",
    ),
    "bad settings pass in silence": (
        "shaker/app.py",
        "            core.fault_at_boot(F_SETTINGS_INVALID)",
        "            pass",
    ),
    "a bad file ends the start": (
        "shaker/settings.py",
        "    except SettingsError as error:\n        result.fault = True",
        "    except OverflowError as error:\n        result.fault = True",
    ),
}


@pytest.mark.parametrize("what", MUTANTS)
def test_a_firmware_that_hides_it_is_found_out(what, tmp_path):
    program = whole.mutant(tmp_path, *MUTANTS[what])
    with pytest.raises(whole.Wrong):
        whole.run("CPython", "hostile", 0, 0, 1, 2, program=program)
