"""The three leadscrew bolts: how long each is driven, and how often.

Owns the time limit and the duty budget of every bolt (PITFALLS 31, SPEC I6): driven for bolt_ms after a
change of command, then left where it stands without power; never more than 20 % of any minute. Locking and
barring are never postponed for that budget; a release is, and every release keeps room for the locking
that must be able to follow it.
Units: ms on the folded clock; budget kept in drives of bolt_ms.
"""

from array import array

from micropython import const

from shaker.names import COVER_BAR, COVER_LOCK, DOME_LOCK
from shaker.ticks import ticks_add, ticks_diff

_MINUTE_MS = const(60000)
_BUDGET_MS = const(12000)  # 20 % of a minute
_SCAN_MS = const(5)


class Bolt:
    """One bolt. `told`: the side it was last sent to (True = on); `driving`: its drive is on now."""

    def __init__(self, bolt_ms):
        self.told = False
        self.driving = False
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
        self._spend(now)
        self._starts[self._next] = now
        self._next = (self._next + 1) % self._size
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
        elif self.driving and ticks_diff(now, self._until) >= 0:
            self.driving = False
        if on != self.told:
            # A release leaves room for one more drive: the locking that may have to follow.
            self._waiting = not on and self._spend(now) + 2 > self._size
            if not self._waiting:
                self.told = on
                self.drive(now, turn)
        else:
            self._waiting = False
        return self.told

    def busy(self):
        """True while time matters to this bolt: driven, turning, or waiting for the budget."""
        return self.driving or self._turn or self._waiting

    def tidy(self, now):
        """Forget old drives; to be called at least once in 2^29 ms, so that a tick is never misread."""
        self._spend(now)


class Bolts:
    """All three. `told`: names.OUTPUTS mask of their standing commands; `driving`: mask of drives now on."""

    def __init__(self, bolt_ms):
        self._lock = Bolt(bolt_ms)
        self._bar = Bolt(bolt_ms)
        self._dome = Bolt(bolt_ms)
        self.told = 0
        self.driving = 0
        self.busy = False
        self._owed_drive = 0  # bolts still to be driven once after a restart

    def assume(self, told):
        """After a restart: take it that the bolts stand as `told` (mask); drives nothing."""
        self._lock.told = bool(told & COVER_LOCK)
        self._bar.told = bool(told & COVER_BAR)
        self._dome.told = bool(told & DOME_LOCK)
        self.told = told & (COVER_LOCK | COVER_BAR | DOME_LOCK)

    def drive_once(self, mask):
        """Drive each bolt of `mask` once to where the next step() wants it, moved already or not."""
        self._owed_drive = mask

    def step(self, now, wanted, dome_closed):
        """Follow `wanted` (names.OUTPUTS mask) at tick `now`; a restart does not lock an open dome empty."""
        told = 0
        driving = 0
        lock = self._lock
        bar = self._bar
        dome = self._dome
        owed = self._owed_drive
        if lock.step(now, wanted & COVER_LOCK != 0):
            told |= COVER_LOCK
        if bar.step(now, wanted & COVER_BAR != 0):
            told |= COVER_BAR
            told &= ~COVER_LOCK  # I6, even where the lock's release still waits for its budget
        if dome.step(now, wanted & DOME_LOCK != 0):
            told |= DOME_LOCK
        if owed:
            if owed & COVER_LOCK and not lock.driving:
                lock.drive(now)
            if owed & COVER_BAR and not bar.driving:
                bar.drive(now)
            owed &= DOME_LOCK
            if owed and (dome_closed or not told & DOME_LOCK):
                if not dome.driving:
                    dome.drive(now)
                owed = 0
            self._owed_drive = owed
        if lock.driving:
            driving |= COVER_LOCK
        if bar.driving:
            driving |= COVER_BAR
        if dome.driving:
            driving |= DOME_LOCK
        self.told = told
        self.driving = driving
        self.busy = owed != 0 or lock.busy() or bar.busy() or dome.busy()

    def tidy(self, now):
        """Forget old drives; to be called at least once in 2^29 ms, so that a tick is never misread."""
        self._lock.tidy(now)
        self._bar.tidy(now)
        self._dome.tidy(now)
