"""Chance that is the same on both interpreters."""


class Lcg:
    """A linear congruential generator; only its high bits are used, and no step leaves 62 bits."""

    def __init__(self, seed):
        self._x = (seed * 7919 + 104729) & 0x7FFFFFFF
        self.below(2)

    def below(self, n):
        """Return a number 0 .. n-1, n up to 2^16."""
        self._x = (self._x * 1103515245 + 12345) & 0x7FFFFFFF
        return (self._x >> 14) % n

    def chance(self, percent):
        """Return True in `percent` of a hundred calls."""
        return self.below(100) < percent

    def choice(self, things):
        """Return one of `things`."""
        return things[self.below(len(things))]

    def bytes(self, n):
        """Return `n` bytes."""
        return bytes([self.below(256) for _ in range(n)])
