"""Events waiting to be made durable: a ring of 64-byte records, all memory taken at start.

The round emits into it during a scan without allocating; the journal takes from it when flash may be
written. A record leaves only when it is durable. Must never lose an event that changes the state: when
the ring runs short, refusals and the like are dropped first and counted (`dropped`).
"""

from struct import pack_into

from micropython import const

SLOTS = const(64)
_RESERVE = const(24)  # slots only events that change the state may use: a fault storm raises at most 17
_SIZE = const(64)
_BODY = "<BBBBIIIHHIIIIBBBBBB"
_TAIL = "<II14s"
_ZEROS = bytes(14)
# Numbers of names.py and record.py, as literals: they cost nothing here, and test_literals.py compares them.
_EV_REFUSED = const(14)
_EV_KEY_STUCK = const(15)
_EV_LINK = const(22)
_WHY_TOO_FEW = const(8)
_KIND_EVENT = const(229)
_OFF_EVENT = const(1)
_OFF_B = const(41)
_OFF_X = const(42)
_OFF_TEXT = const(42)
_TEXT_SIZE = const(18)
_MINOR = (_EV_REFUSED, _EV_KEY_STUCK, _EV_LINK)


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

    def _drops(self, event, b):
        # Too few strokes are refused too, but change the phase.
        if self.count >= SLOTS or (event in _MINOR and b != _WHY_TOO_FEW):
            self.dropped += 1
            return True
        return False

    def put(self, state, t_s, t_ms, event, a=0, b=0, x=0, y=0):
        """Append one event with `state` as it is after it, at t_s seconds and t_ms ms since boot.

        Returns False when there was no room. Allocates nothing.
        """
        count = self.count
        if count >= SLOTS - _RESERVE and self._drops(event, b):
            return False
        at = ((self._first + count) % SLOTS) * _SIZE
        # fmt: off
        pack_into(
            _BODY, self.buf, at, _KIND_EVENT, event, state.phase | state.origin << 4, state.flags,
            0, state.boot, t_s, t_ms, state.repeat, 0, state.round, 0, state.faults, state.fault,
            state.die1, state.die2, state.die3, a, b,
        )
        # fmt: on
        pack_into(_TAIL, self.buf, at + _OFF_X, x, y, _ZEROS)
        self.count = count + 1
        return True

    def add(self, rec):
        """Append a copy of the 64-byte record `rec`, under the same conditions as put()."""
        count = self.count
        if count >= SLOTS - _RESERVE and self._drops(rec[_OFF_EVENT], rec[_OFF_B]):
            return False
        pack_into("64s", self.buf, ((self._first + count) & (SLOTS - 1)) * _SIZE, rec)
        self.count = count + 1
        return True

    def text(self, words):
        """Write ASCII bytes `words` (at most 18) into the newest record, in place of its x and y."""
        at = self.slot(self.count - 1) + _OFF_TEXT
        for i in range(_TEXT_SIZE):
            self.buf[at + i] = words[i] if i < len(words) else 0
