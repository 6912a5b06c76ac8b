"""The device: host_tests/live.py in a process of its own, under MicroPython, and the socket to its world.

Owns the process and the staged program. Knows nothing of the game or of pages.
Units: milliseconds on the world's clock.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import json
import pathlib
import tempfile
from collections.abc import Callable
from typing import Any

import play

START_S = 20  # the interpreter must call back within this, even on a busy machine
LINE_BYTES = 1 << 20


class MachineError(Exception):
    """The firmware could not be run; the text says why, in one line."""


class Machine:
    """One running device. `on_world(dict)` and `on_uart(bytes)` are called with what comes from it."""

    def __init__(
        self,
        settings: dict[str, Any],
        on_world: Callable[[dict[str, Any]], object],
        on_uart: Callable[[bytes], object],
    ):
        self.settings = settings
        self.said: collections.deque[str] = collections.deque(maxlen=20)  # what the interpreter printed
        self._on_world = on_world
        self._on_uart = on_uart
        self._process: asyncio.subprocess.Process | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Stage the firmware and start it on an empty table. Raises MachineError."""
        self._folder = tempfile.TemporaryDirectory(prefix="shaker-sim-")
        work = pathlib.Path(self._folder.name)
        program = work / "program"
        play.stage(program)
        settings = work / "settings.json"
        settings.write_text(json.dumps(self.settings))
        called: asyncio.Future[tuple[asyncio.StreamReader, asyncio.StreamWriter]]
        called = asyncio.get_running_loop().create_future()

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if called.done():
                writer.close()
            else:
                called.set_result((reader, writer))

        listener = await asyncio.start_server(connected, "127.0.0.1", 0, limit=LINE_BYTES)
        port = listener.sockets[0].getsockname()[1]
        try:
            command = play.interpreters()["MicroPython"]
            self._process = await asyncio.create_subprocess_exec(
                *command,
                str(play.HERE / "live.py"),
                str(program),
                str(port),
                str(settings),
                env=play.environment(program)["MicroPython"],
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for us; we end it
            )
            self._tasks.append(asyncio.create_task(self._hear_interpreter(self._process)))
            ended = asyncio.create_task(self._process.wait())
            await asyncio.wait({called, ended}, timeout=START_S, return_when=asyncio.FIRST_COMPLETED)
            ended.cancel()
        except FileNotFoundError as error:
            raise MachineError(str(error)) from None
        finally:
            listener.close()
        if not called.done():
            await self.stop()
            raise MachineError("the firmware did not start: " + (self.said[-1] if self.said else "no answer"))
        reader, self._writer = called.result()
        self._tasks.append(asyncio.create_task(self._hear_world(reader)))

    @property
    def running(self) -> bool:
        """The process lives."""
        return self._process is not None and self._process.returncode is None

    def order(self, **what: Any) -> None:
        """Send one order of host_tests/live.py to the world."""
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write((json.dumps(what) + "\n").encode())

    def send(self, data: bytes) -> None:
        """Put bytes on the device's receive line."""
        if data:
            self.order(uart=data.hex())

    async def stop(self) -> None:
        """End the process and remove its files."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        process = self._process
        if process is not None and process.returncode is None:
            try:
                await asyncio.wait_for(process.wait(), 2)
            except TimeoutError:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    async def _hear_world(self, reader: asyncio.StreamReader) -> None:
        while True:
            try:
                line = await reader.readline()
            except OSError:
                return
            if not line.endswith(b"\n"):
                return
            thing = json.loads(line)
            if "uart" in thing:
                self._on_uart(bytes.fromhex(thing["uart"]))
            else:
                self._on_world(thing)

    async def _hear_interpreter(self, process: asyncio.subprocess.Process) -> None:
        stream = process.stdout
        while stream is not None:
            line = await stream.readline()
            if not line:
                return
            self.said.append(line.decode("utf-8", "replace").rstrip())
