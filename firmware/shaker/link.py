"""The line to the host: receives, answers, and delivers events until they are acknowledged.

Owns the receive ring, the transmit buffer, the window of events in flight with their timers, and whether the
host is there. Must never block the scan, parse or format from the first pulse to the end of the last (what
arrives meanwhile waits in the ring), send an event that is not yet durable, or need a host for anything.

Each scan calls receive() and send(), which allocate nothing; outside the pulses also handle(now) and
fill(now), which may. Units: ms (ticks folded to 2^30), bytes. Source: PROTOCOL; SPEC 7; PITFALLS 21-26, 33.
"""

import gc

from micropython import const

from shaker import lines
from shaker.frame import Splitter, wrap
from shaker.names import EV_LINK, F_JOURNAL_FAILED, SHAKING
from shaker.session import Session
from shaker.ticks import ticks_add, ticks_diff

RING = const(512)  # received bytes that can wait: more than the host may send during a shake
_CHUNK = const(57)  # what 115200 Bd carry in a scan, so that write(), which waits for room, always has it
_WINDOW = const(8)  # unacknowledged events in flight
_HEARTBEAT_MS = const(1000)
_HOST_LOST_MS = const(5000)

_RING_MASK = const(511)
_READ = const(64)  # bytes taken from the UART at a time
_HANDLE = const(128)  # bytes looked at in one scan: the line brings 58 at most, so this catches up
_LOOK = const(8)  # records looked at in one scan in search of a readable one
_SEARCH = const(64)  # and in answer to one `replay`
_SIZE = const(64)  # of a record
_RESEND_MS = (250, 500, 1000, 2000)
_TX = const(1064)  # a reply of 1000 and less than one chunk before it
_LAST_DELAY = const(3)
_JOURNAL_FAILED_BIT = 1 << (F_JOURNAL_FAILED - 1)


class Link:
    """Ties UART, journal, queue and device together; see the module's text for who may call what when."""

    def __init__(self, uart, journal, queue, device, settings, random, verifier):
        self._uart = uart
        self._journal = journal
        self._queue = queue
        self._device = device
        self.session = Session(journal, device, settings, random, verifier, self)
        self.splitter = Splitter()
        self.up = False  # a valid frame arrived within the last 5 s
        self.overrun = 0  # received bytes that found the ring full
        self.resent = 0
        self._heard = 0  # tick of the last valid frame
        self._reply = None  # text that waits to be sent
        self._beat = None  # tick of the next heartbeat
        # Nothing to say until a tick, while the journal ends here and the host has acknowledged up to there.
        self._silent = False
        self._silent_until = 0
        self._silent_last = 0
        self._silent_acked = 0
        self._read = bytearray(_READ)
        self._ring = bytearray(RING)
        self._ring_at = 0
        self._ring_n = 0
        self._tx = bytearray(_TX)
        self._tx_at = 0
        self._tx_end = 0
        # Events in flight, oldest first. Their records are kept, so that resending reads no flash.
        self._flying = 0
        self._records = [bytearray(_SIZE) for _ in range(_WINDOW)]
        self._seq = [0] * _WINDOW
        self._due = [0] * _WINDOW
        self._tries = [0] * _WINDOW
        self._next = 1  # the first number not yet sent in this boot
        self._replay = 0  # the next number of a replay, 0 = none
        self._replay_end = 0
        self._replay_acked = 0  # acknowledged when it was asked for

    # -- Every scan ------------------------------------------------------------------------------

    def receive(self):
        """Move what the UART holds into the ring. Allocates nothing, never blocks."""
        uart = self._uart
        buf = self._read
        ring = self._ring
        while True:
            n = uart.any()
            if not n:
                return
            if n > _READ:
                n = _READ
            n = uart.readinto(buf, n)
            if not n:
                return
            room = RING - self._ring_n
            if n > room:
                self.overrun += n - room
                n = room
            at = self._ring_at + self._ring_n
            i = 0
            while i < n:
                ring[(at + i) & _RING_MASK] = buf[i]
                i += 1
            self._ring_n += n

    def send(self):
        """Hand at most _CHUNK bytes to the UART, which may take less. Allocates nothing, never blocks."""
        n = self._tx_end - self._tx_at
        if n:
            if n > _CHUNK:
                n = _CHUNK
            n = self._uart.write(self._tx, self._tx_at, n)
            if n:
                self._tx_at += n

    # -- Outside the pulses ------------------------------------------------------------------------

    def listen(self, now):
        """receive(), and handle(now) when that has something to do."""
        if self._uart.any():
            self.receive()
        if (
            self._ring_n
            or self.session.verifying
            or (self.up and ticks_diff(now, self._heard) > _HOST_LOST_MS)
        ):
            self.handle(now)

    def speak(self, now):
        """fill(now) when that may have something to do, and send()."""
        if self._tx_at == self._tx_end and self._silent and self._reply is None:
            journal = self._journal
            if (
                journal.last == self._silent_last
                and journal.acked == self._silent_acked
                and ticks_diff(self._silent_until, now) > 0
            ):
                return
        self.fill(now)
        self.send()

    def handle(self, now):
        """Carry out at most one frame that has arrived; notice a host that went away."""
        if self._device.pulsing or self._reply is not None:
            return
        if self.session.verifying and self._device.phase != SHAKING:
            self._reply = self.session.step()
            if self._reply is not None:
                return
        if self._ring_n:
            splitter = self.splitter
            n = splitter.take(self._ring, self._ring_at, _RING_MASK, min(self._ring_n, _HANDLE))
            self._ring_at = (self._ring_at + n) & _RING_MASK
            self._ring_n -= n
            if splitter.length:
                found = splitter.decode()
                if found is not None:
                    self._hear(now, found)
        elif self.up and ticks_diff(now, self._heard) > _HOST_LOST_MS:
            self.up = False
            self._device.emit(EV_LINK, 0)

    def _hear(self, now, found):
        self._heard = now
        if not self.up:
            self.up = True
            self._device.emit(EV_LINK, 1)
        body, mac, thing = found
        opened = self.session.opened
        self._reply = self.session.handle(body, mac, thing)
        if self.session.opened != opened:  # a new host need not wait for a timer of the old one
            self._hasten(now)

    def fill(self, now):
        """Format the next line, when less than one scan's bytes are left to send.

        A reply comes first, then the heartbeat, both only when nothing waits to become durable (the host
        never hears of a state that a power cut could undo); then events, which come from the journal.
        """
        if self._device.pulsing or self._tx_end - self._tx_at >= _CHUNK:
            return
        self._silent = False
        text = None
        if self._queue.count == 0 or self._device.faults & _JOURNAL_FAILED_BIT:
            if self._reply is not None:
                text = self._reply
                self._reply = None
            elif self._beat is None or ticks_diff(now, self._beat) >= 0:
                self._beat = ticks_add(now, _HEARTBEAT_MS)
                text = lines.heartbeat(self._device, self._journal)
        if text is None:
            text = self._event(now)
        if text is None:
            self._fall_silent(now)
        else:
            line = wrap(text)
            rest = self._tx_end - self._tx_at
            self._tx[:rest] = self._tx[self._tx_at : self._tx_end]
            self._tx_at = 0
            self._tx_end = rest + len(line)
            self._tx[rest : self._tx_end] = line

    def _fall_silent(self, now):
        """Nothing was to be said: find out until when that holds if nothing happens."""
        journal = self._journal
        if self._replay or self._reply is not None or self._beat is None:
            return
        if self._flying < _WINDOW and max(self._next, journal.acked + 1) <= journal.last:
            return  # the search for a readable record goes on
        until = self._beat
        for i in range(self._flying):
            if ticks_diff(until, self._due[i]) > 0:
                until = self._due[i]
        self._silent = ticks_diff(until, now) > 0
        self._silent_until = until
        self._silent_last = journal.last
        self._silent_acked = journal.acked

    @property
    def idle(self):
        """Nothing waits to be sent but events: a restart that was asked for has been answered."""
        return self._reply is None and self._tx_at == self._tx_end

    # -- Events ------------------------------------------------------------------------------------

    def _event(self, now):
        """Return the text of the next event to send, or None: a new one, due again, or asked for."""
        self._forget()
        journal = self._journal
        if self._flying < _WINDOW:
            i = self._flying
            seq = max(self._next, journal.acked + 1, journal.first)
            for _ in range(_LOOK):
                if seq > journal.last:
                    break
                self._next = seq + 1
                if journal.read(seq, self._records[i]):
                    self._flying = i + 1
                    self._seq[i] = seq
                    self._tries[i] = 0
                    self._due[i] = ticks_add(now, _RESEND_MS[0])
                    return lines.event(self._records[i])
                seq += 1
        for i in range(self._flying):
            if ticks_diff(now, self._due[i]) >= 0:
                self.resent += 1
                tries = min(self._tries[i] + 1, _LAST_DELAY)
                self._tries[i] = tries
                self._due[i] = ticks_add(now, _RESEND_MS[tries])
                return lines.event(self._records[i])
        if self._replay:
            buf = bytearray(_SIZE)
            for _ in range(_LOOK):
                seq = self._replay
                if self._replay_acked < seq <= journal.acked:
                    seq = journal.acked + 1  # the host has taken those between while this replay ran
                if seq > self._replay_end:
                    self._replay = 0
                    break
                self._replay = seq + 1
                if journal.read(seq, buf):
                    return lines.event(buf)
        return None

    def _forget(self):
        """Take what is acknowledged out of the window."""
        acked = self._journal.acked
        gone = 0
        while gone < self._flying and self._seq[gone] <= acked:
            gone += 1
        if gone:
            self._records = self._records[gone:] + self._records[:gone]
            self._seq = self._seq[gone:] + self._seq[:gone]
            self._due = self._due[gone:] + self._due[:gone]
            self._tries = self._tries[gone:] + self._tries[:gone]
            self._flying -= gone

    def _hasten(self, now):
        for i in range(self._flying):
            self._due[i] = now
            self._tries[i] = 0

    # -- What the session asks for -----------------------------------------------------------------

    def replay(self, seq):
        """Send the events from `seq` (at most journal.last) on again, once; the acknowledgement stays.

        Returns (from, to): the first of them that can be read, every number before it being lost for good,
        and the last.
        """
        journal = self._journal
        last = journal.last
        first = max(seq, journal.first)
        buf = bytearray(_SIZE)
        for _ in range(_SEARCH):
            if first >= last or journal.read(first, buf):
                break
            first += 1
        self._replay = first
        self._replay_end = last
        self._replay_acked = journal.acked
        return first, last

    def counters(self):
        """Return the link's counters as the end of a `status` reply."""
        splitter = self.splitter
        return (
            '"line":{"good":%d,"crc":%d,"form":%d,"broken":%d,"long":%d,"noise":%d,"overrun":%d,"resent":%d},'
            '"heap":%d,"dropped":%d'
        ) % (
            splitter.good,
            splitter.crc,
            splitter.form + self.session.unusable,
            splitter.broken,
            splitter.long,
            splitter.noise,
            self.overrun,
            self.resent,
            gc.mem_free() if hasattr(gc, "mem_free") else 0,
            self._queue.dropped + self._journal.dropped,
        )
