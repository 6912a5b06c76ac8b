"""Runs first at every start, before anything else: drives every output safe. main.py imports it for safe().

Imports `sys` and `machine` alone, opens no file, and holds literal pin numbers, so that nothing it needs can
be missing, damaged or replaced. An output that an earlier run left high, or connected to PWM or RMT, is low
and a plain GPIO after it (MicroPython leaves levels as they were on a crash, Ctrl-C or soft reset, and the
chip leaves pins, PWM and RMT as they were when the program or the watchdog resets it). Bolts stay where they
are then; one that was driven has gone on until here.
"""

import sys

path = sys.path[:]  # as the port made it
sys.path[:] = [".frozen"]  # else a file /machine.py would be imported; no file can stand in for `sys`

import machine

sys.path[:] = path
Pin = machine.Pin

# -- generated from board/pins.csv by board/generate.py: do not edit --
OUTPUTS = [
    25,  # agitator
    26,  # agitator_enable
    21,  # cover_lock
    22,  # cover_bar
    23,  # dome_lock
    18,  # front_board
    19,  # alarm
]
# -- end of the generated block --


def safe():
    """Drive every output low as a plain GPIO: off, whatever it was connected to."""
    for pin in OUTPUTS:
        Pin(pin, Pin.OUT, value=0)


safe()
