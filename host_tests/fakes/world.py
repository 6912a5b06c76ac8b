"""The table as physics: a simulated clock, contacts, a motor, three bolts, lamps, a line, and the power.

Owns every physical fact and what the ESP32's registers hold; machine, esp32, neopixel and faketime beside it
are how the firmware reaches them. Must never know a rule of the game. Runs alike on CPython and MicroPython.
Units: ms on `now`, which starts at 0 and never goes back. Nothing here allocates while the firmware scans.

Life of a device: `World()` is powered and booting. `power_off()`, `power_on()`; `restart()` is a reset
without loss of power; machine.reset() and the watchdog leave it held in reset until `boot()`. While it is
off or held, every call the firmware makes raises PowerCut, Restart or WatchdogReset, none of which is an
Exception.

What a reset leaves: without power, and in deep sleep, every register is lost. machine.reset(), the watchdog
(its panic handler) and a panic end in ESP-IDF's esp_restart_noos(), which resets the CPU, timers, SPI and
UARTs, but neither GPIO nor LEDC nor RMT: pads, levels and routes stay, a servo's pulses go on, a transmission
of RMT runs to its end. A soft reset leaves everything, too. (On the chip a few of these resets do reset GPIO,
as after a cache error; boot.py must bear the worse. A brown-out ends either way.)
"""

from micropython import const

import faketime  # its import changes time: see there
from line import Line
from power import PlantError, PowerCut
from shaker import names, pins

NEVER = const(1 << 60)
COAST_MS = const(120)  # the base keeps moving after the drive stops
SPIN_UP_MS = const(15)  # and needs this long to start
TRAVEL_MS = const(180)  # a bolt's way from one end to the other
RMT_SIGNAL = const(87)  # GPIO matrix: RMT channel 0
PWM_SIGNAL = const(71)  # GPIO matrix: LEDC channel 0
PLAIN = const(0x100)  # GPIO matrix: the GPIO's own level

POWER_ON, HARD, WATCHDOG, DEEP_SLEEP, SOFT = 1, 2, 3, 4, 5  # machine.reset_cause()

_CAUSES = (POWER_ON, HARD, WATCHDOG, SOFT, DEEP_SLEEP)  # in the order of names.CAUSES

_MOTION_BIT = const(1 << 12)
ELF_SHA256 = bytes(range(100, 132))  # of the build that runs


def app_image(elf_sha256):
    """Return the beginning of an application's image as ESP-IDF lays it out: header, segment, description."""
    image = bytearray(288)
    image[0] = 0xE9
    image[32:36] = b"\x32\x54\xcd\xab"
    image[176:208] = elf_sha256
    return image


_PULSES = const(64)
_SERVO_PERIOD_US = const(20000)
_SERVO_PHASE_US = const(700)


class Restart(BaseException):
    """The chip was reset, or is held in reset until world.boot()."""


class WatchdogReset(Restart):
    """The watchdog was fed too late, or not at all."""


class World:
    """One shaker on one table. See the module's text; `new_rmt`: RMT as in MicroPython 1.27 and later."""

    def __init__(self, origin=0, new_rmt=True):
        self.now = 0
        self.origin = origin
        self.new_rmt = new_rmt
        self.boots = 1
        self.rtc_memory = b""
        self.cause = POWER_ON
        self.ident = b"\x24\x0a\xc4\x00\x00\x01"
        self.line = Line(self)
        self.partitions = {}
        self.app = app_image(ELF_SHA256)
        # Contacts: what a person or a fault does, and the word that results. A set bit = the contact is made.
        self._made = 0
        self._cut = 0
        self._stuck = 0
        self._pinned = None
        self.bounce_ms = 0
        self.noise_ms = 0  # every contact chatters this long at each edge of the drive
        self._drive = 0
        self._bouncing = [0] * len(names.CONTACTS)  # when each contact comes to rest
        self._chatter = 0
        self.contacts = 0
        # Plant.
        self.motor = "ok"
        self.moving = False
        self._spin_at = NEVER
        self._coast_end = NEVER
        self._bolt_pos = [0, 0, 0]
        self._bolt_dir = [0, 0, 0]
        self._bolt_at = [0, 0, 0]
        self._bolt_word = 0
        self._jammed = 0
        self._random = 12345
        # Counters for tests: pulses that reached the agitator pin, times the last 64 began, all RMT writes.
        self.pulses = 0
        self.pulse_at = [0] * _PULSES
        self.pulse_ms = [0] * _PULSES
        self.rmt_writes = 0
        self.led_writes = 0
        self.feeds = 0
        # Registers.
        self.powered = True
        self._halt = None
        self.out = 0
        self.out1 = 0
        self.oe = 0
        self.sel = [PLAIN] * 40
        self.rmt_end = [NEVER] * 8
        self.rmt_level = [0] * 8
        self.rmt_carrier = [None] * 8
        self.rmt_busy = [0] * 8
        self.pwm_duty = [0] * 16
        self.pwm_hz = [0] * 16
        self.pwm_pin = [-1] * 16
        self.runts = 0  # pulses of a servo that were cut short, by whatever it was
        self.pixels = {}
        self._bite = NEVER
        self._wdt_ms = 0
        self.reg_in = 0
        self.reg_in1 = 0
        self._next = NEVER
        self.outputs = 0
        self._contact_pins = pins.CONTACTS
        self._started = 0
        self.on_sleep = None  # called with ms instead of advance() when the firmware sleeps
        for name in ("latch_a", "latch_b"):
            self.set(name, "open")
        self.set("dome", "closed")
        self.update()

    def install(self):
        """As the function install, for one line; returns the world."""
        install(self)
        return self

    # -- time ------------------------------------------------------------------------------------

    def ticks_ms(self):
        """Return the reading of the device's clock: `origin` when it booted, wrapping at 2^30."""
        return (self.origin + self.now - self._started) & 0x3FFFFFFF

    def advance(self, ms):
        """Let `ms` (int, >= 0) pass. Raises WatchdogReset at the moment the watchdog bites."""
        end = self.now + ms
        if end >= self._next or end > self._bite:
            self._run(end)
        self.now = end

    def _run(self, end):
        while True:
            at = self._next
            if at > self._bite:
                at = self._bite + 1
            if at > end:
                return
            self.now = at
            if at > self._bite:
                self._reset(WATCHDOG)
                self._halt = WatchdogReset
                self.alive()
            self.update()

    def alive(self):
        """Raise what ends the firmware when the device is off or held in reset."""
        if self._halt is not None:
            raise self._halt(names.CAUSES[_CAUSES.index(self.cause)])

    # -- power and reset ---------------------------------------------------------------------------

    def power_off(self):
        """Take the power away: outputs off, registers gone, bolts where they are."""
        self._reset(POWER_ON)
        self.powered = False
        self.rtc_memory = b""
        self._halt = PowerCut
        for pin in self.pixels:  # LEDs are dark without power, and stay so until written
            pixels = self.pixels[pin]
            for i in range(len(pixels)):
                pixels[i] = 0
        self.update()

    def power_on(self):
        """Give the power back; the device boots."""
        self.powered = True
        self.boot()

    def boot(self):
        """Let a device that is held in reset run."""
        self._halt = None
        self._started = self.now
        self.boots += 1
        self.update()

    def reset(self, cause="reset"):
        """Reset the chip (names.CAUSES says why) and raise Restart; it stays in reset until restart().

        What it leaves of the registers: see the module's text.
        """
        number = _CAUSES[names.CAUSES.index(cause)]
        if number == SOFT:
            self.cause = SOFT
        else:
            self._reset(number)
        self._halt = Restart
        self.alive()

    def restart(self, cause="reset"):
        """Let a chip that is held in reset run; one that runs is reset first, without loss of power."""
        if self._halt is None:
            self._reset(_CAUSES[names.CAUSES.index(cause)])
        self.boot()

    def _reset(self, cause):
        self.cause = cause
        self.line.reset()
        for i in range(8):
            self.rmt_busy[i] = 0  # the driver's own memory, as is the next
        for i in range(16):
            self.pwm_pin[i] = -1
        if cause != HARD and cause != WATCHDOG:
            self.out = 0
            self.out1 = 0
            self.oe = 0
            for i in range(40):
                self.sel[i] = PLAIN
            for i in range(8):
                self.rmt_end[i] = NEVER
                self.rmt_level[i] = 0
            for i in range(16):
                self.pwm_duty[i] = 0
        self._bite = NEVER
        self.update()

    # -- watchdog ------------------------------------------------------------------------------------

    def watch(self, ms):
        """Start the watchdog."""
        self._wdt_ms = ms
        self._bite = self.now + ms

    def feed(self):
        """Feed it."""
        self.feeds += 1
        self._bite = self.now + self._wdt_ms

    # -- what people and faults do -----------------------------------------------------------------

    def set(self, name, value):
        """Put a physical input where names.INPUT_VALUES says. `motion` stays as set, until unpin_motion()."""
        number = names.INPUT_VALUES[name].index(value)
        if name == "motion":
            self._pinned = number
        elif name == "latch_a" or name == "latch_b":
            at = 0 if name == "latch_a" else 2
            self._contact(at, number == 1)
            self._contact(at + 1, number == 0)
        else:
            self._contact(names.CONTACTS.index(name), number == 1)
        self.update()

    def unpin_motion(self):
        """Let the motion sensor follow the base again."""
        self._pinned = None
        self.update()

    def value(self, name):
        """Return the word of names.INPUT_VALUES that the wires of input `name` carry now."""
        if name == "latch_a" or name == "latch_b":
            pair = self.contacts >> (0 if name == "latch_a" else 2) & 3
            return "closed" if pair == 1 else "open" if pair == 2 else "invalid"
        return names.INPUT_VALUES[name][self.contacts >> names.CONTACTS.index(name) & 1]

    def cut(self, contact):
        """Cut the wire of one contact (names.CONTACTS): it reads as not made, whatever happens."""
        self._cut |= 1 << names.CONTACTS.index(contact)
        self.update()

    def stick(self, contact):
        """Weld one contact: it reads as made, whatever happens."""
        self._stuck |= 1 << names.CONTACTS.index(contact)
        self.update()

    def mend(self):
        """Mend every wire and contact."""
        self._cut = 0
        self._stuck = 0
        self.update()

    def set_motor(self, kind):
        """Choose the motor: ok, dead (never moves), runaway (moves whenever there is power) or welded.

        Welded: the drive transistor conducts for ever, so it moves whenever the enable line is on.
        """
        if kind not in ("ok", "dead", "runaway", "welded"):
            raise ValueError(kind)
        self.motor = kind
        self.update()

    def jam(self, bolt):
        """Jam a bolt where it is: its servo gets pulses and moves nothing."""
        i = names.OUTPUTS.index(bolt) - 2
        self._bolt_pos[i] = self._bolt_now(i)
        self._jammed |= 1 << i

    def _contact(self, index, made):
        bit = 1 << index
        if bool(self._made & bit) == made:
            return
        self._made ^= bit
        if self.bounce_ms:
            self._bouncing[index] = self.now + self.bounce_ms

    # -- what can be seen -----------------------------------------------------------------------------

    def output(self, name):
        """Return 'on' or 'off' for one of names.OUTPUTS; a bolt: the direction it was last driven to."""
        return "on" if self.outputs >> names.OUTPUTS.index(name) & 1 else "off"

    def bolt(self, name):
        """Return where a bolt is: 0 = fully off ... 1000 = fully on."""
        i = names.OUTPUTS.index(name) - 2
        return self._bolt_now(i) * 1000 // TRAVEL_MS

    def lamps(self):
        """Return the names of the lit lamps of layout 1. Raises PlantError when another layout differs."""
        pixels = self.pixels.get(pins.LAYOUT)
        if pixels is None:
            return []
        one = 3 * len(names.LAMPS)
        for at in range(one, len(pixels), one):
            if pixels[at : at + one] != pixels[:one]:
                raise PlantError("layouts differ")
        return [n for i, n in enumerate(names.LAMPS) if any(pixels[3 * i : 3 * i + 3])]

    def status(self):
        """Return the status LED's (r, g, b), 0-255 each."""
        pixels = self.pixels.get(pins.STATUS)
        if pixels is None:
            return (0, 0, 0)
        return (pixels[1], pixels[0], pixels[2])  # WS2812 take green first

    def urandom(self, n):
        """Return `n` bytes, the same in every run and on both interpreters."""
        out = bytearray(n)
        for i in range(n):
            self._random = (self._random * 1103515245 + 12345) & 0x3FFFFFFF
            out[i] = self._random >> 16 & 0xFF
        return bytes(out)

    # -- physics --------------------------------------------------------------------------------------

    def pin_level(self, pin):
        """Return an output pin's level (0 or 1) now; RMT's carrier and a running PWM count as 1."""
        if not self.oe >> pin & 1:
            return 0  # the hardware pull-down
        signal = self.sel[pin]
        if signal == PLAIN:
            return (self.out >> pin if pin < 32 else self.out1 >> (pin - 32)) & 1
        if RMT_SIGNAL <= signal < RMT_SIGNAL + 8:
            channel = signal - RMT_SIGNAL
            return self.rmt_level[channel] if self.now < self.rmt_end[channel] else 0
        if PWM_SIGNAL <= signal < PWM_SIGNAL + 16:
            return 1 if self.pwm_duty[signal - PWM_SIGNAL] else 0
        return 0

    def update(self):
        """Work out everything that follows from the registers, the contacts and the time."""
        now = self.now
        soonest = NEVER
        drive = self.pin_level(pins.AGITATOR)
        enable = self.pin_level(pins.AGITATOR_ENABLE)
        if drive != self._drive:
            self._drive = drive
            if self.noise_ms:
                for i in range(len(self._bouncing)):
                    self._bouncing[i] = now + self.noise_ms
        for i in range(8):
            end = self.rmt_end[i]
            if end != NEVER and now < end < soonest:
                soonest = end

        motor = self.motor
        if motor == "ok":
            force = drive and enable
        elif motor == "runaway":
            force = self.powered
        elif motor == "welded":
            force = enable
        else:
            force = False
        if force:
            self._coast_end = NEVER
            if not self.moving:
                if self._spin_at == NEVER:
                    self._spin_at = now + SPIN_UP_MS
                if now >= self._spin_at:
                    self.moving = True
        else:
            self._spin_at = NEVER
            if self.moving:
                if self._coast_end == NEVER:
                    self._coast_end = now + COAST_MS
                if now >= self._coast_end:
                    self.moving = False
                    self._coast_end = NEVER
        if self.moving:
            self._spin_at = NEVER
        if self._spin_at < soonest:
            soonest = self._spin_at
        if self._coast_end < soonest:
            soonest = self._coast_end

        word = 0
        for i in range(3):
            self._drive_bolt(i)
            if self._bolt_word >> i & 1:
                word |= names.COVER_LOCK << i
        if drive:
            word |= names.AGITATOR
        if enable:
            word |= names.AGITATOR_ENABLE
        if self.pin_level(pins.FRONT_BOARD):
            word |= names.FRONT_BOARD
        if self.pin_level(pins.ALARM):
            word |= names.ALARM
        self.outputs = word

        contacts = self._made
        sensor = self.moving if self._pinned is None else self._pinned
        contacts = contacts | _MOTION_BIT if sensor else contacts & ~_MOTION_BIT
        for i in range(len(self._bouncing)):
            if now < self._bouncing[i]:
                # A contact that bounces is made or not by chance, anew each ms.
                self._chatter = (self._chatter * 1103515245 + 12345) & 0x3FFFFFFF
                if self._chatter & 0x10000:
                    contacts ^= 1 << i
                if now + 1 < soonest:
                    soonest = now + 1
        contacts = (contacts & ~self._cut) | self._stuck
        if contacts != self.contacts or not self.reg_in:
            self.contacts = contacts
            self._wires()
        self._next = soonest

    def _wires(self):
        low = 0
        high = 0
        for i in range(len(self._contact_pins)):
            if not self.contacts >> i & 1:
                pin = self._contact_pins[i]
                if pin < 32:
                    low |= 1 << pin
                else:
                    high |= 1 << (pin - 32)
        self.reg_in = low
        self.reg_in1 = high

    def servo_left(self, pin):
        """Return the microseconds left of the servo pulse on `pin`, 0 between two of them.

        The period began where the scans, which come at multiples of 5 ms, meet a pulse of either width.
        """
        signal = self.sel[pin]
        if not (PWM_SIGNAL <= signal < PWM_SIGNAL + 16 and self.oe >> pin & 1):
            return 0
        width = self.pwm_duty[signal - PWM_SIGNAL] * _SERVO_PERIOD_US // 65535
        at = (self.now * 1000 + _SERVO_PHASE_US) % _SERVO_PERIOD_US
        return width - at if at < width else 0

    def _drive_bolt(self, i):
        pin = pins.OUTPUTS[2 + i]
        signal = self.sel[pin]
        direction = 0
        if PWM_SIGNAL <= signal < PWM_SIGNAL + 16 and self.oe >> pin & 1:
            channel = signal - PWM_SIGNAL
            duty = self.pwm_duty[channel]
            if duty:
                width_us = duty * _SERVO_PERIOD_US // 65535
                if self.pwm_hz[channel] != 50 or not 800 <= width_us <= 2200:
                    raise PlantError("a servo wants 50 Hz and 1 to 2 ms")
                direction = 1 if width_us >= 1500 else -1
        elif signal == PLAIN and self.pin_level(pin):
            raise PlantError("a servo's line is held high")
        if direction != self._bolt_dir[i]:
            self._bolt_pos[i] = self._bolt_now(i)
            self._bolt_at[i] = self.now
            self._bolt_dir[i] = direction
            if direction > 0:
                self._bolt_word |= 1 << i
            elif direction < 0:
                self._bolt_word &= ~(1 << i)

    def _bolt_now(self, i):
        if self._jammed >> i & 1:
            return self._bolt_pos[i]
        at = self._bolt_pos[i] + self._bolt_dir[i] * (self.now - self._bolt_at[i])
        return 0 if at < 0 else TRAVEL_MS if at > TRAVEL_MS else at

    # -- what the fakes tell --------------------------------------------------------------------------

    def pulse(self, channel, ms, level):
        """RMT `channel` sends `level` for `ms` from now."""
        self.rmt_writes += 1
        if ms and level:
            self.rmt_level[channel] = 1
            self.rmt_end[channel] = self.now + ms
            if self.sel[pins.AGITATOR] == RMT_SIGNAL + channel:
                at = self.pulses % _PULSES
                self.pulse_at[at] = self.now
                self.pulse_ms[at] = ms
                self.pulses += 1
        self.update()


def install(world):
    """Make `world` the one that machine, esp32, neopixel and time act on, from now on."""
    import esp32
    import machine
    import neopixel

    machine.install(world)
    esp32.install(world)
    neopixel.install(world)
    faketime.install(world)
