"""Commands of the host: who may say what, whether it was said before, and what is answered.

Owns the session (nonce, last id, the last reply) and the order of the checks; the acts are the device's and
the journal's, under the same interlocks as the keys. Must never let an unsigned or repeated command act,
nor echo anything the host said. An error changes nothing.
Ids are 0 .. 2^32-1. Source: PROTOCOL, "Host -> device"; SPEC I8; PITFALLS 23, 25.
"""

import binascii
import hashlib
import sys

from micropython import const

from shaker import lines
from shaker.version import VERSION

_BLOCK = const(64)  # of SHA-256
_MAC_DIGITS = const(16)
_U32 = 0xFFFFFFFF
_AT_MAX = 4102444799  # the last second of 2099: a device that adds its uptime stays below 2^32
_NONCE_MAX = const(48)  # characters of a verify's nonce
_HISTORY = const(10)  # rounds that `rounds` reaches back

_ARGUMENT = {
    "hello": None,
    "status": None,
    "rounds": "n",
    "counts": None,
    "settings": None,
    "replay": "from",
    "verify": "nonce",
    "ack": "seq",
    "result": "dice",
    "void": None,
    "paid": None,
    "clear": None,
    "abandon": None,
    "time": "at",
    "reboot": None,
}
_SIGNED = ("ack", "result", "void", "paid", "clear", "abandon", "time", "reboot")
_DONE = '"ok":{}'


def hmac_sha256(key, message):
    """Return the 32 bytes of HMAC-SHA256 (RFC 2104) with a key of at most 64 bytes."""
    padded = key + bytes(_BLOCK - len(key))
    inner = hashlib.sha256(bytes([byte ^ 0x36 for byte in padded]))
    inner.update(message)
    outer = hashlib.sha256(bytes([byte ^ 0x5C for byte in padded]))
    outer.update(inner.digest())
    return outer.digest()


def is_int(value, least, most):
    """Say whether `value` is an integer (a bool is none) in least .. most."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _fits(name, value):
    """Say whether `value` can be the argument `name`."""
    if name == "n":
        return is_int(value, 1, _HISTORY)
    if name == "from":
        return is_int(value, 1, _U32)
    if name == "seq":
        return is_int(value, 0, _U32)
    if name == "at":
        return is_int(value, 1, _AT_MAX)
    if name == "dice":
        return (
            isinstance(value, list)
            and len(value) == 3
            and is_int(value[0], 1, 6)
            and is_int(value[1], 1, 6)
            and is_int(value[2], 1, 6)
        )
    if not isinstance(value, str) or not 1 <= len(value) <= _NONCE_MAX:
        return False
    for char in value:
        if not ("0" <= char <= "9" or "a" <= char <= "z" or "A" <= char <= "Z"):
            return False
    return True


class Session:
    """Answers one command at a time. `line` offers counters() -> text and replay(seq) -> (from, to)."""

    def __init__(self, journal, device, settings, random, verifier, line):
        self._journal = journal
        self._device = device
        self._settings = settings
        self._random = random
        self._verifier = verifier
        self._line = line
        self._nonce = None  # hex digits as sent (bytes), None = no session
        self._last = -1
        self._body = None
        self._reply = None  # text of the last reply; None while a verify runs
        self.verifying = False
        self.opened = 0  # sessions opened since boot
        self.unusable = 0  # objects without a usable id

    def handle(self, body, mac, thing):
        """Carry out one checked frame; return the text of the reply, or None when there is none (yet)."""
        number = thing.get("id")
        if not is_int(number, 0, _U32):
            self.unusable += 1
            return None
        error = self._refuse(body, mac, thing)
        if error:
            return _answer(number, _error(error))
        name = thing["cmd"]
        if number == self._last and body == self._body:
            return self._reply
        if name != "hello":
            if number < self._last:
                return _answer(number, _error("id-old"))
            if number == self._last:
                return _answer(number, _error("id-reused"))
            if self.verifying:
                return _answer(number, _error("busy"))
        self.verifying = False
        argument = _ARGUMENT[name]
        answer = self._act(name, thing[argument] if argument else None)
        reply = None if answer is None else _answer(number, answer)
        if answer != _error("bad-argument"):
            self._last = number
            self._body = body
            self._reply = reply
        return reply

    def step(self):
        """Do one bounded piece of a running verify; return the text of its reply when done, else None."""
        try:
            digest = self._verifier.step()
            if digest is None:
                return None
            digest = '"%s"' % digest
        except OSError:  # a file that cannot be read is not the known program
            digest = "null"
        self.verifying = False
        self._reply = _answer(self._last, '"ok":{"ver":%s,"sha256":%s}' % (lines.quoted(VERSION), digest))
        return self._reply

    def _refuse(self, body, mac, thing):
        """Return the error of a frame that may not act whatever its id, or None."""
        name = thing.get("cmd")
        if not isinstance(name, str):
            return "bad-frame-kind"
        if name not in _ARGUMENT:
            return "unknown-command"
        argument = _ARGUMENT[name]
        if argument is None:
            if len(thing) != 2:
                return "bad-argument"
        elif len(thing) != 3 or argument not in thing or not _fits(argument, thing[argument]):
            return "bad-argument"
        if name in _SIGNED:
            key = self._settings.key
            if key is None:
                return "no-key"
            if self._nonce is None:
                return "no-session"
            if not self._right(key, body, mac):
                return "bad-mac"
        return None

    def _right(self, key, body, mac):
        if mac is None:
            return False
        want = binascii.hexlify(hmac_sha256(key, self._nonce + body))
        wrong = 0
        for i in range(_MAC_DIGITS):  # all of them, so that time tells nothing
            wrong |= want[i] ^ mac[i]
        return wrong == 0

    def _act(self, name, value):
        """Return `"ok":…` or `"err":…`, or None when the answer comes later."""
        journal = self._journal
        if name == "hello":
            return self._hello()
        if name == "status":
            return '"ok":' + lines.status(self._device, journal, self._line.counters())
        if name == "counts":
            return '"ok":' + lines.counts(journal.counts())
        if name == "settings":
            return '"ok":' + lines.settings(self._settings.public())
        if name == "rounds":
            return '"ok":' + lines.summary(value, journal.summary(value))
        if name == "ack":
            if value > journal.last:
                return _error("bad-argument")
            if value > journal.acked:
                journal.ack(value)
            return '"ok":{"ack":%d}' % journal.acked
        if name == "replay":
            if value > journal.last:
                return _error("bad-argument")
            return '"ok":{"from":%d,"to":%d}' % self._line.replay(value)
        if name == "verify":
            self._verifier.start(value)
            self.verifying = True
            return None
        code = self._device.command(name, tuple(value) if name == "result" else value)
        return _error(code) if code else _DONE

    def _hello(self):
        self.opened += 1
        # Without its radio the chip has no entropy to speak of: boot and session alone make a nonce unique.
        self._nonce = b"%016x" % (self._journal.boot << 32 | self.opened) + binascii.hexlify(self._random(8))
        return '"ok":' + lines.hello(
            self._device,
            self._journal,
            self._settings,
            VERSION,
            "%d.%d.%d" % sys.implementation.version[:3],
            str(self._nonce, "ascii"),
        )


def _answer(number, answer):
    return '{"re":%d,%s}' % (number, answer)


def _error(code):
    return '"err":"%s"' % code
