"""What can go wrong for a technician: each in one line that says what to do, none as a traceback."""

from __future__ import annotations

import errno
from pathlib import Path


class Trouble(Exception):
    """Something did not work; the text is one line for the technician. Exit code 1."""


class Usage(Trouble):
    """The call itself is wrong. Exit code 2."""


class Unplugged(Trouble):
    """The port went away under us."""


def unplugged(port: str) -> Unplugged:
    """Return what to say when `port` vanishes in the middle of something."""
    return Unplugged(
        f"{port} went away: the cable was pulled or the board lost its power. Plug it in and run the same "
        f"command again; nothing was switched over."
    )


def ports() -> str:
    """Return the serial ports that there are, in words."""
    from serial.tools import list_ports

    found = sorted(port.device for port in list_ports.comports() if port.vid is not None)
    return "ports found: " + ", ".join(found) if found else "no USB serial port is plugged in"


def port_trouble(port: str, error: BaseException | None = None, option: str = "--port") -> Trouble:
    """Return why `port`, given with `option`, could not be opened, in one line."""
    if not port:
        return Trouble(f"{option} is empty: give the port's name ({ports()}).")
    if not Path(port).exists():
        return Trouble(
            f"There is no port {port}: plug the board in and give its name with {option} ({ports()})."
        )
    number = getattr(error, "errno", None)
    text = str(error)
    if number == errno.EACCES or "Permission denied" in text:
        return Trouble(
            f"You may not open {port}: add yourself to its group (often dialout) and log in again."
        )
    if number in (errno.EBUSY, errno.EAGAIN) or "lock" in text or "busy" in text:
        return Trouble(f"{port} is in use: close the other program (a terminal, mpremote, shakerctl) first.")
    return Trouble(
        f"{port} cannot be opened as a serial port ({text or 'unknown reason'}): is it the right one?"
    )
