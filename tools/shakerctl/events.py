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
import time
from pathlib import Path
from typing import Any

from shakerctl import line
from shakerctl.trouble import Trouble, Usage
from shakerctl.voice import Voice

COLUMNS = ("seq", "boot", "t", "at", "ev", "ph", "rd", "rep")  # of every event; the rest is one JSON column
REST = "more"
STUCK_S = 0.5  # without a new event although there are some
IDLE_S = 1.0  # caught up, and nothing new for this long


class Store:
    """A file of events: JSON lines, or CSV with a heading. `last`: number of the last one in it, 0 = none."""

    def __init__(self, path: Path, as_csv: bool):
        self.path = path
        self.last = 0
        self.count = 0
        self._csv = as_csv
        new = not path.exists()
        try:
            self._file = io.FileIO(path, "a+")
        except OSError as error:
            raise Trouble(f"{path} cannot be written ({error.strerror}): choose another file.") from None
        try:
            self._resume()
        except OSError as error:
            self.close()
            if new:
                path.unlink(missing_ok=True)
            text = error.strerror or "it cannot be read back"
            raise Trouble(f"{path} does not serve ({text}): choose a file, on a disk with room.") from None
        except (ValueError, KeyError, TypeError, IndexError, RecursionError):
            self.close()
            kind = "CSV" if as_csv else "JSON lines"
            raise Usage(f"{path} is no file of events as {kind}: choose another file or --format.") from None

    def _resume(self) -> None:
        """Find the last whole line; what a crash left after it goes. ValueError and others: not our file."""
        self._file.seek(0)
        data = self._file.readall()
        whole = data[: data.rfind(b"\n") + 1]
        lines = whole.decode("utf-8").splitlines()
        heading = ",".join((*COLUMNS, REST))
        if self._csv:
            if (lines or [heading])[0] != heading or (not lines and not heading.encode().startswith(data)):
                raise ValueError("heading")
            if len(lines) > 1:
                self.last = int(next(csv.reader(lines[-1:]))[0])
        elif lines:
            self.last = int(json.loads(lines[-1])["seq"])
        elif not (data.startswith(b'{"seq":') or b'{"seq":'.startswith(data)):
            raise ValueError("not events")
        if len(whole) != len(data):
            self._file.truncate(len(whole))
        if self._csv and not lines:
            self._write(heading + "\n")

    def _write(self, text: str) -> None:
        data = text.encode()
        while data:
            data = data[self._file.write(data) :]
        os.fsync(self._file.fileno())

    def keep(self, event: dict[str, Any]) -> None:
        """Make one event safe; raises when it is not."""
        if self._csv:
            out = io.StringIO()
            rest = {name: value for name, value in event.items() if name not in COLUMNS}
            row = ["" if event.get(name) is None else event[name] for name in COLUMNS]
            csv.writer(out, lineterminator="\n").writerow([*row, json.dumps(rest) if rest else ""])
            text = out.getvalue()
        else:
            text = json.dumps(event, separators=(",", ":")) + "\n"
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
        self.last = event["seq"]
        self.count += 1

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def export(
    port: str, key: bytes | None, path: Path, as_csv: bool, follow: bool, voice: Voice, idle_s: float = IDLE_S
) -> int:
    """Take every event there is into `path`; with `follow` go on until interrupted."""
    store = Store(path, as_csv)
    try:
        if key is None:
            voice.say("No key: events are stored, but cannot be acknowledged (--key-file).")
        with line.client(port, key, keep=store.keep, last=store.last) as link:
            line.wait_for(link, port, lambda: link.session)
            newest = int((link.session or {}).get("last", 0))
            if store.last > newest:
                raise Usage(
                    f"{path} holds event {store.last}, the shaker's last is {newest}: another table's file?"
                )
            calm = time.monotonic()
            count = -1
            while follow or store.last < newest or time.monotonic() - calm < idle_s:
                link.pump()
                if store.count != count:
                    count = store.count
                    calm = time.monotonic()
                elif store.last < newest and time.monotonic() - calm > STUCK_S:
                    # Acknowledged before, or we cannot acknowledge: the shaker says them again when asked.
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
    finally:
        store.close()
    result = {"file": str(path), "events": store.count, "last": store.last, "acknowledged": key is not None}
    voice.result(result, f"{store.count} events into {path}, the last is number {store.last}.")
    return 0
