"""What the house has chosen: settings, their ranges, and the authorisation they need (A8).

Owns the table of fields and the two files. `settings.json` is in force and written by the device only;
`settings.new` is what a technician puts beside it, judged whole at a restart in IDLE. Must never hand out
the key, never let the alternatives of Articles 1 and 2 change without a new record of the DICJ's
authorisation, and never raise: what is wrong with a file is in the Adoption.
Units: as the names say; duty in per cent. The calendar's working days are checked by the host's tool.
"""

import binascii
from collections import OrderedDict

from micropython import const

IN_FORCE = "settings.json"
INCOMING = "settings.new"
REFUSED = "settings.bad"
_UNUSABLE = " cannot be used"

# name, then words to choose from, None = true or false, two integers = a range  # meaning | article
# The order is that of the index in a `settings` event: new fields go to the end.
_TABLE = (
    ("actuation", ("electronic", "lever")),  # the agitator shakes, or the lever's three strokes | A1.3, A2.1
    ("front_board", None),  # the front board lights while betting is open | A2.2
    ("spoken_announcement", None),  # betting is announced aloud; nothing in the device depends on it | A2.3
    ("layouts", (1, 4)),  # layouts whose lamps hang on the chain, all alike | A1.4
    ("layout_lamps", None),  # the winning bets light on the layout | A3.2
    ("pulse_ms", (100, 300)),  # length of each pulse; the hardware bounds it at 300
    ("gap_ms", (200, 1000)),  # rest between two pulses
    ("duty", (20, 100)),  # drive of the agitator in a pulse, per cent
    ("settle_ms", (300, 3000)),  # from the last pulse or stroke until bets open
    ("bolt_ms", (200, 2000)),  # how long a bolt is driven; the lock's travel before the first pulse
    ("lever_window_ms", (1000, 60000)),  # the three strokes must begin within this time
    ("host", ("optional", "required")),  # required: keep what it has not stored; a full journal ends play
    ("motion", None),  # the sensor that sees the base move is fitted
    ("table", "id"),  # the table's name, as `hello` says it
    ("key", "key"),  # signs the host's commands; goes in and never comes out
    ("authorisation", "record"),  # the DICJ's authorisation of the regulated options | A8
)
FIELDS = tuple([row[0] for row in _TABLE])
NO_FIELD = const(255)  # index of what is no field
NO_SUCH_FIELD = const(254)  # index of a name that no field has
_RECORD = ("ref", "requested", "granted", "adopted")

_MOST_BYTES = const(2048)  # of a settings file
_ID_MOST = const(16)
_REF_MOST = const(40)
_DIGITS = "0123456789"
_ID_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"
_MONTH_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


class SettingsError(ValueError):
    """A file that is refused: `field` is the first bad field ("" = it is no JSON object), `reason` why."""

    def __init__(self, field, reason):
        super().__init__(field + ": " + reason if field else reason)
        self.field = field
        self.reason = reason


class Settings:
    """Values by the names of FIELDS; as made, the defaults; beside them, bools that follow from them."""

    def __init__(self):
        self.actuation = "electronic"
        self.front_board = True
        self.spoken_announcement = True
        self.layouts = 1
        self.layout_lamps = True
        self.pulse_ms = 250
        self.gap_ms = 350
        self.duty = 70
        self.settle_ms = 700
        self.bolt_ms = 600
        self.lever_window_ms = 10000
        self.host = "optional"
        self.motion = True
        self.table = ""
        self.key = None  # type: bytes | None
        self.authorisation = None  # type: dict | None
        self.lever = False
        self.host_required = False
        self.authorised = False

    def set(self, values):
        """Take over checked `values` (by name) and what follows from them."""
        for name in values:
            setattr(self, name, values[name])
        self.lever = self.actuation == "lever"
        self.host_required = self.host == "required"
        self.authorised = self.authorisation is not None

    def options_word(self):
        """Return the regulated options (the first four fields) as a small int, never 0."""
        choices = self.lever << 1 | self.front_board << 2 | self.spoken_announcement << 3
        return 1 | choices | (self.layouts - 1) << 4

    def authorisation_crc(self):
        """Return the CRC-32 of the authorisation record, 0 = there is none."""
        record = self.authorisation
        if record is None:
            return 0
        return binascii.crc32("\n".join([record[name] for name in _RECORD]).encode()) or 1

    def public(self):
        """Return all values in the order of FIELDS, without the key."""
        values = OrderedDict()
        for name in FIELDS:
            if name != "key":
                values[name] = getattr(self, name)
        return values

    def _text(self):
        """Return the bytes of settings.json; the only way out for the key."""
        values = self.public()
        if self.key is not None:
            values["key"] = binascii.hexlify(self.key).decode()
        return (_json(values) + "\n").encode()


class Adoption:
    """What adopt() decided.

    settings: those in force. changed: they are not those the journal knows. refused_field: the first bad
    field of a refused file ("" = no JSON), or None. fault: settings.json itself is refused, `settings` are
    the defaults. problem: in words, or None.
    """

    def __init__(self):
        self.settings = Settings()
        self.changed = False
        self.refused_field = None
        self.fault = False
        self.problem = None

    def refuse(self, error):
        """Note that a file was refused."""
        self.refused_field = error.field
        self.problem = str(error)


# -- Text -> values: strict, and so the same on every interpreter (their json modules are not) -----


class _Reader:
    """A JSON object of strings, whole numbers, true, false, null and one level of such objects."""

    def __init__(self, text):
        self.text = text
        self.at = 0
        self.field = ""

    def fail(self, reason):
        raise SettingsError(self.field, "%s at character %d" % (reason, self.at + 1))

    def next(self):
        """Return the next character that is no space, without passing it; "" at the end."""
        text = self.text
        while self.at < len(text) and text[self.at] in " \t\r\n":
            self.at += 1
        return text[self.at : self.at + 1]

    def expect(self, character):
        if self.next() != character:
            self.fail("expected " + character)
        self.at += 1

    def string(self):
        self.expect('"')
        start = self.at
        end = self.text.find('"', start)
        if end < 0:
            self.fail("string without end")
        for i in range(start, end):
            if not " " <= self.text[i] <= "~" or self.text[i] == "\\":
                self.at = i
                self.fail("only printable ASCII without backslash")
        self.at = end + 1
        return self.text[start:end]

    def word(self):
        start = self.at
        while self.next() not in ("", ",", "}") and self.text[self.at] not in ' \t\r\n"{:':
            self.at += 1
            if self.text[self.at : self.at + 1] in (" ", "\t", "\r", "\n"):
                break
        word = self.text[start : self.at]
        words = {"true": True, "false": False, "null": None}
        if word in words:
            return words[word]
        digits = word[1:] if word[:1] == "-" else word
        if not 1 <= len(digits) <= 9 or digits.strip(_DIGITS) or (digits[0] == "0" and word != "0"):
            self.at = start
            self.fail("no whole number, true, false or null")
        return int(word)

    def object(self, nested=False):
        values = OrderedDict()
        self.expect("{")
        if self.next() == "}":
            self.at += 1
            return values
        while True:
            name = self.string()
            if not nested:
                self.field = name
            if name in values:
                self.fail("given twice")
            self.expect(":")
            first = self.next()
            if first == '"':
                values[name] = self.string()
            elif first == "{" and not nested:
                values[name] = self.object(True)
            else:
                values[name] = self.word()
            if self.next() != ",":
                self.expect("}")
                return values
            self.at += 1


def _read(text):
    reader = _Reader(text)
    values = reader.object()
    reader.field = ""
    if reader.next():
        reader.fail("text after the object")
    return values


def _json(value):
    if isinstance(value, dict):
        return "{" + ",".join(['"%s":%s' % (name, _json(value[name])) for name in value]) + "}"
    if isinstance(value, str):
        return '"' + value + '"'
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)


# -- Values -> settings -----------------------------------------------------------------------------


def _is_date(text):
    if not isinstance(text, str) or len(text) != 10 or text[4] != "-" or text[7] != "-":
        return False
    if (text[:4] + text[5:7] + text[8:]).strip(_DIGITS):
        return False
    year, month, day = int(text[:4]), int(text[5:7]), int(text[8:])
    if not 2004 <= year <= 2099 or not 1 <= month <= 12 or not 1 <= day <= _MONTH_DAYS[month - 1]:
        return False
    return month != 2 or day < 29 or year % 4 == 0


def _record(value):
    """Return `value` if it is an authorisation record, its keys in order, else raise ValueError."""
    if not isinstance(value, dict) or sorted(value) != sorted(_RECORD):
        raise ValueError("an object of " + ", ".join(_RECORD))
    ref = value["ref"]
    if not isinstance(ref, str) or not 1 <= len(ref) <= _REF_MOST:
        raise ValueError("ref is 1-%d characters" % _REF_MOST)
    for name in _RECORD[1:]:
        if not _is_date(value[name]):
            raise ValueError(name + " is a date YYYY-MM-DD")
    if value["adopted"] < value["granted"]:  # dates of this form sort as text
        raise ValueError("adopted lies before granted")
    if value["adopted"] <= value["requested"]:
        raise ValueError("adopted does not lie after requested")
    return OrderedDict([(name, value[name]) for name in _RECORD])


def _value(kind, value):
    """Return what field of `kind` holds for the JSON value `value`, or raise ValueError."""
    if kind is None:
        if not isinstance(value, bool):
            raise ValueError("true or false")
    elif kind == "id":
        if not isinstance(value, str) or len(value) > _ID_MOST or [c for c in value if c not in _ID_LETTERS]:
            raise ValueError("up to %d letters, digits, . _ -" % _ID_MOST)
    elif kind == "key":
        if value is not None:
            if not isinstance(value, str) or len(value) != 64 or value.strip(_DIGITS + "abcdefABCDEF"):
                raise ValueError("64 hex digits")
            value = binascii.unhexlify(value)
    elif kind == "record":
        if value is not None:
            value = _record(value)
    elif isinstance(kind[0], str):
        if not isinstance(value, str) or value not in kind:
            raise ValueError(" or ".join(kind))
    elif type(value) is not int or not kind[0] <= value <= kind[1]:  # a bool is no number
        raise ValueError("a whole number %d-%d" % kind)
    return value


def _build(values):
    checked = {}
    for name in values:
        if name not in FIELDS:
            raise SettingsError(name, "no such setting")
        try:
            checked[name] = _value(_TABLE[FIELDS.index(name)][1], values[name])
        except ValueError as error:
            raise SettingsError(name, str(error))
    settings = Settings()
    settings.set(checked)
    return settings


def field_index(name):
    """Return the index of field `name` (a `settings` event has it), NO_SUCH_FIELD, or NO_FIELD of ""."""
    return FIELDS.index(name) if name in FIELDS else NO_SUCH_FIELD if name else NO_FIELD


def parse(text):
    """Return the Settings that `text` (str, one JSON object) describes; what it leaves out is the default.

    Raises SettingsError with the first bad field.
    """
    return _build(_read(text))


# -- Files -> settings in force -----------------------------------------------------------------------


def _load(files, name):
    """Return the text of a settings file. Raises SettingsError, or OSError."""
    if files.size(name) > _MOST_BYTES:
        raise SettingsError("", "longer than %d bytes" % _MOST_BYTES)
    with files.open(name, "rb") as file:
        data = file.read(_MOST_BYTES + 1)
    for byte in data:
        if byte > 126:
            raise SettingsError("", "only ASCII")
    return data.decode()


def _unauthorised(settings, known_word, known_auth):
    """Tell whether regulated options would change without the new record that A8 asks for."""
    # A table that never had a record is a bench or training table, and says so.
    changed = known_auth and settings.options_word() != known_word
    return changed and settings.authorisation_crc() in (0, known_auth)


def adopt(files, idle, known_word, known_auth):
    """Decide which settings are in force.

    Takes in settings.new when `idle` (no round is open), or where none that are sound are in force.

    known_word, known_auth: options_word and authorisation_crc of the newest adoption journaled, 0 = none.
    Returns an Adoption; never raises for what is in the files or for a file system that fails.
    """
    result = Adoption()
    known_word = known_word or Settings().options_word()
    names = ()
    try:
        names = files.listdir()
        if IN_FORCE in names:
            settings = parse(_load(files, IN_FORCE))
        else:
            settings = Settings()
        if _unauthorised(settings, known_word, known_auth):
            raise SettingsError("authorisation", "options were changed without a new record")
        result.settings = settings
        crc = settings.authorisation_crc()
        result.changed = settings.options_word() != known_word or (crc != 0 and crc != known_auth)
    except SettingsError as error:
        result.fault = True
        result.refuse(error)
    except OSError:
        result.fault = True
        result.problem = IN_FORCE + _UNUSABLE
    try:
        if (idle or result.fault) and INCOMING in names:
            _take_in(files, result, known_word, known_auth)
    except OSError:  # it stays where it is, for the next restart
        result.problem = INCOMING + _UNUSABLE
    return result


def _take_in(files, result, known_word, known_auth):
    """Judge settings.new; store it as settings.json or put it aside as settings.bad. Raises OSError."""
    old = result.settings
    try:
        values = _read(_load(files, INCOMING))
        settings = _build(values)
        kept = {}
        if "key" not in values:  # it cannot be read back, so a technician need not know it
            kept["key"] = old.key
        if settings.authorisation is None:
            kept["authorisation"] = old.authorisation
        settings.set(kept)
        # What was journaled may be older than what is in force: the supply may have gone in between.
        if _unauthorised(settings, known_word, known_auth) or _unauthorised(
            settings, old.options_word(), old.authorisation_crc()
        ):
            raise SettingsError("authorisation", "a change of the options needs a new record")
        if known_auth and not settings.authorised:  # or the next change would need none either
            raise SettingsError("authorisation", "the record in force is missing")
        before, after = old.authorisation, settings.authorisation
        if before and after and after["adopted"] < before["adopted"]:
            raise SettingsError("authorisation", "older than the record in force")
    except SettingsError as error:
        result.refuse(error)
        files.rename(INCOMING, REFUSED)
        return
    files.write_whole(IN_FORCE, settings._text())
    result.settings = settings
    result.changed = True
    result.fault = False
    result.refused_field = None
    result.problem = None
    files.remove(INCOMING)
