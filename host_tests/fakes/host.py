"""The host at the other end of the line, simulated: runs on CPython and MicroPython alike.

Owns its side of the protocol, written apart from the firmware's: it opens sessions, acknowledges in order,
repeats what got no reply, and keeps each event exactly once. It can be absent, killed and restarted, and
can damage bytes on their way in both directions, always the same ones.
Units: ms on the clock of whoever calls step().
"""

import binascii
import hashlib
import json

RETRY_MS = 300  # a command of the user
ASK_MS = 60  # one of our own, doubled once: the answer takes 20 ms, and on a bad line many must be said twice
ASK_MAX_MS = 120
POLL_MS = 1500
GAP_MS = 30  # how long a missing number may be on its way before it is asked for
ACK_MS = 50  # events that come close together share one acknowledgement
EARLY = 256  # events held back because an earlier one is missing
LINE_MAX = 1000
SIGNED = ("ack", "result", "void", "paid", "clear", "abandon", "time", "reboot")


def hmac_sha256(key, message):
    """Return HMAC-SHA256 of `message`, 32 bytes."""
    key = key + bytes(64 - len(key))
    inner = hashlib.sha256(bytes([x ^ 0x36 for x in key]) + message).digest()
    return hashlib.sha256(bytes([x ^ 0x5C for x in key]) + inner).digest()


def encode(number, cmd, args, key=None, nonce=None):
    """Return the whole line of one command; signed when `key` and `nonce` (text) are given.

    args: {name: value}, values as JSON has them; in the line they stand by name.
    """
    body = '{"id":%d,"cmd":"%s"' % (number, cmd)
    for name in sorted(args):
        body += ',"%s":%s' % (name, text(args[name]))
    body = (body + "}").encode()
    if key is not None and nonce is not None:
        mac = binascii.hexlify(hmac_sha256(key, nonce.encode() + body))[:16]
        body += b"~" + mac
    return b"$" + body + ("*%08X\r\n" % binascii.crc32(body)).encode()


def decode(line):
    """Return the object in `line` (from "$" to before the line end), or None when it is damaged."""
    if len(line) < 12 or line[:1] != b"$" or line[-9:-8] != b"*":
        return None
    body = line[1:-9]
    if ("%08X" % binascii.crc32(body)).encode() != line[-8:]:
        return None
    try:
        thing = json.loads(body)
    except ValueError:
        return None
    return thing if isinstance(thing, dict) else None


_FIRST = ("seq", "boot", "t", "at", "ev", "ph", "rd", "rep")


def text(thing):
    """Return compact JSON of what a line said, the same everywhere: an event's head, then by name."""
    if isinstance(thing, dict):
        names = [name for name in _FIRST if name in thing]
        names += sorted([name for name in thing if name not in _FIRST])
        return "{" + ",".join(['"%s":%s' % (name, text(thing[name])) for name in names]) + "}"
    if isinstance(thing, (list, tuple)):
        return "[" + ",".join([text(item) for item in thing]) + "]"
    return json.dumps(thing)


class Noise:
    """Damages one byte in so many, by a generator that is the same everywhere. `ppm` = bytes per million."""

    def __init__(self, ppm, seed=1):
        self.ppm = ppm
        self._x = seed & 0x3FFFFFFF

    def _next(self):
        self._x = (self._x * 1103515 + 12345) & 0x3FFFFFFF
        return self._x >> 8

    def damage(self, data):
        """Return `data` with some bytes changed; now and then one is lost or doubled."""
        if not self.ppm:
            return data
        out = bytearray()
        for byte in data:
            if self._next() % 1000000 >= self.ppm:
                out.append(byte)
                continue
            kind = self._next() % 8
            if kind == 0:
                continue
            if kind == 1:
                out.append(byte)
                out.append(byte)
            else:
                out.append(byte ^ (1 << self._next() % 8))
        return bytes(out)


class Store:
    """What survives the host's death: the events it took, and the number of the last one."""

    def __init__(self):
        self.events = []
        self.last = 0

    def keep(self, event):
        """Take one event and its number in one step, as a database would in one transaction."""
        self.events.append(event)
        self.last = event["seq"]


class Host:
    """`Host(key, line)`: key 32 bytes or None; line offers to_device(bytes) and from_device() -> bytes.

    `events`: every event exactly once, in order. `last_reply`: "ok", an error code, or None while pending;
    `reply`: the whole reply object. `heartbeat`: the last one. `absent`: hears and says nothing.
    `on_line`: called with each good line (text, without line end) and "<" received or ">" sent.
    """

    def __init__(self, key, line, damage_ppm=0, seed=1):
        self.key = key
        self._line = line
        self.store = Store()
        self.absent = False
        self.alive = True
        self.on_line = None
        self.noise_out = Noise(damage_ppm, seed)
        self.noise_in = Noise(damage_ppm, seed + 7)
        self.duplicates = 0
        self.bad_lines = 0
        self.retries = 0
        self._forget()

    def _forget(self):
        self.heartbeat = None
        self.last_reply = None
        self.reply = None
        self.hello = None  # the device's reply to our hello, None = no session
        self._rx = b""
        self._id = None  # the last used
        self._wanted = []  # commands of the user, oldest first: (cmd, args)
        self._out = None  # the outstanding one: (id, cmd, args, line, of the user)
        self._sent_at = 0
        self._patience = ASK_MS
        self._again = 0  # sessions opened because this command was refused for want of one
        self._unacked_at = None  # since when something taken is not acknowledged
        self._early = {}  # events that came before an earlier one, by number
        self._gap_at = None  # since when nothing was taken although a number is missing

    @property
    def events(self):
        """Every event taken so far, in order."""
        return self.store.events

    @property
    def last(self):
        """The number of the last event taken: everything up to it is safe."""
        return self.store.last

    def text(self, thing):
        """Return an event, heartbeat or reply as text, the same on every interpreter."""
        return text(thing)

    def kill(self):
        """Die: everything but the store is forgotten, and what comes on the line is lost."""
        self.alive = False
        self._forget()

    def restart(self):
        """Come back, with nothing but the store."""
        self._forget()
        self.alive = True

    def command(self, cmd, **args):
        """Send a command (signed where due) as soon as the line is free; see `last_reply`."""
        self.last_reply = None
        self.reply = None
        self._wanted.append((cmd, args))

    def step(self, now):
        """Read what has come, act on it, and say what is due. `now` in ms, any origin, never backwards."""
        data = self._line.from_device()
        if self.absent or not self.alive:
            return
        if data:
            self._receive(now, self.noise_in.damage(data))
        if self._out is None:
            self._choose(now)
        elif now - self._sent_at >= self._patience:
            self.retries += 1
            if self._out[4]:
                self._transmit(now)
            else:  # what we want may have changed meanwhile
                self._patience = min(2 * self._patience, ASK_MAX_MS)
                if self._out[1] == "ack":
                    self._unacked_at = self._sent_at
                self._out = None
                self._choose(now)

    # -- Receiving ---------------------------------------------------------------------------------

    def _receive(self, now, data):
        self._rx += data
        while True:
            end = self._rx.find(b"\n")
            if end < 0:
                break
            line = self._rx[:end]
            self._rx = self._rx[end + 1 :]
            start = line.rfind(b"$")
            if start < 0 or line[-1:] != b"\r":
                self.bad_lines += 1
                continue
            thing = decode(line[start:-1])
            if thing is None:
                self.bad_lines += 1
                continue
            if self.on_line:
                self.on_line(line[start:-1].decode(), "<")
            if "ev" in thing:
                self._event(now, thing)
            elif "hb" in thing:
                self.heartbeat = thing
            elif "re" in thing:
                self._reply(now, thing)
        if len(self._rx) > LINE_MAX:
            self._rx = self._rx[-LINE_MAX:]

    def _event(self, now, event):
        if self.hello is not None and event["boot"] > self.hello["boot"]:
            self.hello = None  # the device has restarted: our session is gone
        seq = event["seq"]
        if seq <= self.last or seq in self._early:
            self.duplicates += 1
            if seq <= self.last and self._unacked_at is None:
                self._unacked_at = now  # the device does not know that we have it
        elif seq == self.last + 1 or len(self._early) < EARLY:
            self._early[seq] = event
        self._take(now)

    def _take(self, now):
        """Take what is next in order."""
        while self.last + 1 in self._early:
            self.store.keep(self._early.pop(self.last + 1))
            self._gap_at = None
            if self._unacked_at is None:
                self._unacked_at = now
        if not self._early:
            self._gap_at = None
        elif self._gap_at is None:
            self._gap_at = now

    def _reply(self, now, reply):
        out = self._out
        if out is None or reply["re"] != out[0]:
            return
        _, cmd, args, _, wanted = out
        code = reply.get("err")
        if code in ("no-session", "bad-mac") and self._again == 0:
            self._again = 1
            self.hello = None
            self._out = None
            if wanted:
                self._wanted.insert(0, (cmd, args))
            return
        if cmd != "hello":
            self._again = 0
        self._out = None
        self._patience = ASK_MS
        if cmd == "hello" and code is None and "nonce" in reply["ok"]:
            self.hello = reply["ok"]
        if cmd == "replay" and not wanted and code is None:
            if reply["ok"]["from"] > self.last + 1:  # those between are lost for good, by the device's word
                self.store.last = reply["ok"]["from"] - 1
                self._take(now)
        if wanted:
            self.reply = reply
            self.last_reply = "ok" if code is None else code

    # -- Sending -----------------------------------------------------------------------------------

    def _choose(self, now):
        if self.hello is None:
            self._begin(now, "hello", {}, False)
        elif self._wanted:
            cmd, args = self._wanted.pop(0)
            self._begin(now, cmd, args, True)
        elif self._gap_at is not None and now - self._gap_at >= GAP_MS:
            self._gap_at = now
            self._begin(now, "replay", {"from": self.last + 1}, False)
        elif self._unacked_at is not None and self.key is not None and now - self._unacked_at >= ACK_MS:
            self._unacked_at = None
            self._begin(now, "ack", {"seq": self.last}, False)
        elif now - self._sent_at >= POLL_MS:
            self._begin(now, "status", {}, False)

    def _begin(self, now, cmd, args, wanted):
        if self._id is None:
            self._id = now % 100000  # another life begins with other numbers
        self._id += 1
        nonce = self.hello["nonce"] if self.hello else None
        signed = cmd in SIGNED
        line = encode(self._id, cmd, args, self.key if signed else None, nonce)
        self._out = (self._id, cmd, args, line, wanted)
        if wanted:
            self._patience = RETRY_MS
        self._transmit(now)

    def _transmit(self, now):
        if self._out is None:
            return
        self._sent_at = now
        line = self._out[3]
        if self.on_line:
            self.on_line(line[:-2].decode(), ">")
        self._line.to_device(self.noise_out.damage(line))
