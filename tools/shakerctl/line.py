"""The shaker's UART as the commands use it: the port, the key, and what the device's error codes mean."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import serial

from shakerctl import protocol
from shakerctl.trouble import Trouble, Usage, port_trouble

BAUD = 115200
READ_S = 0.02  # a read waits at most this long
ANSWER_S = 10.0
KEY_FILE_MOST = 200  # characters: what is longer is no key, however long it goes on

HINTS = {
    "bad-mac": "wrong key: give the one that was provisioned (--key-file), or provision the table anew",
    "no-key": "the table has no key: `shakerctl provision` one first",
    "no-session": "the shaker restarted meanwhile: run it again",
    "wrong-phase": "it means nothing in this phase: look with `shakerctl monitor`",
    "cover-on": "lift the cover first",
    "cause-present": "what caused the fault is still there: look with `shakerctl monitor`",
    "round-open": "a round is open: finish it first",
    "busy": "the shaker is busy: run it again in a moment",
    "bad-argument": "the shaker does not take that value",
    "unknown-command": "the shaker's firmware is older than this tool: deploy the present one",
    "id-old": "another host talks to the shaker on this line: stop it first",
    "id-reused": "another host talks to the shaker on this line: stop it first",
}


class _Line:
    """A serial port for protocol.Client; what goes wrong with it is a Trouble."""

    def __init__(self, name: str, option: str):
        self.name = name
        try:
            self._port = serial.Serial(name, BAUD, timeout=READ_S, exclusive=True)
        except (serial.SerialException, OSError, ValueError) as error:
            raise port_trouble(name, error, option) from None

    def read(self, size: int = 1, /) -> bytes:
        """Return what is there, at most `size` bytes, after waiting READ_S at most."""
        try:
            return self._port.read(min(size, max(1, self._port.in_waiting)))
        except (serial.SerialException, OSError, TypeError):
            raise self._gone() from None

    def write(self, data: bytes, /) -> int | None:
        """Send."""
        try:
            return self._port.write(data)
        except (serial.SerialException, OSError):
            raise self._gone() from None

    def close(self) -> None:
        """Let go of the port."""
        with contextlib.suppress(serial.SerialException, OSError):
            self._port.close()

    def _gone(self) -> Trouble:
        return Trouble(f"{self.name} went away: plug the line's adapter in and run the same command again.")


def key_of(path: Path | None) -> bytes | None:
    """Return the key in a file of 64 hex digits."""
    if path is None:
        return None
    try:
        with path.open(encoding="ascii") as file:
            key = bytes.fromhex(file.read(KEY_FILE_MOST).strip())
    except OSError as error:
        raise Usage(
            f"The key file {path} cannot be read ({error.strerror}): give one with --key-file."
        ) from None
    except ValueError:
        key = b""
    if len(key) != 32:
        raise Usage(
            f"{path} is no key: it must hold 64 hex digits; make one with `shakerctl provision --new-key`."
        )
    return key


@contextmanager
def client(
    port: str, key: bytes | None = None, option: str = "--port", **options: Any
) -> Iterator[protocol.Client]:
    """Open the UART, named by `option`, and yield a protocol.Client; `options`: see there.

    Only with `keep` it acknowledges.
    """
    line = _Line(port, option)
    try:
        yield protocol.Client(line, key, **options)
    finally:
        line.close()


def request(
    link: protocol.Client, port: str, cmd: str, timeout: float | None = None, **args: Any
) -> dict[str, Any]:
    """Send a command and return its `ok`; Trouble for an error or for silence."""
    try:
        return link.request(cmd, timeout or ANSWER_S, **args)
    except protocol.ProtocolError as error:
        raise Trouble(
            f"The shaker refused {cmd}, {error.code}: {HINTS.get(error.code, 'see PROTOCOL.md')}."
        ) from None
    except ValueError as error:
        raise Usage(f"{error}: give a shorter argument.") from None
    except protocol.Silent:
        raise silent(port, cmd, link) from None


def silent(port: str, cmd: str, link: protocol.Client) -> Trouble:
    """Return what to say when no answer comes."""
    if link.heard_at is not None:
        return Trouble(
            f"The shaker on {port} talks, but does not answer {cmd}: check the wire to its receive pin."
        )
    return Trouble(
        f"The shaker on {port} is silent: is this its UART 2 (not USB), has it power, does the firmware run "
        "(status LED), and are the two wires crossed over?"
    )


def wait_for(link: protocol.Client, port: str, condition: Callable[[], object]) -> None:
    """Pump until `condition()`; Trouble when the shaker stays silent for ANSWER_S."""
    import time

    heard = time.monotonic()
    while not condition():
        link.pump()
        if link.heard_at is not None:
            heard = max(heard, link.heard_at)
        if time.monotonic() - heard > ANSWER_S:
            raise silent(port, "hello", link)
