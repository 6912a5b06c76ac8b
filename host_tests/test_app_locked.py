"""No step of the whole application allocates, but where it may: on the real interpreter, in both builds."""

import pytest

import whole


def test_no_step_allocates_but_where_it_may():
    assert len(whole.run("MicroPython", "app_locked")) == 14


# A place that would allocate, by the text before which it does, and the case that comes by it.
PLANTED = {
    "a scan": ("app", "        core = self.core\n        link = self.link\n", "rounds"),
    "a decision": ("app", "        core = self.core\n        outputs = core.outputs\n", "rounds"),
    "listening": ("link", "        if self._uart.any():\n", "rounds"),
    "a ring that overruns": ("link", "                self.overrun += n - room\n", "line"),
    "the status LED": ("lights", "    if ms >= 500 and (phase", "rounds"),
    "a journal that fails": ("app", "        self._retry = _RETRY_SCANS\n", "flash"),
    "outputs that wait": ("app", "                self._undriven |=", "flash"),
    "a round refused": ("round", "            why = _WHY_JOURNAL_FULL\n", "flash"),
    "nothing to say": ("link", "        until = self._beat\n", "rounds"),
    "a host that went": ("link", "            self.up = False\n", "line"),
    "a restart asked for": ("app", "            self._leaving = _REBOOT_SCANS\n", "rounds"),
    "a pulse's edge": ("agitator", "            self.drive = False\n            if", "rounds"),
}


@pytest.mark.parametrize("what", PLANTED)
def test_an_allocation_is_found(what, tmp_path):
    module, old, case = PLANTED[what]
    program = whole.allocating(tmp_path, module, old)
    with pytest.raises(whole.Wrong, match="a step allocated"):
        whole.run("MicroPython", "app_locked", case, program=program)


def test_what_may_allocate_may_not_run_in_a_pulse(tmp_path):
    old = "        if self._device.pulsing or self._reply is not None:\n"
    program = whole.mutant(tmp_path, "shaker/link.py", old, old.replace("self._device.pulsing", "False"))
    whole.restage(
        program,
        "shaker/app.py",
        (program / "shaker/app.py")
        .read_text()
        .replace("            link.receive()", "            link.listen(now)"),
    )
    with pytest.raises(whole.Wrong, match="runs in a pulse"):
        whole.run("MicroPython", "app_locked", "line", program=program)
