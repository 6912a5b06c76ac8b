"""esp32.RMT and esp32.Partition over the current World, with the argument checks of the real port and more.

No item above PULSE_MAX, no transmission above 300 ms (stopping a longer one panics the chip before ESP-IDF
5.5.2), none begun while one runs (the port would wait), and one stretch of high in each.
"""

from micropython import const

from world import RMT_SIGNAL

_CLOCK_HZ = const(80000000)
_LONGEST_MS = const(300)
_ENOENT = const(2)
_SEQUENCES = (tuple, list)
_world = None


def install(world):
    """Let the module act on `world`."""
    global _world
    _world = world


class RMT:
    """The transmitter. Up to MicroPython 1.26 it is RMT(channel, *, pin, clock_div, ...), later
    RMT([id], *, pin, resolution_hz | clock_div, ...); world.new_rmt chooses.
    """

    PULSE_MAX = 32767

    def __init__(self, *args, **kwargs):
        world = _world
        world.alive()
        allowed = ("pin", "clock_div", "idle_level", "tx_carrier")
        if world.new_rmt:
            allowed += ("resolution_hz", "num_symbols")
        for key in kwargs:
            if key not in allowed:
                raise TypeError("extra keyword arguments given")
        if len(args) > 1 or (not args and not world.new_rmt):
            raise TypeError("function takes 1 positional arguments")
        if "pin" not in kwargs:
            raise TypeError("'pin' argument required")
        resolution = kwargs.get("resolution_hz")
        divider = kwargs.get("clock_div")
        if resolution is not None and divider is not None:
            raise ValueError("resolution_hz and clock_div are mutually exclusive")
        if resolution is None:
            if divider is None:
                divider = 8
            if not 1 <= divider <= 255:
                raise ValueError("clock_div must be between 1 and 255")
            resolution = _CLOCK_HZ // divider
        elif not _CLOCK_HZ // 256 <= resolution <= _CLOCK_HZ:
            raise ValueError("resolution_hz is out of reach")
        carrier = kwargs.get("tx_carrier")
        if carrier is not None:
            frequency, duty, _level = carrier
            if frequency <= 0 or not 0 <= duty <= 100:
                raise ValueError("tx_carrier")
            high = _CLOCK_HZ // frequency * duty // 100
            low = _CLOCK_HZ // frequency - high
            if not (1 <= high <= 65535 and 1 <= low <= 65535):
                raise ValueError("tx_carrier: its counters have 1 to 65535 ticks")
        channel = args[0] if args and args[0] >= 0 else 0
        if channel > 7 or (channel == 7 and not world.new_rmt):
            raise ValueError("channel: 7 belongs to machine.bitstream")
        self._world = world
        self._boot = world.boots
        self._hz = resolution
        self._channel = channel
        self._items = b""
        world.rmt_carrier[channel] = carrier
        pin = kwargs["pin"]
        world.sel[pin.id] = RMT_SIGNAL + channel
        world.oe |= 1 << pin.id
        world.update()

    def write_pulses(self, duration, data=True):
        """Begin a transmission: durations and a first level, one duration and levels, or both."""
        world = self._world
        world.alive()
        if self._boot != world.boots:
            raise OSError("RMT of an earlier boot")
        levels = isinstance(data, _SEQUENCES)
        lengths = isinstance(duration, _SEQUENCES)
        if lengths and levels and len(duration) != len(data):
            raise ValueError("duration and data must have same length")
        if lengths:
            count = len(duration)
        elif levels:
            count = len(data)
        else:
            raise TypeError("object isn't a tuple or list")
        if not count:
            raise ValueError("No pulses")
        if len(self._items) < count // 2 * 4:
            self._items = bytearray(count // 2 * 4)  # the port takes memory for the longest sequence so far
        total = 0
        high = 0
        ended = False
        for i in range(count):
            ticks = duration[i] if lengths else duration
            if not isinstance(ticks, int) or not 1 <= ticks <= self.PULSE_MAX:
                raise ValueError("duration must be 1 to PULSE_MAX")
            total += ticks
            if data[i] if levels else bool(data) != bool(i & 1):
                if ended:
                    raise ValueError("more than one pulse in one transmission")
                high += ticks
            elif high:
                ended = True
        if total * 1000 > _LONGEST_MS * self._hz:
            raise ValueError("a transmission above 300 ms cannot be stopped safely")
        channel = self._channel
        if world.now < world.rmt_busy[channel]:
            raise RuntimeError("write_pulses would wait for the pulse before")
        world.rmt_busy[channel] = world.now + total * 1000 // self._hz
        world.pulse(channel, (high * 1000 + self._hz - 1) // self._hz, 1)

    def wait_done(self, timeout=0):
        """Return True when nothing is being sent."""
        self._world.alive()
        return self._world.now >= self._world.rmt_busy[self._channel]


class Partition:
    """Flash partitions: world.partitions holds block devices by label."""

    TYPE_APP = 0
    TYPE_DATA = 1
    BOOT = 0
    RUNNING = 1

    def __init__(self, which):
        """Take the running application's partition: world.app holds its content."""
        _world.alive()
        if which != Partition.RUNNING:
            raise OSError(_ENOENT)

    def readblocks(self, block, buf, offset=0):
        """Read whole or part of blocks of 4096 bytes; what was never written is 0xFF."""
        _world.alive()
        at = block * 4096 + offset
        found = _world.app[at : at + len(buf)]
        buf[: len(found)] = found
        for i in range(len(found), len(buf)):
            buf[i] = 0xFF

    @staticmethod
    def find(type=0, subtype=0xFF, label=None, block_size=4096):
        """Return the partitions that match (a list, perhaps empty)."""
        _world.alive()
        if type != Partition.TYPE_DATA:
            return []
        found = _world.partitions
        return [found[name] for name in found if label is None or name == label]
