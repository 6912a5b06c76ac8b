"""Random people, contacts, lines, flash and supplies through the whole firmware, chosen by hypothesis.

The table runs in a thread of its own and stops wherever it wants to know what happens next. A failing
example ends up, shrunk, in build/failures/ as a scenario file: `make scenario FILES=…` plays it as far as
the language goes, walks.py with everything in it.

A run counts what it came by, and fails when that is too little: a table that only boots proves nothing.

On CPython: PROGRAM EXAMPLES STEPS RECORD [random], RECORD the name of that file.
"""

import pathlib
import queue
import sys
import threading
import traceback

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

import scenario
import walks
from invariants import Broken
from shaker import names
from table import Failed

FAILURES = pathlib.Path(__file__).resolve().parent.parent / "build" / "failures"
_WAIT_S = 600
_BOOT_MS = 1500  # a supply is not touched before the table has come to rest
_TRIES = 30  # things a croupier does until the phase in which an example begins
_FEW = 8  # and to the phase where something is to be tried
_SHAKEN = 80  # percent of the examples in which a shake begins

# Where each signed command means something; an acknowledgement is the host's own.
WHERE = {
    "result dice=1,4,6": "PAYOUT", "void": "PAYOUT", "paid": "PAYOUT", "clear": "FAULT", "abandon": "VOID",
    "time at=1893456000": "BETTING", "reboot": "IDLE",
}  # fmt: skip


class Live:
    """A walk that is told its lines one by one."""

    def __init__(self, program, options):
        self._asked: queue.Queue = queue.Queue()
        self._told: queue.Queue = queue.Queue()
        self.walk = walks.Walk(str(program), self._source, options)
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self._asked.get(timeout=_WAIT_S)

    def _source(self, walk):
        while True:
            self._asked.put(True)
            line = self._told.get()
            if line is None:
                break
            yield line
        yield from walk.calm()

    def _run(self):
        try:
            self.walk.play()
        except BaseException as error:
            self.error = error
        self._asked.put(False)

    def say(self, line):
        """Let `line` (None = calm down and end) happen; raises what went wrong."""
        if self._thread.is_alive() or not self._asked.empty():
            self._told.put(line)
            self._asked.get(timeout=_WAIT_S)
        if self.error is not None:
            raise self.error


class Seen:
    """What the examples of a run came by."""

    def __init__(self):
        self.examples = 0
        self.shaken = 0
        self.phases: set = set()
        self.sent: set = set()
        self.repeated: set = set()

    def add(self, walk):
        """Count an example that has done what it will."""
        self.examples += 1
        self.shaken += "SHAKING" in walk.watch.seen_phases
        self.phases |= walk.watch.seen_phases
        self.sent |= set(walk.signed)
        self.repeated |= walk.repeated

    def missing(self):
        """Return what a run of any length must have come by and did not, in words."""
        found = [f"phase {name}" for name in names.PHASES if name not in self.phases]
        found += [f"{cmd} sent" for cmd in walks.SIGNED if cmd not in self.sent]
        found += [f"{cmd} said again" for cmd in walks.SIGNED if cmd not in self.repeated]
        if self.shaken * 100 < _SHAKEN * self.examples:
            found.append(f"{_SHAKEN} % shaken")
        return found


class Machine(RuleBasedStateMachine):
    """One table and everything that can happen to it."""

    program = ""
    record = "stateful"
    seen = Seen()

    @initialize(
        clock=st.sampled_from(walks.CLOCKS),
        lever=st.booleans(),
        front=st.booleans(),
        bolt=st.sampled_from((600, 200, 2000)),
        link=st.sampled_from(("present", "present", "absent")),
        rounds=st.integers(0, 1),
        phase=st.sampled_from(names.PHASES),
        ms=st.integers(0, 2000),
        commands=st.lists(st.sampled_from(sorted(WHERE)), min_size=1, max_size=3),
    )
    def begin(self, clock, lever, front, bolt, link, rounds, phase, ms, commands):
        options = {"clock": str(clock), "bolt_ms": str(bolt), "link": link}
        options["actuation"] = "lever" if lever else "electronic"
        options["front_board"] = "true" if front else "false"
        self.live = Live(self.program, options)
        self.over = False
        self.by_the_host(commands, True)
        self.play_to(phase, rounds, _TRIES)
        if phase == "SHAKING":
            self.say(f"wait {ms}")

    def play_to(self, phase, rounds, tries=_FEW):
        """Play as the croupier, `rounds` whole rounds and on to `phase`; give up where it does not go on."""
        stuck = 0
        now = None
        for _ in range(tries):
            walk = self.live.walk
            before, now = now, walk.phase()
            stuck = stuck + 1 if now == before else 0
            if stuck > 2 and now != "SHAKING":
                break
            if now == phase and not rounds:
                break
            if now is None:
                self.say("wait 500")
                continue
            lines = walks.sensible(now, walk.watch.lever)
            if now == "PAYOUT" and rounds:
                rounds -= 1
            elif now == "PAYOUT":
                lines = ("uncover", "press void")
            elif now == "BETTING" and phase == "FAULT" and not rounds:
                lines = ("set latch_a=open", "wait 100", "set latch_a=closed")
            was = walk.table.value("round")
            self.say(*lines, "wait 100")
            if now == "COVERED" and walk.phase() == now and walk.table.value("round") == was:
                self.say("uncover")  # a latch not seen open, say

    def say(self, *lines):
        for line in lines:
            try:
                self.live.say(line)
            except (Broken, Failed) as error:
                self.over = True
                FAILURES.mkdir(parents=True, exist_ok=True)
                (FAILURES / (self.record + ".scn")).write_text(walks.text(self.live.walk, str(error)))
                raise

    def powered(self):
        return self.live.walk.table.world.powered

    def at_rest(self):
        world = self.live.walk.table.world
        return world.powered and world.now - world._started >= _BOOT_MS

    @precondition(powered)
    @rule()
    def go_on(self):
        phase = self.live.walk.phase()
        if phase:
            self.say(*walks.sensible(phase, self.live.walk.watch.lever))

    @precondition(powered)
    @rule(times=st.integers(1, 6))
    def play_on(self, times):
        for _ in range(times):
            self.go_on()

    @precondition(powered)
    @rule(void=st.booleans(), dice=st.booleans())
    def end_a_round(self, void, dice):
        """To the end of the payout, with or without dice, by key or void."""
        self.play_to("PAYOUT", 0)
        if dice:
            self.say("host result dice=1,4,6", "wait 100")
        if void:
            self.say("uncover", "press void")
        else:
            self.go_on()

    @precondition(at_rest)
    @rule(
        commands=st.lists(st.sampled_from(sorted(WHERE)), min_size=1, max_size=3),
        again=st.sampled_from((True, True, False)),
    )
    def by_the_host(self, commands, again):
        """Signed commands where they mean something; then, perhaps, each frame once more."""
        for command in commands:
            self.play_to(WHERE[command], 0)
            self.say("host " + command, "wait 200")
            if again:
                self.repeat(command.split()[0])

    def repeat(self, cmd):
        said = self.live.walk.signed.get(cmd)
        if said and self.powered():
            self.say("raw " + "".join(f"\\x{byte:02x}" for byte in said.encode() + b"\r\n"), "wait 10")

    @precondition(lambda self: self.live.walk.phase() == "PAYOUT")
    @rule(lines=st.sampled_from((("uncover", "press void"), ("cover", "wait 300"), ("set cover=on",))))
    def in_payout(self, lines):
        self.say(*lines)

    @precondition(lambda self: self.live.walk.phase() == "SHAKING")
    @rule(ms=st.integers(0, 4000), what=st.sampled_from(walks.OPENING))
    def open_in_the_shake(self, ms, what):
        self.say(f"wait {ms}", f"set {what}")

    @rule(ms=st.sampled_from(walks.WAITS))
    def wait(self, ms):
        self.say(f"wait {ms}")

    @rule(switch=st.sampled_from(walks.SWITCHES))
    def move(self, switch):
        self.say("set " + switch)

    @rule(key=st.sampled_from(scenario.KEYS), ms=st.sampled_from(walks.HOLDS))
    def press(self, key, ms):
        self.say(f"press {key} for {ms}")

    @rule(
        keys=st.lists(st.sampled_from(scenario.KEYS), min_size=2, max_size=5), ms=st.sampled_from(walks.HOLDS)
    )
    def press_together(self, keys, ms):
        self.say(
            *(f"set {key}=pressed" for key in keys), f"wait {ms}", *(f"set {key}=released" for key in keys)
        )

    @precondition(powered)
    @rule(command=st.sampled_from(walks.COMMANDS))
    def ask(self, command):
        self.say("host " + command)

    @precondition(powered)
    @rule(data=st.binary(min_size=1, max_size=300))
    def babble(self, data):
        self.say("raw " + "".join(f"\\x{byte:02x}" for byte in data))

    @precondition(lambda self: self.powered() and self.live.walk.signed)
    @rule(at=st.integers(0, 7), there=st.booleans())
    def repeat_a_command(self, at, there):
        """A signed command that the host has given, perhaps long ago, and where it would mean something."""
        given = sorted(self.live.walk.signed)
        cmd = given[at % len(given)]
        for command in WHERE:
            if there and command.split()[0] == cmd:
                self.play_to(WHERE[command], 0)
        self.repeat(cmd)

    @precondition(powered)
    @rule(
        which=st.lists(st.integers(0, 29), min_size=1, max_size=3),
        cut=st.floats(0, 1),
        flip=st.one_of(st.none(), st.tuples(st.integers(0, 119), st.integers(0, 7))),
    )
    def say_again(self, which, cut, flip):
        """Frames the host has sent: whole, merged, split, damaged, twice."""
        said = self.live.walk.said
        if not said:
            return
        data = bytearray(b"".join(said[i % len(said)].encode() + b"\r\n" for i in which))
        if flip and flip[0] < len(data):
            data[flip[0]] ^= 1 << flip[1]
        at = int(len(data) * cut)
        for part in (data[:at], data[at:]):
            if part:
                self.say("raw " + "".join(f"\\x{byte:02x}" for byte in part), "wait 10")

    @precondition(at_rest)
    @rule(n=st.integers(0, 9), ms=st.sampled_from(walks.WAITS), rest=st.sampled_from((0, 50, 1500, 1500)))
    def supply(self, n, ms, rest):
        """The power goes at a write to come, or now, and comes back; or a restart without that."""
        if 1 <= n <= 7:
            self.say(f"power cut at write {n}")
        elif n == 8:
            self.say("restart", f"wait {rest}")
        else:
            self.say("power off", f"wait {ms}", "power on", f"wait {rest}")

    @precondition(lambda self: not self.powered())
    @rule(ms=st.sampled_from(walks.WAITS), rest=st.sampled_from((0, 50, 1500, 1500)))
    def on(self, ms, rest):
        self.say(f"wait {ms}")
        if not self.powered():
            self.say("power on", f"wait {rest}")

    @rule(
        what=st.one_of(
            st.builds("#: bounce_ms={} noise_ms={}".format, st.integers(0, 25), st.integers(0, 4)),
            st.sampled_from(("stall_every=0", "stall_every=9", "stall_every=1", "stall=off")).map(
                "#: {}".format
            ),
            st.sampled_from((0, 1000, 10000, 50000)).map("#: damage_ppm={}".format),
            st.sampled_from(("ok", "dead", "runaway", "welded", "ok")).map("#: motor={}".format),
            st.sampled_from(("killed", "absent", "back", "back")).map("#: host={}".format),
        )
    )
    def trouble(self, what):
        """Contacts, flash, line, motor and host as nobody wants them, or well again."""
        self.say(what)

    @rule(
        kind=st.sampled_from(("cut", "stick")),
        contact=st.sampled_from(walks.CONTACTS),
        ms=st.sampled_from(walks.WAITS),
    )
    def bad_wire(self, kind, contact, ms):
        self.say(f"#: {kind}={contact}", f"wait {ms}", "#: mend=all")

    def teardown(self):
        if hasattr(self, "live") and not self.over:
            self.seen.add(self.live.walk)  # before it calms down, which always plays a round
            self.say(None)


def main(program, examples, steps, record, chosen="always the same"):
    """Let hypothesis try; returns 1 when it found something."""
    Machine.program = program
    Machine.record = record
    wanted = settings(
        max_examples=int(examples),
        stateful_step_count=int(steps),
        deadline=None,
        derandomize=chosen != "random",
        database=None,
        suppress_health_check=(HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large),
    )
    try:
        run_state_machine_as_test(Machine, settings=wanted)
    except Exception:
        traceback.print_exc()
        print(f"see build/failures/{record}.scn")
        return 1
    seen = Machine.seen
    print(f"shaken in {seen.shaken} of {seen.examples}; said again: {', '.join(sorted(seen.repeated))}")
    missing = seen.missing()
    if missing:
        print("too little happens: no " + ", no ".join(missing))
        return 1
    print(f"examples {examples}")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
