"""The wire between UART and host: 115200 baud each way, an RX FIFO of 128 bytes, overruns lost.

Owns bytes under way, and nothing of what they mean. Bytes reach a buffer only at the pace of the line; bytes
for a UART that is not open, or a device without power, are lost, as are those that find the buffer full.
"""

from micropython import const

from power import PlantError

FIFO = const(128)
_SIZE = const(65536)  # bytes the host has not fetched yet, and those still under way to it


class Line:
    """`to_device(data)` and `from_device()` are the host's end; UART fakes use the rest."""

    def __init__(self, world):
        self._world = world
        self.lost = 0  # bytes to the device that found no room
        self.is_open = False
        self.rxbuf = 256
        self.txbuf = 256
        self._wire = bytearray()  # to the device, not yet arrived
        self._wire_at = 0
        self._wire_done = 0
        self._rx = bytearray(FIFO + 4096)
        self._rx_first = 0
        self._rx_count = 0
        self._tx = bytearray(_SIZE)
        self._tx_read = 0  # next byte the host fetches
        self._tx_sent = 0  # next byte to leave the device
        self._tx_end = 0  # next byte the device writes; these three only grow
        self._tx_at = 0
        self._tx_done = 0

    # -- the host's end ------------------------------------------------------------------------------

    def to_device(self, data):
        """Put bytes on the wire; they arrive at 11.52 bytes a ms."""
        self.arrive(self.rxbuf + FIFO)
        if not self._world.powered:
            return
        if not self._wire:
            self._wire_at = self._world.now
            self._wire_done = 0
        self._wire.extend(data)

    def from_device(self):
        """Return the bytes that have reached the host since the last call."""
        self._leave()
        count = self._tx_sent - self._tx_read
        if not count:
            return b""
        at = self._tx_read % _SIZE
        self._tx_read = self._tx_sent
        if at + count <= _SIZE:
            return bytes(self._tx[at : at + count])
        return bytes(self._tx[at:]) + bytes(self._tx[: at + count - _SIZE])

    # -- the device's end ----------------------------------------------------------------------------

    def open(self, rxbuf, txbuf):
        """The UART is set up: from now on it hears."""
        self.arrive(0)
        self.is_open = True
        self.rxbuf = rxbuf
        self.txbuf = txbuf

    def reset(self):
        """Power or chip went: what had not left or was not read is lost."""
        self._leave()
        self._tx_end = self._tx_sent
        self.arrive(0)
        self._rx_count = 0
        self.is_open = False

    def arrive(self, room):
        """Move what has arrived into the buffer of `room` bytes; return how many wait there."""
        if self._wire:
            due = (self._world.now - self._wire_at) * 1152 // 100 - self._wire_done
            if due > len(self._wire):
                due = len(self._wire)
            if due:
                keep = room - self._rx_count if self.is_open else 0
                if keep < 0:
                    keep = 0
                for i in range(due if due < keep else keep):
                    self._rx[(self._rx_first + self._rx_count) % len(self._rx)] = self._wire[i]
                    self._rx_count += 1
                if due > keep:
                    self.lost += due - keep
                self._wire_done += due
                self._wire = self._wire[due:]
        return self._rx_count

    def stall(self, ms):
        """Let `ms` pass with interrupts blocked, as a flash erase does: only the FIFO takes bytes."""
        waiting = self.arrive(self.rxbuf + FIFO)
        self._world.advance(ms)
        self.arrive(waiting + FIFO)

    def any(self):
        """Return how many bytes can be read."""
        if not self._wire and not self._rx_count:
            return 0
        return self.arrive(self.rxbuf + FIFO)

    def readinto(self, buf, n):
        """Fill `buf` with up to `n` bytes; return how many, or None."""
        have = self.any()
        if have > n:
            have = n
        size = len(self._rx)
        for i in range(have):
            buf[i] = self._rx[(self._rx_first + i) % size]
        self._rx_first = (self._rx_first + have) % size
        self._rx_count -= have
        return have if have else None

    def write(self, buf, offset, n):
        """Take `n` bytes of `buf` from `offset` and return `n`; PlantError when the port would wait for room.

        ESP-IDF's uart_write_bytes waits for ever, and MicroPython offers no way to ask for the room.
        """
        self._leave()
        if n > self.txbuf + FIFO - (self._tx_end - self._tx_sent):
            raise PlantError("UART.write would wait")
        if self._tx_end == self._tx_sent:
            self._tx_at = self._world.now
            self._tx_done = 0
        for i in range(n):
            self._tx[(self._tx_end + i) % _SIZE] = buf[offset + i]
        self._tx_end += n
        if self._tx_end - self._tx_read > _SIZE:
            self._tx_read = self._tx_end - _SIZE  # a host that never fetches loses the oldest
        return n

    def _leave(self):
        if self._tx_sent != self._tx_end:
            due = (self._world.now - self._tx_at) * 1152 // 100 - self._tx_done
            if due > self._tx_end - self._tx_sent:
                due = self._tx_end - self._tx_sent
            self._tx_sent += due
            self._tx_done += due
