"""Spoiled storage under the whole firmware, on both interpreters."""

import pytest

import whole

CASES = 88


@pytest.mark.parametrize(("interpreter", "first"), [("CPython", 0), ("MicroPython", 2)])
def test_it_boots_stays_safe_and_says_so(interpreter, first):
    # Every fifth: the cases of settings take turns, so an even step would leave out one of the two files.
    lines = whole.run(interpreter, "hostile", 6, first, first, 5)
    assert int(lines[-1].split()[1]) >= CASES // 5


@pytest.mark.long
@pytest.mark.parametrize("interpreter", whole.INTERPRETERS)
def test_whatever_is_on_the_chip(interpreter):
    lines = whole.run(interpreter, "hostile", 300, 7)
    assert lines[-1] == f"cases {CASES + 300}"


MUTANTS = {
    "a journal that fails at the start goes unsaid": (
        "shaker/startup.py",
        "        the_round.journal_bad = True\n        core.fault_at_boot(F_JOURNAL_FAILED)",
        "        the_round.journal_bad = True",
    ),
    "a journal that fails later goes unsaid": (
        "shaker/app.py",
        "        self._journal_down = True\n        self.core.round.persistent(_F_JOURNAL_FAILED, True)",
        "        self._journal_down = True",
    ),
    "bolts move on a journal that cannot be read": (
        "shaker/startup.py",
        "    core.bolts_stay = storm or not journal.ok",
        "    core.bolts_stay = storm",
    ),
    "damage to the newest records goes unsaid": (
        "shaker/journal.py",
        "            self.last += self._bad\n            self._suspect = True",
        "            self.last += self._bad",
    ),
    "garbage is formatted": (
        "shaker/blocks.py",
        "        if buf != erased:\n            return False\n",
        "",
    ),
    "bad settings pass in silence": (
        "shaker/startup.py",
        "        core.fault_at_boot(F_SETTINGS_INVALID)",
        "        pass",
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
        whole.run("CPython", "hostile", 0, 0, 2, 3, program=program)  # one of each sort
