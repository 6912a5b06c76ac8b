"""`shakerctl events`: takes a shaker's events into a file, each once; acknowledges only what is safe there.

An event counts as safe when it was written and fsync returned. The file itself says where to go on: its last
whole line. A line that a crash cut short is removed and its event taken again.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import re
import signal
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from shakerctl import line, protocol
from shakerctl.trouble import Trouble, Usage
from shakerctl.voice import Voice

COLUMNS = ("seq", "boot", "t", "at", "ev", "ph", "rd", "rep")  # of every event; the rest is one JSON column
REST = "more"
STUCK_S = 0.5  # without a new event although there are some
IDLE_S = 1.0  # caught up, and nothing new for this long


def _looks_begun(data: bytes, as_csv: bool) -> bool:
    """Return whether `data` may be the beginning of one of our lines, cut short by a crash."""
    begin = b"0,0,0," if as_csv else b'{"seq":0,"boot":0,"t":0,'
    plain = re.sub(rb"[0-9]+", b"0", data[:200])
    return plain.startswith(begin) or begin.startswith(plain)


def _number(line: str, as_csv: bool) -> int:
    """Return the number of the event in a line of a file; ValueError when it is none of ours."""
    event: Any
    if as_csv:
        row = dict(zip((*COLUMNS, REST), next(csv.reader([line])), strict=True))
        event = {
            name: value if name in ("ev", "ph") else int(value or 0)
            for name, value in row.items()
            if name != REST
        }
    else:
        event = json.loads(line)
    if not isinstance(event, dict) or not set(COLUMNS) <= set(event) or protocol.kind(event) != "event":
        raise ValueError("no event")
    if event["seq"] < 1:
        raise ValueError("events are numbered from 1")
    return event["seq"]


def _lock(file: io.FileIO) -> None:
    """Keep the file for this process alone; OSError when another has it."""
    try:
        import fcntl
    except ImportError:  # Windows
        return
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


class Store:
    """A file of events: JSON lines, or CSV with a heading. `last`: number of the last one in it, 0 = none."""

    def __init__(self, path: Path, as_csv: bool):
        self.path = path
        self.last = 0
        self.count = 0
        self._csv = as_csv
        self._known: dict[int, int] = {}  # CRC-32 of each event's line, by its number
        try:
            new = not path.exists()
            if not new and not path.is_file():  # a pipe would block us, a device be read for ever
                raise Usage(f"{path} does not serve: it is no regular file; choose another.")
            self._file = io.FileIO(path, "a+")
            self._new = new
        except OSError as error:
            raise Trouble(f"{path} cannot be written ({error.strerror}): choose another file.") from None
        try:
            _lock(self._file)
        except OSError:
            self._file.close()
            raise Trouble(f"{path} is being written by another command: choose another file.") from None
        try:
            self._resume()
        except OSError as error:
            self.close()
            if new:
                path.unlink(missing_ok=True)
            text = error.strerror or "it cannot be read back"
            raise Trouble(f"{path} does not serve ({text}): choose a file, on a disk with room.") from None
        except Usage:
            self.close()
            raise

    def _resume(self) -> None:
        """Find the last whole line; what a crash left after it goes. Usage: it is not our file."""
        self._file.seek(0)
        data = self._file.readall()
        whole = data[: data.rfind(b"\n") + 1]
        rest = data[len(whole) :]
        lines = whole.split(b"\n")[:-1]
        heading = ",".join((*COLUMNS, REST)).encode()
        if self._csv and (lines or [heading])[0] != heading:
            raise self._foreign(1)
        if len(lines) > self._csv:
            try:
                self.last = _number(lines[-1].decode(), self._csv)
            except (ValueError, RecursionError, csv.Error):
                raise self._foreign(len(lines)) from None
            for text in lines:
                number = re.match(rb'(?:\{"seq":)?([0-9]+),', text)
                if number:
                    self._known[int(number[1])] = zlib.crc32(text + b"\n")
        if not (heading.startswith(rest) if self._csv and not lines else _looks_begun(rest, self._csv)):
            raise self._foreign(len(lines) + 1)
        if rest:
            self._file.truncate(len(whole))
        if self._csv and not lines:
            self._write(heading.decode() + "\n")

    def _foreign(self, number: int) -> Usage:
        kind = "CSV" if self._csv else "JSON lines"
        return Usage(
            f"{self.path}:{number} is no event as {kind}: choose another file, or the right --format."
        )

    def _write(self, text: str) -> None:
        data = text.encode()
        while data:
            data = data[self._file.write(data) :]
        os.fsync(self._file.fileno())

    def _text(self, event: dict[str, Any]) -> str:
        if not self._csv:
            return json.dumps(event, separators=(",", ":")) + "\n"
        out = io.StringIO()
        rest = {name: value for name, value in event.items() if name not in COLUMNS}
        row = ["" if event.get(name) is None else event[name] for name in COLUMNS]
        csv.writer(out, lineterminator="\n").writerow([*row, json.dumps(rest) if rest else ""])
        return out.getvalue()

    def again(self, event: dict[str, Any]) -> None:
        """Compare an event that came again with the one in the file. Trouble when it is another one."""
        known = self._known.get(event["seq"])
        if known is not None and known != zlib.crc32(self._text(event).encode()):
            raise Trouble(
                f"Event {event['seq']} of this shaker is not the one in {self.path}: that is another table's "
                "file, or the shaker's flash went back to an older state (then have that round's payment "
                "looked at). Nothing more was acknowledged: keep the file, and take events into a new one."
            )

    def keep(self, event: dict[str, Any]) -> None:
        """Make one event safe; raises when it is not."""
        text = self._text(event)
        size = os.fstat(self._file.fileno()).st_size
        try:
            self._write(text)
        except OSError as error:
            with contextlib.suppress(OSError):
                self._file.truncate(size)
            raise Trouble(
                f"{self.path} cannot be written ({error.strerror}): make room and run it again; "
                "what is in the file is acknowledged, the rest stays in the shaker."
            ) from None
        self._known[event["seq"]] = zlib.crc32(text.encode())
        self.last = event["seq"]
        self.count += 1

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def abandon(self) -> None:
        """Close the file; one that was made for nothing goes."""
        self.close()
        if self._new and not self.count:
            self.path.unlink(missing_ok=True)


@contextlib.contextmanager
def _ctrl_c() -> Iterator[list[bool]]:
    """Yield a list that Ctrl-C makes true: between two events, never in the midst of one."""
    pressed: list[bool] = []
    before = signal.signal(signal.SIGINT, lambda *_: pressed.append(True))
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)


def _compare(port: str, store: Store) -> None:
    """Ask for the event that ends the file once more, before any is acknowledged. Raises as Store.again()."""
    came: list[bool] = []

    def heard(message: dict[str, Any]) -> None:
        if protocol.kind(message) == "event" and message["seq"] == store.last:
            store.again(message)
            came.append(True)

    with line.client(port, last=store.last - 1, on_message=heard) as link:
        line.wait_for(link, port, lambda: link.session)
        newest = int((link.session or {}).get("last", 0))
        if store.last > newest:
            raise Usage(
                f"{store.path} holds event {store.last}, the shaker's last is {newest}: another table's file?"
            )
        if line.request(link, port, "replay", from_=store.last)["from"] == store.last:
            line.wait_for(link, port, lambda: came)


def export(
    port: str, key: bytes | None, path: Path, as_csv: bool, follow: bool, voice: Voice, idle_s: float = IDLE_S
) -> int:
    """Take every event there is into `path`; with `follow` go on until interrupted."""
    store = Store(path, as_csv)
    try:
        if key is None:
            voice.say("No key: events are stored, but cannot be acknowledged (--key-file).")
        if store.last:
            _compare(port, store)
        with line.client(port, key, keep=store.keep, again=store.again, last=store.last) as link:
            line.wait_for(link, port, lambda: link.session)
            newest = int((link.session or {}).get("last", 0))
            with _ctrl_c() if follow else contextlib.nullcontext([]) as pressed:
                calm = time.monotonic()
                count = -1
                while not pressed and (follow or store.last < newest or time.monotonic() - calm < idle_s):
                    link.pump()
                    if store.count != count:
                        count = store.count
                        calm = time.monotonic()
                    elif store.last < newest and time.monotonic() - calm > STUCK_S:
                        # Acknowledged before, or we cannot acknowledge: the shaker repeats them when asked.
                        held = line.request(link, port, "replay", from_=store.last + 1)
                        link.receiver.skip(held["from"])
                        store.last = max(store.last, link.receiver.last)
                        calm = time.monotonic()
                    newest = max(
                        newest, int((link.session or {}).get("last", 0)), (link.heartbeat or {}).get("seq", 0)
                    )
                    if link.heard_at is not None and time.monotonic() - link.heard_at > line.ANSWER_S:
                        raise line.silent(port, "hello", link)
            if key is not None and store.last:
                line.request(link, port, "ack", seq=store.last)
    except BaseException:
        store.abandon()
        raise
    store.close()
    result = {"file": str(path), "events": store.count, "last": store.last, "acknowledged": key is not None}
    voice.result(result, f"{store.count} events into {path}, the last is number {store.last}.")
    return 0
