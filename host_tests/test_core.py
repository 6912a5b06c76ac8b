"""One scan from contacts to outputs: order, the clock, rest without consequence, what turns safe at once."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import interpreter
import whole
from rig import ORIGINS, Rig
from shaker import names
from shaker.core import safe_part

ITEMS = [(name, value) for name, values in names.INPUT_VALUES.items() for value in values]
# What people and wires do: short and long stands of any input, and whole movements.
deeds = st.lists(
    st.tuples(
        st.one_of(
            st.sampled_from(ITEMS),
            st.sampled_from([("cover_up",), ("uncover",), ("shake",), ("turn_service",)]),
        ),
        st.sampled_from([5, 10, 15, 25, 40, 100, 205, 300, 815, 3000]),
    ),
    max_size=25,
)


def do(rig, deed):
    """Carry out one deed; movements of a person are inputs set one after another."""
    if len(deed) == 2:
        rig.set(**{deed[0]: deed[1]})
    elif deed[0] == "shake":
        rig.press("lever" if rig.settings.lever else "start")
    else:
        getattr(rig, deed[0])()


@settings(deadline=None, max_examples=150)
@given(
    deeds, st.booleans(), st.sampled_from(ORIGINS), st.sampled_from(["IDLE", "COVERED", "BETTING", "PAYOUT"])
)
def test_leaving_out_the_decision_at_rest_changes_nothing(deeds, lever, clock, begin):
    lazy = Rig(clock=clock, lever=lever)
    eager = Rig(clock=clock, lever=lever)
    eager.always_decide = True
    quick = Rig(clock=clock, lever=lever)
    quick.in_turns()
    rigs = (lazy, eager, quick)
    for rig in rigs:
        rig.go(begin)
    for deed, ms in deeds:
        for rig in rigs:
            do(rig, deed)
        for _ in range(0, ms, 5):
            for rig in rigs:
                rig.scan()
            assert quick.written == (quick.core.outputs, quick.core.driving)
            for rig in (lazy, quick):
                assert rig.core.outputs == eager.core.outputs
                assert rig.core.driving == eager.core.driving
                assert rig.core.inputs.levels == eager.core.inputs.levels
    for rig in (lazy, quick):
        assert rig.trace == eager.trace
        assert [vars(event) for event in rig.events] == [vars(event) for event in eager.events]
        assert rig.device.uptime_ms() == eager.device.uptime_ms()


@settings(deadline=None, max_examples=150)
@given(
    deeds,
    st.booleans(),
    st.sampled_from(["IDLE", "COVERED", "SHAKING", "BETTING", "CLOSED", "PAYOUT", "VOID"]),
)
def test_no_deed_whatever_breaks_the_interlock(deeds, lever, begin):
    rig = Rig(lever=lever)
    rig.go(begin)
    for deed, ms in deeds:
        do(rig, deed)
        end = rig.now + min(ms, 900)
        while rig.now < end:
            rig.scan()
            out, levels, state = rig.core.outputs, rig.core.inputs.levels, rig.state
            if out & names.DRIVE:
                assert rig.phase == "SHAKING" and levels & names.SECURED == names.SECURED and not lever
                assert out & names.COVER_LOCK and not rig.device.outstanding
            where = state.origin if rig.phase == "FAULT" else state.phase
            if where in (names.SHAKING, names.BETTING):
                assert out & names.COVER_LOCK
            if rig.device.outstanding:
                assert out & names.COVER_BAR
                assert out & names.ALARM or not levels & names.COVER
            if rig.phase not in ("IDLE", "FAULT"):
                assert out & names.DOME_LOCK
            assert rig.phase == "BETTING" or not out & names.FRONT_BOARD
            assert out & 0x0C != 0x0C
            assert rig.phase != "FAULT" or out & names.ALARM


@pytest.mark.parametrize("lever", [False, True])
def test_a_scan_adds_no_attribute(lever):
    """That would allocate; what is set later is there from the construction on."""
    rig = Rig(lever=lever, rest=0)
    core = rig.core
    parts = (core, core.inputs, core.agitator, core.round, core.bolts, core.bolts._lock, rig.state)
    first = [set(vars(part)) for part in parts]
    rig.go("COVERED")
    rig.set(latch_a="invalid", latch_b="invalid", motion="moving")
    rig.run(500)
    rig.uncover()
    rig.pinned = None
    rig.run(500)
    rig.turn_service()
    rig.go("VOID")
    rig.set(service="on")
    rig.press("paid", 1000)
    rig.turn_service()
    rig.go("PAYOUT")
    rig.press("paid", 11000)
    assert {"fault latch-a-wiring", "abandoned", "paid"} < set(rig.said())
    assert [set(vars(part)) for part in parts] == first


def counted(rig):
    """Let each scan of the rig from here on be a list of what the core asked the round in it."""
    scans = []

    def watched(what, ask):
        def asked(*args):
            scans[-1].append(what)
            return ask(*args)

        return asked

    for what in ("scan", "touch", "left"):
        setattr(rig.core.round, what, watched(what, getattr(rig.core.round, what)))
    plant = rig._plant
    rig._plant = lambda: (scans.append([]), plant())
    return scans


def test_looking_ahead_has_a_scan_of_its_own():
    rig = Rig(motion=False)
    scans = counted(rig)
    rig.go("PAYOUT")
    assert scans.count(["left"]) > 10 and scans.count(["scan"]) > 10
    assert ["left", "scan"] not in scans and ["scan", "left"] not in scans
    assert scans.count([]) > len(scans) * 9 // 10


@pytest.mark.parametrize("what", [{"bell": "pressed"}, {"bell": "released"}, {"motion": "moving"}])
def test_a_key_or_a_movement_at_rest_does_not_have_the_contacts_followed(what):
    rig = Rig().go("BETTING")
    rig.set(bell="pressed" if "bell" in what and what["bell"] == "released" else "released")
    rig.run(1000)
    scans = counted(rig)
    rig.set(**what)
    rig.run(40)
    assert scans.count(["touch"]) == 1
    assert scans.index(["touch"]) < scans.index(["scan"] if what == {"bell": "pressed"} else ["left"])


@pytest.mark.parametrize("seconds", [63, 64, 65, 130])
def test_a_table_that_runs_for_minutes_goes_on(seconds):
    rig = Rig()
    rig.run(seconds * 1000)
    rig.go("BETTING")
    assert rig.phase == "BETTING"


def test_uptime_counts_across_the_wrap():
    rig = Rig(clock=(1 << 30) - 2000)
    rig.run(4000)
    assert rig.device.uptime_ms() == 5000
    assert rig.core.round.t_s == 5


def test_uptime_goes_on_beyond_the_small_integers():
    rig = Rig()
    rig.core.round.t_s = 1 << 22
    rig.run(1000)
    assert rig.core.round.t_s == (1 << 22) + 1


@pytest.mark.parametrize("late", [0, 5, 100, 245])
def test_a_scan_that_is_late_by_less_is_no_overrun(late):
    rig = Rig().go("SHAKING")
    rig.run(800)
    rig.scan(late)
    assert rig.fault == "none"


@pytest.mark.parametrize("late", [246, 300, 1500])
def test_a_scan_later_than_250_ms_while_shaking_is_an_overrun(late):
    rig = Rig().go("SHAKING")
    rig.run(800)
    rig.scan(late)
    assert rig.fault == "scan-overrun"
    assert not rig.on("agitator") and not rig.on("agitator_enable")


@pytest.mark.parametrize("phase", ["IDLE", "COVERED", "BETTING", "CLOSED", "PAYOUT", "VOID"])
def test_a_late_scan_elsewhere_is_the_flash_at_work(phase):
    rig = Rig().go(phase)
    rig.scan(1500)
    rig.run(100)
    assert rig.fault == "none" and rig.phase == phase


@pytest.mark.parametrize("phase", ["IDLE", "SHAKING", "BETTING", "PAYOUT"])
def test_a_clock_that_stands_still_is_a_fault_and_no_scan_counts(phase):
    rig = Rig().go(phase)
    rig.said()
    stuck = rig.now
    for _ in range(60):
        rig.now = stuck - 5
        rig.scan()
        assert not rig.core.moved
    assert rig.fault == "clock-stalled" and rig.said() == ["fault clock-stalled"]
    assert not rig.on("agitator_enable")
    assert rig.device.command("clear") == "cause-present"
    rig.run(50)
    assert rig.core.moved
    assert rig.device.command("clear") is None


def test_two_scans_at_the_same_tick_are_no_fault():
    rig = Rig()
    for _ in range(30):
        rig.now -= 5
        rig.scan()
        rig.scan()
    assert rig.fault == "none"


def test_a_clock_that_jumps_back_stops_the_drive_and_is_not_believed():
    rig = Rig().go("SHAKING")
    rig.run(700)
    assert rig.on("agitator")
    rig.now -= 5000
    rig.run(1000)
    assert not rig.on("agitator") and rig.phase == "FAULT"


def test_without_a_known_state_no_bolt_is_driven_at_boot():
    rig = Rig(rest=0)
    rig.core.bolts_stay = True
    for _ in range(1000):
        rig.scan()
        assert rig.core.driving == 0


def test_faults_found_at_boot_are_raised_when_the_phase_is_judged():
    rig = Rig(rest=0)
    rig.core.fault_at_boot(names.F_RESTART_STORM)
    rig.core.fault_at_boot(names.F_JOURNAL_FAILED)
    rig.run(1000)
    assert rig.said() == ["fault restart-storm", "fault journal-failed"]
    assert rig.fault == "restart-storm"


def test_the_front_board_stays_dark_where_the_settings_have_none():
    rig = Rig(front_board=False).go("BETTING")
    assert not rig.on("front_board") and rig.phase == "BETTING"


def test_the_layout_stays_dark_where_the_settings_say_so():
    rig = Rig(layout_lamps=False).go("PAYOUT")
    rig.device.command("result", (1, 4, 6))
    rig.run(50)
    assert rig.device.lamps == 0 and rig.device.dice == (1, 4, 6)


def test_pulsing_lasts_from_the_first_pulse_to_the_end_of_the_last():
    rig = Rig().go("COVERED")
    rig.press("start", 25)
    start = rig.last("shake-start").now
    seen = []
    while rig.phase == "SHAKING":
        if rig.device.pulsing and rig.core.pulsing:
            seen.append(rig.now - start)
        rig.scan()
    assert (seen[0], seen[-1]) == (600, 2045)
    assert len(seen) == (2050 - 600) // 5


# -- what may act before its event is durable --------------------------------------------------------------


def test_only_what_turns_safe_acts_before_flash():
    turning_off = (names.AGITATOR, names.AGITATOR_ENABLE, names.FRONT_BOARD)
    turning_on = (names.DOME_LOCK, names.ALARM)
    for before, after in product(range(128), repeat=2):
        out = safe_part(before, after)
        for bit in turning_off:
            assert bool(out & bit) == bool(before & after & bit)
        for bit in turning_on:
            assert bool(out & bit) == bool((before | after) & bit)
        assert out & 0x0C != 0x0C
        if before & 0x0C != 0x0C and after & 0x0C != 0x0C:
            for bit, other in ((names.COVER_LOCK, names.COVER_BAR), (names.COVER_BAR, names.COVER_LOCK)):
                if after & bit:
                    assert out & bit, "locking waits for flash"
                elif before & bit and not after & other:
                    assert out & bit, "a release does not wait for flash"
                elif not before & bit:
                    assert not out & bit


# -- allocation ---------------------------------------------------------------------------------------------

LOCKED = interpreter.HERE / "heap_locked.py"


@pytest.fixture(scope="module")
def locked():
    """What the rounds under a locked heap said, one line for each."""
    return interpreter.run(LOCKED.read_text()).splitlines()


@pytest.mark.parametrize("build", ["electronic", "lever"])
@pytest.mark.parametrize(
    "what",
    ["round", "keys", "faults", "alarm", "service", "restart", "late", "stuck", "host", "long"]
    + ["unlocked", "budget", "full"],
)
def test_a_scan_allocates_nothing(locked, build, what):
    assert f"{build} {what}: 0" in locked


@pytest.mark.parametrize("build", ["electronic", "lever"])
@pytest.mark.parametrize("what", ["round", "alarm", "service"])
def test_no_frame_comes_from_the_heap(locked, build, what):
    assert f"{build} {what}, counted: 0" in locked


def test_the_heap_was_really_locked(locked):
    assert "allocating under the lock: MemoryError" in locked


# By case of heap_locked.py: a place that would allocate, by the text before which it does, and what does.
ALLOCATING = {
    "budget": ("bolts", "                self._waiting = True\n                return True"),
    "unlocked": ("bolts", "        self._owed_drive = waits\n"),
    "late": (
        "agitator",
        "        at = self._edge if late <= _LATE_MS else now\n",
        "[0] if late > _LATE_MS else 0",
    ),
    "budget ": ("round", "            return _WHY_NOT_COVERED\n        # COVERED"),
    "full": ("round", "            why = _WHY_JOURNAL_FULL\n"),
    "full ": ("events", "            self.dropped += 1\n"),
    "keys": (
        "round",
        "        if not self._lever:\n            self._refuse(_WHAT_LEVER",
        "[0] if phase == 7 else 0",
    ),
    "faults": ("agitator", "                return _F_AGITATOR_RUNAWAY\n"),
}


@pytest.mark.parametrize("what", ALLOCATING)
def test_an_allocation_is_found(what, tmp_path):
    program = whole.allocating(tmp_path, *ALLOCATING[what])
    path = (program, interpreter.HERE / "fakes", interpreter.HERE)
    said = interpreter.run(LOCKED.read_text(), what.strip(), path).splitlines()
    assert f"electronic {what.strip()}: 1" in said
