"""machine, as far as the firmware uses it, over the current World.

Stricter than the port: what would harm or do nothing on the real board is refused. Pins are those of the pin
table, in their direction.
"""

from micropython import const

from shaker import pins
from world import PLAIN, PWM_SIGNAL, PlantError

_GPIO_OUT = const(0x3FF44004)
_GPIO_OUT_W1TS = const(0x3FF44008)
_GPIO_OUT_W1TC = const(0x3FF4400C)
_GPIO_ENABLE_W1TS = const(0x3FF44024)
_GPIO_IN = const(0x3FF4403C)
_GPIO_IN1 = const(0x3FF44040)
_OUT_SEL = const(0x3FF44530)
_OUT_SEL_END = const(0x3FF445D0)

PWRON_RESET = const(1)
HARD_RESET = const(2)
WDT_RESET = const(3)
DEEPSLEEP_RESET = const(4)
SOFT_RESET = const(5)

_DRIVEN = pins.OUTPUTS + (pins.LAYOUT, pins.STATUS)
_world = None


def install(world):
    """Let the module act on `world`."""
    global _world
    _world = world
    mem32.world = world
    Pin.made.clear()


class _Mem32:
    """The ESP32's GPIO registers that the board uses; any other address is refused."""

    def __init__(self):
        self.world = None

    def __getitem__(self, address):
        world = self.world
        if world._halt is not None:
            world.alive()
        if address == _GPIO_IN:
            return world.reg_in | world.out  # outputs can be read back, as on the port
        if address == _GPIO_IN1:
            return world.reg_in1
        if address == _GPIO_OUT:
            return world.out
        if _OUT_SEL <= address < _OUT_SEL_END and not address & 3:
            return world.sel[(address - _OUT_SEL) >> 2]
        raise ValueError("no such register here")

    def __setitem__(self, address, value):
        world = self.world
        if world._halt is not None:
            world.alive()
        if address == _GPIO_OUT:
            if value != world.out:
                world.out = value
                world.update()
        elif _OUT_SEL <= address < _OUT_SEL_END and not address & 3:
            pin = (address - _OUT_SEL) >> 2
            if value != world.sel[pin]:
                if world.servo_left(pin):
                    world.runts += 1
                world.sel[pin] = value
                world.update()
        elif address == _GPIO_OUT_W1TS:
            world.out |= value
            world.update()
        elif address == _GPIO_OUT_W1TC:
            world.out &= ~value
            world.update()
        elif address == _GPIO_ENABLE_W1TS:
            world.oe |= value
            world.update()
        else:
            raise ValueError("no such register here")


mem32 = _Mem32()


class Pin:
    """machine.Pin of the ESP32 port: one object for each pin."""

    IN = 1
    OUT = 3
    OPEN_DRAIN = 7
    PULL_DOWN = 1
    PULL_UP = 2
    made = {}

    def __new__(cls, id, mode=-1, pull=-1, value=None):
        _world.alive()
        if id in cls.made:
            return cls.made[id]
        if id not in _DRIVEN and id not in pins.CONTACTS:
            raise ValueError("GPIO%s is not in the pin table as a plain pin" % id)
        self = object.__new__(cls)
        cls.made[id] = self
        return self

    def __init__(self, id, mode=-1, pull=-1, value=None):
        self._world = _world
        self.id = id
        if mode != -1:
            self.init(mode, pull, value)

    def init(self, mode=-1, pull=-1, value=None):
        """Set mode, pull and level; the pin is a plain GPIO afterwards."""
        world = self._world
        world.alive()
        if mode == self.OUT:
            if self.id not in _DRIVEN:
                raise ValueError("GPIO%d is an input in the pin table" % self.id)
            if value is not None:
                self._set(value)
            world.sel[self.id] = PLAIN
            world.oe |= 1 << self.id
            world.update()
        elif mode == self.IN:
            if self.id in _DRIVEN:
                raise ValueError("GPIO%d is an output in the pin table" % self.id)
            if pull not in (-1, None) and self.id >= 34:
                raise ValueError("GPIO%d has no pull" % self.id)
        else:
            raise ValueError("mode")

    def _set(self, value):
        if value:
            self._world.out |= 1 << self.id
        else:
            self._world.out &= ~(1 << self.id)

    def value(self, value=None):
        """Read the pin, or set an output."""
        world = self._world
        world.alive()
        if value is None:
            if self.id in _DRIVEN:
                if world.servo_left(self.id):
                    return 1
                return world.out >> self.id & 1 if world.sel[self.id] == PLAIN else 0
            return (world.reg_in >> self.id if self.id < 32 else world.reg_in1 >> (self.id - 32)) & 1
        if self.id not in _DRIVEN:
            raise ValueError("GPIO%d is an input in the pin table" % self.id)
        self._set(value)
        world.update()

    def irq(self, *args, **kwargs):
        """Refused: interrupts come late, doubled or not at all."""
        raise NotImplementedError("no interrupts in this firmware")


class PWM:
    """machine.PWM: starts at once, at 5 kHz and 50 % when it is not told otherwise."""

    def __init__(self, pin, freq=5000, duty_u16=32768):
        world = _world
        world.alive()
        self._world = world
        self._boot = world.boots
        self._channel = -1
        for channel in range(16):
            if world.pwm_pin[channel] in (-1, pin.id):
                self._channel = channel
                break
        if self._channel < 0:
            raise RuntimeError("out of PWM channels")
        if not world.oe >> pin.id & 1:
            raise ValueError("GPIO%d is not an output" % pin.id)
        world.pwm_pin[self._channel] = pin.id
        world.pwm_hz[self._channel] = freq
        world.pwm_duty[self._channel] = duty_u16
        world.sel[pin.id] = PWM_SIGNAL + self._channel
        world.update()

    def duty_u16(self, duty):
        """Set the duty, 0-65535."""
        world = self._world
        world.alive()
        if self._boot != world.boots:
            raise RuntimeError("PWM of an earlier boot")
        if not 0 <= duty <= 65535:
            raise ValueError("duty_u16 must be from 0 to 65535")
        if not duty and world.servo_left(world.pwm_pin[self._channel]):
            raise PlantError("a servo's pulse is cut short")  # another width comes with the next period
        world.pwm_duty[self._channel] = duty
        world.update()


def time_pulse_us(pin, level, timeout_us=1000000):
    """Wait for the end of the pulse that is on `pin` and return its microseconds, or -1 after the timeout.

    The world knows whole ms, so the rest of one passes too. Refused on a pin that is low: the port waits.
    """
    world = _world
    world.alive()
    left = world.servo_left(pin.id)
    if level != 1 or not left:
        raise PlantError("time_pulse_us would wait for a pulse to begin")
    world.advance((min(left, timeout_us) + 999) // 1000)
    return left if left <= timeout_us else -1


class UART:
    """machine.UART over world.line. Only UART 2, on the table's pins; no read waits, no write may."""

    def __init__(
        self, id, baudrate=115200, bits=8, parity=None, stop=1, tx=-1, rx=-1, rxbuf=256, txbuf=256, timeout=0
    ):
        _world.alive()
        if id != 2:
            raise ValueError("UART(%d) belongs to the REPL or the flash" % id)
        if (tx, rx) != (pins.UART_TX, pins.UART_RX):
            raise ValueError("UART pins are not those of the pin table")
        if (baudrate, bits, parity, stop) != (115200, 8, None, 1):
            raise ValueError("the line is 115200 8N1")
        if timeout or rxbuf <= 128 or rxbuf > 4096:
            raise ValueError("a read must not wait, and the buffer must be larger than the FIFO")
        self._world = _world
        self._line = _world.line
        self._line.open(rxbuf, txbuf)

    def any(self):
        """Return how many bytes can be read."""
        if self._world._halt is not None:
            self._world.alive()
        return self._line.any()

    def readinto(self, buf, nbytes=None):
        """Read up to nbytes into buf; return how many, or None."""
        self._world.alive()
        return self._line.readinto(buf, len(buf) if nbytes is None else nbytes)

    def read(self, nbytes=None):
        """Return up to nbytes, or None."""
        self._world.alive()
        buf = bytearray(self._line.any() if nbytes is None else nbytes)
        count = self._line.readinto(buf, len(buf))
        return bytes(buf[:count]) if count else None

    def write(self, buf, first=None, second=None):
        """Take `buf`, its first n bytes (n), or n from an offset (offset, n); return how many."""
        self._world.alive()
        offset = 0
        n = len(buf)
        if second is not None:
            offset = first
            n = second
        elif first is not None:
            n = first
        if n > len(buf) - offset:
            n = len(buf) - offset
        return self._line.write(buf, offset, n)


class WDT:
    """machine.WDT: cannot be stopped, and bites through world.advance()."""

    def __init__(self, id=0, timeout=5000):
        _world.alive()
        if id != 0 or timeout <= 0:
            raise ValueError("WDT")
        self._world = _world
        _world.watch(timeout)

    def feed(self):
        """Feed it."""
        if self._world._halt is not None:
            self._world.alive()
        self._world.feed()


def reset():
    """Reset the chip."""
    _world.alive()
    _world.reset("reset")


def soft_reset():
    """Restart the interpreter; every level stays as it was."""
    _world.alive()
    _world.reset("soft-reset")


def reset_cause():
    """Return why the device started."""
    _world.alive()
    return _world.cause


def unique_id():
    """Return the chip's id."""
    _world.alive()
    return _world.ident


class RTC:
    """machine.RTC: only the memory that a reset leaves alone and a power cut does not."""

    def __init__(self):
        _world.alive()
        self._world = _world

    def memory(self, data=None):
        """Return the memory's bytes, or replace them."""
        self._world.alive()
        if data is None:
            return self._world.rtc_memory
        self._world.rtc_memory = bytes(data)
