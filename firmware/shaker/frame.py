"""Frames on the UART: cuts lines out of received bytes, checks them, and closes lines to be sent.

Owns the form of a line and nothing of its meaning: a CRC over the raw bytes first, then one flat object in
the only compact spelling there is. The parser is our own because the interpreters' `json` modules accept
different broken texts; what is accepted here is accepted identically on every interpreter.
Must never keep an over-long line, read the tail of one, or let host text go anywhere but into comparisons.
Lengths in bytes. Source: PROTOCOL, "Frame"; PITFALLS 21-23.
"""

import binascii

from micropython import const

LINE_MAX = const(120)  # a whole line from the host, "$" and line end included
MAC_SIZE = const(16)  # hex digits
INT_DIGITS = const(10)  # longer numbers are no integers here: everything on the line fits 32 bits

_DOLLAR = const(0x24)
_QUOTE = const(0x22)
_BACKSLASH = const(0x5C)
_STAR = const(0x2A)
_TILDE = const(0x7E)
_CR = const(0x0D)
_LF = const(0x0A)
_COMMA = const(0x2C)
_COLON = const(0x3A)
_OPEN = const(0x7B)
_CLOSE = const(0x7D)
_LIST = const(0x5B)
_END_LIST = const(0x5D)
_MINUS = const(0x2D)
_PLUS = const(0x2B)
_DOT = const(0x2E)
_ZERO = const(0x30)
_NINE = const(0x39)
_E = const(0x45)
_SMALL_E = const(0x65)

_TRAILER = const(11)  # "*", eight digits, "\r\n"
_SHORTEST = const(14)  # "$" + "{}" + trailer
_CRC_AT = const(10)  # from the end of the line

_OUTSIDE = const(0)
_INSIDE = const(1)
_LONG = const(2)
_NOISE = const(3)


class Odd:
    """A well-formed value that no command takes: a fraction, an exponent, a number too long."""


ODD = Odd()
_BAD = Odd()  # no value at all


def wrap(text):
    """Return the whole line, as bytes, that carries `text` (one compact JSON object, printable ASCII)."""
    body = text.encode()
    return b"$" + body + ("*%08X\r\n" % binascii.crc32(body)).encode()


class Splitter:
    """Cuts lines out of a ring of received bytes. All its memory is taken at start.

    Counts what it drops: `long` lines, `noise` (runs of bytes outside a line), and `broken` lines (begun but
    not ended in the form of a frame); `crc` counts wrong check sums, `form` right ones around no object.
    """

    def __init__(self):
        self.buf = bytearray(LINE_MAX)
        self.length = 0  # of the whole line now in buf
        self.good = 0
        self.long = 0
        self.noise = 0
        self.broken = 0
        self.crc = 0
        self.form = 0
        self._state = _OUTSIDE
        self._n = 0

    def take(self, ring, at, mask, count):
        """Consume up to `count` bytes of `ring` from index `at` (wrapping by `mask`), at most one line.

        Returns how many bytes were consumed; `length` is then the line's length, or 0 when none is whole yet.
        Allocates nothing.
        """
        buf = self.buf
        state = self._state
        n = self._n
        self.length = 0
        i = 0
        while i < count:
            byte = ring[(at + i) & mask]
            i += 1
            if byte == _DOLLAR:  # always starts anew
                if state == _INSIDE:
                    self.broken += 1
                buf[0] = _DOLLAR
                n = 1
                state = _INSIDE
            elif state == _INSIDE:
                if n == LINE_MAX:
                    self.long += 1
                    state = _OUTSIDE if byte == _LF else _LONG
                    continue
                buf[n] = byte
                n += 1
                if byte == _LF:
                    self.length = n
                    state = _OUTSIDE
                    break
            elif byte == _LF:
                state = _OUTSIDE
            elif state == _OUTSIDE and byte != _CR:
                self.noise += 1
                state = _NOISE
        self._state = state
        self._n = n
        return i

    def decode(self):
        """Check the line in `buf`; return (body, mac, object), or None.

        body: the JSON as received (bytes). mac: 16 bytes, or None. object: dict of ints, strings, bools,
        None, `ODD` and flat lists of those.
        """
        n = self.length
        buf = self.buf
        if n < _SHORTEST or buf[n - 2] != _CR or buf[n - _TRAILER] != _STAR:
            self.broken += 1
            return None
        body = bytes(buf[1 : n - _TRAILER])
        if bytes(buf[n - _CRC_AT : n - 2]) != ("%08X" % binascii.crc32(body)).encode():
            self.crc += 1
            return None
        mac = None
        at = len(body) - MAC_SIZE - 1
        if body[-1] != _CLOSE and at > 0 and body[at] == _TILDE:
            mac = body[at + 1 :]
            body = body[:at]
        thing = parse(body)
        if thing is None:
            self.form += 1
            return None
        self.good += 1
        return body, mac, thing


def parse(body):
    """Return the dict that `body` (bytes) spells; None unless it is one flat, compact, canonical object."""
    end = len(body) - 1
    if end < 1 or body[0] != _OPEN or body[end] != _CLOSE:
        return None
    for byte in body:
        if byte < 0x20 or byte > 0x7E:
            return None
    thing = {}
    i = 1
    if end == 1:
        return thing
    while True:
        key, i = _string(body, i)
        if key is _BAD or key in thing or body[i] != _COLON:
            return None
        i += 1
        if body[i] == _LIST:
            value = []
            if body[i + 1] == _END_LIST:
                i += 2
            else:
                while True:
                    item, i = _scalar(body, i + 1)
                    if item is _BAD:
                        return None
                    value.append(item)
                    if body[i] == _END_LIST:
                        i += 1
                        break
                    if body[i] != _COMMA:
                        return None
        else:
            value, i = _scalar(body, i)
            if value is _BAD:
                return None
        thing[key] = value
        if i == end:
            return thing
        if body[i] != _COMMA:
            return None
        i += 1


# Each of the following returns (value, index after it), or (_BAD, 0). A body ends with "}", which belongs to
# no value, so none of them runs past its end.


def _scalar(body, i):
    if body[i] == _QUOTE:
        return _string(body, i)
    if body[i] == _MINUS or _ZERO <= body[i] <= _NINE:
        return _number(body, i)
    for word, value in ((b"true", True), (b"false", False), (b"null", None)):
        if body[i : i + len(word)] == word:
            return value, i + len(word)
    return _BAD, 0


def _string(body, i):
    if body[i] != _QUOTE:
        return _BAD, 0
    start = i + 1
    end = body.find(b'"', start)
    if end < 0:
        return _BAD, 0
    text = body[start:end]
    if b"\\" in text:  # an escape is a second spelling of something
        return _BAD, 0
    return str(text, "ascii"), end + 1


def _digits(body, i):
    while _ZERO <= body[i] <= _NINE:
        i += 1
    return i


def _number(body, i):
    start = i
    if body[i] == _MINUS:
        i += 1
    first = i
    i = _digits(body, first)
    if i == first or (body[first] == _ZERO and i - first > 1):
        return _BAD, 0
    odd = i - first > INT_DIGITS or (body[first] == _ZERO and first > start)  # no "-0"
    if body[i] == _DOT:
        odd = True
        first = i + 1
        i = _digits(body, first)
        if i == first:
            return _BAD, 0
    if body[i] == _E or body[i] == _SMALL_E:
        odd = True
        first = i + 1
        if body[first] == _PLUS or body[first] == _MINUS:
            first += 1
        i = _digits(body, first)
        if i == first:
            return _BAD, 0
    if odd:
        return ODD, i
    return int(str(body[start:i], "ascii")), i
