"""Random people, contacts, lines, flash and supplies through the whole firmware, chosen by hypothesis.

The table runs in a thread of its own and stops wherever it wants to know what happens next. A failing
example ends up, shrunk, in build/failures/ as a scenario file: `make scenario FILES=…` plays it as far as
the language goes, walks.py with everything in it.

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
from table import Failed

FAILURES = pathlib.Path(__file__).resolve().parent.parent / "build" / "failures"
_WAIT_S = 600


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


class Machine(RuleBasedStateMachine):
    """One table and everything that can happen to it."""

    program = ""
    record = "stateful"

    @initialize(
        clock=st.sampled_from(walks.CLOCKS),
        lever=st.booleans(),
        front=st.booleans(),
        bolt=st.sampled_from((600, 200, 2000)),
        link=st.sampled_from(("present", "present", "absent")),
    )
    def begin(self, clock, lever, front, bolt, link):
        options = {"clock": str(clock), "bolt_ms": str(bolt), "link": link}
        options["actuation"] = "lever" if lever else "electronic"
        options["front_board"] = "true" if front else "false"
        self.live = Live(self.program, options)
        self.over = False

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

    @rule(command=st.sampled_from(walks.COMMANDS))
    def ask(self, command):
        self.say("host " + command)

    @rule(data=st.binary(min_size=1, max_size=300))
    def babble(self, data):
        self.say("raw " + "".join(f"\\x{byte:02x}" for byte in data))

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

    @precondition(powered)
    @rule(n=st.integers(1, 8))
    def cut(self, n):
        self.say(f"power cut at write {n}")

    @precondition(powered)
    @rule()
    def off(self):
        self.say("power off")

    @precondition(lambda self: not self.powered())
    @rule(ms=st.sampled_from(walks.WAITS))
    def on(self, ms):
        self.say(f"wait {ms}")
        if not self.powered():
            self.say("power on")

    @precondition(powered)
    @rule()
    def restart(self):
        self.say("restart")

    @rule(bounce=st.integers(0, 25), noise=st.integers(0, 4))
    def bad_contacts(self, bounce, noise):
        self.say(f"#: bounce_ms={bounce} noise_ms={noise}")

    @rule(every=st.sampled_from(("stall_every=0", "stall_every=9", "stall_every=1", "stall=off")))
    def slow_flash(self, every):
        self.say("#: " + every)

    @rule(ppm=st.sampled_from((0, 1000, 10000, 50000)))
    def bad_line(self, ppm):
        self.say(f"#: damage_ppm={ppm}")

    @rule(
        kind=st.sampled_from(("cut", "stick")),
        contact=st.sampled_from(walks.CONTACTS),
        ms=st.sampled_from(walks.WAITS),
    )
    def bad_wire(self, kind, contact, ms):
        self.say(f"#: {kind}={contact}", f"wait {ms}", "#: mend=all")

    @rule(motor=st.sampled_from(("ok", "dead", "runaway", "welded")))
    def motor(self, motor):
        self.say("#: motor=" + motor)

    @rule(host=st.sampled_from(("killed", "absent", "back")))
    def host(self, host):
        self.say("#: host=" + host)

    def teardown(self):
        if hasattr(self, "live") and not self.over:
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
    print(f"examples {examples}")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
