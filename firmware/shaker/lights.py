"""The status LED: one colour for each phase, blinking where the croupier should look.

Owns the colours. Units: 0-255 per channel; times in ms.
"""

from shaker.names import FAULT, IDLE

COLOURS = {
    "off": (0, 0, 0),
    "white": (24, 24, 24),
    "blue": (0, 0, 48),
    "amber": (48, 20, 0),
    "green": (0, 48, 0),
    "yellow": (40, 40, 0),
    "cyan": (0, 40, 40),
    "magenta": (40, 0, 40),
    "red": (64, 0, 0),
}
_BY_PHASE = ("white", "blue", "amber", "green", "yellow", "cyan", "magenta", "red")
PHASE_COLOURS = tuple(COLOURS[name] for name in _BY_PHASE)
OFF = COLOURS["off"]


def status(phase, service, ms):
    """Return (r, g, b) for `phase`, blinking at 1 Hz in FAULT and service mode; ms: 0-999 of the second."""
    if ms >= 500 and (phase == FAULT or (phase == IDLE and service)):
        return OFF
    return PHASE_COLOURS[phase]
