"""The whole firmware at awkward instants, on both interpreters."""

import pytest

import awkward
import whole


@pytest.mark.parametrize("interpreter", whole.INTERPRETERS)
def test_it_does_what_spec_says(interpreter):
    said = whole.run(interpreter, "awkward")  # with the traceback of an exception that was made
    assert set(awkward.CASES) <= set(said) and len(awkward.CASES) == 14


MUTANTS = {
    "outputs_wait_for_a_journal_that_fails_and_bolts_are_driven_whole_afterwards": (
        "shaker/app.py",
        "            safe = safe_part(self._acting, outputs)",
        "            safe = safe_part(outputs, outputs)",
    ),
    "outputs_wait_for_a_journal_that_fails_and_bolts_are_driven_whole_afterwards ": (
        "shaker/app.py",
        "            core.bolts.drive_once(late)\n",
        "",
    ),
    "a_first_write_that_takes_long_makes_no_fault": (
        "shaker/app.py",
        "        self._commit()  # before",
        "        # before",
    ),
    "a_key_held_over_a_slow_start_is_stuck": (
        "shaker/app.py",
        "        self._commit()  # before",
        "        # before",
    ),
    "a_shake_that_ends_is_kept_by_a_journal_that_is_full": (
        "shaker/journal.py",
        "            return buf[at + 41] != _WHY_TOO_FEW",
        "            return True",
    ),
    "nothing_is_written_between_pulses_whatever_is_due": (
        "shaker/app.py",
        "            if not core.agitator.pulsing:\n                self._chores()",
        "            self._chores()",
    ),
    "what_waits_is_recorded_by_a_stop": (
        "shaker/app.py",
        "            self.journal.append(self.queue)\n        self.journal.mark",
        "            pass\n        self.journal.mark",
    ),
    "the_alarm_goes_on_while_a_broken_program_waits_to_run_again": (
        "shaker/app.py",
        "            board.write(_ALARM, 0)  # the fault goes on, and so does its alarm\n",
        "",
    ),
    "a_clock_that_stands_still_is_a_fault_and_scans_go_on ": (
        "shaker/app.py",
        "        if core.moved:\n            self._feed()",
        "        self._feed()",
    ),
    "settings_that_were_spoiled_are_replaced_in_any_phase": (
        "shaker/settings.py",
        "        if (idle or result.fault) and",
        "        if idle and",
    ),
    "settings_that_are_refused_are_told_by_the_name_that_is_wrong": (
        "shaker/startup.py",
        "        queue.text(refused.encode())\n",
        "",
    ),
    "settings_that_are_refused_are_told_by_the_name_that_is_wrong ": (
        "shaker/startup.py",
        "    if refused is not None:",
        "    if refused is not None and not adoption.changed:",
    ),
    "a_clock_that_stands_still_is_a_fault_and_scans_go_on": (
        "shaker/app.py",
        "board.sleep_ms(min(wait, SCAN_MS))",
        "board.sleep_ms(wait)",
    ),
    "a_time_before_the_start_is_no_time": (
        "shaker/device.py",
        "max(argument - the_round.t_s, 0)",
        "argument - the_round.t_s",
    ),
    "a_bolt_that_a_storm_stopped_half_way_is_driven_when_it_is_over": (
        "shaker/app.py",
        "            core.bolts.drive_once(_BOLTS)\n",
        "",
    ),
    "bolts_are_driven_a_fifth_of_a_minute_at_most": (
        "shaker/bolts.py",
        "_BUDGET_MS = const(12000)",
        "_BUDGET_MS = const(16000)",
    ),
    "a_restart_that_was_asked_for_waits_for_the_end_of_a_round": (
        "shaker/app.py",
        "        if phase != _IDLE:\n            self._leaving = 0",
        "        if phase == _FAULT:\n            self._leaving = 0",
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_firmware_without_its_remedy_is_found_out(name, tmp_path):
    program = whole.mutant(tmp_path, *MUTANTS[name])
    with pytest.raises(whole.Wrong, match=r"Broken|Error"):
        whole.run("CPython", "awkward", name.strip(), program=program)
