"""What board.py, boot.py and the fakes must do: the same checks for CPython and for a real MicroPython.

test_board.py runs every function named check_… on both and compares what they return. Run by an interpreter
itself, this file prints one line for each: "ok NAME RESULT" or "bad NAME ERROR".
"""

import sys

import esp32
import machine
import neopixel

from line import FIFO
from shaker import board as hardware
from shaker import names, pins
from world import COAST_MS, SPIN_UP_MS, PlantError, PowerCut, Restart, WatchdogReset, World, install

ON = names.DRIVE
BOOT = "firmware/boot.py"  # relative to the repository's root


class Settings:
    """What Board asks of the settings."""

    def __init__(self, pulse_ms=250, duty=70, layouts=1):
        self.pulse_ms = pulse_ms
        self.duty = duty
        self.layouts = layouts


class Dice:
    """Random numbers that are the same on both interpreters."""

    def __init__(self, seed):
        self._x = seed

    def below(self, n):
        self._x = (self._x * 1103515245 + 12345) & 0x3FFFFFFF
        return (self._x >> 8) % n


def new(pulse_ms=250, duty=70, layouts=1, new_rmt=True):
    """Return (world, board), freshly booted."""
    world = World(new_rmt=new_rmt)
    install(world)
    return world, hardware.Board(Settings(pulse_ms, duty, layouts))


def refused(kind, call, *args, **kwargs):
    """Return True when the call raises `kind`."""
    try:
        call(*args, **kwargs)
    except kind:
        return True
    return False


def off(world):
    """Return True when every output but the bolts' memory is off and no line of a bolt is driven."""
    quiet = all(not world.pin_level(pin) for pin in pins.OUTPUTS)
    return quiet and not world.outputs & ~names.BOLTS


# -- Inputs -------------------------------------------------------------------------------------------


def check_register_path_reads_what_the_pins_read():
    world, board = new()
    dice = Dice(1)
    seen = 0
    for _ in range(400):
        name = names.INPUTS[dice.below(len(names.INPUTS))]
        words = names.INPUT_VALUES[name]
        world.set(name, words[dice.below(len(words))])
        if dice.below(8) == 0:
            world.cut(names.CONTACTS[dice.below(13)])
        if dice.below(8) == 0:
            world.stick(names.CONTACTS[dice.below(13)])
        if dice.below(4) == 0:
            world.mend()
        board.write(dice.below(128) & ~ON, 0)  # outputs can be read back and must not disturb
        assert board.read() == board.read_pins() == world.contacts
        seen |= world.contacts
    assert seen == 0x1FFF
    return seen


def check_each_contact_is_the_bit_the_vocabulary_says():
    world, board = new()
    world.set("dome", "open")
    for name in names.INPUTS:
        if name[:5] == "latch":
            at = names.CONTACTS.index(name + "_no")
            world.set(name, "open")
            assert board.read() >> at & 3 == 2
            world.set(name, "closed")
            assert board.read() >> at & 3 == 1
            world.set(name, "invalid")
            assert board.read() >> at & 3 in (0, 3)
            world.set(name, "open")
            continue
        before = board.read()
        world.set(name, names.INPUT_VALUES[name][1])
        assert board.read() == before | 1 << names.CONTACTS.index(name)
        assert world.value(name) == names.INPUT_VALUES[name][1]
        world.set(name, names.INPUT_VALUES[name][0])
        assert board.read() == before


def check_a_cut_wire_reads_safe():
    world, board = new()
    for name in names.INPUTS:
        if name[:5] != "latch":
            world.set(name, names.INPUT_VALUES[name][1])
            world.cut(name)
            assert board.read() >> names.CONTACTS.index(name) & 1 == 0
            assert world.value(name) == names.INPUT_VALUES[name][0]
    for name in ("latch_a", "latch_b"):
        world.set(name, "closed")
        world.cut(name + "_no")
        assert world.value(name) == "invalid"
        world.mend()
        world.set(name, "open")
        world.cut(name + "_nc")
        assert world.value(name) == "invalid"
        world.mend()
        assert world.value(name) == "open"


def check_contacts_bounce_and_come_to_rest():
    world, board = new()
    world.bounce_ms = 12
    world.set("bell", "pressed")
    bit = 1 << names.CONTACTS.index("bell")
    trace = []
    for _ in range(20):
        trace.append(1 if board.read() & bit else 0)
        world.advance(1)
    assert 0 in trace[:12] and 1 in trace[:12]
    assert trace[12:] == [1] * 8
    return trace


# -- The agitator --------------------------------------------------------------------------------------


def _length(world, limit=400):
    """Return how many ms the agitator's pin stays high from now, with nobody touching it."""
    for ms in range(limit):
        if not world.outputs & names.AGITATOR:
            return ms
        world.advance(1)
    return limit


def check_a_pulse_is_one_rmt_write_and_ends_by_itself():
    for new_rmt in (False, True):
        for pulse_ms in (100, 101, 102, 250, 299, 300):
            for duty in (20, 70, 99, 100):
                world, board = new(pulse_ms, duty, 1, new_rmt)
                before = world.rmt_writes
                for shake in range(3):
                    board.write(ON, 0)
                    board.write(ON, 0)  # on all the while: no second write
                    assert world.rmt_writes == before + 1 + shake and world.pulses == 1 + shake
                    assert _length(world) == pulse_ms
                    board.write(names.AGITATOR_ENABLE, 0)
                    world.advance(200)
                carrier = world.rmt_carrier[0]
                assert carrier is None if duty == 100 else carrier[1:] == (duty, 1)


def check_a_pulse_outside_its_range_is_refused():
    assert refused(ValueError, new, 99)
    assert refused(ValueError, new, 301)


def check_either_line_cuts_a_pulse_in_the_same_call():
    for left in (0, names.AGITATOR, names.AGITATOR_ENABLE):
        for ms in range(0, 250, 7):
            world, board = new()
            board.write(ON, 0)
            world.advance(ms)
            assert world.outputs & ON == ON
            board.write(left, 0)
            assert not world.outputs & names.AGITATOR
            assert world.outputs & ON == left & names.AGITATOR_ENABLE
            world.advance(5)
            board.write(left | ON if left == names.AGITATOR else left, 0)
            assert not world.outputs & names.AGITATOR, "a pulse that was cut came back"
            assert world.pulses == 1


def check_the_enable_line_is_on_before_a_pulse_begins_and_work_is_done_only_for_a_change():
    class Recorder:
        def write_pulses(self, duration, data):
            seen.append(world.outputs & names.AGITATOR_ENABLE)

    world, board = new()
    board._rmt = Recorder()
    seen = []
    board.write(0, names.DOME_LOCK)
    board.write(ON, names.DOME_LOCK)
    assert seen == [names.AGITATOR_ENABLE]
    world.update = None  # a write that changes nothing must not even touch the plant
    for _ in range(10):
        board.write(ON, names.DOME_LOCK)
    board._bolts = None
    board.write(ON, names.DOME_LOCK)


def check_nothing_shakes_without_the_enable_line():
    world, board = new()
    board.write(names.AGITATOR, 0)
    assert off(world) and world.pulses == 0
    world.advance(500)
    assert not world.moving
    board.write(names.AGITATOR_ENABLE, 0)
    world.advance(500)
    assert not world.moving and world.output("agitator_enable") == "on"


def check_the_base_moves_with_both_lines_and_coasts():
    world, board = new()
    board.write(ON, 0)
    trace = []
    for _ in range(600):
        trace.append(1 if world.moving else 0)
        world.advance(1)
    assert trace.index(1) == SPIN_UP_MS
    assert sum(trace) == 250 - SPIN_UP_MS + COAST_MS
    assert world.value("motion") == "still"
    return sum(trace)


def check_a_motor_can_be_dead_run_away_or_be_welded():
    world, board = new()
    world.set_motor("dead")
    board.write(ON, 0)
    world.advance(200)
    assert not world.moving and world.output("agitator") == "on"
    world, board = new()
    world.set_motor("runaway")
    world.advance(300)
    assert world.moving and off(world)
    world.power_off()
    world.advance(300)
    assert not world.moving
    world, board = new()
    world.set_motor("welded")
    world.advance(300)
    assert not world.moving
    board.write(names.AGITATOR_ENABLE, 0)
    world.advance(300)
    assert world.moving
    board.write(0, 0)
    world.advance(300)
    assert not world.moving, "the second channel must stop a welded one"


def check_a_pinned_sensor_stays():
    world, board = new()
    world.set("motion", "moving")
    world.advance(1000)
    assert world.value("motion") == "moving" and not world.moving
    world.set("motion", "still")
    board.write(ON, 0)
    world.advance(200)
    assert world.value("motion") == "still" and world.moving
    world.unpin_motion()
    assert world.value("motion") == "moving"


# -- Every output ----------------------------------------------------------------------------------------


def _play(by_pins, seed):
    """Return what the pins did for one random sequence of words, written by one path or the other."""
    world, board = new()
    dice = Dice(seed)
    trace = []
    pulse_at = -1000
    outputs = 0
    for _ in range(300):
        outputs ^= 1 << dice.below(7)
        if outputs & names.AGITATOR and world.now - pulse_at < 300:
            outputs &= ~names.AGITATOR
        if outputs & names.AGITATOR:
            pulse_at = world.now
        driving = (1 << dice.below(5)) & names.BOLTS
        if by_pins:
            board.write_pins(outputs, driving)
        else:
            board.write(outputs, driving)
        levels = 0
        for pin in pins.OUTPUTS:
            levels = levels << 1 | world.pin_level(pin)
        trace.append((levels, world.outputs, [world.bolt(n) for n in names.OUTPUTS[2:5]]))
        world.advance(5 * (1 + dice.below(20)))
    return trace


def check_register_path_writes_what_the_pins_write():
    for seed in range(6):
        fast = _play(False, seed)
        assert fast == _play(True, seed)
    return str(fast[-1])


def check_every_level_is_the_output_the_vocabulary_says():
    world, board = new()
    for name in ("agitator_enable", "front_board", "alarm"):
        at = names.OUTPUTS.index(name)
        board.write(1 << at, 0)
        assert [world.output(n) for n in names.OUTPUTS].count("on") == 1
        assert world.output(name) == "on" and world.pin_level(pins.OUTPUTS[at]) == 1
        board.write(0, 0)
        assert off(world)


def check_every_write_asserts_every_output_again():
    # Something (a stray line of code, a disturbance) changes the registers behind the board's back.
    for outputs in (0, names.AGITATOR_ENABLE | names.ALARM, names.FRONT_BOARD):
        world, board = new()
        board.write(outputs, 0)
        want = world.outputs
        world.out ^= (1 << pins.AGITATOR_ENABLE) | (1 << pins.FRONT_BOARD) | (1 << pins.ALARM)
        world.sel[pins.AGITATOR] = 87
        world.update()
        board.write(outputs, 0)
        assert world.outputs == want
        for pin in pins.OUTPUTS[:5]:
            world.sel[pin] = 71
        for _ in range(5):
            board.write(outputs, 0)
        assert all(world.sel[pin] == 0x100 for pin in pins.OUTPUTS[:5])


def check_bolts_move_only_while_driven_and_stay_without_power():
    world, board = new()
    for i, name in enumerate(("cover_lock", "cover_bar", "dome_lock")):
        bit = names.COVER_LOCK << i
        board.write(bit, 0)
        world.advance(600)
        assert world.bolt(name) == 0 and world.output(name) == "off", "moved without being driven"
        board.write(bit, bit)
        world.advance(90)
        assert world.bolt(name) == 500 and world.output(name) == "on"
        board.write(bit, 0)
        at = world.bolt(name)
        world.advance(600)
        assert at == world.bolt(name) <= 511 and not world.pin_level(pins.OUTPUTS[2 + i])  # 2 ms for a pulse
        board.write(bit, bit)
        world.advance(600)
        assert world.bolt(name) == 1000
        board.write(0, 0)
        world.advance(600)
        assert world.bolt(name) == 1000 and world.output(name) == "on"
    world.power_off()
    world.advance(10000)
    world.power_on()
    board = hardware.Board(Settings())
    board.write(0, 0)
    world.advance(1000)
    for name in ("cover_lock", "cover_bar", "dome_lock"):
        assert world.bolt(name) == 1000 and world.output(name) == "on", "moved by a power cut"
    board.write(0, names.DOME_LOCK)
    world.advance(600)
    assert world.bolt("dome_lock") == 0 and world.output("dome_lock") == "off"


class Waits:
    """Stands in for machine.time_pulse_us: notes the drive lines at each wait, and waits."""

    def __init__(self, world):
        self._world = world
        self._wait = machine.time_pulse_us
        self.drive = []

    def __call__(self, *args):
        self.drive.append(self._world.outputs & ON)
        return self._wait(*args)

    def __enter__(self):
        machine.time_pulse_us = self
        return self

    def __exit__(self, *_):
        machine.time_pulse_us = self._wait


def check_a_drive_ends_between_two_pulses_of_the_servo():
    for at, name in ((2, "cover_lock"), (3, "cover_bar"), (4, "dome_lock")):
        for bit in (1 << at, 0):
            waited = 0
            for ms in range(20):
                world, board = new()
                with Waits(world) as waits:
                    board.write(bit, 1 << at)
                    world.advance(600 + ms)
                    before = world.now
                    board.write(bit, 0)
                    assert world.runts == 0, "a pulse was cut short"
                    assert world.now - before <= (2 if waits.drive else 0), "too long, or for nothing"
                    waited += len(waits.drive)
                    world.advance(600)
                    assert not world.pin_level(pins.OUTPUTS[at])
                    assert world.output(name) == ("on" if bit else "off")
            assert waited == (2 if bit else 1)  # of 20 ms


def _in_a_pulse(ms_before):
    world, board = new()
    board.write(names.COVER_LOCK, names.COVER_LOCK)
    while not world.servo_left(pins.COVER_LOCK):
        world.advance(1)
    world.advance(20 - ms_before)
    return world, board


def check_the_agitator_is_cut_before_a_servo_is_waited_for_and_starts_after_it():
    for outputs in (ON | names.COVER_LOCK, names.COVER_LOCK):
        world, board = _in_a_pulse(5)
        board.write(outputs, names.COVER_LOCK)
        world.advance(5)
        if outputs & ON:
            outputs &= ~ON
        else:
            outputs |= ON
        with Waits(world) as waits:
            board.write(outputs, 0)
        assert waits.drive == [outputs & names.AGITATOR_ENABLE], "the motor runs while a servo is waited for"
        assert world.outputs & ON == outputs & ON and world.runts == 0


def check_nothing_waits_in_a_pulse_the_next_write_ends_the_drive():
    world, board = _in_a_pulse(5)
    board.write(ON | names.COVER_LOCK, names.COVER_LOCK)
    world.advance(5)
    with Waits(world) as waits:
        for _ in range(3):
            board.write(ON | names.COVER_LOCK, 0)
            assert world.pin_level(pins.COVER_LOCK) and world.outputs & ON == ON
        world.advance(5)
        board.write(ON | names.COVER_LOCK, 0)
        assert not world.pin_level(pins.COVER_LOCK) and world.outputs & ON == ON
        world.advance(50)
        board.write(ON | names.COVER_LOCK, 0)
        assert not world.pin_level(pins.COVER_LOCK)
    assert waits.drive == [] and world.runts == 0 and world.pulses == 1


def check_a_servo_that_never_comes_low_holds_a_write_for_one_pulse_at_most():
    world, board = _in_a_pulse(20)
    world.pwm_duty[world.sel[pins.COVER_LOCK] - 71] = 65535  # as if something else held the pin high
    before = world.now
    assert refused(PlantError, board.write, names.COVER_LOCK, 0)  # this plant sees a cut; the drive ends
    assert world.now - before == 3


def _stir(world, board, dice):
    """Bring outputs into a random state."""
    driving = names.BOLTS & dice.below(32)
    if driving & names.COVER_LOCK:
        driving &= ~names.COVER_BAR
    board.write(dice.below(128), driving)
    world.advance(dice.below(100))


def check_safe_turns_everything_off_from_any_state():
    dice = Dice(7)
    for _ in range(200):
        world, board = new()
        _stir(world, board, dice)
        board.safe()
        assert off(world)
        at = [world.bolt(n) for n in names.OUTPUTS[2:5]]
        world.advance(1000)
        assert off(world) and at == [world.bolt(n) for n in names.OUTPUTS[2:5]]
        board.write(0, 0)
        board.write(ON | names.COVER_LOCK | names.ALARM, names.COVER_LOCK)  # and on again
        world.advance(200)
        assert world.outputs & (ON | names.ALARM | names.COVER_LOCK) == ON | names.ALARM | names.COVER_LOCK
        assert world.bolt("cover_lock") == 1000


def check_safe_needs_no_board_and_no_registers():
    class Broken:
        def __setitem__(self, address, value):
            raise OSError("no registers")

    dice = Dice(8)
    whole = hardware.mem32
    for k in range(100):
        world, board = new()
        _stir(world, board, dice)
        hardware.mem32 = Broken() if k & 1 else whole
        try:
            hardware.safe()
        finally:
            hardware.mem32 = whole
        assert off(world)


def check_safe_needs_no_pins_where_there_are_registers():
    class Broken:
        OUT = machine.Pin.OUT

        def __init__(self, *args, **kwargs):
            raise ValueError("no pins")

    class Chip:
        Pin = Broken

    dice = Dice(10)
    for _ in range(50):
        world, board = new()
        _stir(world, board, dice)
        hardware.machine = Chip
        try:
            hardware.safe()
        finally:
            hardware.machine = machine
        assert off(world)


def check_a_pulse_that_safe_cut_stays_cut():
    world, board = new()
    board.write(ON, 0)
    world.advance(50)
    board.safe()
    for _ in range(5):
        board.write(ON, 0)
        assert not world.outputs & names.AGITATOR and world.pulses == 1
    board.write(0, 0)
    assert off(world)
    board.write(names.AGITATOR_ENABLE, 0)
    assert not world.outputs & names.AGITATOR
    world.advance(300)
    board.write(ON, 0)
    assert world.outputs & ON == ON and world.pulses == 2


def check_what_was_on_before_safe_can_be_told_again():
    for name in ("cover_lock", "cover_bar", "dome_lock"):
        bit = 1 << names.OUTPUTS.index(name)
        world, board = new()
        board.write(names.ALARM | bit, bit)
        world.advance(50)
        board.safe()
        assert off(world)
        board.write(names.ALARM | bit, bit)
        world.advance(600)
        assert world.output("alarm") == "on"
        assert world.bolt(name) == 1000


def check_boot_leaves_every_output_safe_from_any_state():
    with open(BOOT) as file:
        text = file.read()
    dice = Dice(9)
    for _ in range(100):
        world, board = new()
        _stir(world, board, dice)
        if dice.below(2):
            assert refused(Restart, machine.soft_reset)  # levels stay as they were
            world.restart("soft-reset")
        else:
            world.restart()
        at = [world.bolt(n) for n in names.OUTPUTS[2:5]]
        exec(text, {"__name__": "boot"})
        assert off(world)
        assert all(world.sel[pin] == 0x100 and world.oe >> pin & 1 for pin in pins.OUTPUTS)
        world.advance(1000)
        assert off(world) and at == [world.bolt(n) for n in names.OUTPUTS[2:5]], "a bolt moved at boot"


def check_a_hung_program_leaves_its_outputs_to_boot():
    with open(BOOT) as file:
        text = file.read()
    defined = "".join(text.rsplit("safe()\n", 1))  # boot.py that makes nothing safe
    for cause in ("watchdog", "reset"):
        for boot in (defined, text):
            world, board = new()
            board.start_watchdog(2000)
            board.write(ON | names.FRONT_BOARD | names.ALARM | names.COVER_LOCK, names.COVER_LOCK)
            if cause == "watchdog":
                assert refused(WatchdogReset, board.sleep_ms, 5000)
            else:
                world.advance(10)
                assert refused(Restart, machine.reset)
                at = world.bolt("cover_lock")
                world.advance(100)  # the chip's start
                assert world.bolt("cover_lock") > at + 500, "LEDC is not reset"
            left = names.AGITATOR_ENABLE | names.FRONT_BOARD | names.ALARM | names.COVER_LOCK
            assert world.outputs & ~names.AGITATOR == left and world.pin_level(pins.COVER_LOCK)
            world.advance(240)
            assert not world.outputs & names.AGITATOR, "a pulse of RMT ends by itself"
            world.restart()
            exec(boot, {"__name__": "boot"})
            assert off(world) == (boot is text)
            assert (world.sel[pins.COVER_LOCK] == 0x100) == (boot is text)
            board = hardware.Board(Settings())
            board.write(ON, 0)
            assert world.pulses == 2 and world.outputs & names.AGITATOR
            world.advance(300)
            board.write(0, 0)
            assert off(world)


# -- Lamps ----------------------------------------------------------------------------------------------


def check_lamps_light_on_every_layout_in_their_order():
    for layouts in (1, 2, 3, 4):
        world, board = new(250, 70, layouts)
        assert world.lamps() == [] and len(world.pixels[pins.LAYOUT]) == 3 * 39 * layouts
        for i, name in enumerate(names.LAMPS):
            board.lamps(1 << i if i < 20 else 0, 1 << (i - 20) if i >= 20 else 0)
            assert world.lamps() == [name]
        board.lamps(0xFFFFF, 0x7FFFF)
        assert world.lamps() == list(names.LAMPS)
        writes = world.led_writes
        board.lamps(0xFFFFF, 0x7FFFF)
        assert world.led_writes == writes, "the chain was written without a change"
        board.lamps(0, 0)
        assert world.lamps() == []
    world.pixels[pins.LAYOUT][-1] = 9
    assert refused(PlantError, world.lamps)


def check_status_shows_its_colour():
    world, board = new()
    assert world.status() == (0, 0, 0)
    board.status(1, 2, 3)
    assert world.status() == (1, 2, 3)
    writes = world.led_writes
    board.status(1, 2, 3)
    assert world.led_writes == writes
    world.power_off()
    assert world.status() == (0, 0, 0)


# -- Power, reset, watchdog, clock --------------------------------------------------------------------------


def check_a_power_cut_ends_every_call():
    world, board = new()
    board.write(ON | names.ALARM | names.FRONT_BOARD, 0)
    board.lamps(5, 0)
    board.start_watchdog(2000)
    world.power_off()
    assert off(world) and world.lamps() == []
    calls = (
        board.read,
        board.read_pins,
        board.feed,
        board.ticks,
        board.safe,
        board.reset,
        machine.reset_cause,
        board.uart.any,
        lambda: board.write(0, 0),
        lambda: board.sleep_ms(5),
        lambda: board.lamps(1, 0),
        lambda: board.status(9, 9, 9),
        lambda: board.uart.write(b"x"),
        lambda: board.uart.readinto(bytearray(4)),
        lambda: machine.Pin(pins.ALARM),
        lambda: machine.WDT(timeout=5),
        lambda: hardware.Board(Settings()),
    )
    for call in calls:
        assert refused(PowerCut, call)
    world.advance(100000)  # and no watchdog without power
    world.power_on()
    assert hardware.Board(Settings()).cause == 0
    assert refused(RuntimeError, board.write, names.COVER_LOCK, names.COVER_LOCK), "PWM of an earlier boot"


def check_a_reset_holds_the_chip_until_it_is_let_go():
    world, board = new()
    board.write(ON, 0)
    assert refused(Restart, board.reset)
    assert off(world) and refused(Restart, board.read) and refused(Restart, board.safe)
    world.restart()
    assert hardware.Board(Settings()).cause == names.CAUSES.index("reset")


def check_causes_have_their_names():
    seen = []
    for cause in ("power-on", "reset", "watchdog", "soft-reset", "deep-sleep"):
        world, _board = new()
        assert refused(Restart, world.reset, cause)
        world.restart()
        seen.append(names.CAUSES[hardware.Board(Settings()).cause])
    world.cause = 0
    seen.append(names.CAUSES[hardware.Board(Settings()).cause])
    assert tuple(seen) == names.CAUSES


def check_the_watchdog_bites_when_it_is_fed_late():
    world, board = new()
    board.write(names.AGITATOR_ENABLE, 0)
    board.feed()  # not started yet
    board.start_watchdog(2000)
    for _ in range(10):
        board.sleep_ms(2000)
        board.feed()
    at = world.now
    assert refused(WatchdogReset, board.sleep_ms, 5000)
    assert world.now == at + 2001 and world.outputs == names.AGITATOR_ENABLE, "GPIO is not reset"
    assert refused(WatchdogReset, board.feed)
    world.restart()
    assert names.CAUSES[hardware.Board(Settings()).cause] == "watchdog"
    world.advance(100000)  # a new boot starts without one


def check_the_watchdog_outlives_a_soft_reset():
    world, board = new()
    board.start_watchdog(2000)
    assert refused(Restart, machine.soft_reset)
    world.restart("soft-reset")
    assert refused(WatchdogReset, world.advance, 2001)


def check_the_clock_wraps_as_on_the_chip():
    for origin in (0, (1 << 29) - 5, (1 << 30) - 5):
        world, board = new()
        world.origin = origin
        at = board.ticks()
        board.sleep_ms(10)
        assert board.ticks() == (at + 10) & 0x3FFFFFFF and at == world.ticks_ms() - 10 & 0x3FFFFFFF
        slept = []
        world.on_sleep = slept.append
        board.sleep_ms(7)
        assert slept == [7]
        world.ticks_ms = lambda: (1 << 40) + 5  # a port whose clock wraps later
        assert board.ticks() == 5


def check_nothing_moves_when_nothing_is_due():
    world, _board = new()
    world.advance(10000000)
    before = (world.outputs, world.contacts)
    steps = []
    world._run = steps.append
    for _ in range(1000):
        world.advance(5)
    assert not steps and before == (world.outputs, world.contacts)


def check_the_chip_knows_its_name():
    _world, board = new()
    assert board.ident == "240ac4000001"
    assert len(board.random(8)) == 8 and board.random(8) != board.random(8)


# -- The line ------------------------------------------------------------------------------------------------


def check_the_line_has_the_pace_of_115200_baud():
    world, board = new()
    world.line.to_device(bytes(100))
    got = []
    for _ in range(12):
        got.append(board.uart.any())
        world.advance(1)
    assert got[:4] == [0, 11, 23, 34] and got[9] == 100
    buf = bytearray(200)
    assert board.uart.readinto(buf, 60) == 60 and board.uart.readinto(buf) == 40
    assert board.uart.readinto(buf) is None
    data = bytes([i & 0xFF for i in range(57)])
    sent = b""
    for _ in range(10):
        assert board.uart.write(b"\x00\x00" + data, 2, 57) == 57
        world.advance(5)
        sent += world.line.from_device()
    assert sent == data * 10
    return got


def check_an_overrun_is_lost_without_a_word():
    world, board = new()
    world.line.to_device(bytes(2000))
    world.advance(1000)
    assert board.uart.any() == 512 + FIFO and world.line.lost == 2000 - 512 - FIFO
    board.uart.read()
    world.line.to_device(bytes(500))
    world.line.stall(40)  # a flash erase: the interrupt does not empty the FIFO
    assert board.uart.any() == FIFO


def check_the_line_is_deaf_without_power_or_uart():
    world, board = new()
    world.line.to_device(b"lost")
    board.uart.write(b"gone")
    world.power_off()
    world.line.to_device(b"lost")
    world.advance(10)
    assert world.line.from_device() == b""
    world.power_on()
    world.line.to_device(b"lost")
    world.advance(10)
    board = hardware.Board(Settings())
    assert board.uart.any() == 0
    world.line.to_device(b"heard")
    world.advance(10)
    assert board.uart.read() == b"heard"


def check_a_write_without_room_would_wait():
    world, board = new()
    for _ in range(3):
        assert board.uart.write(bytes(300)) == 300
    assert refused(PlantError, board.uart.write, bytes(1024 + FIFO - 900 + 1)), (
        "the port waits until there is room"
    )
    assert board.uart.write(bytes(1024 + FIFO - 900)) == 1024 + FIFO - 900
    assert refused(PlantError, board.uart.write, b"x")
    world.advance(10)
    assert board.uart.write(bytes(115)) == 115
    world.advance(500)
    for _ in range(400):  # what the firmware writes in a scan, and the line carries
        assert board.uart.write(bytes(57)) == 57
        world.advance(5)


# -- Strictness of the fakes ---------------------------------------------------------------------------------


def check_pins_are_those_of_the_table():
    new()
    pin = machine.Pin
    for gpio in (1, 3, 6, 11, 20, 37, 40, pins.UART_TX):
        assert refused(ValueError, pin, gpio, pin.OUT)
    for gpio in pins.CONTACTS:
        assert refused(ValueError, pin, gpio, pin.OUT)
    for gpio in pins.OUTPUTS:
        assert refused(ValueError, pin, gpio, pin.IN)
    for gpio in pins.CONTACTS:
        if gpio >= 34:
            assert refused(ValueError, pin, gpio, pin.IN, pin.PULL_UP)
    assert refused(ValueError, pin(pins.BELL).value, 1)
    assert refused(NotImplementedError, pin(pins.BELL).irq, None)


def check_rmt_takes_what_the_port_takes():
    world, _board = new()
    pin = machine.Pin(pins.AGITATOR)
    rmt = esp32.RMT
    assert not refused(TypeError, rmt, pin=pin, resolution_hz=1000000)
    assert refused(ValueError, rmt, pin=pin, resolution_hz=1000000, clock_div=80)
    assert refused(ValueError, rmt, 0, pin=pin, clock_div=256)
    assert refused(ValueError, rmt, 7, pin=pin, clock_div=80, tx_carrier=(100, 50, 1))
    assert refused(ValueError, rmt, 0, pin=pin, clock_div=80, tx_carrier=(20000, 100, 1))
    tx = rmt(0, pin=pin, clock_div=250)
    assert refused(ValueError, tx.write_pulses, (32768,), 1)
    assert refused(ValueError, tx.write_pulses, (), 1)
    assert refused(ValueError, tx.write_pulses, (32000, 32000, 32000, 1), (1, 1, 1, 0)), "above 300 ms"
    assert refused(ValueError, tx.write_pulses, (100, 100, 100), 1), "two pulses in one"
    tx.write_pulses((32000,))
    assert refused(RuntimeError, tx.write_pulses, (32000,), 1), "the port would wait"
    world.new_rmt = False
    assert refused(TypeError, rmt, pin=pin, clock_div=80)
    assert refused(TypeError, rmt, 0, pin=pin, resolution_hz=1000000)


def check_pwm_starts_at_once_unless_it_is_told():
    new()
    servo = machine.Pin(pins.COVER_BAR, machine.Pin.OUT, value=0)
    assert refused(PlantError, machine.PWM, servo), "5 kHz, 50 % on a servo"
    _world, _board = new()
    assert refused(PlantError, machine.Pin(pins.COVER_BAR).value, 1)


def check_uart_and_leds_refuse_nonsense():
    new()
    good = {"tx": pins.UART_TX, "rx": pins.UART_RX, "rxbuf": 512}
    assert not refused(ValueError, machine.UART, 2, **good)
    assert refused(ValueError, machine.UART, 0, **good)
    assert refused(ValueError, machine.UART, 2, tx=pins.UART_RX, rx=pins.UART_TX, rxbuf=512)
    assert refused(ValueError, machine.UART, 2, baudrate=9600, **good)
    assert refused(ValueError, machine.UART, 2, timeout=10, **good)
    chain = neopixel.NeoPixel(machine.Pin(pins.STATUS), 1)
    assert refused(ValueError, chain.__setitem__, 0, (256, 0, 0))
    chain[0] = (1, 2, 3)
    assert chain[0] == (1, 2, 3) and bytes(chain.buf) == b"\x02\x01\x03" and len(chain) == 1
    chain.fill((0, 0, 0))
    assert bytes(chain.buf) == bytes(3)


# -- Only on MicroPython: the heap, and a real LittleFS -----------------------------------------------------


def mp_check_a_scan_allocates_nothing():
    import gc

    from micropython import heap_lock, heap_unlock

    world, board = new(250, 70, 4)
    board.start_watchdog(2000)
    words = (0, names.AGITATOR_ENABLE, ON, names.COVER_LOCK, names.FRONT_BOARD | names.ALARM, names.DOME_LOCK)
    bell = names.CONTACTS.index("bell")
    buf = bytearray(64)
    gc.collect()
    before = gc.mem_alloc()
    heap_lock()
    try:
        for k in range(3000):
            step = k // 100 % len(words)
            outputs = words[step]
            board.write(outputs, outputs & names.BOLTS)
            if k % 7 == 0:
                world._contact(bell, not world._made >> bell & 1)  # a key, without allocating on the way
                world.update()
            board.read()
            board.read_pins()
            board.feed()
            board.ticks()
            if k % 50 == 0:
                board.lamps(k & 0xFFFFF, k & 0x7FFFF)
                board.status(k & 0xFF, 1, 2)
            board.uart.any()
            board.uart.readinto(buf)
            board.uart.write(buf, 0, 57)
            board.sleep_ms(5)
    finally:
        heap_unlock()
    assert world.pulses == 5 and gc.mem_alloc() == before
    heap_lock()
    try:
        board.write(ON, 0)
        board.safe()
        board.write(names.COVER_LOCK, names.COVER_LOCK)
        board.sleep_ms(320 - world.now % 20)  # RMT is done with the pulse before
        board.write(ON | names.COVER_LOCK, names.COVER_LOCK)
        late = world.servo_left(pins.OUTPUTS[2])
        board.write(ON | names.COVER_LOCK, 0)  # its drive ends in the pulse, and in a servo's pulse
        later = world.servo_left(pins.OUTPUTS[2])
        board.sleep_ms(5)
        board.write(ON | names.COVER_LOCK, 0)
        board.safe()
    finally:
        heap_unlock()
    assert off(world) and late and later


class Chip:
    """A flash partition in memory, as esp32.Partition: erased bytes are 0xFF."""

    def __init__(self, blocks=16, size=4096):
        self._size = size
        self.data = bytearray(b"\xff" * (blocks * size))

    def readblocks(self, block, buf, offset=0):
        at = block * self._size + offset
        buf[:] = self.data[at : at + len(buf)]

    def writeblocks(self, block, buf, offset=None):
        at = block * self._size
        if offset is None:
            offset = 0
            self.data[at : at + len(buf)] = b"\xff" * len(buf)
        self.data[at + offset : at + offset + len(buf)] = buf

    def ioctl(self, op, arg):
        if op == 4:
            return len(self.data) // self._size
        if op == 5:
            return self._size
        if op == 6:
            self.data[arg * self._size : (arg + 1) * self._size] = b"\xff" * self._size
        return 0


def mp_check_a_blank_data_partition_is_formatted_once():
    import vfs

    world, _ = new()
    chip = Chip()
    world.partitions["data"] = chip
    assert hardware.mount_data() == ("/data", 7)
    with open("/data/kept", "w") as file:
        file.write("x")
    vfs.umount("/data")
    assert hardware.mount_data() == ("/data", 7)
    with open("/data/kept") as file:
        assert file.read() == "x"
    vfs.umount("/data")


def mp_check_an_unreadable_data_partition_is_left_as_it_is():
    import os

    world, _ = new()
    chip = Chip()
    for i in range(0, len(chip.data), 97):
        chip.data[i] = i & 0xFF
    before = bytes(chip.data)
    world.partitions["data"] = chip
    root, _ = hardware.mount_data()
    assert refused(OSError, os.listdir, root)
    assert bytes(chip.data) == before


def mp_check_without_a_partition_a_folder_serves():
    import os

    import vfs

    new()
    chip = Chip()
    vfs.VfsLfs2.mkfs(chip)
    vfs.umount("/")
    vfs.mount(vfs.VfsLfs2(chip), "/")
    assert hardware.mount_data() == ("/data", 2)
    assert hardware.mount_data() == ("/data", 2)
    assert os.listdir("/data") == []


CHECKS = sorted(n for n in globals() if n.startswith("check_"))


def main():
    """Run every check; print a line for each."""
    checks = CHECKS
    if sys.implementation.name == "micropython":
        checks = CHECKS + sorted(n for n in globals() if n.startswith("mp_check_"))
    for name in checks:
        try:
            print("ok", name, globals()[name]())
        except Exception as error:
            print("bad", name, repr(error))
            if sys.implementation.name == "micropython":
                sys.print_exception(error, sys.stdout)


if __name__ == "__main__":
    main()
