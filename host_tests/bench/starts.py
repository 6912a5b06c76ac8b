"""The start between marks: boot.py until every output is safe, then the firmware until it is ready to scan.

Runs on MicroPython under valgrind (counting.py), in an empty folder and with the cross-compiled firmware in
the path. For boot.py a pin costs a call and does nothing; all else runs on the fakes' world.
"""

import sys

import machine

import marks


class Pin:
    """What boot.py uses: a pin that is low from the start. `safe`: how many outputs it has made so."""

    OUT = machine.Pin.OUT
    safe = 0

    def __init__(self, number, mode, value):
        Pin.safe += mode == Pin.OUT and value == 0


def _source(name):
    for folder in sys.path:
        try:
            with open(folder + "/" + name) as f:
                return f.read()
        except OSError:  # in another folder
            pass
    raise ValueError(name)


def boot():
    """Count boot.py, which the chip compiles at each start."""
    text = _source("boot.py")
    machine.Pin, pin = Pin, machine.Pin
    marks.begin_one()
    exec(compile(text, "boot.py", "exec"), {"__name__": "boot"})
    marks.end_one()
    machine.Pin = pin
    if Pin.safe != 7:
        raise ValueError("boot.py made %d outputs safe" % Pin.safe)
    marks.label("boot.py, every output safe")


def firmware():
    """Count loading the modules and starting the application with a blank journal."""
    import heap

    heap.begin()
    for stage, name in ((heap.modules, "modules loaded"), (heap.start, "application ready to scan")):
        marks.begin_one()
        stage()
        marks.end_one()
        marks.label(name)


marks.begin()
boot()
firmware()
