"""A link on a bench: the real firmware/shaker link with a table and a journal that are only just enough.

Runs on CPython and MicroPython. The device does what it is told and remembers it; the journal keeps records
in memory, in the same layout; the pipe is a UART on one side and the host's line on the other.
"""

import binascii
import struct

from shaker import names, record
from shaker.events import Queue
from shaker.link import Link

KEY = bytes(range(32))


class State:
    """The state that a record carries."""

    def __init__(self, boot):
        self.phase = names.IDLE
        self.origin = 0
        self.flags = 0
        self.boot = boot
        self.repeat = 0
        self.round = 0
        self.faults = 0
        self.fault = 0
        self.die1 = self.die2 = self.die3 = 0


class Journal:
    """Records in memory, by number. `damaged`: numbers that cannot be read."""

    def __init__(self, boot=1):
        self.records = {}
        self.damaged = set()
        self.first = 1
        self.last = 0
        self.acked = 0
        self.dropped = 0
        self.boot = boot
        self.ok = True
        self.reads = 0
        self.fails = False
        self.at = 0

    def append(self, queue):
        """Make everything that waits durable, or raise OSError."""
        if self.fails:
            raise OSError(5)
        while queue.count:
            at = queue.slot(0)
            rec = bytearray(queue.buf[at : at + record.SIZE])
            self.last += 1
            struct.pack_into("<I", rec, record.OFF_SEQ, self.last)
            struct.pack_into("<I", rec, record.OFF_AT, self.at)
            struct.pack_into("<I", rec, record.OFF_ACK, self.acked)
            struct.pack_into("<I", rec, record.OFF_CRC, binascii.crc32(rec[: record.OFF_CRC]))
            self.records[self.last] = rec
            queue.drop(1)

    def read(self, seq, buf):
        """Fill `buf` with record `seq`; False when it is not held or damaged."""
        self.reads += 1
        if seq < self.first or seq in self.damaged or seq not in self.records:
            return False
        buf[:] = self.records[seq]
        return True

    def ack(self, seq):
        """Remember what the host has."""
        self.acked = seq

    def forget(self, first):
        """Drop what is older than `first`."""
        self.first = first

    def summary(self, n):
        """Return the n-th last round."""
        if n > 2:
            return None
        dice = (1, 4, 6) if n == 1 else None
        return {"round": 13 - n, "repeat": 0, "dice": dice, "voids": 1, "end": "paid", "at": None}

    def counts(self):
        """Return the life's counters."""
        return {
            "rounds": 12,
            "voids": 1,
            "pulses": 39,
            "faults": {4: 2},
            "dice": {1: 0, 2: 1, 3: 2, 4: 3, 5: 4, 6: 5},
        }


class Device:
    """A table at rest that does what it is told."""

    def __init__(self, queue, boot=1):
        self.state = State(boot)
        self.inputs = names.DOME
        self.outputs = names.DOME_LOCK
        self.lamps = 0
        self.dice = None  # type: tuple | None
        self.service = False
        self.pulsing = False
        self.authorised = False
        self.outstanding = False
        self.cause = "power-on"
        self.ident = "a1b2c3d4e5f6"
        self.now = 0
        self.unix = None  # type: int | None
        self.done = []
        self.answer = None  # type: str | None
        self._queue = queue

    @property
    def phase(self):
        return self.state.phase

    @property
    def round(self):
        return self.state.round

    @property
    def repeat(self):
        return self.state.repeat

    @property
    def fault(self):
        return self.state.fault

    @property
    def faults(self):
        return self.state.faults

    def uptime_ms(self):
        return self.now

    def unix_time(self):
        return self.unix

    def emit(self, event, a=0, b=0, x=0, y=0):
        self._queue.put(self.state, self.now // 1000, self.now % 1000, event, a, b, x, y)

    def command(self, name, argument):
        self.done.append((name, argument))
        return self.answer


class Settings:
    """Just enough settings."""

    def __init__(self, key: "bytes | None" = KEY):
        self.key = key
        self.table = "T-17"

    def public(self):
        return {"actuation": "electronic", "front_board": True, "table": self.table}


class Verifier:
    """A program hash that takes `steps` pieces."""

    def __init__(self, steps=3):
        self.steps = steps
        self.left = 0
        self.nonce = None
        self.fails = False

    def start(self, nonce):
        self.nonce = nonce
        self.left = self.steps

    def step(self):
        if self.fails:
            raise OSError(5)
        self.left -= 1
        return None if self.left else "ab" * 32


class Pipe:
    """UART to the firmware, line to the host. `rate`: bytes that pass in one scan, 0 = all."""

    def __init__(self, rate=0):
        self.rate = rate
        self.rx = bytearray()
        self.tx = bytearray()
        self.longest_write = 0

    def any(self):
        return len(self.rx)

    def readinto(self, buf, n):
        n = min(n, len(self.rx))
        buf[:n] = self.rx[:n]
        self.rx = self.rx[n:]
        return n or None

    def write(self, buf, off, n):
        self.longest_write = max(self.longest_write, n)
        self.tx += buf[off : off + n]
        return n

    def to_device(self, data):
        self.rx += data

    def from_device(self):
        n = self.rate or len(self.tx)
        data = bytes(self.tx[:n])
        self.tx = self.tx[n:]
        return data


class Bench:
    """One boot of a device: link, queue, table. The journal and the pipe may come from an earlier boot."""

    SCAN_MS = 5

    def __init__(self, journal=None, pipe=None, key: "bytes | None" = KEY, origin=0, settings=None):
        self.pipe = pipe or Pipe()
        self.journal = journal or Journal()
        self.queue = Queue()
        self.device = Device(self.queue, self.journal.boot)
        self.settings = settings or Settings(key)
        self.verifier = Verifier()
        self.origin = origin
        self.now = 0
        self.plain = (
            False  # all of the link's methods in every scan, and not only those that have to be called
        )
        self._random = 0
        self._rest = b""
        self.link = Link(
            self.pipe, self.journal, self.queue, self.device, self.settings, self.random, self.verifier
        )

    def random(self, n):
        self._random += 1
        return bytes([(self._random * 37 + self.journal.boot * 11 + i) & 255 for i in range(n)])

    def heard(self):
        """Return the whole lines the device has sent since the last call, without their ends."""
        lines = (self._rest + self.pipe.from_device()).split(b"\r\n")
        self._rest = lines.pop()
        return lines

    def scan(self):
        """Play one scan as the application does."""
        self.now += self.SCAN_MS
        self.device.now = self.now
        ticks = (self.origin + self.now) & 0x3FFFFFFF
        link = self.link
        quick = not self.device.pulsing and not self.plain
        if quick:
            link.listen(ticks)
        else:
            link.receive()
        if not self.device.pulsing:
            if self.plain:
                link.handle(ticks)
            if self.queue.count:
                try:
                    self.journal.append(self.queue)
                except OSError:
                    pass  # as the application does: later
            if self.plain:
                link.fill(ticks)
        if quick:
            link.speak(ticks)
        else:
            link.send()

    def run(self, ms, host=None):
        """Play `ms` of scans, with a host if there is one."""
        for _ in range(ms // self.SCAN_MS):
            self.scan()
            if host is not None:
                host.step(self.now)
