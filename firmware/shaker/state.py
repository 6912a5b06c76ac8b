"""Where the round stands: the handful of numbers that survive a power cut.

Owns their meaning and how they come back from a journal record. Every event carries all of them
(record.py), so there is no second copy that could disagree. No logic beyond what follows from them.
"""

import struct

from shaker import record
from shaker.names import FAULT, IDLE, PAYOUT
from shaker.record import FLAG_SERVICE


class State:
    """phase, origin (the phase a FAULT came from), flags (record.FLAG_*), boot, round, repeat,
    fault (first code, 0 = none), faults (mask of latched codes), die1..die3 (0 = no result).
    """

    def __init__(self):
        self.phase = IDLE
        self.origin = IDLE
        self.flags = 0
        self.boot = 0
        self.round = 0
        self.repeat = 0
        self.fault = 0
        self.faults = 0
        self.die1 = 0
        self.die2 = 0
        self.die3 = 0

    def load(self, rec):
        """Take over the state that the journal record `rec` (64 bytes) carries; the boot counter stays."""
        values = struct.unpack_from(record.BODY, rec, 0)
        self.phase = values[2] & 15
        self.origin = values[2] >> 4
        self.flags = values[3]
        self.repeat = values[8]
        self.round = values[10]
        self.faults = values[12]
        self.fault, self.die1, self.die2, self.die3 = values[13:17]

    def owed(self):
        """True while payout is outstanding: lifted after the bell, neither paid nor void."""
        return self.phase == PAYOUT or (self.phase == FAULT and self.origin == PAYOUT)

    def service(self):
        """True in service mode."""
        return self.flags & FLAG_SERVICE != 0
