"""The three leadscrew bolts: how long each is driven, and how often.

Owns the time limit and the duty budget of every bolt (PITFALLS 31, SPEC I6): driven for bolt_ms after a
change of command, then left where it stands without power; never more than 20 % of any minute. Locking and
barring are never postponed for that budget; a release is, and every release keeps room for the locking
that must be able to follow it.
Units: ms on the folded clock; budget kept in drives of bolt_ms.
"""

from array import array

from micropython import const

from shaker.ticks import ticks_add, ticks_diff

# Numbers of names.py and record.py, as literals: they cost nothing here, and test_literals.py compares them.
_COVER_BAR = const(0x08)
_COVER_LOCK = const(0x04)
_DOME_LOCK = const(0x10)

_MINUTE_MS = const(60000)
_BUDGET_MS = const(12000)  # 20 % of a minute
_SCAN_MS = const(5)
_LONG = const(1 << 28)  # ms: never


class Bolt:
    """One bolt. `told`: the side it was last sent to (True = on); `driving`: its drive is on now;
    `hasty`: a release does not wait for the budget.
    """

    def __init__(self, bolt_ms):
        self.told = False
        self.driving = False
        self.hasty = 0
        bolt_ms -= bolt_ms % _SCAN_MS  # a drive ends with a scan, and never late
        self._ms = bolt_ms
        self._until = 0
        self._turn = False  # a reversal waits one scan with the drive off
        self._waiting = False  # a release waits for the budget
        self._size = _BUDGET_MS // bolt_ms
        self._starts = array("i", [0] * self._size)  # when the last drives began, a ring
        self._next = 0
        self._used = 0  # how many of them may lie within the last minute

    def _spend(self, now):
        """Forget drives that ended over a minute ago; return how many remain."""
        while self._used:
            oldest = self._starts[(self._next - self._used) % self._size]
            age = ticks_diff(now, oldest)
            if 0 <= age < _MINUTE_MS + self._ms:
                break
            self._used -= 1
        return self._used

    def drive(self, now, turn=False):
        """Start driving toward `told` at tick `now` (turn: after a scan's rest), and account for it."""
        at = self._next
        self._starts[at] = now
        at += 1
        self._next = at if at < self._size else 0
        if self._used < self._size:
            self._used += 1
        self._turn = turn
        self.driving = not turn
        self._until = ticks_add(now, self._ms)

    def step(self, now, on):
        """Follow the command `on` at tick `now`; return True when the bolt has been told to be on."""
        turn = self.driving
        if self._turn:
            self._turn = False
            self.driving = True
            self._until = ticks_add(now, self._ms)
        elif turn and ticks_diff(now, self._until) >= 0:
            self.driving = False
        self._waiting = False
        if on != self.told:
            # A release leaves room for one more drive: the locking that may have to follow.
            if not (on or self.hasty) and self._used + 2 > self._size and self._spend(now) + 2 > self._size:
                self._waiting = True
                return True
            self.told = on
            self.drive(now, turn)
        return on

    def ready(self, now):
        """True when the budget bears one more drive."""
        return self._used < self._size or self._spend(now) < self._size

    def busy(self):
        """True while time matters to this bolt: driven, turning, or waiting for the budget."""
        return self.driving or self._turn or self._waiting

    def turning(self):
        """True while a reversal waits, drive off, for the next scan."""
        return self._turn

    def left(self, now):
        """Return the ms until time matters to this bolt, 0 = in every scan."""
        return ticks_diff(self._until, now) if self.driving and not self._waiting else 0

    def tidy(self, now):
        """Forget old drives; to be called at least once in 2^29 ms, so that a tick is never misread."""
        self._spend(now)


class Bolts:
    """All three. `told`: names.OUTPUTS mask of their standing commands; `driving`: mask of drives now on;
    `busy`: mask of those to which time matters.
    """

    def __init__(self, bolt_ms):
        self._lock = Bolt(bolt_ms)
        self._bar = Bolt(bolt_ms)
        self._dome = Bolt(bolt_ms)
        self.told = 0
        self.driving = 0
        self.busy = 0
        self._owed_drive = 0  # bolts still to be driven once after a restart

    def assume(self, told):
        """After a restart: take it that the bolts stand as `told` (mask); drives nothing."""
        self._lock.told = bool(told & _COVER_LOCK)
        self._bar.told = bool(told & _COVER_BAR)
        self._dome.told = bool(told & _DOME_LOCK)
        self.told = told & (_COVER_LOCK | _COVER_BAR | _DOME_LOCK)

    def drive_once(self, mask):
        """Drive each bolt of `mask` once to where the next step() wants it, moved already or not."""
        self._owed_drive |= mask
        self.busy |= mask

    def step(self, now, wanted, dome_closed):
        """Follow `wanted` (names.OUTPUTS mask) at tick `now`; a restart does not lock an open dome empty."""
        todo = (wanted ^ self.told) | self.busy
        if todo & _COVER_LOCK:
            self._lock.hasty = wanted & _COVER_BAR  # I6: never both, so it makes way, budget or not
            self._step(now, _COVER_LOCK, self._lock, wanted)
        if todo & _COVER_BAR:
            self._step(now, _COVER_BAR, self._bar, wanted)
        if todo & _DOME_LOCK:
            self._step(now, _DOME_LOCK, self._dome, wanted)
        if self._owed_drive:
            self._drive_owed(now, self._owed_drive, dome_closed)

    def _step(self, now, bit, bolt, wanted):
        if bolt.step(now, wanted & bit != 0):
            self.told |= bit
        else:
            self.told &= ~bit
        if bolt.driving:
            self.driving |= bit
            self.busy |= bit
        else:
            self._note(bit, bolt)

    def _note(self, bit, bolt):
        if bolt.driving:
            self.driving |= bit
            self.busy |= bit
        else:
            self.driving &= ~bit
            if bolt.busy():
                self.busy |= bit
            else:
                self.busy &= ~bit

    def _drive_owed(self, now, owed, dome_closed):
        # A restart does not lock an open dome empty: its drive waits until the dome is on.
        waits = owed & _DOME_LOCK if self.told & _DOME_LOCK and not dome_closed else 0
        self._owed_drive = waits
        owed ^= waits
        if owed & _COVER_LOCK:
            self._drive(now, _COVER_LOCK, self._lock)
        if owed & _COVER_BAR:
            self._drive(now, _COVER_BAR, self._bar)
        if owed & _DOME_LOCK:
            self._drive(now, _DOME_LOCK, self._dome)
        self.busy |= waits

    def _drive(self, now, bit, bolt):
        if not bolt.driving:
            bolt.drive(now)
            self._note(bit, bolt)

    def turning(self, bit):
        """True while the bolt of mask `bit` rests for a scan before it is driven the other way."""
        bolt = self._lock if bit == _COVER_LOCK else self._bar if bit == _COVER_BAR else self._dome
        return bolt.turning()

    def lock_ready(self, now):
        """True when the lock's budget bears a shake: locking is never postponed, so the shake must be."""
        return self._lock.ready(now)

    def left(self, now):
        """Return the ms until step() has something to do, while the same is wanted."""
        left = _LONG
        if self.busy & _COVER_LOCK:
            left = self._lock.left(now)
        if self.busy & _COVER_BAR:
            left = min(left, self._bar.left(now))
        if self.busy & _DOME_LOCK:
            left = min(left, self._dome.left(now))
        return left

    def tidy(self, now):
        """Forget old drives; to be called at least once in 2^29 ms, so that a tick is never misread."""
        self._lock.tidy(now)
        self._bar.tidy(now)
        self._dome.tidy(now)
