"""The UART protocol, seen from the host: frames, signing, sessions, and events taken exactly once.

Written from firmware/docs/PROTOCOL.md and apart from the firmware, so that each checks the other. Knows no
serial port: a port is anything with read(size) -> bytes (short or empty after a moment) and write(bytes).
Units: seconds where the clock is the host's, milliseconds in what the device says.
"""

from __future__ import annotations

import binascii
import hashlib
import hmac
import json
import time
from collections.abc import Callable, Iterator
from typing import Any, Protocol

Message = dict[str, Any]

COMMAND_MAX = 120  # bytes of a whole line to the device
LINE_MAX = 1000  # and of one from it
SIGNED = frozenset({"ack", "result", "void", "paid", "clear", "abandon", "time", "reboot"})
ARGUMENTS = {
    "rounds": "n",
    "replay": "from",
    "verify": "nonce",
    "ack": "seq",
    "result": "dice",
    "time": "at",
}
COMMANDS = SIGNED | {"hello", "status", "rounds", "counts", "settings", "replay", "verify"}

RETRY_S = 0.3  # a command without a reply is said again, with the same id
POLL_S = 1.5  # silence that long is filled: the device takes us for dead after 5 s
ACK_S = 0.05  # events that come close together share one acknowledgement
GAP_S = 0.2  # a number missing that long is asked for
EARLY = 256  # events held back because an earlier one is missing


class Port(Protocol):
    """What a serial port must offer."""

    def read(self, size: int = 1, /) -> bytes:
        """Return up to `size` bytes, b"" when none came in time."""
        ...

    def write(self, data: bytes, /) -> int | None:
        """Send `data`."""
        ...


class ProtocolError(Exception):
    """The device refused a command; `code` is PROTOCOL's error code."""

    def __init__(self, code: str):
        super().__init__(code)
        self.code = code


class Silent(Exception):
    """The device did not answer in time."""


def sign(key: bytes, nonce: str, body: bytes) -> str:
    """Return the `mac` of `body`: 16 hex digits of HMAC-SHA256 over the nonce's digits and the body."""
    return hmac.new(key, nonce.encode("ascii") + body, hashlib.sha256).hexdigest()[:16]


def frame(body: bytes) -> bytes:
    """Return the whole line that carries `body` (JSON, and mac where signed)."""
    return b"$" + body + b"*%08X\r\n" % binascii.crc32(body)


def encode(
    number: int,
    cmd: str,
    args: dict[str, Any] | None = None,
    key: bytes | None = None,
    nonce: str | None = None,
) -> bytes:
    """Return the whole line of one command, signed when `key` and `nonce` are given.

    Raises ValueError when it would be longer than the device takes.
    """
    thing = {"id": number, "cmd": cmd, **(args or {})}
    body = json.dumps(thing, separators=(",", ":")).encode("ascii")
    if key is not None and nonce is not None:
        body += b"~" + sign(key, nonce, body).encode("ascii")
    line = frame(body)
    if len(line) > COMMAND_MAX:
        raise ValueError(f"{cmd}: {len(line)} bytes, the device takes {COMMAND_MAX}")
    return line


def decode(line: bytes) -> Message | None:
    """Return the message in `line` ("$" to before the line end), or None when it is damaged."""
    if len(line) < 12 or line[:1] != b"$" or line[-9:-8] != b"*":
        return None
    body = line[1:-9]
    if b"%08X" % binascii.crc32(body) != line[-8:]:
        return None
    try:
        thing = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return thing if isinstance(thing, dict) and kind(thing) else None


def kind(message: Message) -> str | None:
    """Return "event", "heartbeat" or "reply", or None for what is none of them."""
    if "ev" in message:
        numbers = all(type(message.get(name)) is int for name in ("seq", "boot", "t", "rd", "rep"))
        return "event" if numbers and isinstance(message.get("ph"), str) else None
    if "hb" in message:
        return "heartbeat" if type(message["hb"]) is int and type(message.get("seq")) is int else None
    if type(message.get("re")) is int and ("ok" in message) != ("err" in message):
        return "reply"
    return None


class LineReader:
    """Cuts messages out of a stream of bytes. `damaged` counts lines that were none."""

    def __init__(self) -> None:
        self.damaged = 0
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[Message]:
        """Take what was received; yield each message that is now whole."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        self._rest = self._rest[-LINE_MAX:]
        for line in lines:
            start = line.rfind(b"$")
            message = decode(line[start:-1]) if start >= 0 and line.endswith(b"\r") else None
            if message is None:
                self.damaged += 1
            else:
                yield message


class Receiver:
    """Takes events in order and exactly once. `last`: number of the last one that is safe.

    `keep` is called once for each event, in order, and must not return before the event and its number are
    safe together; if it raises, the event counts as not taken.
    """

    def __init__(self, keep: Callable[[Message], object], last: int = 0):
        self.last = last
        self.duplicates = 0
        self._keep = keep
        self._early: dict[int, Message] = {}

    @property
    def gap(self) -> bool:
        """A number is missing before one that has come."""
        return bool(self._early)

    def take(self, event: Message) -> int:
        """Take one event as it comes off the line; return how many were kept because of it."""
        seq = event["seq"]
        if seq <= self.last or seq in self._early:
            self.duplicates += 1
            return 0
        if seq == self.last + 1 or len(self._early) < EARLY:
            self._early[seq] = event
        return self._drain()

    def skip(self, seq: int) -> int:
        """Everything below `seq` is lost for good, by the device's own word; return how many were kept."""
        if seq > self.last + 1:
            self.last = seq - 1
            self._early = {n: event for n, event in self._early.items() if n > self.last}
        return self._drain()

    def _drain(self) -> int:
        kept = 0
        while self.last + 1 in self._early:
            self._keep(self._early[self.last + 1])
            del self._early[self.last + 1]
            self.last += 1
            kept += 1
        return kept


class Client:
    """One host on one port: opens sessions, repeats, acknowledges, polls. Call pump() often, or request().

    Without a key it listens only: it takes events, but cannot acknowledge. `keep`: see Receiver; without it
    events are thrown away, and therefore never acknowledged, which would say that they are safe. `again` is
    called with each event that comes again: one that differs from what was kept shows a flash gone back.
    `on_message` is called with every message that arrives whole.
    """

    def __init__(
        self,
        port: Port,
        key: bytes | None = None,
        keep: Callable[[Message], object] | None = None,
        last: int = 0,
        clock: Callable[[], float] = time.monotonic,
        on_message: Callable[[Message], object] = lambda message: None,
        again: Callable[[Message], object] = lambda event: None,
    ):
        self.key = key
        self.receiver = Receiver(keep or (lambda event: None), last)
        self._keeps = key is not None and keep is not None
        self.reader = LineReader()
        self.heartbeat: Message | None = None
        self.session: Message | None = None  # the reply to our hello
        self.heard_at: float | None = None  # when the last whole message came
        self._port = port
        self._clock = clock
        self._on_message = on_message
        self._again = again
        self._id = int(time.time()) % 1_000_000_000
        self._queue: list[_Request] = []
        self._out: _Request | None = None
        self._sent_at = float("-inf")
        self._unacked_at: float | None = None
        self._gap_at: float | None = None

    def request(self, cmd: str, timeout: float = 3.0, **args: Any) -> Message:
        """Send a command and return its `ok`. Raises ProtocolError, or Silent after `timeout` seconds.

        The argument `from` of replay is written from_.
        """
        request = _Request(cmd, {name.rstrip("_"): value for name, value in args.items()}, wanted=True)
        encode(2**32 - 1, cmd, request.args, b"", "")  # too long: say so before anything is sent
        self._queue.append(request)
        end = self._clock() + timeout
        while request.reply is None:
            if self._clock() > end:
                self._withdraw(request)
                raise Silent(cmd)
            self.pump()
        if "err" in request.reply:
            raise ProtocolError(request.reply["err"])
        return request.reply["ok"]

    def pump(self) -> None:
        """Read what has come, act on it, and send what is due. Returns after one read of the port."""
        data = self._port.read(256)
        now = self._clock()
        for message in self.reader.feed(data):
            self.heard_at = now
            self._on_message(message)
            what = kind(message)
            if what == "event":
                self._event(message, now)
            elif what == "heartbeat":
                self.heartbeat = message
                self._watch_gap(now, 0)
            else:
                self._replied(message, now)
        if self._out is not None and now - self._sent_at >= RETRY_S:
            if self._out.wanted:
                self._transmit(now)
            else:  # what we want may have changed meanwhile
                if self._out.cmd == "ack":
                    self._unacked_at = self._sent_at
                self._out = None
        if self._out is None:
            self._choose(now)

    def _event(self, event: Message, now: float) -> None:
        if self.session is not None and event["boot"] > self.session["boot"]:
            self.session = None  # the device has restarted
        known = event["seq"] <= self.receiver.last
        if known:
            self._again(event)
        kept = self.receiver.take(event)
        if (known or kept) and self._unacked_at is None:
            self._unacked_at = now
        self._watch_gap(now, kept)

    def _watch_gap(self, now: float, kept: int) -> None:
        # Who cannot acknowledge is sent only the first few; the heartbeat says that there are more.
        more = self.key is None and self.heartbeat is not None and self.heartbeat["seq"] > self.receiver.last
        if not self.receiver.gap and not more:
            self._gap_at = None
        elif kept or self._gap_at is None:
            self._gap_at = now

    def _replied(self, reply: Message, now: float) -> None:
        request = self._out
        if request is None or reply["re"] != request.number:
            return
        self._out = None
        code = reply.get("err")
        if code in ("no-session", "bad-mac"):
            self.session = None
            if request.wanted and not request.repeated:
                request.repeated = True
                self._queue.insert(0, request)
                return
        elif request.cmd == "hello" and code is None and "nonce" in reply["ok"]:
            self.session = reply["ok"]
        elif request.cmd == "replay" and not request.wanted and code is None:
            kept = self.receiver.skip(reply["ok"]["from"])
            if kept and self._unacked_at is None:
                self._unacked_at = now
            self._watch_gap(now, kept)
        request.reply = reply

    def _choose(self, now: float) -> None:
        if self.session is None:
            self._begin(_Request("hello", {}), now)
        elif self._queue:
            self._begin(self._queue.pop(0), now)
        elif self._gap_at is not None and now - self._gap_at >= GAP_S:
            self._gap_at = now
            self._begin(_Request("replay", {"from": self.receiver.last + 1}), now)
        elif self._keeps and self._unacked_at is not None and now - self._unacked_at >= ACK_S:
            self._unacked_at = None
            self._begin(_Request("ack", {"seq": self.receiver.last}), now)
        elif now - self._sent_at >= POLL_S:
            self._begin(_Request("status", {}), now)

    def _begin(self, request: _Request, now: float) -> None:
        self._id += 1
        request.number = self._id
        nonce = self.session["nonce"] if self.session else None
        signed = request.cmd in SIGNED
        request.line = encode(self._id, request.cmd, request.args, self.key if signed else None, nonce)
        self._out = request
        self._transmit(now)

    def _transmit(self, now: float) -> None:
        if self._out is not None:
            self._sent_at = now
            self._port.write(self._out.line)

    def _withdraw(self, request: _Request) -> None:
        if request in self._queue:
            self._queue.remove(request)
        if self._out is request:
            self._out = None


class _Request:
    def __init__(self, cmd: str, args: dict[str, Any], wanted: bool = False):
        self.cmd = cmd
        self.args = args
        self.wanted = wanted
        self.number = 0
        self.line = b""
        self.repeated = False
        self.reply: Message | None = None
