"""time's ticks and sleeps over the current World; everything else of time stays real.

On CPython the three calls are added to the time module, which has none of them; on MicroPython, where
built-in modules cannot be changed, this module takes its place in sys.modules. Both happen as world is
imported, which must therefore come before any module that imports time.
"""

import sys
import time as _real

_world = None
_on_micropython = sys.implementation.name == "micropython"

if _on_micropython:
    ticks_us = _real.ticks_us
    ticks_cpu = _real.ticks_cpu
    ticks_diff = _real.ticks_diff
    sleep = _real.sleep
    real_ticks_ms = _real.ticks_ms
    real_sleep_ms = _real.sleep_ms

time = _real.time


def install(world):
    """Let time act on `world`."""
    global _world
    _world = world


def ticks_ms():
    """Return the device's millisecond clock."""
    if _world._halt is not None:
        _world.alive()
    return _world.ticks_ms()


def sleep_ms(ms):
    """Let `ms` pass in the world."""
    if _world._halt is not None:
        _world.alive()
    if ms > 0:
        if _world.on_sleep:
            _world.on_sleep(ms)
        else:
            _world.advance(ms)


def ticks_add(ticks, delta):
    """As on the ESP32, whose clock wraps at 2^30."""
    return (ticks + delta) & 0x3FFFFFFF


if _on_micropython:
    sys.modules["time"] = sys.modules["faketime"]
else:
    _real.ticks_ms = ticks_ms
    _real.sleep_ms = sleep_ms
    _real.ticks_add = ticks_add
