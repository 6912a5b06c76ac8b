"""The texts of everything the device says: events, heartbeat, and the longer replies.

Owns key order, spelling and length of each (PROTOCOL). Formats by hand, because the interpreters order a
dict differently. Every string comes from a fixed vocabulary or passes `quoted`, so that nothing a host or
a file said can forge a line. Allocates: never called between the first pulse and the end of the last.
An event's line is at most 240 bytes whole, a reply's 1000.
"""

import struct

from shaker import record
from shaker.names import (
    CAUSES,
    ERRORS,
    EV_BOOT,
    EV_CLEAR,
    EV_FAULT,
    EV_KEY_STUCK,
    EV_LINK,
    EV_LOST,
    EV_RECOVERED,
    EV_REFUSED,
    EV_RESULT,
    EV_SERVICE,
    EV_SETTINGS,
    EV_SHAKE_DONE,
    EVENTS,
    F_INTERNAL_ERROR,
    FAULTS,
    PHASES,
    WHATS,
    WHYS,
)
from shaker.rules import winning
from shaker.settings import FIELDS, NO_SUCH_FIELD

TEXT_MAX = 40  # characters of any free text on the line


def _name(names, index):
    """Return names[index]; a number that a newer firmware wrote becomes "?"."""
    return names[index] if index < len(names) else "?"


def quoted(text, most=TEXT_MAX):
    """Return `text` as a JSON string: printable ASCII only, cut to `most` characters, the rest "?"."""
    out = ""
    for char in str(text)[:most]:
        out += char if " " <= char <= "}" and char not in '"\\$' else "?"
    return '"' + out + '"'


def encode(value):
    """Return JSON for None, bool, int, str, list, tuple or a dict; a dict's keys in the order of sorting."""
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, int):
        return "%d" % value
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, dict):
        return "{" + ",".join([quoted(key) + ":" + encode(value[key]) for key in sorted(value)]) + "}"
    return "[" + ",".join([encode(item) for item in value]) + "]"


def win(dice):
    """Return the winning bets of `dice` with their odds, in the order of the lamps (A5-A7)."""
    return "{" + ",".join(['"%s":%d' % bet for bet in winning(dice).items()]) + "}"


def _dice(dice):
    return "[%d,%d,%d]" % (dice[0], dice[1], dice[2])


def _fault(code):
    return '"' + _name(FAULTS, code) + '"' if code else "null"


def event(rec):
    """Return the text of the event in the 64-byte record `rec`."""
    (_, kind, phase, _, seq, boot, t_s, t_ms, repeat, at, rnd, _, _, _, die1, die2, die3, a, b) = (
        struct.unpack_from(record.BODY, rec, 0)
    )
    out = '{"seq":%d,"boot":%d,"t":%s,"at":%s,"ev":"%s","ph":"%s","rd":%d,"rep":%d' % (
        seq,
        boot,
        "%d%03d" % (t_s, t_ms) if t_s else "%d" % t_ms,
        encode(at or None),
        _name(EVENTS, kind),
        PHASES[phase & 7],
        rnd,
        repeat,
    )
    return out + _arguments(rec, kind, a, b, (die1, die2, die3)) + "}"


def _arguments(rec, kind, a, b, dice):
    x, y = struct.unpack_from("<II", rec, record.OFF_X)
    if kind == EV_RESULT:
        if not dice[0]:
            return ',"dice":null,"win":{}'
        return ',"dice":' + _dice(dice) + ',"win":' + win(dice)
    if kind == EV_REFUSED:
        return ',"what":"%s","why":"%s"' % (_name(WHATS, a), _name(WHYS, b))
    if kind == EV_KEY_STUCK:
        return ',"key":"%s"' % _name(WHATS, a)
    if kind == EV_FAULT:
        out = ',"code":"%s"' % _name(FAULTS, a)
        if a == F_INTERNAL_ERROR:
            return out + ',"type":"%s","place":%s' % (_name(ERRORS, b), _text(rec))
        return out + ',"pulses":%d' % x if x else out
    if kind == EV_CLEAR:
        return ',"code":"%s"' % _name(FAULTS, a)
    if kind == EV_BOOT:
        return ',"cause":"%s","ver":%s,"clean":%s,"auth":%s' % (
            _name(CAUSES, a),
            _text(rec),
            encode(b & 1 == 1),
            encode(b & 2 == 2),
        )
    if kind == EV_SHAKE_DONE:
        return ',"pulses":%d' % a
    if kind == EV_RECOVERED:
        return ',"was":"%s"' % PHASES[a & 7]
    if kind == EV_SERVICE:
        return ',"on":' + encode(a == 1)
    if kind == EV_SETTINGS:
        if a == 1:
            return ',"adopted":true'
        field = quoted(FIELDS[b]) if b < len(FIELDS) else _text(rec) if b == NO_SUCH_FIELD else "null"
        return ',"adopted":false,"field":' + field
    if kind == EV_LINK:
        return ',"up":' + encode(a == 1)
    if kind == EV_LOST:
        return ',"from":%d,"to":%d' % (x, y)
    return ""


def _text(rec):
    words = bytes(rec[record.OFF_TEXT : record.OFF_TEXT + record.TEXT_SIZE])
    return quoted("".join([chr(byte) for byte in words if byte]))


def _where(device):
    return '"ph":"%s","rd":%d,"rep":%d' % (PHASES[device.phase], device.round, device.repeat)


def _masks(device):
    return '"in":"%04x","out":"%02x","lamps":"%010x"' % (device.inputs, device.outputs, device.lamps)


def heartbeat(device, journal):
    """Return the text of a heartbeat: what the table looks like now."""
    return '{"hb":%d,%s,"seq":%d,"ack":%d,"flt":%s,%s}' % (
        device.uptime_ms(),
        _where(device),
        journal.last,
        journal.acked,
        _fault(device.fault),
        _masks(device),
    )


def status(device, journal, counters):
    """Return the `ok` object of `status`; `counters` is the text of the link's own counters."""
    faults = [FAULTS[n] for n in range(1, len(FAULTS)) if device.faults >> (n - 1) & 1]
    return (
        '{%s,"flt":%s,"faults":%s,%s,"dice":%s,"unpaid":%s,"service":%s,"auth":%s,"up":%d,"at":%s,"seq":%d,"ack":%d,%s}'
        % (
            _where(device),
            _fault(device.fault),
            encode(faults),
            _masks(device),
            _dice(device.dice) if device.dice else "null",
            encode(bool(device.outstanding)),
            encode(bool(device.service)),
            encode(bool(device.authorised)),
            device.uptime_ms(),
            encode(device.unix_time()),
            journal.last,
            journal.acked,
            counters,
        )
    )


def hello(device, journal, settings, version, interpreter, nonce):
    """Return the `ok` object of `hello`."""
    return (
        '{"id":%s,"table":%s,"ver":%s,"mpy":"%s","boot":%d,"first":%d,"last":%d,"ack":%d,"auth":%s,"nonce":"%s"}'
        % (
            quoted(device.ident),
            quoted(settings.table),
            quoted(version),
            interpreter,
            journal.boot,
            journal.first,
            journal.last,
            journal.acked,
            encode(bool(device.authorised)),
            nonce,
        )
    )


def counts(values):
    """Return the `ok` object of `counts` from journal.counts()."""
    faults = values["faults"]
    dice = values["dice"]
    return '{"rounds":%d,"voids":%d,"pulses":%d,"faults":{%s},"dice":{%s}}' % (
        values["rounds"],
        values["voids"],
        values["pulses"],
        ",".join(['"%s":%d' % (FAULTS[n], faults[n]) for n in range(1, len(FAULTS)) if faults.get(n)]),
        ",".join(['"%d":%d' % (face, dice[face]) for face in range(1, 7)]),
    )


def settings(values):
    """Return the `ok` object of `settings` from public(), in the order of the fields."""
    return "{" + ",".join(['"%s":%s' % (n, encode(values[n])) for n in FIELDS if n in values]) + "}"


def summary(n, values):
    """Return the `ok` object of `rounds`: journal.summary(n), the n-th last round, or null."""
    if values is None:
        return '{"n":%d,"rd":null}' % n
    dice = values["dice"]
    return '{"n":%d,"rd":%d,"rep":%d,"voids":%d,"end":"%s","at":%s,"dice":%s,"win":%s}' % (
        n,
        values["round"],
        values["repeat"],
        values["voids"],
        values["end"],
        encode(values["at"]),
        _dice(dice) if dice else "null",
        win(dice) if dice else "null",
    )
