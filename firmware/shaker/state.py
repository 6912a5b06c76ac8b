"""Where the round stands: the handful of numbers that survive a power cut.

Owns their meaning and how they come back from a journal record. Every event carries all of them
(record.py), so there is no second copy that could disagree. No logic beyond what follows from them.
"""

from struct import pack_into, unpack_from

from micropython import const

from shaker import record

# Numbers of names.py and record.py, as literals: they cost nothing here, and test_literals.py compares them.
_FAULT = const(7)
_IDLE = const(0)
_PAYOUT = const(5)
_FLAG_SERVICE = const(0x04)
_OFF_REPEAT = const(18)
_OFF_FAULTS = const(32)
_OFF_DICE = const(37)


class State:
    """phase, origin (the phase a FAULT came from), flags (record.FLAG_*), boot, round, repeat,
    fault (first code, 0 = none), faults (mask of latched codes), die1..die3 (0 = no result).

    `rec`: the record of the next event, as far as it is known; the round fills in the rest. Whoever changes
    boot, round, repeat, dice or faults packs them, or sets `changed`. `t_s`: the seconds in `rec`.
    """

    def __init__(self):
        self.phase = _IDLE
        self.origin = _IDLE
        self.flags = 0
        self.boot = 0
        self.round = 0
        self.repeat = 0
        self.fault = 0
        self.faults = 0
        self.die1 = 0
        self.die2 = 0
        self.die3 = 0
        self.rec = bytearray(record.SIZE)
        self.rec[0] = record.KIND_EVENT
        self.t_s = 0
        self.changed = True

    def pack(self):
        """Put into `rec` what seldom changes."""
        pack_into("<I", self.rec, record.OFF_BOOT, self.boot)
        self.pack_round()
        self.pack_dice()
        self.pack_faults()
        self.changed = False

    def pack_round(self):
        """Put round and repeat into `rec`."""
        pack_into("<HII", self.rec, _OFF_REPEAT, self.repeat, 0, self.round)

    def pack_dice(self):
        """Put the dice into `rec`."""
        rec = self.rec
        rec[_OFF_DICE] = self.die1
        rec[_OFF_DICE + 1] = self.die2
        rec[_OFF_DICE + 2] = self.die3

    def pack_faults(self):
        """Put the faults into `rec`."""
        pack_into("<IB", self.rec, _OFF_FAULTS, self.faults, self.fault)

    def load(self, rec):
        """Take over the state that the journal record `rec` (64 bytes) carries; the boot counter stays."""
        values = unpack_from(record.BODY, rec, 0)
        self.phase = values[2] & 15
        self.origin = values[2] >> 4
        self.flags = values[3]
        self.repeat = values[8]
        self.round = values[10]
        self.faults = values[12]
        self.fault, self.die1, self.die2, self.die3 = values[13:17]

    def owed(self):
        """True while payout is outstanding: lifted after the bell, neither paid nor void."""
        return self.phase == _PAYOUT or (self.phase == _FAULT and self.origin == _PAYOUT)

    def service(self):
        """True in service mode."""
        return self.flags & _FLAG_SERVICE != 0
