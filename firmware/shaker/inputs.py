"""Contacts in, settled inputs out: what every later layer takes for the truth about the table.

Owns debouncing. Reads levels, never edges, and counts both ways, so a missed interrupt, a swallowed release
or a glitch cannot leave it wrong: the level that persists wins (PITFALLS 3, 28). It never blanks an input
while the motor switches; it counts what bounces back instead (`disturbances`, PITFALLS 29).
Units: scans (5 ms each). SPEC section 5:
    leaving the closed / on side   2 scans in a row  (<= 10 ms)
    reaching the closed / on side  7 scans in a row  (30 ms from the first to the last)
    keys and service, both ways    5 scans in a row  (20 ms)
    motion: moving 2, still 7
Until a bit has settled after power-on it reads 0: open, off, released, still.

The counters are bit-parallel ("vertical"): bit i of _c0, _c1, _c2 is the 3-bit count of input i, so all
inputs cost a dozen integer operations together, and nothing is allocated.
"""

from micropython import const

_MOTION = const(0x1000)

# Beside the reported bits: "seen properly open" (a welded or cut contact never shows it).
LATCH_A_OPEN = const(0x2000)
LATCH_B_OPEN = const(0x4000)

# Contact pairs (b_nc b_no a_nc a_no as bits 3..0) -> closed / invalid / open bits of both latches.
# NO made and NC broken is closed; NO broken and NC made is open; equal is invalid.
_PAIRS = (
    0x000A, 0x0009, 0x2008, 0x000A,
    0x0006, 0x0005, 0x2004, 0x0006,
    0x4002, 0x4001, 0x6000, 0x4002,
    0x000A, 0x0009, 0x2008, 0x000A,
)  # fmt: skip

_QUICK = const(0x600A)  # invalid and open bits of the latches: 2 scans both ways
_SLOW = const(0x0FC0)  # keys and service: 5 scans both ways
_EARNED = const(
    0x1035
)  # closed, on, still: 7 scans to get there, 2 to leave (motion: 1 = the side to leave to)
_SETTLED = const(0x6FFF)  # all but motion has to be calm before a restored phase is judged


class Inputs:
    """`levels`: settled inputs, names.* bits plus LATCH_*_OPEN; `rose`, `fell`: what changed in this scan.

    `calm`: scans in a row in which every contact and key agreed with its settled level.
    `counting`: mask of bits on their way; `disturbances`: how often something bounced back before it counted.
    """

    def __init__(self):
        self.levels = 0
        self.rose = 0
        self.fell = 0
        self.calm = 0
        self.disturbances = 0
        self.counting = 0
        self._c0 = 0
        self._c1 = 0
        self._c2 = 0

    def sample(self, word):
        """Take one reading of the contact word (names.CONTACTS, bit set = contact made).

        Returns the mask of the inputs that settled at another level with it.
        """
        levels = self.levels
        word = ((word & 0x1FF0) | _PAIRS[word & 15]) ^ levels  # from here on: what differs from its level
        if self.counting & ~word:
            self.disturbances += 1
        # Count up where they differ, restart where they agree.
        c0 = self._c0
        c1 = self._c1
        c2 = ((c1 & c0) ^ self._c2) & word
        c1 = (c1 ^ c0) & word
        c0 = ~c0 & word
        # Where has a count reached the number that its kind and direction ask for? 2: what is quick, or
        # leaves the side that has to be earned; 5: keys; 7: the others. No count goes on beyond its number.
        now = (c1 & (((levels ^ _MOTION) & _EARNED) | _QUICK)) | (c2 & c0 & (c1 | _SLOW))
        if word & _SETTLED:
            self.calm = 0
        else:
            self.calm += 1
        if now:
            self.levels = levels ^ now
            self.rose = now & ~levels
            self.fell = now & levels
            word ^= now
            c0 &= word
            c1 &= word
            c2 &= word
        elif self.rose or self.fell:
            self.rose = 0
            self.fell = 0
        self._c0 = c0
        self._c1 = c1
        self._c2 = c2
        self.counting = word
        return now
