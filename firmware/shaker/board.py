"""The board: every pin, register and peripheral of the ESP32, and nothing about the game.

The only module besides boot.py that imports machine, esp32 and neopixel. Turns contacts into a contact word
(names.CONTACTS, a set bit = made) and a word of outputs (names.OUTPUTS) into levels and pulses. Polarity is
fixed by the pin table's rules: a contact is made when its pin is low, an output is on when its pin is high.
Must never decide anything, take an interrupt or a timer, or allocate in read(), write() and feed().

Two paths lead to the pins: read_pins()/write_pins() through machine.Pin, easy to follow, and read()/write()
through the GPIO registers, which the scan uses; tests compare them.

A pulse is one RMT transmission, so the hardware ends it even when the interpreter hangs. RMT (agitator) and
PWM (bolts) reach their pins only while they are wanted: otherwise the GPIO matrix is set to the plain, low
GPIO. That is what cuts a pulse short, within the write() that asks for it.

Units: ms, percent. Sources: ESP32 Technical Reference Manual, chapter 4 (GPIO registers and matrix), chapter
15 (RMT); MicroPython ports/esp32 esp32_rmt.c, machine_pwm.c, modmachine.c (1.26 to 1.29).
"""

import os
import time

import esp32
import machine
from machine import mem32
from micropython import const
from neopixel import NeoPixel

from shaker import pins
from shaker.names import AGITATOR, AGITATOR_ENABLE, ALARM, DRIVE, FRONT_BOARD, LAMPS
from shaker.ticks import fold

# GPIO registers. All outputs are on GPIO0-31 (the pin table sees to it) and this board owns every output
# pin, so one write of the whole register asserts them all at once.
_GPIO_OUT = const(0x3FF44004)
_GPIO_OUT_W1TC = const(0x3FF4400C)
_GPIO_ENABLE_W1TS = const(0x3FF44024)
_GPIO_IN = const(0x3FF4403C)
_GPIO_IN1 = const(0x3FF44040)  # GPIO32-39
_OUT_SEL = const(0x3FF44530)  # GPIO matrix: which signal drives a pin; one register for each, 4 bytes apart
_SIGNAL_GPIO = const(0x100)

_ENABLE_BIT = 1 << pins.AGITATOR_ENABLE
_FRONT_BIT = 1 << pins.FRONT_BOARD
_ALARM_BIT = 1 << pins.ALARM
_SEL_AGITATOR = _OUT_SEL + 4 * pins.AGITATOR

# RMT: 80 MHz / 250 = 320 ticks in a ms. One item reaches 32767 ticks (102 ms), so a pulse of 300 ms is three.
_CLOCK_DIV = const(250)
_TICKS_PER_MS = const(320)
_CARRIER_HZ = const(20000)  # above hearing; the carrier's counters need at least 1.3 kHz

# Servos: 50 Hz, 2 ms for on, 1 ms for off, as duty of 65535.
_SERVO_HZ = const(50)
_SERVO_ON = const(6554)
_SERVO_OFF = const(3277)

_LAMP = (48, 40, 24)  # one lamp lit; the power budget in board/README.md counts on it
_DARK = (0, 0, 0)

_RXBUF = const(512)
_TXBUF = const(1024)
_TAIL_PARTITION = const(7)  # records the journal's open end holds: see mount_data()
_TAIL_FOLDER = const(2)


def safe():
    """Drive every output off, from any state, with or without a Board. Raises nothing of its own."""
    mask = 0
    for pin in pins.OUTPUTS:
        mask |= 1 << pin
    try:
        mem32[_GPIO_OUT_W1TC] = mask
        for pin in pins.OUTPUTS:
            mem32[_OUT_SEL + 4 * pin] = _SIGNAL_GPIO
        mem32[_GPIO_ENABLE_W1TS] = mask
    except Exception:  # a port without these registers: the pins below do the same
        pass
    for pin in pins.OUTPUTS:
        try:
            machine.Pin(pin, machine.Pin.OUT, value=0)
        except Exception:  # the others must still be made safe
            pass


class Board:
    """The hardware of one shaker. `settings` gives pulse_ms (100-300), duty (20-100 %) and layouts (1-4).

    `cause` is an index of names.CAUSES, `ident` the chip's id in hex, `uart` the line to the host.
    """

    def __init__(self, settings):
        self.ident = "".join(["%02x" % b for b in machine.unique_id()])
        self.cause = _cause()
        self._contacts = []
        for pin in pins.CONTACTS:
            if pin in pins.PULLED:
                self._contacts.append(machine.Pin(pin, machine.Pin.IN, machine.Pin.PULL_UP))
            else:
                self._contacts.append(machine.Pin(pin, machine.Pin.IN))
        self._outputs = [machine.Pin(pin, machine.Pin.OUT, value=0) for pin in pins.OUTPUTS]

        # (pin's mask, contact's bit) by input register; anything else in the registers is masked out.
        self._low = tuple([(1 << p, 1 << i) for i, p in enumerate(pins.CONTACTS) if p < 32])
        self._high = tuple([(1 << (p - 32), 1 << i) for i, p in enumerate(pins.CONTACTS) if p >= 32])
        self._low_mask = 0
        for pin_mask, _ in self._low:
            self._low_mask |= pin_mask
        self._high_mask = 0
        for pin_mask, _ in self._high:
            self._high_mask |= pin_mask
        self._in0 = -1
        self._in1 = -1
        self._word = 0

        self._word_out = 0
        self._driving = 0
        self._levels = 0
        self._pulsing = False
        self._open_agitator(settings)
        self._open_bolts()

        self._lamps = NeoPixel(
            machine.Pin(pins.LAYOUT, machine.Pin.OUT, value=0), len(LAMPS) * settings.layouts
        )
        self._layouts = settings.layouts
        self._lamps_lo = 0
        self._lamps_hi = 0
        self._lamps.write()
        self._status = NeoPixel(machine.Pin(pins.STATUS, machine.Pin.OUT, value=0), 1)
        self._colour = 0
        self._rgb = [0, 0, 0]
        self._status.write()

        self.uart = machine.UART(
            2, baudrate=115200, tx=pins.UART_TX, rx=pins.UART_RX, rxbuf=_RXBUF, txbuf=_TXBUF, timeout=0
        )
        self._watchdog = None

    def _open_agitator(self, settings):
        if not 100 <= settings.pulse_ms <= 300:
            raise ValueError("pulse_ms")
        # Up to 1.26 the channel is required, from 1.27 on it is accepted and ignored: this call suits both.
        # A carrier of 100 % would leave its counter no low phase, so full duty goes without one.
        carrier = (_CARRIER_HZ, settings.duty, True) if settings.duty < 100 else None
        self._rmt = esp32.RMT(0, pin=self._outputs[0], clock_div=_CLOCK_DIV, tx_carrier=carrier)
        self._pulse_signal = mem32[_SEL_AGITATOR]
        self._route = _SIGNAL_GPIO
        mem32[_SEL_AGITATOR] = _SIGNAL_GPIO
        ticks = settings.pulse_ms * _TICKS_PER_MS - 1
        third = ticks // 3
        self._pulse = (third, third, ticks - 2 * third, 1)
        self._pulse_levels = (True, True, True, False)
        # The first write takes the driver's memory; four ticks of low, on a pin RMT does not reach.
        self._rmt.write_pulses((1, 1, 1, 1), (False, False, False, False))

    def _open_bolts(self):
        self._bolts = []
        self._bolt_bits = (1 << 2, 1 << 3, 1 << 4)
        self._bolt_signals = []
        self._bolt_routes = [_SIGNAL_GPIO, _SIGNAL_GPIO, _SIGNAL_GPIO]
        self._bolt_duty = [0, 0, 0]
        self._bolt_sel = tuple([_OUT_SEL + 4 * pin for pin in pins.OUTPUTS[2:5]])
        self._turn = 0
        for i in range(3):
            # Without freq and duty PWM would start at once with 5 kHz, 50 %.
            self._bolts.append(machine.PWM(self._outputs[2 + i], freq=_SERVO_HZ, duty_u16=0))
            self._bolt_signals.append(mem32[self._bolt_sel[i]])
            mem32[self._bolt_sel[i]] = _SIGNAL_GPIO

    # -- inputs ----------------------------------------------------------------------------------

    def read_pins(self):
        """Return the contact word (names.CONTACTS, bit set = made), pin by pin."""
        word = 0
        for i in range(len(self._contacts)):
            if not self._contacts[i].value():
                word |= 1 << i
        return word

    def read(self):
        """Return the contact word from the input registers. Allocates nothing."""
        in0 = mem32[_GPIO_IN] & self._low_mask
        in1 = mem32[_GPIO_IN1] & self._high_mask
        if in0 != self._in0 or in1 != self._in1:
            word = 0
            for mask, bit in self._low:
                if not in0 & mask:
                    word |= bit
            for mask, bit in self._high:
                if not in1 & mask:
                    word |= bit
            self._in0 = in0
            self._in1 = in1
            self._word = word
        return self._word

    # -- outputs ---------------------------------------------------------------------------------

    def write(self, outputs, driving):
        """Assert every output. `outputs`: names.OUTPUTS mask; `driving`: mask of the bolts that are driven
        now.

        AGITATOR going on while AGITATOR_ENABLE is on starts one pulse of pulse_ms, which ends by itself;
        either of them going off cuts it in this call. A driven bolt gets the servo pulse toward its output
        bit, any other no pulse. Allocates nothing.
        """
        if outputs != self._word_out or driving != self._driving:
            self._change(outputs, driving)
        mem32[_GPIO_OUT] = self._levels
        mem32[_SEL_AGITATOR] = self._route
        turn = self._turn
        mem32[self._bolt_sel[turn]] = self._bolt_routes[turn]
        self._turn = turn - 1 if turn else 2

    def write_pins(self, outputs, driving):
        """As write(), pin by pin."""
        if outputs != self._word_out or driving != self._driving:
            self._change(outputs, driving)
        self._outputs[1].value(1 if outputs & AGITATOR_ENABLE else 0)
        self._outputs[5].value(1 if outputs & FRONT_BOARD else 0)
        self._outputs[6].value(1 if outputs & ALARM else 0)
        for i in range(3):
            mem32[self._bolt_sel[i]] = self._bolt_routes[i]
        mem32[_SEL_AGITATOR] = self._route

    def _change(self, outputs, driving):
        levels = 0
        if outputs & AGITATOR_ENABLE:
            levels |= _ENABLE_BIT
        if outputs & FRONT_BOARD:
            levels |= _FRONT_BIT
        if outputs & ALARM:
            levels |= _ALARM_BIT
        self._levels = levels
        self._word_out = outputs
        self._driving = driving
        if outputs & DRIVE != DRIVE:
            self._route = _SIGNAL_GPIO
            mem32[_SEL_AGITATOR] = _SIGNAL_GPIO  # what turns off does so before anything else is touched
        mem32[_GPIO_OUT] = levels
        if not outputs & AGITATOR:
            self._pulsing = False
        elif not self._pulsing:
            self._pulsing = True  # one write for each time AGITATOR goes on, whatever follows
            if outputs & AGITATOR_ENABLE:
                self._route = self._pulse_signal
                mem32[_SEL_AGITATOR] = self._pulse_signal
                self._rmt.write_pulses(self._pulse, self._pulse_levels)
        for i in range(3):
            bit = self._bolt_bits[i]
            duty = 0
            if driving & bit:
                duty = _SERVO_ON if outputs & bit else _SERVO_OFF
            if duty != self._bolt_duty[i]:
                self._bolt_duty[i] = duty
                self._bolts[i].duty_u16(duty)
                self._bolt_routes[i] = self._bolt_signals[i] if duty else _SIGNAL_GPIO
                mem32[self._bolt_sel[i]] = self._bolt_routes[i]

    def safe(self):
        """Drive every output off, from any state. The next write() may turn them on again."""
        safe()
        self._route = _SIGNAL_GPIO
        self._levels = 0
        self._word_out = 0
        self._driving = 0
        self._pulsing = False
        for i in range(3):
            self._bolt_routes[i] = _SIGNAL_GPIO
            self._bolt_duty[i] = -1  # unknown: the next change sets it

    # -- lamps -----------------------------------------------------------------------------------

    def lamps(self, lo, hi):
        """Light the lamps of every layout: `lo` bits of the first 20 of names.LAMPS, `hi` of the other 19.

        Writes the chain only when something changed (39 lamps: about 1.2 ms for each layout).
        """
        changed_lo = lo ^ self._lamps_lo
        changed_hi = hi ^ self._lamps_hi
        if not changed_lo and not changed_hi:
            return
        self._lamps_lo = lo
        self._lamps_hi = hi
        for i in range(20):
            if changed_lo >> i & 1:
                self._paint(i, lo >> i & 1)
        for i in range(len(LAMPS) - 20):
            if changed_hi >> i & 1:
                self._paint(20 + i, hi >> i & 1)
        self._lamps.write()

    def _paint(self, at, lit):
        for _ in range(self._layouts):
            self._lamps[at] = _LAMP if lit else _DARK
            at += len(LAMPS)

    def status(self, r, g, b):
        """Show a colour on the status LED: 0-255 each. Writes only a change."""
        colour = r << 16 | g << 8 | b
        if colour != self._colour:
            self._colour = colour
            rgb = self._rgb
            rgb[0] = r
            rgb[1] = g
            rgb[2] = b
            self._status[0] = rgb
            self._status.write()

    # -- clock, watchdog, chip ---------------------------------------------------------------------

    def ticks(self):
        """Return the millisecond clock, folded to 2^30."""
        return fold(time.ticks_ms())

    def sleep_ms(self, n):
        """Sleep `n` ms."""
        time.sleep_ms(n)

    def start_watchdog(self, ms):
        """Start the watchdog: unless fed within `ms` the chip resets. It cannot be stopped."""
        self._watchdog = machine.WDT(timeout=ms)

    def feed(self):
        """Feed the watchdog, if it runs."""
        if self._watchdog is not None:
            self._watchdog.feed()

    def reset(self):
        """Make the outputs safe and reset the chip. Does not return."""
        self.safe()
        machine.reset()

    def random(self, n):
        """Return `n` random bytes from the chip's generator."""
        return os.urandom(n)


def _cause():
    # A brown-out reads as power-on, a panic as reset: the journal's own marker says what really happened.
    cause = machine.reset_cause()
    m = machine
    known = (m.PWRON_RESET, m.HARD_RESET, m.WDT_RESET, m.SOFT_RESET, m.DEEPSLEEP_RESET)
    return known.index(cause) if cause in known else len(known)


def mount_data():
    """Find room for the journal; return (folder, records its open end may hold).

    The flash partition labelled `data` is mounted at /data with 256-byte reads and writes, which lets
    LittleFS keep seven records inline; without such a partition a folder /data on the root file system
    serves, with two. A partition that was never written (all 0xFF) is formatted, and says so; one that
    cannot be mounted is left as it is, and a folder that does not exist is returned, so that the journal
    reports the failure.
    """
    found = esp32.Partition.find(esp32.Partition.TYPE_DATA, label="data")
    if not found:
        try:
            os.mkdir("/data")
        except OSError:  # it is there already, or the journal's first write will tell
            pass
        return "/data", _TAIL_FOLDER
    import vfs

    partition = found[0]
    try:
        if _virgin(partition):
            print("data partition: blank, making its file system")
            vfs.VfsLfs2.mkfs(partition, readsize=256, progsize=256)
        vfs.mount(vfs.VfsLfs2(partition, readsize=256, progsize=256, mtime=False), "/data")
    except OSError as error:
        print("data partition: cannot be mounted, left as it is:", error)
        return "/no-data", _TAIL_PARTITION
    return "/data", _TAIL_PARTITION


def _virgin(partition):
    size = partition.ioctl(5, 0)
    buf = bytearray(size)
    blank = b"\xff" * size
    for block in range(partition.ioctl(4, 0)):
        partition.readblocks(block, buf)
        if buf != blank:
            return False
    return True
