"""Failures of parts, one at a time, on the whole firmware: board/README.md's table names these checks.

test_fmea.py runs this file on both interpreters, which find a staged program on their path. It prints one
line for each check: "ok NAME" or "bad NAME ERROR".
"""

import gc
import sys

import scenario
import table
from shaker import names, pins

SHAKEN = "cover\npress start\n"
BETTING = SHAKEN + "wait until phase=BETTING within 6000\n"
PROGRAM = sys.argv[1]


class Broken(table.Player):
    """A player on whose table parts fail: `faults` are pairs (when(table), what(world))."""

    def __init__(self, text, *faults):
        super().__init__(scenario.parse(text, "fmea"), PROGRAM)
        self.faults = list(faults)
        self._checks = self.table.after_scan
        self.table.after_scan = self._scanned
        self.drive_after = []  # the drive lines at each scan after the first fault

    def _scanned(self):
        for fault in list(self.faults):
            when, what = fault
            if when(self.table):
                self.faults.remove(fault)
                what(self.table.world)
                self.drive_after.append([])
        self.driven_at_the_end = self.table.world.pin_level(pins.COVER_LOCK)
        for trace in self.drive_after:
            trace.append(self.table.world.outputs & names.DRIVE)
        self._checks()


def pulsing(table):
    return table.world.outputs & names.AGITATOR


def at_once(table):
    return table.running() is not None


def in_phase(phase):
    return lambda table: table.value("phase") == phase


def run(text, *faults):
    player = Broken(text, *faults)
    player.play()
    assert not player.faults, "the fault was never reached"
    return player


def check_a_wire_cut_in_a_pulse_stops_both_channels_within_two_scans():
    for contact in ("latch_a_no", "latch_b_no", "cover", "dome"):
        player = run(
            SHAKEN + "wait until phase=FAULT within 6000\nexpect alarm=on cover_lock=on dome_lock=on",
            (pulsing, lambda world, contact=contact: world.cut(contact)),
        )
        trace = player.drive_after[0]
        assert trace[0] == names.DRIVE and not any(trace[2:]), "still driven after two scans"


def check_a_latch_contact_that_fails_is_a_wiring_fault():
    for latch in ("latch_a", "latch_b"):
        expected = "wait until fault=%s-wiring within 2000\n" % latch.replace("_", "-")
        expected += "expect alarm=on agitator=off agitator_enable=off"
        run(expected, (at_once, lambda world, wire=latch + "_nc": world.cut(wire)))
        run(expected, (at_once, lambda world, wire=latch + "_no": world.stick(wire)))


def check_a_wire_cut_in_betting_is_a_fault_and_the_cover_stays_locked():
    for contact, code in (
        ("cover", "opened-in-betting"),
        ("latch_a_no", "opened-in-betting"),
        ("dome", "dome-opened"),
    ):
        run(
            BETTING + "wait until fault=%s within 2000\nexpect cover_lock=on front_board=off alarm=on" % code,
            (in_phase("BETTING"), lambda world, contact=contact: world.cut(contact)),
        )


def check_a_key_that_sticks_acts_once_at_most_and_is_reported():
    for key in ("start", "bell", "void", "paid"):
        run(
            "wait 11000\nexpect event key-stuck key=%s\nexpect phase=IDLE agitator=off" % key,
            (at_once, lambda world, key=key: world.stick(key)),
        )


def check_a_key_with_a_cut_wire_does_nothing():
    run(
        "cover\npress start\nwait 2000\nexpect phase=COVERED\nno event shake-start",
        (at_once, lambda world: world.cut("start")),
    )


def check_a_dead_motor_is_a_stalled_agitator():
    run(
        SHAKEN + "wait until fault=agitator-stalled within 6000\nexpect agitator_enable=off alarm=on",
        (at_once, lambda world: world.set_motor("dead")),
    )


def check_a_motion_sensor_with_a_cut_wire_is_a_stalled_agitator():
    run(
        SHAKEN + "wait until fault=agitator-stalled within 6000\nexpect agitator_enable=off",
        (at_once, lambda world: world.cut("motion")),
    )


def check_a_motion_sensor_that_sticks_is_a_runaway_agitator():
    run(
        "wait until fault=agitator-runaway within 2000\nexpect alarm=on",
        (at_once, lambda world: world.stick("motion")),
    )


def check_a_power_stage_that_runs_by_itself_is_a_runaway_agitator():
    run(
        "wait until fault=agitator-runaway within 2000\nexpect agitator=off agitator_enable=off alarm=on",
        (at_once, lambda world: world.set_motor("runaway")),
    )


def check_a_welded_drive_transistor_cannot_move_the_base_without_the_enable_line():
    player = run(
        "wait 3000\nexpect phase=IDLE fault=none motion=still",
        (at_once, lambda world: world.set_motor("welded")),
    )
    assert not player.table.world.moving


def check_a_bolt_that_jams_is_found_by_the_cover_that_opens():
    # No sensor sees a bolt; what it should have prevented is what is seen.
    player = run(
        BETTING + "expect cover_lock=on\nset latch_a=open\n"
        "wait until fault=opened-in-betting within 1000\nexpect alarm=on front_board=off",
        (at_once, lambda world: world.jam("cover_lock")),
    )
    assert player.table.world.bolt("cover_lock") == 0, "it did lock"


def check_noise_at_the_motors_edges_neither_stops_nor_starts_anything():
    def noise(world):
        world.noise_ms = 3

    def edge(table):
        return pulsing(table) and table.world.now < max(table.world._bouncing)

    run(
        SHAKEN + "wait until phase=BETTING within 6000\nexpect fault=none\nwait 500\nexpect phase=BETTING",
        (at_once, noise),
        (edge, lambda world: None),  # it did chatter in a pulse
    )


def check_a_program_that_hangs_in_a_pulse_is_stopped_by_hardware_and_watchdog():
    def hang(world):
        for _ in range(5000):
            world.advance(1)
            spent.append(world.outputs & names.DRIVE)

    spent = []
    run(
        SHAKEN + "wait until fault=power-lost-in-shake within 9000\nexpect agitator=off agitator_enable=off",
        (pulsing, hang),
    )
    assert not any(drive & names.AGITATOR for drive in spent[250:]), "the pulse outlived its hardware bound"
    assert len(spent) <= 2001, "the watchdog did not bite"


def check_a_program_that_hangs_in_a_drive_drives_on_until_boot():
    def driven(table):
        return table.value("phase") == "SHAKING" and table.world.pin_level(pins.COVER_LOCK)

    def hang(world):
        try:
            world.advance(5000)
        finally:
            left.append(world.pin_level(pins.COVER_LOCK))

    left = []
    player = run(
        SHAKEN
        + "wait until fault=power-lost-in-shake within 9000\nexpect agitator=off alarm=on cover_lock=on\n"
        "wait 1000",
        (driven, hang),
    )
    assert left == [1], "the chip's reset takes no pin away from PWM"
    assert player.table.world.bolt("cover_lock") == 1000 and not player.driven_at_the_end


def check_a_journal_that_cannot_be_read_is_a_fault_and_no_bolt_moves():
    player = Broken("wait until fault=journal-failed within 3000\nexpect alarm=on\nwait 1000")
    chip = player.table.storage.chip
    for block in range(2):
        for at in range(4096):
            chip.data[block * 4096 + at] = at * 7 & 0xFF
    player.play()
    assert [player.table.world.bolt(name) for name in table.BOLTS] == [0, 0, 0]


CHECKS = sorted(n for n in globals() if n.startswith("check_"))


def main():
    """Run every check; print a line for each."""
    for name in CHECKS:
        gc.collect()
        try:
            globals()[name]()
            print("ok", name)
        except Exception as error:
            print("bad", name, repr(error))


if __name__ == "__main__":
    main()
