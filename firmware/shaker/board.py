"""The board: every pin, register and peripheral of the ESP32, and nothing about the game.

The only module besides boot.py that imports machine, esp32 and neopixel (image.py reads the program's flash).
Turns contacts into a contact word (names.CONTACTS, a set bit = made) and a word of outputs (names.OUTPUTS)
into levels and pulses. Polarity is fixed by the pin table's rules: a contact is made when its pin is low, an
output is on when its pin is high.
Must never decide anything, take an interrupt or a timer, or allocate in read(), write() and feed().

Two paths lead to the pins: read_pins()/write_pins() through machine.Pin, easy to follow, and read()/write()
through the GPIO registers, which the scan uses; tests compare them.

A pulse is one RMT transmission, so the hardware ends it even when the interpreter hangs. RMT (agitator) and
PWM (bolts) reach their pins only while they are wanted: otherwise the GPIO matrix is set to the plain, low
GPIO. That is what cuts a pulse short, within the write() that asks for it. A servo's pulse is not cut but
waited for, 2.2 ms at most and after the agitator has been cut; while the agitator pulses, the next write()
ends it instead.

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
from shaker.blocks import Blocks, Volume, blank
from shaker.names import LAMPS
from shaker.ticks import fold

# Numbers of names.py and record.py, as literals: they cost nothing here, and test_literals.py compares them.
_AGITATOR = const(0x01)
_AGITATOR_ENABLE = const(0x02)
_FRONT_BOARD = const(0x20)
_ALARM = const(0x40)
_DRIVE = const(0x03)
_BOLTS = const(0x1C)
_PLAIN = const(0x62)  # AGITATOR_ENABLE, FRONT_BOARD, ALARM

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
_LONGEST_US = const(2200)  # no servo pulse is longer

_TABLE = const(277)  # found by trial: the readings of the contacts in GPIO0-31 are all different modulo this

# Board._now: what write() last asserted; for each of the first five outputs the address of the register that
# selects its signal, and the signal; the levels of GPIO0-31, by the outputs that are plain levels.
_WORD = const(0)
_DRIVING = const(1)
_LEVELS = const(2)  # of GPIO0-31
_TURN = const(3)
_SEL = const(4)
_ROUTE = const(9)
_PLAIN_LEVELS = const(14)

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
    except Exception:  # registers that refuse (the fakes): the pins below do the same
        pass
    for pin in pins.OUTPUTS:
        try:
            machine.Pin(pin, machine.Pin.OUT, value=0)
        except Exception:  # the others must still be made safe
            pass


def _words(contacts, size):
    """Return (mask, table): a register's contact word is table[(reading & mask) % its size].

    contacts: (pin's mask, contact's bit) of those in the register, made = low; size: of the table at least.
    """
    mask = 0
    readings = [0]
    for pin, _ in contacts:
        mask |= pin
        readings += [reading | pin for reading in readings]
    while True:
        table = [None] * size
        for reading in readings:
            if table[reading % size] is not None:
                break
            word = 0
            for pin, bit in contacts:
                if not reading & pin:
                    word |= bit
            table[reading % size] = word
        else:
            return mask, table
        size += 1  # two readings in one place: for other pins the table has another size


def reader(mem):
    """Return read(): the contact word (names.CONTACTS, bit set = made) from the input registers `mem`.

    read() looks both registers up in tables of all that they can say, so a change costs no more than none. It
    allocates nothing. What it needs are arguments with defaults, as in write(): a local is found in a fifth
    of the time of an attribute. (A closure over more than five would allocate, and so does a frame of more
    than eleven words.)
    """
    # GPIO0-31 also shows what is no contact; GPIO32-39 are eight bits.
    low_mask, low = _words([(1 << p, 1 << i) for i, p in enumerate(pins.CONTACTS) if p < 32], _TABLE)
    high_mask, high = _words([(1 << (p - 32), 1 << i) for i, p in enumerate(pins.CONTACTS) if p >= 32], 256)

    size = len(low)

    def read(mem=mem, low_mask=low_mask, low=low, size=size, high_mask=high_mask, high=high):
        return low[(mem[_GPIO_IN] & low_mask) % size] | high[mem[_GPIO_IN1] & high_mask]

    return read


def _folded(ticks_ms):
    """Return ticks(): the millisecond clock, folded to 2^30."""

    def ticks(ticks_ms=ticks_ms):
        return fold(ticks_ms())

    return ticks


class Board:
    """The hardware of one shaker. `settings` gives pulse_ms (100-300), duty (20-100 %) and layouts (1-4).

    `cause` is an index of names.CAUSES, `ident` the chip's id in hex, `uart` the line to the host.
    """

    def __init__(self, settings):
        self.ident = "".join(["%02x" % b for b in machine.unique_id()])
        self.cause = _cause()
        Pin = machine.Pin
        self._contacts = []
        for pin in pins.CONTACTS:
            if pin in pins.PULLED:
                self._contacts.append(Pin(pin, Pin.IN, Pin.PULL_UP))
            else:
                self._contacts.append(Pin(pin, Pin.IN))
        self._outputs = [machine.Pin(pin, machine.Pin.OUT, value=0) for pin in pins.OUTPUTS]

        self._pulsing = False
        # What was last written: see _WORD and the names after it.
        self._now = [-1, -1, 0, 0] + [_OUT_SEL + 4 * pin for pin in pins.OUTPUTS[:5]] + [_SIGNAL_GPIO] * 5
        for outputs in range(_PLAIN + 1):
            levels = _ENABLE_BIT if outputs & _AGITATOR_ENABLE else 0
            levels |= _FRONT_BIT if outputs & _FRONT_BOARD else 0
            levels |= _ALARM_BIT if outputs & _ALARM else 0
            self._now.append(levels)
        self._open_agitator(settings)
        self._open_bolts()
        self.ticks = _folded(time.ticks_ms)
        self.read = reader(mem32)
        self.write = self._writer(mem32)

        self._lamps = NeoPixel(Pin(pins.LAYOUT, Pin.OUT, value=0), len(LAMPS) * settings.layouts)
        self._layouts = settings.layouts
        self._lamps_lo = 0
        self._lamps_hi = 0
        self._lamps.write()
        self._status = NeoPixel(Pin(pins.STATUS, Pin.OUT, value=0), 1)
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
        mem32[_SEL_AGITATOR] = _SIGNAL_GPIO
        ticks = settings.pulse_ms * _TICKS_PER_MS - 1
        third = ticks // 3
        self._pulse = (third, third, ticks - 2 * third, 1)
        self._pulse_levels = (True, True, True, False)
        # The first write takes the driver's memory; four ticks of low, on a pin RMT does not reach.
        self._rmt.write_pulses((1, 1, 1, 1), (False, False, False, False))

    def _open_bolts(self):
        self._bolts = []
        self._signals = []
        for at in range(2, 5):
            # Without freq and duty PWM would start at once with 5 kHz, 50 %.
            self._bolts.append(machine.PWM(self._outputs[at], freq=_SERVO_HZ, duty_u16=0))
            sel = self._now[_SEL + at]
            self._signals.append(mem32[sel])
            mem32[sel] = _SIGNAL_GPIO

    # -- inputs ----------------------------------------------------------------------------------

    def read_pins(self):
        """Return the contact word (names.CONTACTS, bit set = made), pin by pin."""
        word = 0
        for i in range(len(self._contacts)):
            if not self._contacts[i].value():
                word |= 1 << i
        return word

    # -- outputs ---------------------------------------------------------------------------------

    def _writer(self, mem):
        """Return write(outputs, driving), which asserts every output and allocates nothing.

        `outputs`: names.OUTPUTS mask; `driving`: mask of the bolts that are driven now. AGITATOR going on
        while AGITATOR_ENABLE is on starts one pulse of pulse_ms, which ends by itself; either of them going
        off cuts it in this call. A driven bolt gets the servo pulse toward its output bit, any other no
        pulse.
        """

        def write(outputs, driving, mem=mem, now=self._now, change=self._change):
            if outputs != now[_WORD] or driving != now[_DRIVING]:
                change(outputs, driving)
                return
            mem[_GPIO_OUT] = now[_LEVELS]
            # Which signal drives a pin, in turn: a peripheral is silent unless it is wanted, so this is the
            # second line of defence.
            turn = now[_TURN]
            mem[now[_SEL + turn]] = now[_ROUTE + turn]
            now[_TURN] = turn - 1 if turn else 4

        return write

    def write_pins(self, outputs, driving):
        """As write(), pin by pin."""
        if outputs != self._now[_WORD] or driving != self._now[_DRIVING]:
            self._change(outputs, driving)
        self._outputs[1].value(outputs & _AGITATOR_ENABLE)
        self._outputs[5].value(outputs & _FRONT_BOARD)
        self._outputs[6].value(outputs & _ALARM)

    def _change(self, outputs, driving):
        """Bring the pins to what the two words say."""
        now = self._now
        if outputs & _DRIVE != _DRIVE:
            now[_ROUTE] = _SIGNAL_GPIO
            mem32[_SEL_AGITATOR] = _SIGNAL_GPIO  # what turns off does so before anything else is touched
        levels = now[_PLAIN_LEVELS + (outputs & _PLAIN)]
        now[_LEVELS] = levels
        mem32[_GPIO_OUT] = levels
        # Which bolts get another pulse, or none any more.
        levels = _BOLTS
        if now[_WORD] >= 0:
            levels = (driving ^ now[_DRIVING]) | ((outputs ^ now[_WORD]) & driving)
        now[_WORD] = outputs
        now[_DRIVING] = driving
        if not outputs & _AGITATOR:
            self._pulsing = False
        self._drive_bolts(levels, outputs, driving)  # before a pulse: the last drive ends as the first begins
        if outputs & _AGITATOR and not self._pulsing:
            self._pulsing = True  # one write for each time AGITATOR goes on, whatever follows
            if outputs & _AGITATOR_ENABLE:
                now[_ROUTE] = self._pulse_signal
                mem32[_SEL_AGITATOR] = now[_ROUTE]
                self._rmt.write_pulses(self._pulse, self._pulse_levels)

    def _drive_bolts(self, which, outputs, driving):
        # A drive ends between two servo pulses: what is left of a pulse that is cut can be the command to go
        # elsewhere. PWM at 0 cuts it too: on its way ESP-IDF's ledc_channel_config lets go of the pin.
        at = 1
        while which >> at + 1:
            at += 1  # place in pins.OUTPUTS, and bit of the masks
            if not which >> at & 1:
                continue
            duty = 0
            if driving >> at & 1:
                duty = _SERVO_ON if outputs >> at & 1 else _SERVO_OFF
            elif self._outputs[at].value():
                if self._pulsing:  # nothing waits in a pulse: the next write() works this out anew
                    self._now[_WORD] = -1
                    continue
                machine.time_pulse_us(self._outputs[at], 1, _LONGEST_US)
            self._bolts[at - 2].duty_u16(duty)
            self._now[_ROUTE + at] = self._signals[at - 2] if duty else _SIGNAL_GPIO
            mem32[self._now[_SEL + at]] = self._now[_ROUTE + at]

    def safe(self):
        """Drive every output off, from any state. The next write() may turn them on again, but not a pulse:
        that needs AGITATOR to go off first.
        """
        safe()
        self._now[_ROUTE] = _SIGNAL_GPIO
        self._now[_WORD] = -1  # the next write works everything out anew

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

    The flash partition labelled `data` is mounted at /data, its errors tamed (blocks.py), with 256-byte
    reads and writes, which lets LittleFS keep seven records inline; without such a partition a folder /data
    on the root file system serves, with two. A partition that was never written (all 0xFF) is formatted, and
    says so; one that cannot be mounted is left as it is, and a folder that does not exist is returned, so
    that the journal reports the failure.
    """
    found = esp32.Partition.find(esp32.Partition.TYPE_DATA, label="data")
    if not found:
        try:
            os.mkdir("/data")
        except OSError:  # it is there already, or the journal's first write will tell
            pass
        return "/data", _TAIL_FOLDER
    import vfs

    # The stub wants a subclass, the port only the three methods.
    device = Blocks(found[0])  # type: vfs.AbstractBlockDev  # pyright: ignore[reportAssignmentType]
    try:
        if blank(found[0]):
            print("data partition: blank, making its file system")
            vfs.VfsLfs2.mkfs(device, readsize=256, progsize=256)
        vfs.mount(Volume(vfs.VfsLfs2(device, readsize=256, progsize=256, mtime=False), device), "/data")
    except OSError as error:
        print("data partition: cannot be mounted, left as it is:", error)
        return "/no-data", _TAIL_PARTITION
    return "/data", _TAIL_PARTITION
