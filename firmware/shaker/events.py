"""Events waiting to be made durable: a ring of 64-byte records, all memory taken at start.

The round emits into it during a scan without allocating; the journal takes from it when flash may be
written. A record leaves only when it is durable. Must never lose an event that changes the state: when
the ring runs short, refusals and the like are dropped first and counted (`dropped`).
"""

import struct
from struct import pack_into

from micropython import const

from shaker import record
from shaker.names import EV_KEY_STUCK, EV_LINK, EV_REFUSED, WHY_TOO_FEW

SLOTS = const(64)
_RESERVE = const(24)  # slots only events that change the state may use: a fault storm raises at most 17
_SIZE = const(64)
_MINOR = (EV_REFUSED, EV_KEY_STUCK, EV_LINK)
_BODY = "<BBBBIIIHHIIIIBBBBBB"
_TAIL = "<II14s"
_ZEROS = bytes(14)
_OFF_EVENT = const(1)
_OFF_B = const(41)


class Queue:
    """A ring of `SLOTS` records in `buf`; `count` of them wait, oldest first."""

    def __init__(self):
        self.buf = bytearray(SLOTS * _SIZE)
        self.count = 0
        self.dropped = 0
        self._first = 0

    def slot(self, i):
        """Return the byte offset in `buf` of the i-th oldest record (0 .. count-1)."""
        return ((self._first + i) % SLOTS) * _SIZE

    def drop(self, n):
        """Forget the `n` oldest records: they are durable."""
        self._first = (self._first + n) % SLOTS
        self.count -= n

    def put(self, state, t_s, t_ms, event, a=0, b=0, x=0, y=0):
        """Append one event with `state` as it is after it, at t_s seconds and t_ms ms since boot.

        Returns False when there was no room. Allocates nothing.
        """
        count = self.count
        if count >= SLOTS - _RESERVE and (count >= SLOTS or event in _MINOR):
            self.dropped += 1
            return False
        at = ((self._first + count) % SLOTS) * _SIZE
        # fmt: off
        struct.pack_into(
            _BODY, self.buf, at, record.KIND_EVENT, event, state.phase | state.origin << 4, state.flags,
            0, state.boot, t_s, t_ms, state.repeat, 0, state.round, 0, state.faults, state.fault,
            state.die1, state.die2, state.die3, a, b,
        )
        # fmt: on
        struct.pack_into(_TAIL, self.buf, at + record.OFF_X, x, y, _ZEROS)
        self.count = count + 1
        return True

    def add(self, rec):
        """Append a copy of the 64-byte record `rec`, under the same conditions as put()."""
        count = self.count
        if count >= SLOTS - _RESERVE and (
            # Too few strokes are refused too, but change the phase.
            count >= SLOTS or (rec[_OFF_EVENT] in _MINOR and rec[_OFF_B] != WHY_TOO_FEW)
        ):
            self.dropped += 1
            return False
        pack_into("64s", self.buf, ((self._first + count) & (SLOTS - 1)) * _SIZE, rec)
        self.count = count + 1
        return True

    def text(self, words):
        """Write ASCII bytes `words` (at most 18) into the newest record, in place of its x and y."""
        at = self.slot(self.count - 1) + record.OFF_TEXT
        for i in range(record.TEXT_SIZE):
            self.buf[at + i] = words[i] if i < len(words) else 0
