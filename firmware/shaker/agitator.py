"""The three pulses of the electronic build, and what the motion sensor says about them.

Owns the time line of a shake: the lock travels for bolt_ms, then pulse, gap, pulse, gap, pulse, then the dice
settle. Decides only when the drive is wanted; the interlock below decides whether it may act, and the board
bounds each pulse in hardware. An aborted shake is forgotten, never resumed (PITFALLS 4).
Units: ms on the folded clock. SPEC section 5. Article 2.1: three strokes.
"""

from micropython import const

from shaker.ticks import ticks_add, ticks_diff

# Numbers of names.py and record.py, as literals: they cost nothing here, and test_literals.py compares them.
_F_AGITATOR_RUNAWAY = const(9)
_F_AGITATOR_STALLED = const(8)
_MOTION = const(0x1000)
_OK = const(0)

PULSES = const(3)  # the law's number, not a setting
_STALL_MS = const(200)
_RUNAWAY_MS = const(300)
_LATE_MS = const(10)  # an edge later than this moves the rest, so that the knocks stay even

_LONG = const(1 << 28)  # ms: never

_REST = const(0)
_TRAVEL = const(1)
_PULSE = const(2)
_GAP = const(3)
_SETTLE = const(4)


class Agitator:
    """`drive`: both channels wanted; `pulsing`: from the first pulse's start to the last one's end;
    `begun`: pulses begun in this shake; `done`: the dice have settled after the last pulse.
    """

    def __init__(self, settings):
        """Take bolt_ms, pulse_ms, gap_ms, settle_ms and motion from `settings`."""
        self._bolt_ms = settings.bolt_ms
        self._pulse_ms = settings.pulse_ms
        self._gap_ms = settings.gap_ms
        self._settle_ms = settings.settle_ms
        self._motion = settings.motion and not settings.lever
        self._stage = _REST
        self._edge = 0
        self._pulse_at = 0
        self._watching = False  # a pulse has begun and no movement has been seen since
        self._moving = False
        self._moving_at = 0
        self.drive = False
        self.pulsing = False
        self.begun = 0
        self.done = False

    def start(self, now):
        """Begin a shake at tick `now`: first the lock's travel."""
        self._stage = _TRAVEL
        self._edge = ticks_add(now, self._bolt_ms)
        self.begun = 0
        self.done = False

    def stop(self):
        """End the shake for good, wherever it is."""
        self._stage = _REST
        self._watching = False
        self.drive = False
        self.pulsing = False
        self.done = False

    def step(self, now):
        """Follow the time line at tick `now`."""
        stage = self._stage
        if stage == _REST:
            return
        late = ticks_diff(now, self._edge)
        if late < 0:
            return
        at = self._edge if late <= _LATE_MS else now
        if stage == _TRAVEL or stage == _GAP:
            self._stage = _PULSE
            ms = self._pulse_ms
            self._pulse_at = now
            self._watching = self._motion
            self.begun += 1
            self.pulsing = True
            self.drive = True
        elif stage == _PULSE:
            self.drive = False
            if self.begun < PULSES:
                self._stage = _GAP
                ms = self._gap_ms
            else:
                self._stage = _SETTLE
                ms = self._settle_ms
                self.pulsing = False
        else:
            self._stage = _REST
            self.done = True
            return
        self._edge = ticks_add(at, ms)

    def watch(self, now, levels, counting):
        """Compare the base's movement with the drive. Returns names.OK or a fault code.

        levels: settled inputs; counting: those on their way to the other level: theirs has not lasted.
        """
        if not self._motion:
            return _OK
        counting &= _MOTION
        if levels & _MOTION:
            self._watching = False
            if self.drive:
                self._moving = False
            elif not self._moving:
                self._moving = True
                self._moving_at = now
            elif not counting and ticks_diff(now, self._moving_at) >= _RUNAWAY_MS:
                return _F_AGITATOR_RUNAWAY
        else:
            self._moving = False
            if self._watching and not counting and ticks_diff(now, self._pulse_at) >= _STALL_MS:
                self._watching = False
                return _F_AGITATOR_STALLED
        return _OK

    def left(self, now, moving):
        """Return the ms until step() or watch() has something to do, while the base goes on like this."""
        left = _LONG
        if self._stage != _REST:
            left = ticks_diff(self._edge, now)
        if self._motion:
            due = _LONG
            if moving and self._moving:
                due = ticks_diff(self._moving_at, now) + _RUNAWAY_MS
            elif self._watching:
                due = ticks_diff(self._pulse_at, now) + _STALL_MS
            if due < left:
                left = due
        return left

    def running_away(self):
        """True while the base moves and has moved with the drive off: the cause of a runaway is present."""
        return self._moving
