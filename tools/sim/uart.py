"""The device's UART: a tap, a pseudo-terminal that any program opens as a port, and a host built in.

Who is the host: the built-in one, until a whole valid `hello` comes from the pseudo-terminal; then that
program, until it has sent nothing for TAKEOVER_S. What arrives is passed on in either case, as on a wire.
The tap sits at the device's own pin: noise and a pulled plug (`lost`) are beyond it.
Units: seconds on the monotonic clock.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import os
import queue
import random
import select
import termios
import threading
import time
import tty
from collections.abc import Callable
from typing import Any

from shakerctl import protocol

TAKEOVER_S = 10.0
LOOK_S = 0.05  # how often an idle pseudo-terminal is looked at
REPLY_S = 2.0
NOISE = 0.01  # of the bytes on a noisy line are damaged


class Pty:
    """A pseudo-terminal in raw mode that outlives the programs which open `name` one after another."""

    def __init__(self, on_data: Callable[[bytes], object]):
        self._master, slave = os.openpty()
        self.name = os.ttyname(slave)
        tty.setraw(slave)
        attributes = termios.tcgetattr(slave)
        attributes[4] = attributes[5] = termios.B115200
        termios.tcsetattr(slave, termios.TCSANOW, attributes)
        self._attributes = attributes
        os.close(slave)  # so that the other end's opening and closing can be seen
        os.set_blocking(self._master, False)
        self.connected = False
        self._on_data = on_data
        self._poll = select.poll()
        self._poll.register(self._master, select.POLLIN)
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_soon(self._look)

    def write(self, data: bytes) -> None:
        """Send to whoever has it open; bytes that nobody reads are lost, as on a wire."""
        if self.connected:
            with contextlib.suppress(OSError):
                os.write(self._master, data)

    def close(self) -> None:
        """Hang up."""
        self._timer.cancel()
        self._loop.remove_reader(self._master)
        os.close(self._master)

    def _look(self) -> None:
        state = dict(self._poll.poll(0)).get(self._master, 0)
        if state & select.POLLIN:
            self._read()
        open_now = not state & select.POLLHUP
        if open_now and not self.connected:
            self.connected = True
            self._loop.add_reader(self._master, self._read)
        elif not open_now and self.connected:
            self._hung_up()
        self._timer = self._loop.call_later(LOOK_S, self._look)

    def _read(self) -> None:
        try:
            data = os.read(self._master, 4096)
        except BlockingIOError:
            return
        except OSError:  # the last program closed it
            if self.connected:
                self._hung_up()
            return
        if data:
            self._on_data(data)

    def _hung_up(self) -> None:
        self.connected = False
        self._loop.remove_reader(self._master)
        with contextlib.suppress(termios.error):  # the next program finds a fresh, raw line
            termios.tcflush(self._master, termios.TCIOFLUSH)
            termios.tcsetattr(self._master, termios.TCSANOW, self._attributes)


class BuiltInHost:
    """A host in a thread of its own: acknowledges events, keeps the link, sends what the croupier enters."""

    def __init__(self, key: bytes | None, send: Callable[[bytes], object]):
        self.silent = False
        self._key = key
        self._send = send
        self._loop = asyncio.get_running_loop()
        self._rx: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._jobs: queue.SimpleQueue[tuple[str, dict[str, Any], concurrent.futures.Future[Any]]]
        self._jobs = queue.SimpleQueue()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="built-in host", daemon=True)
        self._thread.start()

    def feed(self, data: bytes) -> None:
        """Take bytes from the device."""
        self._rx.put(data)

    async def command(self, cmd: str, **args: Any) -> Any:
        """Send a command; return its `ok`. Raises ProtocolError or Silent."""
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        self._jobs.put((cmd, args, future))
        return await asyncio.wrap_future(future)

    def close(self) -> None:
        """End the thread."""
        self._ended.set()
        self._thread.join(5)

    # A port as protocol.Client wants it.

    def read(self, size: int = 1, /) -> bytes:
        """Return what has come, at the latest after 20 ms."""
        try:
            return self._rx.get(timeout=0.02)
        except queue.Empty:
            return b""

    def write(self, data: bytes, /) -> int:
        """Send to the device, from whichever thread."""
        if not self.silent and not self._ended.is_set():
            self._loop.call_soon_threadsafe(self._send, data)
        return len(data)

    def _run(self) -> None:
        # The page shows each event as it comes; nothing else is to remember it.
        client = protocol.Client(self, self._key, keep=lambda event: None)
        while not self._ended.is_set():
            if self.silent:
                client.session = None  # somebody else opened one
                self.read()
                continue
            try:
                cmd, args, future = self._jobs.get_nowait()
            except queue.Empty:
                client.pump()
                continue
            if not future.set_running_or_notify_cancel():
                continue  # whoever asked is gone
            try:
                future.set_result(client.request(cmd, REPLY_S, **args))
            except (protocol.ProtocolError, protocol.Silent, TypeError, ValueError) as error:
                future.set_exception(error)  # the last two: what no line can carry; for who asked, not us


class Uart:
    """The whole line. `to_device(bytes)` sends; `on_message(dict)` gets each message the device says."""

    def __init__(
        self,
        key: bytes | None,
        to_device: Callable[[bytes], object],
        on_message: Callable[[protocol.Message], object],
        seed: int | None = None,
    ):
        self.lost = False
        self.noisy = False
        self.pty = Pty(self._from_pty)
        self.host = BuiltInHost(key, self._from_host)
        self._key = key
        self._to_device = to_device
        self._on_message = on_message
        self._tap = protocol.LineReader()
        self._random = random.Random(seed)
        self._typed = b""
        self._taken_at = float("-inf")
        self._awaited: dict[int, asyncio.Future[protocol.Message]] = {}

    @property
    def taken(self) -> bool:
        """A program on the pseudo-terminal is the host."""
        return time.monotonic() - self._taken_at < TAKEOVER_S

    def renew(self) -> None:
        """Another device is on the line, with another journal: begin anew with it."""
        self._tap = protocol.LineReader()
        self.host.close()
        self.host = BuiltInHost(self._key, self._from_host)
        self.host.silent = self.taken

    def close(self) -> None:
        """Unplug everything."""
        self.host.close()
        self.pty.close()

    def look(self) -> None:
        """Note a takeover's end; call now and then."""
        self.host.silent = self.taken

    def from_device(self, data: bytes) -> None:
        """Pass on what the device sent."""
        for message in self._tap.feed(data):
            self._on_message(message)
            waiting = self._awaited.get(message.get("re", 0))
            if waiting is not None and not waiting.done():
                waiting.set_result(message)
        if not self.lost:
            data = self._damage(data)
            self.pty.write(data)
            self.host.feed(data)

    async def command(self, cmd: str, **args: Any) -> Any:
        """Send a host's command for the croupier; return its `ok`. Raises ProtocolError or Silent.

        While a program is the host, a session is opened beside its own, which it must then open again.
        """
        if not self.taken:
            return await self.host.command(cmd, **args)
        # Numbers this low leave the program's own commands valid.
        hello = await self._ask(1, protocol.encode(1, "hello"), "hello")
        return await self._ask(2, protocol.encode(2, cmd, args, self._key, hello["nonce"]), cmd)

    async def _ask(self, number: int, line: bytes, cmd: str) -> Any:
        future: asyncio.Future[protocol.Message] = asyncio.get_running_loop().create_future()
        self._awaited[number] = future
        try:
            for _ in range(4):
                self._send(line)
                await asyncio.wait({future}, timeout=REPLY_S / 4)
                if future.done():
                    reply = future.result()
                    if "err" in reply:
                        raise protocol.ProtocolError(reply["err"])
                    return reply["ok"]
        finally:
            self._awaited.pop(number, None)
        raise protocol.Silent(cmd)

    def _from_host(self, data: bytes) -> None:
        if not self.taken:
            self._send(data)

    def _from_pty(self, data: bytes) -> None:
        *lines, rest = (self._typed + data).split(b"\n")
        self._typed = rest[-protocol.COMMAND_MAX :]
        if self.taken or any(_is_hello(line) for line in lines):
            self._taken_at = time.monotonic()
            self.host.silent = True
        self._send(data)

    def _send(self, data: bytes) -> None:
        if not self.lost:
            self._to_device(self._damage(data))

    def _damage(self, data: bytes) -> bytes:
        if not self.noisy:
            return data
        chance = self._random
        return bytes(b ^ (1 << chance.randrange(8)) if chance.random() < NOISE else b for b in data)


def _is_hello(line: bytes) -> bool:
    start = line.rfind(b"$")
    return (
        start >= 0
        and line.endswith(b"\r")
        and b'"cmd":"hello"' in line
        and line[start:-1] == protocol.frame(line[start + 1 : -10])[:-2]
    )
