"""A path that explore.py found, as a scenario file a person can play (SCENARIOS.md).

Owns the translation and nothing else. A step that no scenario can make (a full journal, an exception, a clock
that stands) leaves a comment and cannot be reproduced; `shortest` therefore searches again without those.
"""

import exploration
import explore_rules
from shaker import names as n

_NAMES = {
    n.COVER: "cover",
    n.DOME: "dome",
    n.SERVICE: "service",
    n.START: "start",
    n.LEVER: "lever",
    n.BELL: "bell",
    n.VOID_KEY: "void",
    n.PAID: "paid",
}
_LATCH = {exploration.OPEN: "open", exploration.CLOSED: "closed", exploration.INVALID: "invalid"}
_ON = {"cover": "on", "dome": "closed", "service": "on"}
_OFF = {"cover": "off", "dome": "open", "service": "off"}


def shortest(found, config, mutant=None, full=False):
    """Return the text of the shortest scenario for Found `found`, preferring one that can be played."""
    if not all(exploration.can_be_said(act) for _, act in found.path):
        again = exploration.search(found.name, config, full, mutant, speakable=True)
        if again.violation:
            found = again
    return text(found, config)


def text(found, config):
    """Return the scenario for Found `found`: its path, and at the end what fails."""
    writer = _Writer(config)
    for i, (state, act) in enumerate(found.path):
        if i and state[0] == -1 and found.path[i - 1][1].kind != "cut":
            writer.cut()
        writer.step(state, act)
    violation = found.violation
    lines = [f"# {violation}"]
    options = dict(config)
    if options:
        lines.append("option " + " ".join(f"{k}={_value(v)}" for k, v in options.items()))
    lines += violation.whole
    lines += writer.lines
    lines += violation.final
    if not violation.final:
        lines.append("wait 300")
    return "\n".join(lines) + "\n"


def _value(value):
    return str(value).lower() if isinstance(value, bool) else str(value)


class _Writer:
    def __init__(self, config):
        self.lines = []
        self.down = []  # the keys that are pressed
        self.held = False  # paid is one of them, and counts: else the search knows of one key only
        self.latch = {"a": "open", "b": "open"}
        self.inputs = {"cover": "off", "dome": "closed", "service": "off"}
        self.swapped = False  # the search may have exchanged the latches
        self.lever = config.get("actuation") == "lever"

    def wait(self, ms):
        self.lines.append(f"wait {ms}")

    def set(self, name, value, ms):
        if self.inputs.get(name) == value:
            return
        self.inputs[name] = value
        self.lines.append(f"set {name}={value}")
        self.wait(ms)

    def set_latch(self, which, value, ms):
        if self.latch[which] != value:
            self.latch[which] = value
            self.lines.append(f"set latch_{which}={value}")
            self.wait(ms)

    def step(self, state, act):
        kind = act.kind
        self.held = state[0] != -1 and state[exploration.HOLD] != 0
        handler = getattr(self, "_" + kind, None)
        if handler is None:
            self.lines.append(f"# {kind} {act.arg or ''}: no scenario can do this")
        else:
            if kind in ("edge", "settled", "window", "hold") and act.arg:
                self._change(*act.arg)  # in that very scan, which no scenario can time
            handler(state, act)

    def _change(self, kind, arg):
        if kind == "latch":
            which, to = arg
            if self.swapped:
                which = "b" if which == "a" else "a"
            if to == exploration.NONE:
                self.set_latch(which, "closed", 15)
            else:
                self.set_latch(which, _LATCH[to], 50 if to == exploration.CLOSED else 20)
        elif kind in _ON:
            self.set(kind, _ON[kind] if arg else _OFF[kind], 50 if arg else 40)
        elif kind == "press":
            self.down.append(_NAMES[arg])
            self.lines.append(f"set {_NAMES[arg]}=pressed")
            self.wait(40)
        elif kind == "release":
            gone = [key for key in self.down if not self.held or (key == "paid") == (arg == n.PAID)]
            self._release_all(gone)
            if gone:
                self.wait(40)

    def _release_all(self, keys):
        self.lines += [f"set {key}=released" for key in keys]
        self.down = [key for key in self.down if key not in keys]

    def _idle(self, state, act):
        self.wait(10)

    def _latch(self, state, act):
        self._align(state)
        self._change("latch", act.arg)

    def _cover(self, state, act):
        self._change("cover", act.arg)

    def _dome(self, state, act):
        self._change("dome", act.arg)

    def _service(self, state, act):
        self._change("service", act.arg)

    def _press(self, state, act):
        self._change("press", act.arg)

    def _release(self, state, act):
        self._change("release", act.arg)

    def _both(self, state, act):
        # The slower side first by the difference, so that both settle in one scan.
        self._align(state)
        slow = {"latch": 30, "cover": 30, "dome": 30, "press": 20, "release": 20, "service": 20}
        parts = []
        for kind, arg in act.arg:
            ms = slow[kind]
            if (kind in ("cover", "dome") and not arg) or (kind == "latch" and arg[1] != exploration.CLOSED):
                ms = 5
            parts.append((ms, kind, arg))
        parts.sort(key=lambda part: -part[0])
        for i, (ms, kind, arg) in enumerate(parts):
            at = len(self.lines)
            self._change(kind, arg)
            if i == 0 and len(self.lines) > at and ms > parts[1][0]:
                self.lines[-1] = f"wait {ms - parts[1][0]}"
            elif i == 0 and len(self.lines) > at:
                self.lines.pop()

    def _motion(self, state, act):
        self.lines.append("set motion=moving")
        self.wait(20)
        self.lines.append("set motion=still")
        self.wait(60)

    def _runaway(self, state, act):
        self.lines.append("set motion=moving")
        self.wait(350)
        self.lines.append("set motion=still")
        self.wait(60)

    def _stall(self, state, act):
        # The sensor has to be held still before the pulse, and stays so.
        at = max(
            (i for i, line in enumerate(self.lines) if line.startswith("wait until agitator=on")), default=0
        )
        self.lines.insert(at, "set motion=still")
        self.wait(250)

    def _pair(self, state, act):
        self.wait(250)

    def _hold(self, state, act):
        self.wait(850)

    def _stuck(self, state, act):
        self.wait(10100)

    def _edge(self, state, act):
        stage = state[exploration.STAGE]
        if stage in (exploration.TRAVEL, exploration.GAP):
            self.lines.append("wait until agitator=on within 1000")
        elif stage == exploration.PULSE:
            self.lines.append("wait until agitator=off within 500")
        else:
            self.wait(750)

    def _settled(self, state, act):
        self.wait(750)

    def _window(self, state, act):
        self.wait(10050)

    def _host(self, state, act):
        word = act.arg
        self.lines.append("host " + word + (" dice=1,4,6" if word == "result" else ""))
        self.wait(300)

    def _cut(self, state, act):
        self.cut()

    def cut(self):
        """The power goes."""
        self.lines.append("power off")
        self.wait(100)

    def _judge(self, state, act):
        levels = act.arg[0]
        for i, which in enumerate("ab"):
            value = exploration._latch(levels, i)
            if self.swapped:
                which = "b" if which == "a" else "a"
            if value == exploration.NONE or (
                value != exploration.OPEN and not act.arg[1] >> (13 + i) & 1 and len(self.lines) == 0
            ):
                value = exploration.CLOSED if value == exploration.NONE else value
            name = _LATCH[value]
            if self.latch[which] != name:
                self.latch[which] = name
                self.lines.append(f"set latch_{which}={name}")
        for bit, name in ((n.COVER, "cover"), (n.DOME, "dome"), (n.SERVICE, "service")):
            value = _ON[name] if levels & bit else _OFF[name]
            if self.inputs[name] != value:
                self.inputs[name] = value
                self.lines.append(f"set {name}={value}")
        self._release_all(self.down)
        for bit in exploration.KEY_BITS:
            if levels & bit:
                self.down.append(_NAMES[bit])
                self.lines.append(f"set {_NAMES[bit]}=pressed")
        if any(line == "power off" for line in self.lines[-20:]):
            self.lines.append("power on")
            self.wait(1500)
        elif self.lines:
            self.wait(60)

    def _align(self, state):
        """See whether the search has exchanged the latches since."""
        here = []
        for i in (0, 1):
            value = exploration._latch(state[exploration.LEVELS], i)
            here.append({exploration.NONE: "closed"}.get(value) or _LATCH[value])
        mine = [self.latch["a"], self.latch["b"]]
        if here[0] != here[1]:
            self.swapped = here == mine[::-1]


__all__ = ["explore_rules", "shortest", "text"]
