"""The one name firmware imports from MicroPython's own `micropython` module, for CPython."""


def const(value):
    """Return `value`: on CPython a constant is just a name."""
    return value
