"""The scenario language: text in, a list of steps out. Source: SCENARIOS.md.

Owns the grammar and every error message about a scenario. Runs on CPython and MicroPython; plays nothing.
"""

import json

from shaker import names, settings

KEYS = ("start", "lever", "bell", "void", "paid")
OUTPUT_VALUES = ("off", "on")
STATUS_NAMES = ("off", "white", "blue", "amber", "green", "yellow", "cyan", "magenta", "red")
REPLIES = (
    "ok", "bad-frame-kind", "unknown-command", "bad-argument", "wrong-phase", "cover-on", "cause-present",
    "round-open", "id-reused", "id-old", "busy", "no-key", "bad-mac", "no-session",
)  # fmt: skip
# Every field an event can have (PROTOCOL.md, Events).
EVENT_FIELDS = (
    "seq", "boot", "t", "at", "ev", "ph", "rd", "rep", "adopted", "auth", "cause", "clean", "code", "dice",
    "field", "from", "key", "on", "place", "pulses", "to", "type", "up", "ver", "was", "what", "why", "win",
)  # fmt: skip
MOST_MS = 86400000  # in one step; a simulated day takes minutes to play
LIMIT_MS = 10000
EVENT_MS = 200
REPLY_MS = 1000


class ScenarioError(Exception):
    """A scenario that cannot be played: names the file, the line and the word."""

    def __init__(self, path, line, text):
        super().__init__("%s:%d: %s" % (path, line, text))


class Step:
    """One line: `verb`, `line` number, `pairs` [(name, value)…], `ms` limit or None, `word`."""

    def __init__(self, verb, line, pairs=(), ms=None, word=None, within=False):
        self.verb = verb
        self.line = line
        self.pairs = pairs
        self.ms = ms
        self.word = word
        self.within = within  # the limit stands in the file


class Scenario:
    """`path`, `options` {name: value} as text, `steps` [Step…]."""

    def __init__(self, path):
        self.path = path
        self.options = {}
        self.steps = []


def number(text):
    """Return the non-negative decimal number that `text` is, or None: plain ASCII digits only."""
    if not text or len(text) > 12:
        return None
    for c in text:
        if c not in "0123456789":
            return None
    return int(text)


def scalar(text):
    """Return `text` as a host would write it in JSON: int, bool, None, list of those, or the text."""
    if "," in text:
        return [scalar(part) for part in text.split(",")]
    if text in ("true", "false"):
        return text == "true"
    if text == "null":
        return None
    digits = text[1:] if text[0:1] == "-" else text
    n = number(digits)
    if n is None or (digits[0] == "0" and digits != "0"):  # no number in JSON
        return text
    return n if digits == text else -n


def unescape(text):
    """Return the bytes that `raw TEXT` stands for (escapes: xNN, r, n, t, 0). Raises ValueError."""
    out = bytearray()
    i = 0
    while i < len(text):
        c = text[i]
        if c != "\\":
            out.extend(c.encode())
            i += 1
            continue
        kind = text[i + 1 : i + 2]
        if kind == "x":
            digits = text[i + 2 : i + 4]
            if len(digits) != 2 or any(d not in "0123456789abcdefABCDEF" for d in digits):
                raise ValueError("\\x takes two hex digits")
            out.append(int(digits, 16))
            i += 4
        elif kind in ("r", "n", "t", "0", "\\") and kind:
            out.append({"r": 13, "n": 10, "t": 9, "0": 0, "\\": 92}[kind])
            i += 2
        else:
            raise ValueError("unknown escape \\" + kind)
    return bytes(out)


class _Parser:
    def __init__(self, path):
        self.path = path
        self.line = 0

    def fail(self, text):
        raise ScenarioError(self.path, self.line, text)

    def count(self, text, what):
        n = number(text)
        if n is None:
            self.fail("'%s' is not %s" % (text, what))
        return n

    def ms(self, text):
        n = self.count(text, "a number of ms")
        if n > MOST_MS:
            self.fail("'%s' is more than a day (%d ms)" % (text, MOST_MS))
        return n

    def within(self, words):
        """Split a trailing `within MS` off `words`."""
        if len(words) >= 2 and words[-2] == "within":
            return words[:-2], self.ms(words[-1])
        if words and words[-1] == "within":
            self.fail("'within' needs a number of ms")
        return words, None

    def pair(self, word):
        name, sep, value = word.partition("=")
        if not sep or not name or not value:
            self.fail("'%s' is not NAME=VALUE" % word)
        return name, value

    def signal(self, word, inputs_only=False):
        """Check one NAME=VALUE of set, expect, wait, never, always."""
        name, value = self.pair(word)
        if name in names.INPUT_VALUES:
            allowed = names.INPUT_VALUES[name]
        elif inputs_only:
            self.fail("'%s' is not an input" % name)
        elif name in names.OUTPUTS:
            allowed = OUTPUT_VALUES
        elif name == "phase":
            allowed = names.PHASES
        elif name == "fault":
            allowed = names.FAULTS
        elif name == "status":
            allowed = STATUS_NAMES
        elif name in ("round", "repeat"):
            self.count(value, "a number")
            return name, value
        elif name in ("lamps", "layout"):
            return "lamps", self.lamps(value)
        else:
            self.fail("unknown name '%s'" % name)
        if value not in allowed:
            self.fail("%s cannot be '%s' (one of: %s)" % (name, value, " ".join(allowed)))
        return name, value

    def lamps(self, value):
        lit = [] if value == "none" else value.split(",")
        for lamp in lit:
            if lamp not in names.LAMPS:
                self.fail("unknown lamp '%s'" % lamp)
        return ",".join(lamp for lamp in names.LAMPS if lamp in lit) or "none"

    def signals(self, words, inputs_only=False):
        if not words:
            self.fail("NAME=VALUE is missing")
        pairs = []
        for word in words:
            self.add(pairs, self.signal(word, inputs_only))
        return pairs

    def add(self, pairs, pair):
        """Add one (name, value); a name that stands twice cannot be meant."""
        if pair[0] in [name for name, _ in pairs]:
            self.fail("'%s' stands twice" % pair[0])
        pairs.append(pair)

    def event(self, words):
        if not words:
            self.fail("the event's name is missing")
        if words[0] not in names.EVENTS:
            self.fail("unknown event '%s'" % words[0])
        pairs = []
        for word in words[1:]:
            name, value = self.pair(word)
            if name not in EVENT_FIELDS:
                self.fail("no event has a field '%s'" % name)
            self.add(pairs, (name, value))
        return words[0], pairs

    def option(self, scenario, words):
        if scenario.steps:
            self.fail("'option' comes only before the first other line")
        if not words:
            self.fail("NAME=VALUE is missing")
        for word in words:
            name, value = self.pair(word)
            if name == "clock":
                if self.count(value, "a tick") >= 1 << 30:
                    self.fail("clock must lie below 2^30")
            elif name == "link":
                if value not in ("absent", "present"):
                    self.fail("link cannot be '%s' (one of: absent present)" % value)
            elif name == "motion" and value in ("dead", "runaway"):
                pass
            elif name in settings.FIELDS:
                try:
                    settings.parse(json.dumps({name: scalar(value)}))
                except settings.SettingsError as error:
                    self.fail("%s: %s" % (error.field, error.reason))
            else:
                self.fail("unknown option '%s'" % name)
            if name in scenario.options:
                self.fail("'%s' stands twice" % name)
            scenario.options[name] = value

    def step(self, verb, words, rest):
        line = self.line
        if verb == "set":
            return Step(verb, line, self.signals(words, True))
        if verb in ("cover", "uncover", "restart"):
            self.no_more(words)
            return Step(verb, line)
        if verb == "press":
            if not words or words[0] not in KEYS:
                self.fail("'%s' is not a key (one of: %s)" % (words[0] if words else "", " ".join(KEYS)))
            ms = 100
            if len(words) > 1:
                if len(words) != 3 or words[1] != "for":
                    self.fail("'%s' is not understood (press KEY for MS)" % words[1])
                ms = self.ms(words[2])
            return Step(verb, line, ms=ms, word=words[0])
        if verb == "wait":
            if words and words[0] == "until":
                words, ms = self.within(words[1:])
                return Step("until", line, self.signals(words), LIMIT_MS if ms is None else ms)
            if len(words) != 1:
                self.fail("wait takes a number of ms, or 'until'")
            return Step(verb, line, ms=self.ms(words[0]))
        if verb == "expect":
            return self.expect(words)
        if verb == "no":
            if not words or words[0] != "event":
                self.fail("'%s' is not understood (no event NAME)" % (words[0] if words else ""))
            name, pairs = self.event(words[1:])
            return Step("no event", line, pairs, word=name)
        if verb in ("never", "always"):
            return Step(verb, line, self.signals(words))
        if verb == "release":
            if words != ["always"]:
                self.fail("'%s' is not understood (release always)" % " ".join(words))
            return Step(verb, line)
        if verb == "host":
            return self.host(words)
        if verb == "raw":
            if not rest:
                self.fail("raw takes the bytes to send")
            try:
                return Step(verb, line, word=unescape(rest))
            except ValueError as error:
                self.fail(str(error))
        if verb == "power":
            if words in (["on"], ["off"]):
                return Step("power " + words[0], line)
            if len(words) == 4 and words[:3] == ["cut", "at", "write"]:
                n = self.count(words[3], "a number")
                if n < 1:
                    self.fail("the write to cut at is counted from 1")
                return Step("power cut", line, ms=n)
            self.fail(
                "'power %s' is not understood (power on, power off, power cut at write N)" % " ".join(words)
            )
        self.fail("unknown word '%s'" % verb)

    def no_more(self, words):
        if words:
            self.fail("'%s' is too much here" % words[0])

    def expect(self, words):
        words, ms = self.within(words)
        if words and words[0] == "event":
            name, pairs = self.event(words[1:])
            return Step(
                "expect event", self.line, pairs, EVENT_MS if ms is None else ms, name, ms is not None
            )
        if words and words[0] == "reply":
            if len(words) != 2:
                self.fail("expect reply takes 'ok' or an error code")
            if words[1] not in REPLIES:
                self.fail("unknown reply '%s'" % words[1])
            limit = REPLY_MS if ms is None else ms
            return Step("expect reply", self.line, ms=limit, word=words[1], within=ms is not None)
        return Step("expect", self.line, self.signals(words), 0 if ms is None else ms)

    def host(self, words):
        if not words:
            self.fail("the command is missing")
        pairs = []
        for word in words[1:]:
            name, value = self.pair(word)
            if name in ("id", "cmd"):
                self.fail("'%s' of a command is the player's own (raw sends any bytes)" % name)
            if "" in value.split(","):
                self.fail("'%s' lacks an item" % word)
            # A nonce is hex digits, which may all be decimal.
            self.add(pairs, (name, value if name == "nonce" else scalar(value)))
        return Step("host", self.line, pairs, word=words[0])


def parse(text, path):
    """Return the Scenario that `text` describes; raises ScenarioError naming path, line and word."""
    scenario = Scenario(path)
    parser = _Parser(path)
    for raw in text.split("\n"):
        parser.line += 1
        stripped = raw.strip()
        if not stripped or stripped.startswith("#"):
            continue
        words = stripped.split()
        verb = words[0]
        if verb == "option":
            parser.option(scenario, words[1:])
            continue
        rest = stripped[len(verb) :].strip() if verb == "raw" else ""
        if verb != "raw":
            # A comment may follow a step; no value contains '#'.
            for i, word in enumerate(words):
                if word.startswith("#"):
                    words = words[:i]
                    break
        scenario.steps.append(parser.step(verb, words[1:], rest))
    if not scenario.steps:
        parser.fail("nothing is played in this file")
    return scenario
