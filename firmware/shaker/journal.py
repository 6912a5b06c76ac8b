"""The journal: every event in flash, and the one place the state is restored from.

Theory of operation (firmware/JOURNAL.md has the figures):
- Segments `XXXXXXXX.log`, named by their first event's number in hex: a header of 512 bytes with a checkpoint
  of the counters, then records of 64 bytes (record.py). `tail.log` is the open end: its records are not yet
  in a segment, or are leftovers whose numbers a segment already holds, which are ignored.
- A record that fits goes to the tail (one small inline commit); else tail and new records go together into
  the newest segment in one write. A full segment is followed by a new one, in the write that starts it.
- Numbers are given here and nowhere else. A number is used up when its write has returned; after a write that
  failed the flash is looked at again before anything more is written.

Must never format, never write while the agitator pulses (the caller sees to that), never raise out of open().
Units: bytes, seconds; event numbers count from 1 over the life of the device.
"""

import binascii
import struct
from array import array

from micropython import const

# Numbers of names.py and record.py, as literals: they cost nothing here, and test_literals.py compares them.
_EV_ABANDONED = const(13)
_EV_BETS_OPEN = const(5)
_EV_CLEAR = const(17)
_EV_COVERED = const(1)
_EV_FAULT = const(16)
_EV_KEY_STUCK = const(15)
_EV_LINK = const(22)
_EV_LOST = const(23)
_EV_PAID = const(10)
_EV_REFUSED = const(14)
_EV_SETTINGS = const(20)
_EV_SHAKE_DONE = const(4)
_EV_SHAKE_START = const(3)
_EV_UNCOVERED = const(2)
_EV_VOID = const(9)
_FLAG_BETS = const(0x01)
_F_INTERNAL_ERROR = const(14)
_F_RESTART_STORM = const(11)
_KIND_EVENT = const(0xE5)
_KIND_MARK = const(0xA5)
_MARK_ALIVE = const(1)
_MARK_CLEAN = const(2)
_SHAKING = const(2)
_WHY_TOO_FEW = const(8)

TAIL = "tail.log"
_SUFFIX = ".log"
_SIZE = const(64)
_HEADER = const(512)
_BLOCK = const(1024)  # what is read at a time: 16 records
_TAIL_MAX = const(7)  # records that LittleFS keeps inline at most: 512 bytes less their tags
_RECENT = const(16)  # newest events kept in RAM, a power of two, more than any tail holds
_SEGMENT = const(256)  # events in a segment before the next one is begun
_KEEP = const(5)  # segments held: 4 full ones and the newest are more than 1000 events
_RESERVE = const(64)  # records a round may need, kept free when nothing may be overwritten
_SQUEEZE = const(2)  # segments beyond _KEEP from which on only what changes the state is kept

_MAGIC = b"SHKJ"
_VERSION = const(1)
_HEAD = "<4sHHIIIIHBBIHH"  # 36 bytes, see _load; then counters, rounds, zeros, CRC-32
_AT_COUNTS = const(36)
_AT_ROUNDS = const(200)
_AT_OPTIONS = const(400)  # the regulated options in force and the CRC-32 of their authorisation
_AT_CRC = const(508)
_ROUNDS = const(0)  # index into the counters
_VOIDS = const(1)
_PULSES = const(2)
_BY_FAULT = const(3)
_FAULT_SLOTS = const(32)
_BY_FACE = const(35)
_COUNTS = const(41)
_SUMMARIES = const(10)
_SUMMARY = "<IIHHBBBB"  # round, at, repeat, voids, dice, end
_SUMMARY_SIZE = const(20)
_ENDS = ("", "paid", "abandoned", "aborted")
_END_PAID = const(1)
_END_ABANDONED = const(2)
_END_ABORTED = const(3)

_ALIVE_S = const(60)  # a boot that lasted this long was no short one
_EIO = const(5)
_ENODEV = const(19)
_ENOSPC = const(28)
_HOLE = const(1)  # b of a `lost` event that names damaged records, not dropped ones


def segment_name(first):
    """Return the name of the segment whose first event is `first`."""
    return f"{first:08X}{_SUFFIX}"


def _number(name):
    """Return the first event number a segment's name tells, or 0 when it is no segment's name."""
    if len(name) != 12 or not name.endswith(_SUFFIX):
        return 0
    for c in name[:8]:
        if c not in "0123456789ABCDEF":
            return 0
    return int(name[:8], 16)


def _u32(buf, at):
    return struct.unpack_from("<I", buf, at)[0]


def _sound(buf, at):
    """Return True when the 64 bytes at `at` are a valid record."""
    kind = buf[at]
    if kind != _KIND_EVENT and kind != _KIND_MARK:
        return False
    return binascii.crc32(memoryview(buf)[at : at + 60]) == _u32(buf, at + 60)


class Journal:
    """The journal in the folder `files`; `tail` records fit in the open end's file (VfsLfs2's default: 2)."""

    def __init__(self, files, tail=2, segment=_SEGMENT, keep=_KEEP):
        self._files = files
        self._capacity = tail
        self._per_segment = segment
        self._keep = keep
        self.required = False  # host = "required": what is not acknowledged is never overwritten
        self.unix_base = None  # type: int | None  # Unix time of this boot's t = 0, or None
        self.dropped = 0  # events left out because the journal is full and may not overwrite
        self.boot = 0
        self.acked = 0
        self.blank = True
        self.clean = True
        self.short_boots = 0
        self._dirty = False  # a write failed: look at the flash before the next one
        self._lame = True  # nothing can be read: numbers are unknown, so none may be given
        self._block = bytearray(_BLOCK)
        self._tail = bytearray(max(tail, _TAIL_MAX) * _SIZE)  # a firmware before this one may have used more
        self._scratch = bytearray(3 * _SIZE)
        self._recent = bytearray(_RECENT * _SIZE)
        self._state = bytearray(_SIZE)
        self._counts = array("I", [0] * _COUNTS)
        self._rounds = bytearray(_SUMMARIES * _SUMMARY_SIZE)
        self._marks = []
        self._clear()

    def _clear(self):
        self.ok = False
        self.problem = None
        self.last = 0
        self.first = 1
        self.newest = None
        self._segments = []
        self._doomed = []  # files to delete when something is written anyway
        self._slots = 0  # bytes the newest segment holds
        self._tail_n = 0
        self._tail_bad = False  # its file holds something damaged, to be written over whole
        self._found = False
        self._bad = 0  # damaged records since the last sound one
        self._hole_from = 0
        self._hole_to = 0
        self._full = False
        self._suspect = False
        self._forget()

    def _forget(self):
        """Set the counters to those of a new device."""
        for i in range(_COUNTS):
            self._counts[i] = 0
        for i in range(len(self._rounds)):
            self._rounds[i] = 0
        for i in range(len(self._recent)):
            self._recent[i] = 0
        self.options_word = 0
        self.options_auth = 0
        self._held = 0
        self._lost_to = 0
        self._boot = 0
        self._short = 0
        self._alive = False
        self._round = 0
        self._round_voids = 0

    # -- starting --------------------------------------------------------------------------------------
    def open(self):
        """Read what is there and restore from it. Never raises; see `ok`, `problem`, `blank`, `newest`.

        Also `last`, `first`, `acked`, `boot`, `clean`, `short_boots`, `options_word` and `options_auth` (the
        regulated options last journalled as adopted, and their authorisation's CRC-32; 0 = never).
        `ok` False: the file system cannot be read, or the newest records are damaged, so that the state may
        be an older one. `problem` with `ok` True: something else was damaged, and got skipped.
        """
        try:
            self._lame = not self._scan()
        except ValueError as e:  # a file name that is no text
            self._complain("file system", e)
            self.ok = False
        short = self._short
        self.clean = self.newest is None or (self.newest[0] == _KIND_MARK and self.newest[1] == _MARK_CLEAN)
        if self._boot:
            short = 0 if self._alive or self.clean else short + 1
        self.short_boots = short
        self.blank = self.newest is None
        self.boot = self._boot + 1

    def _scan(self):
        """Restore everything from flash; return False, and change nothing, when it cannot be read."""
        try:
            names = self._files.listdir()
        except OSError as e:
            self._complain("file system", e)
            self.ok = False
            return False
        acked = self.acked
        self._clear()
        self._restore(names)
        self.acked = min(max(acked, _u32(self.newest, 28) if self.newest else 0), self.last)
        self.ok = not self._suspect
        return True

    def _complain(self, what, error=None):
        if self.problem is None:
            self.problem = what + ": " + (str(error.args[0]) if error and error.args else "damaged")

    def _restore(self, names):
        tail = False
        strange = []
        found = []
        for name in names:
            if name == TAIL:
                tail = True
            elif _number(name):
                found.append(_number(name))
        found.sort()
        for first in found:
            if self._probe(first):
                self._segments.append(first)
            else:
                strange.append(first)
        segments = self._segments
        i = len(segments)
        while i > 0 and not self._found:  # normally once: the newest segment alone tells everything
            i -= 1
            self._forget()
            self.last = segments[i] - 1
            self._bad = 0
            if not self._load(segments[i]):
                self._complain(segment_name(segments[i]))
                if i:
                    continue
            for first in segments[i:]:
                self._read_segment(first)
        self._judge_strange(strange)
        used = self.last + self._bad
        if tail:
            self._read_tail()
        self._bad = max(self._bad, used - self.last)  # leftovers in the tail make up for some of them only
        if self._bad:  # the newest records are damaged: their numbers count as used
            self._widen_hole(self.last + 1, self.last + self._bad)
            self.last += self._bad
            self._suspect = True
        del self._marks[:]
        while len(segments) > 1 and segments[0] < self._held:
            self._doomed.append(segments.pop(0))
        self.first = segments[0] if segments else self.last + 1

    def _probe(self, first):
        """Tell whether the file of that name is a segment of this journal."""
        block = self._block
        try:
            with self._files.open(segment_name(first), "rb") as f:
                n = f.readinto(block)
        except OSError as e:
            self._complain(segment_name(first), e)
            return False
        if n >= 16 and block[:4] == _MAGIC and _u32(block, 8) == first:
            return True
        for at in range(_HEADER, n - _SIZE + 1, _SIZE):
            if _sound(block, at) and first <= _u32(block, at + 4) <= first + _RECENT:
                return True
        if n:
            self._complain(segment_name(first))
        return False

    def _judge_strange(self, strange):
        """A file with exactly the name our next segment would have was ours: its numbers count as used."""
        for first in strange:
            size = self._files.size(segment_name(first))
            if first == self.last + 1 + self._bad and size != 0:
                count = self._per_segment if size < 0 else max(size - _HEADER, _SIZE) // _SIZE
                self._bad += count
                self._suspect = True

    def _load(self, first):
        """Take the checkpoint of the segment; return False when it is damaged."""
        block = self._block
        try:
            with self._files.open(segment_name(first), "rb") as f:
                n = f.readinto(memoryview(block)[:_HEADER])
        except OSError:
            return False
        if n < _HEADER or binascii.crc32(memoryview(block)[:_AT_CRC]) != _u32(block, _AT_CRC):
            return False
        head = struct.unpack_from(_HEAD, block, 0)
        if head[0] != _MAGIC or head[1] != _VERSION or head[3] != first:
            return False
        (_, _, _, _, self._held, self._lost_to, self._boot, self._short, alive, _, self._round, voids, _) = (
            head
        )
        self._alive = alive != 0
        self._round_voids = voids
        for i in range(_COUNTS):
            self._counts[i] = _u32(block, _AT_COUNTS + 4 * i)
        self._rounds[:] = block[_AT_ROUNDS : _AT_ROUNDS + len(self._rounds)]
        self.options_word, self.options_auth = struct.unpack_from("<II", block, _AT_OPTIONS)
        return True

    def _store(self, first, held):
        """Put the checkpoint for a new segment into the block buffer."""
        block = self._block
        for i in range(_HEADER):
            block[i] = 0
        # fmt: off
        struct.pack_into(
            _HEAD, block, 0, _MAGIC, _VERSION, _HEADER, first, held, self._lost_to, self._boot, self._short,
            1 if self._alive else 0, 0, self._round, self._round_voids, 0,
        )
        # fmt: on
        for i in range(_COUNTS):
            struct.pack_into("<I", block, _AT_COUNTS + 4 * i, self._counts[i])
        block[_AT_ROUNDS : _AT_ROUNDS + len(self._rounds)] = self._rounds
        struct.pack_into("<II", block, _AT_OPTIONS, self.options_word, self.options_auth)
        struct.pack_into("<I", block, _AT_CRC, binascii.crc32(memoryview(block)[:_AT_CRC]))

    def _read_segment(self, first):
        block = self._block
        name = segment_name(first)
        self._bad = max(self._bad, first - 1 - self.last)  # its name tells that so many numbers are used
        try:
            with self._files.open(name, "rb") as f:
                f.seek(_HEADER)
                while True:
                    n = f.readinto(block)
                    at = 0
                    while at < n:
                        if n - at >= _SIZE and _sound(block, at):
                            self._accept(block, at)
                        else:
                            self._bad += 1
                            self._complain(name)
                        at += _SIZE
                    if n < _BLOCK:
                        break
        except OSError as e:
            self._complain(name, e)
            self._bad += self._per_segment  # what it held is unknown; so many numbers are skipped
        self._slots = max(self._files.size(name), 0)

    def _read_tail(self):
        block = self._block
        try:
            with self._files.open(TAIL, "rb") as f:
                n = f.readinto(block)
        except OSError as e:
            self._complain(TAIL, e)
            self._bad += self._capacity
            return
        n = min(n, len(self._tail))
        bad = 0
        for at in range(0, n, _SIZE):
            if n - at < _SIZE or not _sound(block, at):
                bad += 1
                self._tail_bad = True
                self._complain(TAIL)
            elif not bad and _u32(block, at + 4) < self.last:
                break  # leftovers from here on
            elif self._accept(block, at):
                self._tail[self._tail_n * _SIZE : (self._tail_n + 1) * _SIZE] = block[at : at + _SIZE]
                self._tail_n += 1
        self._bad += bad

    def _accept(self, block, at):
        """Take a record found in flash; return False when it only repeats what is already known."""
        seq = _u32(block, at + 4)
        if seq <= self.last and (block[at] == _KIND_EVENT or seq < self.last):
            return False
        if block[at] == _KIND_MARK:
            crc = _u32(block, at + 60)
            if crc in self._marks:
                return False
            self._marks.append(crc)
        else:
            del self._marks[:]
        expected = self.last + 1 if block[at] == _KIND_EVENT else self.last
        if seq > expected:
            if self._found or self._segments:
                self._widen_hole(self.last + 1, self.last + seq - expected)
        self._bad = 0
        self._found = True
        self._take(block, at)
        return True

    def _widen_hole(self, start, end):
        if not self._hole_to:
            self._hole_from = start
        self._hole_to = end

    def _take(self, buf, at):
        """Let a durable record be the newest one."""
        if self.newest is None:
            self.newest = self._state
        self._state[:] = buf[at : at + _SIZE]
        state = self._state
        self.last = _u32(state, 4)
        if state[0] == _KIND_EVENT:
            to = (self.last & (_RECENT - 1)) * _SIZE
            self._recent[to : to + _SIZE] = state
        self._account(state)

    # -- counters and rounds ---------------------------------------------------------------------------
    def _account(self, r):
        """Bring counters, round summaries and the count of short boots up to date from record `r`."""
        counts = self._counts
        boot, t_s = struct.unpack_from("<II", r, 8)
        if boot != self._boot:
            if self._boot:
                self._short = 0 if self._alive else self._short + 1
            self._boot = boot
            self._alive = False
        event = r[1]
        if t_s >= _ALIVE_S:
            self._alive = True
        if r[0] == _KIND_MARK:
            if event == _MARK_ALIVE or event == _MARK_CLEAN:
                self._alive = True
            return
        a = r[40]
        if event == _EV_SHAKE_START:
            number = _u32(r, 24)
            if number != self._round:
                if self._round:
                    self._end_round(self._state, _END_ABORTED)
                self._round = number
                self._round_voids = 0
            return
        if event == _EV_SHAKE_DONE:
            counts[_PULSES] += a
        elif event == _EV_FAULT:
            if a < _FAULT_SLOTS:
                counts[_BY_FAULT + a] += 1
            if a != _F_INTERNAL_ERROR:  # whose text lies where the pulses would be
                counts[_PULSES] += _u32(r, 42)
        elif event == _EV_VOID:
            counts[_VOIDS] += 1
            self._round_voids += 1
        elif event == _EV_PAID:
            counts[_ROUNDS] += 1
            for i in range(37, 40):
                if 1 <= r[i] <= 6:
                    counts[_BY_FACE + r[i] - 1] += 1
            self._end_round(r, _END_PAID)
        elif event == _EV_ABANDONED:
            self._end_round(r, _END_ABANDONED)
        elif event == _EV_CLEAR and a == _F_RESTART_STORM:
            self._short = 0
        elif event == _EV_SETTINGS and a:
            self.options_word, self.options_auth = struct.unpack_from("<II", r, 42)
        elif event == _EV_LOST:
            start, end = struct.unpack_from("<II", r, 42)
            if r[41] == _HOLE:
                if start <= self._hole_from and self._hole_to <= end:
                    self._hole_to = 0
            elif end > self._lost_to:
                self._lost_to = end
        if self._round and event != _EV_SHAKE_DONE and event != _EV_BETS_OPEN:
            if not r[3] & _FLAG_BETS and r[2] & 15 != _SHAKING:
                self._end_round(r, _END_ABORTED)

    def _end_round(self, r, end):
        rounds = self._rounds
        i = len(rounds) - 1
        while i >= _SUMMARY_SIZE:
            rounds[i] = rounds[i - _SUMMARY_SIZE]
            i -= 1
        at = _u32(r, 20)
        number = self._round if end == _END_ABORTED else _u32(r, 24)
        repeat = struct.unpack_from("<H", r, 18)[0]
        d1, d2, d3 = r[37], r[38], r[39]
        if end == _END_ABORTED:
            repeat = d1 = d2 = d3 = 0
        struct.pack_into(_SUMMARY, rounds, 0, number, at, repeat, self._round_voids, d1, d2, d3, end)
        self._round = 0
        self._round_voids = 0

    def summary(self, n):
        """Return the n-th last round (1 .. 10) as a dict, or None: round repeat dice voids end at.

        `dice` is a tuple of three or None, `end` paid, abandoned or aborted, `at` Unix seconds or None.
        """
        if not 1 <= n <= _SUMMARIES:
            return None
        rd, at, rep, voids, d1, d2, d3, end = struct.unpack_from(
            _SUMMARY, self._rounds, (n - 1) * _SUMMARY_SIZE
        )
        if not 1 <= end < len(_ENDS):
            return None
        dice = (d1, d2, d3) if d1 else None
        return {"round": rd, "repeat": rep, "dice": dice, "voids": voids, "end": _ENDS[end], "at": at or None}

    def counts(self):
        """Return the life's counters: rounds (paid), voids, pulses, faults {number: n}, dice {face: n}.

        Faults have their numbers in names.FAULTS, and only those that occurred; faces are 1 to 6. A face is
        counted when its round is paid, so a corrected result counts once.
        """
        counts = self._counts
        faults = {}
        for i in range(1, _FAULT_SLOTS):
            if counts[_BY_FAULT + i]:
                faults[i] = counts[_BY_FAULT + i]
        dice = {}
        for i in range(6):
            dice[1 + i] = counts[_BY_FACE + i]
        return {
            "rounds": counts[_ROUNDS],
            "voids": counts[_VOIDS],
            "pulses": counts[_PULSES],
            "faults": faults,
            "dice": dice,
        }

    # -- reading ---------------------------------------------------------------------------------------
    def read(self, seq, buf):
        """Fill `buf` (64 bytes) with event `seq` and return True; False when it is not held or is damaged."""
        if seq < self.first or seq > self.last:
            return False
        at = (seq & (_RECENT - 1)) * _SIZE
        if self._recent[at] == _KIND_EVENT and _u32(self._recent, at + 4) == seq:
            buf[:] = self._recent[at : at + _SIZE]
            return True
        if self._pick(seq, buf, _BLOCK):
            return True
        i = len(self._segments) - 1
        while i >= 0 and self._segments[i] > seq:
            i -= 1
        if i < 0:
            return False
        first = self._segments[i]
        try:
            with self._files.open(segment_name(first), "rb") as f:
                # Marks put an event behind its place, numbers that were skipped before it.
                return self._search(f, seq, seq - first, buf) or self._search(f, seq, 0, buf)
        except OSError:
            return False

    def _search(self, f, seq, slot, buf):
        """Look for event `seq` in the open segment from `slot` on."""
        block = self._block
        f.seek(_HEADER + slot * _SIZE)
        while True:
            n = f.readinto(block)
            if self._pick(seq, buf, n):
                return True
            for at in range(n, _BLOCK, _SIZE):
                block[at] = 0
            if n < _BLOCK or (_u32(block, _BLOCK - 60) > seq and _sound(block, _BLOCK - _SIZE)):
                return False

    def _pick(self, seq, buf, n):
        block = self._block
        for at in range(0, n - _SIZE + 1, _SIZE):
            if block[at] == _KIND_EVENT and _u32(block, at + 4) == seq and _sound(block, at):
                buf[:] = block[at : at + _SIZE]
                return True
        return False

    def ack(self, seq):
        """Note that the host holds everything up to `seq`; it becomes durable with the next record."""
        if self.acked < seq <= self.last:
            self.acked = seq

    # -- room ------------------------------------------------------------------------------------------
    def room(self, required):
        """Return True if a further round may start: not when `required` and too little is acknowledged."""
        if not required:
            return True
        if self._full and self.acked < self.last:
            return False
        count = len(self._segments)
        count -= self._droppable(count)  # those that must stay
        if count < self._keep:
            return True
        return count == self._keep and self.last + 1 - self._segments[-1] + _RESERVE < self._per_segment

    def _droppable(self, limit):
        """Return how many of the oldest segments may go, at most `limit` and never the newest."""
        segments = self._segments
        i = 0
        while (
            i < limit and i + 1 < len(segments) and (not self.required or self.acked >= segments[i + 1] - 1)
        ):
            i += 1
        return i

    def _unwanted(self, buf, at):
        """Tell whether an event may be left out of a journal that is full and may not overwrite."""
        event = buf[at + 1]
        if event == _EV_REFUSED:
            return buf[at + 41] != _WHY_TOO_FEW  # that one ends a shake
        if event == _EV_KEY_STUCK or event == _EV_LINK:
            return True
        return (event == _EV_COVERED or event == _EV_UNCOVERED) and not buf[at + 3] & _FLAG_BETS

    # -- writing ---------------------------------------------------------------------------------------
    def append(self, queue):
        """Number all records waiting in `queue`, make them durable in one write, and drop them from it.

        Raises OSError when that fails; nothing is dropped then, and it may be tried again.
        """
        if self._look_again():
            self._drop_durable(queue)
        while queue.count:
            try:
                self._write(queue, queue.count)
                return
            except OSError as e:
                self._dirty = True
                if e.args[0] != _ENOSPC or not self._make_room():
                    raise
                self._look_again()
                self._drop_durable(queue)

    def _look_again(self):
        """After a write that failed, read the flash anew; return True when that was needed."""
        if self._lame:
            raise OSError(_ENODEV)
        if not self._dirty:
            return False
        if not self._scan():
            raise OSError(_EIO)
        self._dirty = False
        return True

    def _drop_durable(self, queue):
        """Drop what the failed write did make durable after all."""
        kept = self._scratch
        while queue.count:
            at = queue.slot(0)
            seq = _u32(queue.buf, at + 4)
            if not seq or not self.read(seq, memoryview(kept)[:_SIZE]):
                return
            if kept[:60] != queue.buf[at : at + 60]:
                return
            queue.drop(1)

    def mark(self, what, t_s=0, t_ms=0):
        """Write a mark (record.MARK_*) at t_s seconds and t_ms ms since boot. Raises OSError."""
        self._look_again()
        if self.newest is None:
            return
        r = self._scratch
        r[:_SIZE] = self._state
        r[0] = _KIND_MARK
        r[1] = what
        for i in range(40, 60):
            r[i] = 0
        struct.pack_into("<IIIH", r, 4, self.last, self.boot, t_s, t_ms)
        self._seal(r, 0, self.last)
        try:
            self._write(None, 0)
        except OSError:
            self._dirty = True
            raise

    def _seal(self, buf, at, seq):
        """Fill in what the journal owns: number, time, acknowledgement, CRC."""
        struct.pack_into("<I", buf, at + 4, seq)
        base = self.unix_base
        struct.pack_into("<I", buf, at + 20, 0 if base is None else base + _u32(buf, at + 12))
        struct.pack_into("<I", buf, at + 28, self.acked)
        struct.pack_into("<I", buf, at + 60, binascii.crc32(memoryview(buf)[at : at + 60]))

    def _write(self, queue, waiting):
        """Make `waiting` records of `queue` durable, or (queue None) the mark in the scratch buffer."""
        segments = self._segments
        held = self.first
        begin = False
        extra = 1
        count = waiting
        last = self.last
        if queue:
            extra = 0
            squeezed = self.required and len(segments) >= self._keep + _SQUEEZE and self._droppable(1) == 0
            for i in range(waiting):
                at = queue.slot(i)
                if squeezed and self._unwanted(queue.buf, at):
                    queue.buf[at + 4 : at + 8] = b"\0\0\0\0"
                    count -= 1
                else:
                    last += 1
                    self._seal(queue.buf, at, last)
            if not count:
                self.dropped += waiting
                queue.drop(waiting)
                return
            begin = not segments or (self._tail_n == 0 and self.last + 1 - segments[-1] >= self._per_segment)
            if begin and segments:
                n = self._droppable(len(segments) + 1 - self._keep)
                held = segments[n]
            if held > self.acked + 1 and held - 1 > self._lost_to:
                extra += 1
                self._lost(queue, waiting, extra, last + extra, self.acked + 1, held - 1, 0)
            if self._hole_to:
                if self._hole_to > self.acked:
                    extra += 1
                    start = max(self._hole_from, self.acked + 1)
                    self._lost(queue, waiting, extra, last + extra, start, self._hole_to, _HOLE)
        elif not segments:
            return
        if begin:
            self._begin_segment(self.last + 1, held, queue, waiting, extra)
        elif self._tail_n + count + extra > self._capacity:
            self._move(queue, waiting, extra)
        else:
            self._extend_tail(queue, waiting, extra)
        for i in range(waiting):
            at = queue.slot(i)
            if _u32(queue.buf, at + 4):
                self._take(queue.buf, at)
        for i in range(extra):
            self._take(self._scratch, i * _SIZE)
        self._hole_to = 0
        self._full = False
        if queue:
            self.dropped += waiting - count
            queue.drop(waiting)
        if begin:
            self._trim()

    def _lost(self, queue, waiting, slot, seq, start, end, kind):
        """Make in the scratch buffer the event that tells which are gone; its state is the last one's."""
        r = self._scratch
        to = (slot - 1) * _SIZE
        at = queue.slot(waiting - 1)
        r[to : to + _SIZE] = queue.buf[at : at + _SIZE]
        r[to] = _KIND_EVENT
        r[to + 1] = _EV_LOST
        r[to + 40] = 0
        r[to + 41] = kind
        struct.pack_into("<II", r, to + 42, start, end)
        for i in range(to + 50, to + 60):
            r[i] = 0
        self._seal(r, to, seq)

    def _put(self, f, queue, waiting, extra):
        """Write the records to the open file; return how many bytes that were."""
        size = extra * _SIZE
        if queue:
            view = memoryview(queue.buf)
            for i in range(waiting):
                at = queue.slot(i)
                if _u32(queue.buf, at + 4):
                    f.write(view[at : at + _SIZE])
                    size += _SIZE
        if extra:
            f.write(memoryview(self._scratch)[: extra * _SIZE])
        return size

    def _begin_segment(self, first, held, queue, waiting, extra):
        self._store(first, held)
        f = self._files.open(segment_name(first), "wb")
        try:
            f.write(memoryview(self._block)[:_HEADER])
            self._slots = _HEADER + self._put(f, queue, waiting, extra)
        finally:
            f.close()
        segments = self._segments
        segments.append(first)
        while segments[0] < held:
            self._doomed.append(segments.pop(0))
        self.first = segments[0]
        self._tail_n = 0

    def _move(self, queue, waiting, extra):
        size = self._slots
        pad = max(_HEADER - size, 0) or -size % _SIZE
        f = self._files.open(segment_name(self._segments[-1]), "ab")
        try:
            if pad:  # something cut this file short; keep the records on their places
                f.write(bytes(pad))
            f.write(memoryview(self._tail)[: self._tail_n * _SIZE])
            size += self._put(f, queue, waiting, extra)
        finally:
            f.close()
        self._slots = size + pad + self._tail_n * _SIZE
        self._tail_n = 0

    def _extend_tail(self, queue, waiting, extra):
        tail = self._tail
        at = self._tail_n * _SIZE
        for i in range(waiting):
            slot = queue.slot(i)
            if _u32(queue.buf, slot + 4):
                tail[at : at + _SIZE] = queue.buf[slot : slot + _SIZE]
                at += _SIZE
        tail[at : at + extra * _SIZE] = self._scratch[: extra * _SIZE]
        at += extra * _SIZE
        try:  # not truncating: a write that an exception ends leaves the old content
            f = self._files.open(TAIL, "wb" if self._tail_bad else "r+b")
        except OSError:
            f = self._files.open(TAIL, "wb")
        try:
            f.write(memoryview(tail)[:at])
        finally:
            f.close()
        self._tail_n = at // _SIZE
        self._tail_bad = False

    # -- making room -----------------------------------------------------------------------------------
    def _trim(self):
        """Delete the segments that are no longer held. What cannot be deleted is tried again next time."""
        doomed = self._doomed
        i = 0
        while i < len(doomed):
            try:
                self._files.remove(segment_name(doomed[i]))
                doomed.pop(i)
            except OSError:
                i += 1

    def _make_room(self):
        """The file system is full: give up the oldest segment. Returns False when none may go."""
        if self._doomed:
            count = len(self._doomed)
            self._trim()
            if len(self._doomed) < count:
                return True
        if self._droppable(1) == 0:
            self._full = True
            return False
        try:
            self._files.remove(segment_name(self._segments[0]))
            return True
        except OSError:
            return False
