"""What the host may ask: the croupier's keys under the same refusals; an error changes nothing."""

import pytest

from rig import Rig
from shaker import names

PHASES = ("IDLE", "COVERED", "SHAKING", "BETTING", "CLOSED", "PAYOUT", "VOID", "FAULT")
ARGUMENTS = {"result": (1, 4, 6), "time": 1_800_000_000}
ANSWERS = {
    "result": {"PAYOUT": None},
    "void": {"PAYOUT": None},
    "paid": {"PAYOUT": None},
    "abandon": {"VOID": None},
    "clear": {"FAULT": None},
    "time": dict.fromkeys(PHASES),
    "reboot": {"IDLE": None},
}


def at(phase):
    rig = Rig()
    if phase == "FAULT":
        rig.go("BETTING")
        rig.set(latch_a="open")
        rig.run(50)
    else:
        rig.go(phase)
    rig.said()
    return rig


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("command", ANSWERS)
def test_each_command_in_each_phase(command, phase):
    rig = at(phase)
    before = bytes(rig.queue.buf), vars(rig.state).copy(), rig.core.outputs
    answer = rig.device.command(command, ARGUMENTS.get(command))
    if phase in ANSWERS[command]:
        assert answer is None
        return
    if command == "reboot":
        assert answer in ("round-open", "wrong-phase")
    else:
        assert answer == "wrong-phase"
    assert rig.queue.count == 0 and not rig.device.reboot_asked
    assert (bytes(rig.queue.buf), vars(rig.state), rig.core.outputs) == before


def test_a_reboot_with_a_round_open_says_so():
    for phase in ("COVERED", "SHAKING", "BETTING", "CLOSED", "PAYOUT", "VOID"):
        assert at(phase).device.command("reboot") == "round-open"


def test_the_host_cannot_confirm_or_void_under_a_cover():
    rig = at("PAYOUT")
    rig.set(cover="on")
    rig.run(50)
    for command in ("void", "paid"):
        assert rig.device.command(command) == "cover-on"
    rig.set(cover="off")
    rig.run(50)
    assert rig.device.command("paid") is None


def test_a_result_is_taken_under_a_cover_too():
    rig = at("PAYOUT")
    rig.set(cover="on")
    rig.run(50)
    assert rig.device.command("result", (1, 1, 1)) is None


def test_nothing_is_carried_out_before_the_phase_is_judged():
    rig = Rig(rest=0)
    for command in ANSWERS:
        assert rig.device.command(command, ARGUMENTS.get(command)) == "busy"


def test_an_unknown_command_is_refused():
    assert at("IDLE").device.command("open") == "unknown-command"


@pytest.mark.parametrize(
    ("command", "phase", "after"), [("paid", "PAYOUT", "IDLE"), ("void", "PAYOUT", "VOID")]
)
def test_a_command_acts_in_the_next_scan(command, phase, after):
    rig = at(phase)
    rig.run(2000)
    rig.device.command(command)
    rig.scan()
    assert rig.phase == after and not rig.on("cover_bar")


def test_facts_are_those_of_the_table():
    rig = at("PAYOUT")
    device = rig.device
    assert (names.PHASES[device.phase], device.round, device.repeat) == ("PAYOUT", 1, 0)
    assert device.outstanding and device.fault == 0 and device.faults == 0 and not device.service
    assert device.outputs == names.COVER_BAR | names.DOME_LOCK
    assert device.inputs == names.DOME
    assert device.dice is None and device.lamps == 0
    device.command("result", (6, 6, 6))
    rig.run(5)
    assert device.dice == (6, 6, 6)
    assert [n for i, n in enumerate(names.LAMPS) if device.lamps >> i & 1] == [
        "rooster", "red3", "colour3", "rooster3", "triple",
    ]  # fmt: skip
    assert device.cause == "power-on"


def test_inputs_are_the_masks_of_the_heartbeat():
    rig = Rig()
    rig.set(latch_a="invalid", latch_b="closed", cover="on", service="on", motion="moving")
    rig.run(50)
    assert rig.device.inputs == 2 | 1 << 2 | names.COVER | names.DOME | names.SERVICE | names.MOTION


def test_the_wall_clock_runs_with_the_device():
    rig = Rig()
    assert rig.device.unix_time() is None
    rig.device.command("time", 1_800_000_000)
    rig.run(5000)
    assert rig.device.unix_time() == 1_800_000_005
    assert rig.last("time").x == 1_800_000_000


def test_the_clock_of_the_wall_may_jump_without_consequence():
    rig = at("PAYOUT")
    for at_time in (1_900_000_000, 1_000_000_000):
        rig.device.command("time", at_time)
        rig.run(100)
    assert rig.phase == "PAYOUT" and rig.fault == "none"


def test_what_the_host_reports_is_an_event_of_the_round():
    rig = at("BETTING")
    rig.device.emit(names.EV_LINK, 1)
    rig.drain()
    event = rig.last("link")
    assert (event.a, event.phase, event.round) == (1, "BETTING", 1)
