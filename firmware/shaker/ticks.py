"""Milliseconds on a clock that wraps at 2^30, the same on every port.

The ESP32's ticks_ms() wraps at 2^30, the unix port's at 2^62. Every reading is folded to 2^30 where it
enters, and all arithmetic on it goes through this module. No step leaves the 31-bit small-integer range
of a 32-bit MicroPython, so nothing here allocates.
Units: ms. Differences are valid up to 2^29 ms (6.2 days); longer times are counted in seconds.
"""

from micropython import const

_MASK = const(0x3FFFFFFF)
_HALF = const(0x20000000)


def fold(raw):
    """Fold a reading of any port's ticks_ms() (an int, any size) to 0 .. 2^30-1."""
    return raw & _MASK


def ticks_add(ticks, delta):
    """Return the tick `delta` ms (0 .. 2^29-1) after `ticks`. Never exceeds a 31-bit integer on the way."""
    return (ticks + (delta - _MASK - 1)) & _MASK


def ticks_diff(end, start):
    """Return `end - start` in ms, -2^29 .. 2^29-1; negative when `end` lies before `start`."""
    return (((end - start) & _MASK) ^ _HALF) - _HALF
