"""The board at its USB port: is it free, how to make it free, and work on it over mpremote's transport.

A running shaker is never sent Ctrl-C on suspicion: it would be a fault and a restart. Only a board that shows
its prompt is taken over at once; any other belongs to the technician, who first turns the service key on with
no round open. The shaker then stops in an orderly way and restarts with its outputs off and no watchdog.
Times in seconds.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import struct
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import serial
from mpremote.transport import TransportError
from mpremote.transport_serial import SerialTransport

from shakerctl import protocol
from shakerctl.trouble import Trouble, port_trouble, unplugged
from shakerctl.voice import Voice

PROMPT = b">>> "
BENCH = b"bench:"
RUNNING = b"shaker: running from "
OLDEST = (1, 26)
BAUD = 115200
RAW = b"raw REPL; CTRL-B to exit\r\n"
CUT_S = 5  # for a program on the board to end at Ctrl-C, its `finally` included
PROBE_S = 2.0  # a free board answers at once; one that was reset by opening its port has booted by then
BACK_S = 5.0
STOP_S = 10.0  # the shaker's orderly stop, its restart, and a port that comes back
SERVICE = "the service key on, no round open (the status LED blinks white)"


class Usb:
    """One board at `port`. Use as a context manager: the port is closed at the end.

    A board that take() has stopped is reset when the work ends with an exception, Ctrl-C included.
    """

    def __init__(self, port: str, voice: Voice):
        self.port = port
        self.voice = voice
        self.ident = ""
        self.patience_s = 60.0  # for an answer
        self.came_back = False  # the port was away during a restart
        self.before_each: Callable[[str], None] = lambda what: None  # tests break the work here
        self._link: SerialTransport | None = None
        self._stopped = False  # by us, and not started again
        self._cut = False  # the last exec() did not end: the board may be in the midst of anything
        self._open()

    def __enter__(self) -> Usb:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        try:
            if error is not None and self._stopped:
                self._give_back()
        finally:
            self.close()

    def _give_back(self) -> None:
        """Start the shaker again, or say that it stands still."""
        try:
            self._interrupt()
            self.restart()
        except Trouble:
            self.voice.say("The shaker is stopped: its reset button (EN), or its power, starts it again.")

    def _open(self) -> None:
        # The real name, because mpremote reads a pseudo-terminal well only when it knows that it is one.
        path = os.path.realpath(self.port) if os.path.exists(self.port) else self.port
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                self._link = SerialTransport(path, baudrate=BAUD, timeout=10)
            self.wire.reset_input_buffer()
        except (TransportError, serial.SerialException, OSError):
            raise self._why() from None

    def _why(self) -> Trouble:
        """Return why the port could not be opened: mpremote does not tell."""
        try:
            serial.Serial(self.port, exclusive=True).close()
        except (serial.SerialException, OSError, ValueError) as error:
            return port_trouble(self.port, error)
        return port_trouble(self.port)

    def close(self) -> None:
        """Let go of the port."""
        if self._link is not None:
            with contextlib.suppress(serial.SerialException, OSError):
                if self._cut:
                    self._link.serial.write(b"\r\x03")
                if self._link.in_raw_repl:
                    self._link.exit_raw_repl()
                self._link.close()
            self._link = None

    @property
    def link(self) -> SerialTransport:
        """The transport of mpremote."""
        if self._link is None:
            raise unplugged(self.port)
        return self._link

    @property
    def wire(self) -> serial.Serial:
        """The port itself."""
        port: Any = self.link.serial
        return port

    # -- Bytes, before the board is ours -------------------------------------------------------------------

    def read(self, seconds: float, until: Callable[[bytes], object]) -> bytes:
        """Return what the board says within `seconds`, or up to where `until(all of it)` is true."""
        said = b""
        end = time.monotonic() + seconds
        port = self.wire
        try:
            while time.monotonic() < end and not until(said):
                waiting = port.in_waiting
                if waiting:
                    said += port.read(waiting)
                else:
                    if not os.path.exists(self.port):
                        raise unplugged(self.port)
                    time.sleep(0.01)
        except (serial.SerialException, OSError):
            raise unplugged(self.port) from None
        return said

    def write(self, data: bytes) -> None:
        """Send bytes."""
        try:
            self.wire.write(data)
        except (serial.SerialException, OSError):
            raise unplugged(self.port) from None

    def free(self) -> bool:
        """Does the board show its prompt? Asks in a way that a running shaker does not notice."""
        self.write(b"\r\n\x02\r\n")  # Ctrl-B: a tool that was cut off may have left it in the raw REPL
        if PROMPT in self.read(PROBE_S, lambda said: PROMPT in said):
            return True
        # Or in mid-paste, which Ctrl-D ends (what was pasted does not compile any more). After a # it is not
        # a soft reset for a board that comes to its prompt only now.
        self.write(b"#\x04\x02\r\n")
        return PROMPT in self.read(PROBE_S / 2, lambda said: PROMPT in said)

    def take(self) -> None:
        """Make the board ours, at its raw REPL; with the technician's consent when the shaker runs."""
        if not self.free():
            self._stop_shaker()
        self._stopped = True
        self._enter()
        self.identify()

    def _stop_shaker(self) -> None:
        self.voice.say(f"The shaker is running. To work on it: {SERVICE}.")
        if not self.voice.confirm("Is that so, and may it stop?"):
            raise Trouble(f"Nothing was done. Run it again with {SERVICE}.")
        self.wire.reset_input_buffer()
        self.write(b"\x03")
        said = self.after_restart(STOP_S, lambda said: BENCH in said or PROMPT in said or RUNNING in said)
        if RUNNING not in said and self.free():
            return
        if any(protocol.LineReader().feed(said)):
            raise Trouble(f"{self.port} is the shaker's UART 2: give the port of its own USB connector.")
        if said:
            raise Trouble(
                "The shaker was not in service mode: it reported internal-error and restarted. "
                f"Clear that fault, put {SERVICE}, and run it again."
            )
        raise Trouble(
            f"The board says nothing on {self.port}: check its power and that the cable carries data, "
            "press its reset button (EN), and run it again."
        )

    def _reopen(self, end: float) -> None:
        self.close()
        while True:
            try:
                self._open()
                return
            except Trouble:
                if time.monotonic() > end:
                    raise
                time.sleep(0.1)

    def _enter(self) -> None:
        heard = io.StringIO()
        try:
            with contextlib.redirect_stdout(heard):  # mpremote prints what it does not understand
                self.link.enter_raw_repl(soft_reset=True)
        except TransportError:
            raise Trouble(
                f"The board on {self.port} does not speak as MicroPython: press its reset button (EN) and "
                "run it again; if that does not help, `shakerctl flash` it anew."
            ) from None
        except (serial.SerialException, OSError):
            raise unplugged(self.port) from None

    def identify(self) -> None:
        """Refuse a board that this firmware is not for."""
        platform, version, name, ident = self.eval(
            "(lambda s, m: (s.platform, tuple(s.implementation[1] if isinstance(s.implementation, tuple) "
            "else s.implementation.version)[:2], getattr(s.implementation, '_machine', '?'), "
            "m.unique_id().hex() if m else ''))(__import__('sys'), "
            "__import__('machine') if __import__('sys').platform == 'esp32' else None)"
        )
        if platform != "esp32" or not name.rstrip().endswith("ESP32"):
            raise Trouble(
                f"Wrong chip: the board says '{name}'. The shaker needs a plain ESP32 (not S2, S3, C3 …)."
            )
        if tuple(version) < OLDEST:
            have = ".".join(map(str, version))
            want = ".".join(map(str, OLDEST))
            raise Trouble(
                f"MicroPython {have} is too old: `shakerctl flash` the board with {want} or newer first."
            )
        self.ident = ident

    # -- Work on the board -----------------------------------------------------------------------------------

    def exec(self, code: str, timeout: float | None = None) -> str:
        """Run `code` on the board and return what it prints. BoardTrouble for its exceptions."""
        if self._cut:
            self._interrupt()
        self._cut = True
        try:
            self.link.exec_raw_no_follow(code)
            said, error = self.link.follow(timeout or self.patience_s)
            self._cut = False
        except (serial.SerialException, OSError, struct.error, TypeError):
            raise unplugged(self.port) from None
        except TransportError as silent:
            if not os.path.exists(self.port):
                raise unplugged(self.port) from None
            raise Trouble(
                f"The board on {self.port} stopped answering ({silent}): reset it and run it again."
            ) from None
        if error:
            raise board_trouble(error.decode("utf-8", "replace"))
        return said.decode("utf-8", "replace")

    def eval(self, expression: str, timeout: float | None = None) -> Any:
        """Return the value of an expression on the board."""
        text = self.exec(f"print(repr({expression}))", timeout)
        try:
            return ast.literal_eval(text.strip())
        except (ValueError, SyntaxError):
            raise Trouble(f"The board answered {text.strip()[:60]!r}: reset it and run it again.") from None

    def _interrupt(self) -> None:
        """Bring the board back to its raw REPL from whatever a call that was cut off left it in."""
        self._cut = False
        try:
            # Ctrl-C ends a program, a half-sent paste and a half-sent line; Ctrl-A then asks for the prompt.
            self.wire.write(b"\x03")
            said = self.read(0.2, lambda said: said.endswith(b"\x04>"))
            self.wire.write(b"\x01")
            if not self.link.read_until(1, RAW, timeout=CUT_S, timeout_overall=CUT_S).endswith(RAW):
                raise Trouble(f"The board on {self.port} does not stop ({said[-40:]!r}): reset it (EN).")
        except (serial.SerialException, OSError, TypeError):
            raise unplugged(self.port) from None

    def restart(self) -> None:
        """Reset the board, so that boot.py and main.py run."""
        self._stopped = False
        with contextlib.suppress(serial.SerialException, OSError, TransportError, struct.error, TypeError):
            self.link.exec_raw_no_follow("import machine\nmachine.reset()")  # its port may go with it
        self._cut = False
        self.link.in_raw_repl = False

    def after_restart(self, seconds: float, until: Callable[[bytes], object]) -> bytes:
        """Return what the board says while it restarts, up to `until`; its port may go and come back."""
        end = time.monotonic() + seconds
        said = b""
        while time.monotonic() < end and not until(said):
            try:
                said += self.read(1.0, partial(_joined, until, said))
            except Trouble:
                self._reopen(end)
                self.came_back = True
                self.write(b"\r\n")  # what was said meanwhile is lost; a prompt can be had again
                end = min(end, time.monotonic() + BACK_S)
        return said


def _joined(until: Callable[[bytes], object], before: bytes, new: bytes) -> object:
    return until(before + new)


class BoardTrouble(Trouble):
    """What the board could not do; `error` is its own text."""

    def __init__(self, error: str, text: str):
        super().__init__(text)
        self.error = error


def board_trouble(error: str) -> BoardTrouble:
    """Return in one line what an exception on the board means."""
    last = error.strip().splitlines()[-1] if error.strip() else "?"
    if "ENOSPC" in last or "OSError: 28" in last:
        text = "No space is left on the board: remove files of yours (`mpremote fs ls :`), then run it again."
    elif "MemoryError" in last:
        text = "The board ran out of memory: press its reset button (EN) and run it again."
    elif "KeyboardInterrupt" in last:
        text = "Somebody pressed Ctrl-C on the board: run it again."
    else:
        text = f"The board said '{last}': reset it and run it again; if it stays so, deploy again."
    return BoardTrouble(error, text)
