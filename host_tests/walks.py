"""Random walks at the virtual table: hasty and muddled people, bad contacts, a bad line, a bad supply.

A walk is a list of lines: those of a scenario, and lines that begin with "#:", which a scenario player
takes for comments: they change what no scenario word can (bouncing, noise, stalls, damage on the line,
cut wires, the host). Every walk ends in calm: everything is mended, the round is played to its end, the
host hears everything. All the while invariants.py watches.

Runs on CPython and MicroPython: PROGRAM TRACES [first] WALK…, where a WALK is a seed or a file; writes
the trace of each to TRACES/<index>.trace and prints "ok <index>" or "bad <index>" last, as
run_scenarios.py does; `first`: stops at the first that is bad.
"""

import binascii
import gc
import json
import sys

import scenario
from host import hmac_sha256
from invariants import Broken, Watch
from lcg import Lcg
from table import KEY, Failed, Player

ACTIONS = 60  # of a walk by seed
KEPT = 30  # frames of the host's, to be said again
LINE_MAX = 120  # bytes of a frame to the device, line end included
SIGNED = ("ack", "result", "void", "paid", "clear", "abandon", "time", "reboot")
FINISH = 60  # lines the end of a walk may take
WAITS = (1, 5, 10, 25, 50, 100, 200, 350, 700, 1500, 3000)
HOLDS = (1, 5, 15, 25, 60, 100, 400, 790, 850, 1000, 11000)
CLOCKS = (0, (1 << 29) - 5, (1 << 30) - 5, (1 << 30) - 3000, (1 << 30) - 9000)
SWITCHES = (
    "cover=on", "cover=off", "latch_a=open", "latch_a=closed", "latch_b=open", "latch_b=closed", "dome=open",
    "dome=closed", "service=on", "service=off", "motion=moving", "motion=still",
)  # fmt: skip
OPENING = ("latch_a=open", "latch_b=open", "cover=off", "dome=open")
CONTACTS = ("latch_a_no", "latch_a_nc", "latch_b_no", "latch_b_nc", "cover", "dome", "start", "bell")
COMMANDS = (
    "status", "counts", "result dice=1,4,6", "result dice=5,5,5", "void", "paid", "clear", "abandon",
    "time at=1893456000", "reboot", "rounds n=1", "replay from=1", "verify nonce=0a", "settings",
    "result dice=0,1,2",
)  # fmt: skip
TRUTHS = [
    "never agitator=on cover=off", "never agitator=on latch_a=open", "never agitator=on latch_b=open",
    "never agitator=on dome=open", "never agitator=on cover_lock=off", "never cover_lock=on cover_bar=on",
]  # fmt: skip
for _phase in ("IDLE", "COVERED", "BETTING", "CLOSED", "PAYOUT", "VOID", "FAULT"):
    TRUTHS.append("never agitator=on phase=" + _phase)
for _phase in ("IDLE", "COVERED", "SHAKING", "CLOSED", "PAYOUT", "VOID", "FAULT"):
    TRUTHS.append("never front_board=on phase=" + _phase)


def sensible(phase, lever=False):
    """Return the lines of what a croupier does next in `phase`; lever: on a lever build."""
    if lever and phase == "COVERED":
        return ("press lever", "wait 200", "press lever", "wait 200", "press lever")
    return {
        "IDLE": ("uncover", "cover"),
        "COVERED": ("press start",),
        "SHAKING": ("wait 1500",),
        "BETTING": ("press bell",),
        "CLOSED": ("uncover",),
        "PAYOUT": ("uncover", "press paid for 1000"),
        "VOID": ("uncover", "cover"),
        "FAULT": ("set service=on", "wait 100", "set service=off", "wait 100"),
    }[phase]


def signed(data, nonces):
    """Return the commands of the whole frames in `data` that are signed with one of `nonces` (bytes)."""
    found = []
    for line in data.replace(b"\n", b"\r").split(b"\r")[:-1]:
        line = line[max(line.rfind(b"$"), 0) :]
        body, _, mac = line[1:-9].partition(b"~")
        if b"*%08X" % binascii.crc32(line[1:-9]) == line[-9:] and mac:
            for nonce in nonces:
                if binascii.hexlify(hmac_sha256(KEY, nonce + body))[:16] == mac:
                    found.append(json.loads(body)["cmd"])
                    break
    return found


def options_text(options):
    """Return the option lines of a scenario."""
    return ["option %s=%s" % (name, options[name]) for name in sorted(options)]


class Walk(Player):
    """Plays the lines that `source(walk)` yields; `lines` are those played so far."""

    def __init__(self, program, source, options=None, path="walk"):
        self.lines = []
        self.source = source
        plan = scenario.Scenario(path)
        plan.options = options or {}
        Player.__init__(self, plan, program)
        self.said = []  # what the host has sent, to be said again
        self.signed = {}  # the last of each signed command
        self.repeated = set()  # signed commands that came again whole
        self._nonces = []
        self._raw = b""  # the end of what was said again
        self.watch = Watch(self.table, self.broken, plan.options)
        self._line = self.table.host.on_line
        self.table.host.on_line = self._overhear

    def _overhear(self, text, way):
        self._line(text, way)
        if way == ">":
            self.said.append(text)
            if len(self.said) > KEPT:
                self.said.pop(0)
            cmd = json.loads(text[1 : text.rfind("}") + 1])["cmd"]
            if cmd in SIGNED:
                self.signed[cmd] = text
        elif '"nonce":"' in text:
            self._nonces.append(text[text.find('"nonce":"') + 9 :].split('"')[0].encode())

    def broken(self, text):
        """Stop: an invariant does not hold."""
        if self._failure is None:
            lines = ["%s: after line %d, at %d ms: %s" % (
                self.scenario.path, len(self.lines), self.table.world.now, text
            )]  # fmt: skip
            lines += ["    " + self.table.host.text(event) for event in self.table.host.events[-5:]]
            self._failure = "\n".join(lines)
        self._end()

    @property
    def failure(self):
        """What is wrong, or None."""
        return self._failure

    def _script(self):
        for line in self.source(self):
            self.lines.append(line)
            if line.startswith("#:"):
                for word in line[2:].split():
                    name, _, value = word.partition("=")
                    self._change(name, value)
                continue
            step = scenario.parse(line, self.scenario.path).steps[0]
            step.line = len(self.lines)
            self._step = step
            if step.verb == "raw":
                self._say_again(step.word)
            yield from getattr(self, "_do_" + step.verb.replace(" ", "_"))(step)

    def _say_again(self, data):
        """Note what `data`, after what came before it, says with a signature: it may end a payout."""
        whole = self._raw + data
        again = signed(whole, self._nonces)
        self._raw = whole[max(whole.rfind(b"\n"), whole.rfind(b"\r")) + 1 :][-LINE_MAX:]
        self.repeated.update(again)
        if "paid" in again or "void" in again:
            self.watch.may_end = True

    def _change(self, name, value):
        world = self.table.world
        host = self.table.host
        chip = self.table.storage.chip
        if name == "bounce_ms":
            world.bounce_ms = int(value)
        elif name == "noise_ms":
            world.noise_ms = int(value)
        elif name == "stall_every":
            chip.on_stall = world.line.stall
            chip.long_stall_every = int(value)
        elif name == "stall":
            chip.on_stall = None
        elif name == "damage_ppm":
            host.noise_in.ppm = host.noise_out.ppm = int(value)
        elif name == "cut":
            world.cut(value)
        elif name == "stick":
            world.stick(value)
        elif name == "mend":
            world.mend()
        elif name == "motor":
            world.set_motor(value)
        elif name == "motion":
            world.unpin_motion()
        elif name == "host" and value == "killed":
            host.kill()
        elif name == "host" and value == "back":
            host.absent = False
            if not host.alive:
                host.restart()
        elif name == "host":
            host.absent = True
        elif name == "book":
            self.watch.check_host()
        else:
            raise ValueError(name)

    def phase(self):
        """Return the phase, or None while nothing runs."""
        app = self.table.running()
        return self.table.value("phase") if app and app.core.round.judged else None

    def told(self):
        """Tell whether the host knows every event."""
        app = self.table.running()
        return app is not None and app.queue.count == 0 and app.journal.last == self.table.host.last

    def calm(self):
        """Yield the lines that end a walk: all is mended, and the round played to its end."""
        yield "#: bounce_ms=0 noise_ms=0 stall=off damage_ppm=0 mend=all motor=ok motion=free host=back"
        if self.table.storage.chip.armed or not self.table.world.powered:
            if self.table.world.powered:
                yield "power off"
            yield "power on"
        for key in ("start", "lever", "bell", "void", "paid"):
            yield "set %s=released" % key
        yield "set service=off"
        yield "set dome=closed"
        yield "wait 6000"
        rounds = 0
        for _ in range(FINISH):
            phase = self.phase()
            if phase == "IDLE" and rounds:
                break
            if phase is None:
                yield "wait 1000"
                continue
            rounds += phase == "PAYOUT"
            was = self.table.value("round")
            yield from sensible(phase, self.watch.lever)
            yield "wait 200"
            if phase == "COVERED" and self.phase() == "COVERED" and self.table.value("round") == was:
                yield "uncover"
        else:
            self.broken("no way back to IDLE")
        for _ in range(60):
            if self.told():
                break
            yield "wait 1000"
        yield "#: book=closed"


class Chance:
    """The source of a walk by seed."""

    def __init__(self, seed, actions=ACTIONS):
        self.chance = Lcg(seed)
        self.actions = actions

    def options(self):
        """Return the walk's options."""
        chance = self.chance
        found = {"clock": "%d" % chance.choice(CLOCKS)}
        if chance.chance(20):
            found["actuation"] = "lever"
        if chance.chance(20):
            found["front_board"] = "false"
        if chance.chance(20):
            found["bolt_ms"] = "2000"
        if chance.chance(15):
            found["motion"] = "false"
        if chance.chance(15):
            found["link"] = "absent"
        return found

    def __call__(self, walk):
        chance = self.chance
        for _ in range(self.actions):
            yield from self.action(walk, chance.below(100))
        yield from walk.calm()

    def action(self, walk, what):
        """Yield the lines of one action."""
        chance = self.chance
        if not walk.table.world.powered:
            yield "wait %d" % chance.choice((50, 300, 1000))
            if not walk.table.world.powered:
                yield "power on"
            yield "wait %d" % chance.choice((0, 50, 300, 1200))
        elif what < 45:
            phase = walk.phase()
            if phase == "PAYOUT" and chance.chance(50):
                yield from chance.choice(
                    (("uncover", "press void"), ("cover", "wait 300"), ("set cover=on",))
                )
            elif phase == "SHAKING":
                yield "wait %d" % chance.choice((5, 100, 500, 900, 1300, 4000))
                if chance.chance(25):
                    yield "set " + chance.choice(OPENING)
            elif phase:
                yield from sensible(phase, walk.watch.lever)
        elif what < 55:
            yield "wait %d" % chance.choice(WAITS)
        elif what < 63:
            yield "set " + chance.choice(SWITCHES)
        elif what < 71:
            key = chance.choice(scenario.KEYS)
            yield "press %s for %d" % (key, chance.choice(HOLDS))
        elif what < 77:
            yield "host " + chance.choice(COMMANDS)
        elif what < 83:
            yield from self.line(walk)
        elif what < 86:
            yield "power cut at write %d" % (1 + chance.below(6))
        elif what < 89:
            yield "power off"
        elif what < 91:
            yield "restart"
        elif what < 93:
            yield "#: bounce_ms=%d noise_ms=%d" % (chance.choice((0, 3, 8, 20)), chance.choice((0, 0, 2, 4)))
        elif what < 95:
            yield chance.choice(("#: stall_every=0", "#: stall_every=9", "#: stall=off"))
        elif what < 97:
            yield "#: damage_ppm=%d" % chance.choice((0, 1000, 10000, 50000))
        elif what < 98:
            kind = chance.choice(("cut", "stick"))
            yield "#: %s=%s" % (kind, chance.choice(CONTACTS))
            yield "wait %d" % chance.choice((20, 150, 500))
            yield "#: mend=all"
        elif what < 99:
            yield "#: motor=" + chance.choice(("ok", "dead", "runaway", "welded", "ok"))
        else:
            yield "#: host=" + chance.choice(("killed", "absent", "back"))

    def line(self, walk):
        """Yield `raw` lines: random bytes, or what the host said, whole, in part, damaged, twice."""
        chance = self.chance
        kind = chance.below(7)
        said = chance.choice(walk.said) if walk.said else "$"
        if kind == 0:
            data = chance.bytes(1 + chance.below(200))
        else:
            data = said.encode() + b"\r\n"
            if kind == 1:
                data = data[: 1 + chance.below(len(data) - 1)]
            elif kind == 2:
                data = data + data
            elif kind == 3:
                at = chance.below(len(data))
                data = data[:at] + bytes([data[at] ^ (1 << chance.below(8))]) + data[at + 1 :]
            elif kind == 4:
                at = chance.below(len(data))
                data = data[:at] + data
            elif kind == 5:
                data = data[chance.below(len(data)) :] + b"\x03" + data
        yield "raw " + "".join(["\\x%02x" % byte for byte in data])


def read(path):
    """Return (options, lines) of a walk that was written to a file."""
    with open(path) as f:
        text = f.read()
    options = {}
    lines = []
    for line in text.split("\n"):
        line = line.strip()
        if line.startswith("option "):
            name, _, value = line[7:].partition("=")
            options[name] = value
        elif line and not line.startswith("never ") and (line[0] != "#" or line.startswith("#:")):
            lines.append(line)
    return options, lines


def text(walk, why):
    """Return the scenario file of a walk: the player can play it, and `walks.py` with all its troubles."""
    lines = ["# " + line.strip() for line in why.split("\n")]
    return "\n".join(lines + options_text(walk.scenario.options) + TRUTHS + walk.lines) + "\n"


def play(program, word):
    """Play a seed or a file; return (walk, what is wrong or None)."""
    if scenario.number(word) is not None:
        source = Chance(int(word))
        walk = Walk(program, source, source.options(), "seed " + word)
    else:
        options, lines = read(word)
        walk = Walk(program, lambda walk: iter(lines), options, word)
    try:
        walk.play()
    except (Broken, Failed) as error:
        return walk, str(error)
    return walk, None


def main(program, traces, words):
    """Play every walk; return how many failed."""
    bad = 0
    first = words[0] == "first"
    if first:
        words = words[1:]
    for index in range(len(words)):
        gc.collect()
        walk, why = play(program, words[index])
        if why:
            bad += 1
            print(why)
            with open("%s/%d.scn" % (traces, index), "w") as f:
                f.write(text(walk, why))
        print("%s %d" % ("bad" if why else "ok", index))
        with open("%s/%d.trace" % (traces, index), "w") as f:
            for line in walk.table.trace:
                f.write(line)
                f.write("\n")
        if bad and first:
            break
    return bad


if __name__ == "__main__":
    sys.exit(1 if main(sys.argv[1], sys.argv[2], sys.argv[3:]) else 0)
