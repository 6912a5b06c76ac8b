"""Marks in a program that valgrind watches: what lies between two marks is counted apart.

Runs on MicroPython. callgrind dumps its counters before each call of the C library's getenv(), which nothing
else here calls; counting.py puts the dumps and the lines printed here together.
"""

import os

_mark = os.getenv
_NAME = "MARK"


def begin():
    """Make the marks' own cost a settled one."""
    for _ in range(3):
        _mark(_NAME)


def begin_one():
    """What comes now is counted, until end_one()."""
    _mark(_NAME)


def end_one():
    """End what began; label() must follow."""
    _mark(_NAME)


def label(text):
    """Name what was counted."""
    print("MARK", text)


def per_turn(name, run, few, many):
    """Count what one turn costs: run(few) and run(many), whose difference is free of all else."""
    for kind, n in (("few", few), ("many", many)):
        _mark(_NAME)
        run(n)
        _mark(_NAME)
        print("MARK %s %s %d" % (name, kind, n))
