"""Runs first at every start: drives every output safe. Owns nothing else, and nothing may run before it.

Imports `machine` alone, opens no file, and holds literal pin numbers, so that nothing it needs can be missing
or damaged. An output that an earlier run left high, or connected to PWM or RMT, is low and a plain GPIO
after it (MicroPython leaves levels as they were on a crash, Ctrl-C or soft reset). Bolts stay where they are.
"""

import machine

# -- generated from board/pins.csv by board/generate.py: do not edit --
_OUTPUTS = (
    25,  # agitator
    26,  # agitator_enable
    21,  # cover_lock
    22,  # cover_bar
    23,  # dome_lock
    18,  # front_board
    19,  # alarm
)
# -- end of the generated block --

for _pin in _OUTPUTS:
    machine.Pin(_pin, machine.Pin.OUT, value=0)
