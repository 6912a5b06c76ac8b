"""A virtual board: a real MicroPython behind a pseudo-terminal that behaves as an ESP32's USB port.

`mpremote connect`, `shakerctl` and any terminal work on it; machine, esp32, neopixel and time are the fakes,
with the table behind them, in real time. `.venv/bin/python host_tests/virtualboard.py` starts one to play
with: it says where its ports are and takes live.py's orders as JSON lines on standard input.

    board.usb, board.uart      paths of its two serial ports (links that stay when the port comes back)
    board.order(set={…}, …)    what people and faults do: live.py's orders, and virtualchip.py's
    board.seen                 what the table looks like: live.py's view, always the newest
    board.wait(condition)      until condition(seen) holds

Where the board differs from a real one stands in virtualchip.py. There is no application partition;
partitions are tested by the image's own tests, and by `data` here.
"""

from __future__ import annotations

import argparse
import json
import os
import pty
import selectors
import socket
import subprocess
import sys
import tempfile
import threading
import time
import tty
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from interpreter import FIRMWARE, HERE, MICROPYTHON

HEAP_BYTES = 48_000_000
UNREAD_S = 0.5  # a busy reader is slower than a wire
PATIENCE_S = 40.0  # of wait(); a busy machine is slow, not wrong
STOCK_BLOCKS = 112  # of 4096 bytes: `/`; a stock image has 512, which would only cost time
DATA_BLOCKS = 32  # the data partition


class BoardError(Exception):
    """The board did not do what was waited for; the text says what it said last."""


class _Port:
    """A pseudo-terminal in raw mode, at a path that stays the same."""

    def __init__(self, path: Path):
        self.path = path
        self.master = -1
        self._slave = -1
        self.unsent = b""
        self._went_at = 0.0
        self.open()

    def open(self) -> None:
        """Plug it in."""
        self.master, self._slave = pty.openpty()
        tty.setraw(self._slave)
        os.set_blocking(self.master, False)
        self.path.unlink(missing_ok=True)
        self.path.symlink_to(os.ttyname(self._slave))

    def close(self) -> None:
        """Pull it."""
        self.path.unlink(missing_ok=True)
        os.close(self._slave)
        os.close(self.master)
        self.master = -1
        self.unsent = b""

    def write(self, data: bytes) -> None:
        """Send `data`, never waiting; what nobody reads for UNREAD_S is lost, as on a serial line."""
        self.unsent += data
        self.flush()

    def flush(self) -> None:
        """Send what has not gone out yet, as far as it goes."""
        if not self.unsent:
            return
        try:
            self.unsent = self.unsent[os.write(self.master, self.unsent) :]
            self._went_at = time.monotonic()
        except BlockingIOError:
            if time.monotonic() - self._went_at > UNREAD_S:
                self.unsent = b""
        except OSError:
            self.unsent = b""

    def events(self) -> int:
        """Return what the pump waits for."""
        return selectors.EVENT_READ | (selectors.EVENT_WRITE if self.unsent else 0)

    def read(self) -> bytes:
        """Return what has come."""
        try:
            return os.read(self.master, 4096)
        except OSError:
            return b""


class VirtualBoard:
    """One board in `folder`. See the module; use it as a context manager, or call close().

    blocks: of `/`. data: blocks of the data partition, 0 = none, as on the stock image. version, machine,
    platform: what MicroPython says it is. image: a file that keeps the flash over runs. log: a file that
    receives every flash operation of `/`. vanish: the USB port goes and comes back at each reset. frozen: a
    ROMFS image of what is frozen into MicroPython, boot.py and main.py with it.
    """

    def __init__(
        self,
        folder: Path,
        blocks: int = STOCK_BLOCKS,
        data: int = DATA_BLOCKS,
        version: tuple[int, int, int] = (1, 27, 0),
        machine: str = "Generic ESP32 module with ESP32",
        platform: str = "esp32",
        image: Path | None = None,
        log: Path | None = None,
        vanish: bool = False,
        frozen: Path | None = None,
        rate: float = 1,
    ):
        folder.mkdir(parents=True, exist_ok=True)
        self.usb = str(folder / "usb")
        self.uart = str(folder / "uart")
        self.seen: dict[str, Any] = {}
        self.resets: list[str] = []
        self.said = deque(maxlen=2000)  # what went out of the USB port
        self._vanish = vanish
        self._changed = threading.Condition()
        self._syncs = 0
        self._synced = 0
        self._now = 0  # ms on the table's clock
        self._lock = threading.Lock()
        self._sending = threading.Lock()
        self._usb = _Port(Path(self.usb))
        self._uart = _Port(Path(self.uart))
        listener = socket.create_server(("127.0.0.1", 0))
        if image is not None and not image.exists():
            image.write_bytes(b"\xff" * 4096 * (blocks + data))
        options = {
            "blocks": blocks,
            "data": data,
            "version": version,
            "machine": machine,
            "platform": platform,
            "image": str(image) if image else None,
            "log": str(log) if log else None,
            "frozen": str(frozen) if frozen else None,
            "rate": rate,
        }
        stdin, self._to_chip = os.pipe()
        os.set_blocking(stdin, False)
        words = [MICROPYTHON, "-X", f"heapsize={HEAP_BYTES}", str(HERE / "virtualchip.py")]
        path = ":".join(map(str, (HERE / "fakes", HERE, FIRMWARE, ".frozen")))
        self._errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [*words, str(listener.getsockname()[1]), json.dumps(options)],
            env={**os.environ, "MICROPYPATH": path},
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=self._errors,
        )
        os.close(stdin)
        listener.settimeout(PATIENCE_S)
        self._control = listener.accept()[0]
        listener.close()
        self._closing = False
        self._thread = threading.Thread(target=self._pump, daemon=True)
        self._thread.start()

    def __enter__(self) -> VirtualBoard:
        return self

    def __exit__(self, *args: object) -> None:
        self.close()

    # -- What people do ------------------------------------------------------------------------------------

    def order(self, **order: Any) -> None:
        """Give one order to the table or the board, and return when it has been carried out."""
        if order.get("power") == "on":  # what was sent to a board without power is lost
            with self._lock:
                self._usb.read()
        with self._changed:
            self._syncs += 1
            number = self._syncs
        self._send({"sync": number, **order})
        self._until(lambda: self._synced >= number, f"the board took no order {order}")

    def set(self, **inputs: str) -> None:
        """Put inputs where SPEC section 2 says."""
        self.order(set=inputs)

    def press(self, key: str, ms: int = 150) -> None:
        """Press and release a key."""
        self.set(**{key: "pressed"})
        self.rest(ms)
        self.set(**{key: "released"})

    def rest(self, ms: int) -> None:
        """Let `ms` pass on the table's clock."""
        self.order()
        end = self._now + ms
        while self._now < end:
            time.sleep(0.005)
            self.order()

    def cover(self) -> None:
        """Seat the cover and close the latches."""
        self.set(cover="on")
        self.set(latch_a="closed", latch_b="closed")

    def uncover(self) -> None:
        """Open the latches and lift."""
        self.set(latch_a="open", latch_b="open")
        self.set(cover="off")

    def unplug(self) -> None:
        """Pull the USB cable. The board keeps its power."""
        with self._lock:
            if self._usb.master >= 0:
                self._usb.close()

    def plug(self) -> None:
        """Plug the USB cable in again."""
        with self._lock:
            if self._usb.master < 0:
                self._usb.open()

    # -- What can be seen ----------------------------------------------------------------------------------

    def wait(
        self, condition: Callable[[dict[str, Any]], object], what: str = "", timeout: float = PATIENCE_S
    ):
        """Wait until `condition(seen)` holds; BoardError when it does not come."""
        self._until(
            lambda: bool(self.seen) and condition(self.seen), what or "the table did not change", timeout
        )

    def output(self, name: str) -> str:
        """Return 'on' or 'off'."""
        return self.seen["out"][name]

    def flash_operations(self) -> int:
        """Return the programs and erases of `/` so far."""
        self.order()
        return self.seen["flash"]

    def heard(self, words: bytes) -> int:
        """Return how often `words` went out of the USB port."""
        with self._changed:
            return b"".join(self.said).count(words)

    def expect(self, words: bytes, times: int = 1) -> None:
        """Wait until `words` have gone out of the USB port `times` times."""
        self._until(lambda: b"".join(self.said).count(words) >= times, f"{words!r} was not said")

    def _until(self, condition: Callable[[], object], what: str, timeout: float = PATIENCE_S) -> None:
        with self._changed:
            if not self._changed.wait_for(lambda: condition() or self.process.poll() is not None, timeout):
                raise BoardError(f"{what}: {self.seen}; said {b''.join(self.said)[-300:]!r}")
        if not condition():
            self._errors.seek(0)
            raise BoardError(
                f"the chip ended: {self._errors.read()[-2000:]!r} {b''.join(self.said)[-300:]!r}"
            )

    # -- The wires -----------------------------------------------------------------------------------------

    def _send(self, order: dict[str, Any]) -> None:
        with self._sending:
            self._control.sendall((json.dumps(order) + "\n").encode())

    def _pump(self) -> None:
        stdout = self.process.stdout
        assert_open = stdout is not None
        rest = b""
        while assert_open and not self._closing:
            selector = selectors.DefaultSelector()
            with selector:
                selector.register(stdout, selectors.EVENT_READ)
                selector.register(self._control, selectors.EVENT_READ)
                with self._lock:
                    usb = self._usb.master
                    if usb >= 0:
                        selector.register(usb, self._usb.events())
                selector.register(self._uart.master, self._uart.events())
                ready = [key.fileobj for key, _ in selector.select(0.05)]
            with self._lock:
                self._usb.flush()
            self._uart.flush()
            if stdout in ready:
                data = os.read(stdout.fileno(), 4096)
                if not data:
                    break
                with self._changed:
                    self.said.append(data)
                    self._changed.notify_all()
                with self._lock:
                    self._usb.write(data)
            if usb >= 0 and usb in ready:
                with self._lock:
                    data = self._usb.read() if usb == self._usb.master else b""
                    if data:
                        os.write(self._to_chip, data)
            if self._uart.master in ready:
                data = self._uart.read()
                if data:
                    self._send({"uart": data.hex()})
            if self._control in ready:
                data = self._control.recv(65536)
                if not data:
                    break
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    self._hear(json.loads(line))
        with self._changed:
            self._changed.notify_all()

    def _hear(self, thing: dict[str, Any]) -> None:
        if "uart" in thing:
            self._uart.write(bytes.fromhex(thing["uart"]))
            return
        with self._changed:
            if "sync" in thing:
                self._synced = thing["sync"]
                self._now = thing["now"]
            elif "reset" in thing:
                self.resets.append(thing["reset"])
            elif "t" in thing:
                self.seen = thing
            self._changed.notify_all()
        if "reset" in thing and self._vanish:
            self.unplug()
            time.sleep(0.3)
            self.plug()

    def close(self) -> None:
        """Take everything away."""
        self._closing = True
        self._thread.join()
        os.close(self._to_chip)
        try:
            self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._control.close()
        if self.process.stdout:
            self.process.stdout.close()
        self._errors.close()
        self.unplug()
        self._uart.close()


def main(argv: list[str] | None = None) -> int:
    """Run a board until standard input ends."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--folder", type=Path, help="where its ports' links are made (default: a temporary one)"
    )
    parser.add_argument("--image", type=Path, metavar="FILE", help="keep its flash in FILE over runs")
    parser.add_argument("--stock", action="store_true", help="no data partition, as on the stock image")
    chosen = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as scratch:
        folder = chosen.folder or Path(scratch)
        with VirtualBoard(folder, image=chosen.image, data=0 if chosen.stock else DATA_BLOCKS) as board:
            print(f"USB port   {board.usb}\nUART 2     {board.uart}", flush=True)
            for line in sys.stdin:
                try:
                    board.order(**json.loads(line))
                except (ValueError, TypeError, BoardError) as error:
                    print(error, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
