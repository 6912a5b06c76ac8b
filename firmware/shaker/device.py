"""What the host may see of the table and ask of it: the link's only view of the firmware.

Owns the translation of a command into the croupier's key of the same name, under the same refusals
(SPEC I8: no command bypasses the interlock), and the wall clock the host has set. No bytes, no frames.
"""

from micropython import const

from shaker.names import CAUSES, WHYS

# Numbers of names.py and record.py, as literals: they cost nothing here, and test_literals.py compares them.
_EV_TIME = const(21)
_FAULT = const(7)
_FLAG_BETS = const(0x01)
_IDLE = const(0)
_OK = const(0)


class Device:
    """Read-only facts as properties; `reboot_asked` is set by the reboot command."""

    def __init__(self, core, journal, queue, settings, ident, cause):
        """ident: hex id of the board; cause: index of names.CAUSES."""
        self.journal = journal
        self.queue = queue
        self.authorised = settings.authorised
        self.ident = ident
        self.cause = CAUSES[cause]
        self.reboot_asked = False
        self._core = core
        self._state = core.state

    @property
    def phase(self):
        """Index of names.PHASES."""
        return self._state.phase

    @property
    def round(self):
        """Number of the round, 0 before the first."""
        return self._state.round

    @property
    def repeat(self):
        """Repeats of this round."""
        return self._state.repeat

    @property
    def fault(self):
        """First latched fault, index of names.FAULTS, 0 = none."""
        return self._state.fault

    @property
    def faults(self):
        """Mask of latched faults, bit n-1 for fault n."""
        return self._state.faults

    @property
    def inputs(self):
        """Settled inputs, the heartbeat's `in` mask."""
        return self._core.inputs.levels & 0x1FFF

    @property
    def outputs(self):
        """The heartbeat's `out` mask."""
        return self._core.outputs

    @property
    def lamps(self):
        """The 39 lamps, bit i for names.LAMPS[i]."""
        return self._core.lamps_lo | self._core.lamps_hi << 20

    @property
    def dice(self):
        """The result as three ints, or None."""
        s = self._state
        return (s.die1, s.die2, s.die3) if s.die1 else None

    @property
    def service(self):
        """True in service mode."""
        return self._state.service()

    @property
    def outstanding(self):
        """True while payout is outstanding."""
        return self._state.owed()

    @property
    def pulsing(self):
        """True while nothing may be parsed, formatted or written."""
        return self._core.agitator.pulsing

    @property
    def disturbances(self):
        """How often an input bounced back before it counted."""
        return self._core.inputs.disturbances

    def uptime_ms(self):
        """Milliseconds since boot (may exceed 2^30)."""
        return self._core.round.t_s * 1000 + self._core.round.t_ms

    def unix_time(self):
        """Unix seconds, or None until the host has set the time."""
        base = self.journal.unix_base
        return None if base is None else base + self._core.round.t_s

    def emit(self, event, a=0, b=0, x=0, y=0):
        """Queue an event with the state as it is."""
        self._core.round.emit(event, a, b, x, y)
        self._core.wake()

    def command(self, name, argument=None):
        """Carry out a signed command; returns None or the protocol's error code. An error changes nothing.

        argument: dice (three ints 1-6) of `result`, Unix seconds of `time`, else None.
        """
        core = self._core
        the_round = core.round
        levels = core.inputs.levels
        if not the_round.judged:
            return "busy"
        why = _OK
        if name == "result":
            why = the_round.result(*argument)
            core.relight()
        elif name == "void":
            why = the_round.void(levels)
        elif name == "paid":
            why = the_round.paid(levels)
        elif name == "abandon":
            why = the_round.abandon()
        elif name == "clear":
            why = the_round.clear(levels)
        elif name == "reboot":
            return self._reboot()
        elif name == "time":
            self.journal.unix_base = max(argument - the_round.t_s, 0)
            the_round.emit(_EV_TIME, 0, 0, argument)
        else:
            return "unknown-command"
        core.wake()
        if why == _OK:
            return None
        # A fault is a phase to the host: it has its own command for leaving it.
        return "wrong-phase" if WHYS[why] == "fault" else WHYS[why]

    def _reboot(self):
        s = self._state
        if s.phase != _IDLE:
            busy_round = s.flags & _FLAG_BETS or s.phase != _FAULT
            return "round-open" if busy_round else "wrong-phase"
        self.reboot_asked = True
        self._core.wake()
        return None
