"""The virtual table: the firmware's own boot.py and main.py, run in simulated time against the fakes.

Owns the simulation's order of events: scenario steps happen at exact milliseconds between scans, checks after
every scan. Runs on CPython and on MicroPython and must give the same trace on both.
"""

import json
import sys

import world as worlds
from host import Host
from shaker import lights, names
from shaker.core import SCAN_MS
from storage import Storage

KEY = bytes(range(32))
REST_MS = 2000  # a scenario's first line meets a table that has been at rest this long
STEP_MS = 100  # a person goes on this long after a movement
BOLTS = ("cover_lock", "cover_bar", "dome_lock")
MOVE_MS = 300  # between two movements of a person
HOST_MS = 5  # the host looks at its line this often


if not hasattr(sys, "print_exception"):  # MicroPython has it

    def _print_exception(error, file=None):
        import traceback

        (file or sys.stderr).write("".join(traceback.format_exception(error)))

    sys.print_exception = _print_exception


class Failed(Exception):
    """A scenario's expectation was not met; the text says all."""


def settings_text(options):
    """Return settings.json for a scenario's options {name: text}: the default, a key, and what differs."""
    from scenario import scalar

    fields: dict = {"table": "bench", "key": "".join("%02x" % b for b in KEY)}
    for name, value in options.items():
        if name not in ("clock", "link") and value not in ("dead", "runaway"):
            fields[name] = scalar(value)
    return json.dumps(fields)


class _Heap:
    """What `gc` says in every run."""

    @staticmethod
    def mem_free():
        return 100000


class _Interpreter:
    """What `sys` says in every run."""

    class implementation:
        version = (1, 28, 0)


def same_everywhere(world):
    """Make the device say the same on both interpreters: a longer number would delay the line after it."""
    from shaker import board, link, session

    link.gc = _Heap
    session.sys = _Interpreter
    board.Board.random = lambda self, n: world.urandom(n)


class Table:
    """One table with its host. `program`: folder of the staged firmware (with manifest.json)."""

    def __init__(self, program, options=None, note=None):
        """note: called with (kind, text) for what the table sees and the line says, or None."""
        options = options or {}
        self.program = program
        self.world = worlds.World()
        self.note = note
        self.trace = []
        self.pace = None  # called with every stretch of ms before it passes, see real_time()
        self.after_scan = None  # called after every scan that is followed by a sleep
        self.on_boot = None  # called before each boot, with `place` still that of the run before
        self.on_read = None  # called as the firmware reads its inputs
        self.on_scan = None  # called at the end of every scan, however late
        self.wake_at = None  # the next moment the script acts, in simulated ms
        self.script = None
        self.finished = False
        self.place = {}
        motion = options.get("motion")
        if motion in ("dead", "runaway"):
            self.world.set_motor(motion)
        clock = options.get("clock")
        if clock is not None:
            self.world.origin = (int(clock) - REST_MS) & 0x3FFFFFFF
        self.storage = Storage(self.world, 256, 256)  # as the firmware mounts a partition of its own
        self.storage.provision("settings.json", settings_text(options))
        self.host = Host(KEY, self.world.line)
        self.host.absent = options.get("link") == "absent"
        self.pulsed = 0  # ms between a first pulse and the end of a last one, so far
        self._observed_at = 0
        self._seen = (0, 0, 0, 0, 0, 0, 0)
        self._host_at = 0
        self._last_events = 0

    # -- Time ------------------------------------------------------------------------------------------

    def sleep(self, ms):
        """Let `ms` pass in the firmware: called by the fakes whenever it sleeps."""
        self._observe()
        if self.after_scan:
            self.after_scan()
        self.pass_time(ms)

    def pass_time(self, ms):
        """Advance the world by `ms`, running the script and the host at their moments."""
        world = self.world
        end = world.now + ms
        while True:
            at = end
            if self.wake_at is not None and self.wake_at < at:
                at = max(self.wake_at, world.now)
            if self._host_at < at:
                at = max(self._host_at, world.now)
            if at > world.now:
                if self.pace:
                    self.pace(at - world.now)
                world.advance(at - world.now)
            if world.now >= self._host_at:
                self._host_at = world.now + HOST_MS
                self.host.step(world.now)
                self._hear()
            if self.wake_at is not None and world.now >= self.wake_at:
                self.script()
                continue
            if world.now >= end:
                return

    def _hear(self):
        events = self.host.events
        while self._last_events < len(events):
            self._record("event", events[self._last_events])
            self._last_events += 1

    # -- Running the firmware -----------------------------------------------------------------------------

    def run(self):
        """Run the firmware through every restart until the script raises Finished."""
        world = self.world
        world.on_sleep = self.sleep
        path = sys.path[:]
        while True:
            # A device that is reset before it ever sleeps must not stop the script.
            late = world.powered and self.wake_at is not None and world.now > self.wake_at
            if late or not world.powered:
                try:
                    self.pass_time(0 if late else 1)
                except worlds.PowerCut:  # on and off again before the device ran
                    if self.finished:
                        return
                except worlds.Restart:
                    world.restart()
                continue
            forget_firmware()
            worlds.install(world)
            self.storage.mount()
            same_everywhere(world)
            if self.on_boot:
                self.on_boot()
            self._watched()
            place = {"__name__": "__main__"}
            self.place = place
            try:
                self._execute("boot.py", place)
                self._execute("main.py", place)
                raise Failed("main.py came to an end")
            except worlds.PowerCut:
                if self.finished:
                    return
                self._record("power", "off")
            except worlds.Restart as why:
                self._record("restart", str(why))
                world.restart()
            finally:
                sys.path[:] = path  # main.py has it all but empty while it runs
                self.storage.unmount()

    def forget(self):
        """Let go of what modules hold of this table, so that its memory can be used again."""
        forget_firmware()
        worlds.install(None)

    def _watched(self):
        """Let on_read and on_scan see every scan of this boot."""
        if not self.on_scan:
            return
        from shaker import app, board

        reader = board.reader
        step = app.App.step

        def watched_reader(mem):
            read = reader(mem)

            def watched_read():
                self.on_read()
                return read()

            return watched_read

        def watched_step(app):
            step(app)
            self.on_scan()

        board.reader = watched_reader
        app.App.step = watched_step

    def _execute(self, name, place):
        with open(self.program + "/" + name) as f:
            exec(compile(f.read(), name, "exec"), place)

    # -- What can be seen -----------------------------------------------------------------------------------

    def running(self):
        """Return the firmware's App, or None while it is not up."""
        if not self.world.powered:
            return None
        return self.place.get("app")

    def value(self, name, settled=False):
        """Return the value of a scenario name as text. settled: inputs as the firmware has settled them."""
        world = self.world
        if name in names.INPUT_VALUES:
            app = self.running()
            if settled and app:
                return self.settled(app, name)
            return world.value(name)
        if name in names.OUTPUTS:
            app = self.running()
            if app and name in BOLTS and app.core.bolts.turning(1 << names.OUTPUTS.index(name)):
                # A bolt in mid-travel rests for one scan before it turns round: it has been told.
                return "on" if app.core.outputs >> names.OUTPUTS.index(name) & 1 else "off"
            return world.output(name)
        if name == "lamps":
            return ",".join(world.lamps()) or "none"
        if name == "status":
            colour = tuple(world.status())
            for known, rgb in lights.COLOURS.items():
                if rgb == colour:
                    return known
            return "?"
        app = self.running()
        if app:
            state = app.core.state
            self._known = (
                names.PHASES[state.phase],
                names.FAULTS[state.fault],
                str(state.round),
                str(state.repeat),
            )
        return self._known[("phase", "fault", "round", "repeat").index(name)]

    _known = ("IDLE", "none", "0", "0")

    def settled(self, app, name):
        """Return the settled value of input `name`."""
        levels = app.core.inputs.levels
        i = names.INPUTS.index(name)
        if i < 2:
            return names.LATCH_VALUES[levels >> (2 * i) & 3]
        return names.INPUT_VALUES[name][levels >> (i + 2) & 1]

    def _observe(self):
        """Note what changed since the last scan."""
        world = self.world
        seen = self._seen
        app = self.running()
        if app:
            core = app.core
            state = core.state
            inputs = core.inputs.levels & 0x1FFF
            lamps = core.lamps_lo | core.lamps_hi << 20
            if core.agitator.pulsing:
                self.pulsed += world.now - self._observed_at
            now = (world.outputs, inputs, lamps, state.phase, state.fault, state.round, state.repeat)
            self._observed_at = world.now
        else:
            now = (world.outputs, seen[1], seen[2], seen[3], seen[4], seen[5], seen[6])
        if now == seen:
            return
        self._seen = now
        changed = now[0] ^ seen[0]
        for i, name in enumerate(names.OUTPUTS):
            if changed >> i & 1:
                self._record(name, world.output(name))
        if now[1] != seen[1]:
            self._record("in", "%04x" % now[1])
        if now[2] != seen[2]:
            self._record("lamps", ",".join(world.lamps()) or "none")
        for i, name in enumerate(("phase", "fault", "round", "repeat")):
            if now[3 + i] != seen[3 + i]:
                self._record(name, self.value(name))

    def _record(self, kind, what):
        if isinstance(what, dict):
            line = '{"t":%d,"%s":%s}' % (self.world.now, kind, self.host.text(what))
        else:
            line = '{"t":%d,"%s":"%s"}' % (self.world.now, kind, what)
        self.trace.append(line)
        if self.note:
            self.note(kind, what)


def forget_firmware():
    """Let the next import of a module of the firmware run it anew."""
    for name in list(sys.modules):
        if name == "shaker" or name.startswith("shaker.") or name in ("boot", "main"):
            del sys.modules[name]


def real_time():
    """Return a pace for a Table that makes simulated time follow the wall clock of MicroPython."""
    import faketime

    start = faketime.real_ticks_ms()
    passed = 0

    def pace(ms):
        nonlocal passed
        passed += ms
        ahead = passed - faketime.ticks_diff(faketime.real_ticks_ms(), start)
        if ahead > 0:
            faketime.real_sleep_ms(ahead)

    return pace


class Player:
    """Plays one Scenario (scenario.parse) on a Table. `play()` raises Failed."""

    def __init__(self, scenario, program, note=None):
        self.scenario = scenario
        self.table = Table(program, scenario.options, note)
        self.table.script = self._advance
        self.table.after_scan = self._check
        self._steps = self._script()
        self._step = None
        self._never = []
        self._always = []
        self._taken = []
        self._marked = 0
        self._until = None  # (condition, deadline) being waited for
        self._reply = None
        self._failure = None
        self.on_step = None  # called with the number of each line as it begins
        self._pulsed = 0  # ms spent between first and last pulse since the waiting began

    def play(self):
        """Play to the end; raises Failed with file, line, time, what was expected and what was seen."""
        table = self.table
        table.wake_at = REST_MS
        table.run()
        if self._failure:
            raise Failed(self._failure)

    # -- The script: a generator that yields how long to wait ----------------------------------------

    def _advance(self):
        """Go on with the script at this moment."""
        table = self.table
        now = table.world.now
        if self._until:
            # A limit is kept by what the scan of that very millisecond does, which comes after this.
            if now > self._until[1]():
                self._fail(*self._until[2]())
            self._poll()
            if self._until:
                table.wake_at = now + 1
                return
        try:
            wait = next(self._steps)
        except StopIteration:
            self._end()
        if isinstance(wait, BaseException):
            table.wake_at = now
            raise wait
        table.wake_at = now + wait if wait is not None else None
        if self._until:
            table.wake_at = self._until[1]()
            self._poll()
            if not self._until:
                table.wake_at = now

    def _end(self):
        self.table.finished = True
        self.table.world.power_off()
        raise worlds.PowerCut("finished")

    def _check(self):
        """After every scan: never and always, then whatever is being waited for."""
        value = self.table.value
        for step in self._never:
            if all(value(name, True) == want for name, want in step.pairs):
                self._fail_at(step, "never " + _pairs(step.pairs), _pairs(step.pairs))
        for step in self._always:
            for name, want in step.pairs:
                if value(name, True) != want:
                    self._fail_at(step, "always " + _pairs(step.pairs), "%s=%s" % (name, value(name, True)))
        if self._until:
            self._poll()

    def _poll(self):
        if self._until and self._until[0]():
            self._until = None
            self.table.wake_at = self.table.world.now

    def _script(self):
        for step in self.scenario.steps:
            self._step = step
            if self.on_step:
                self.on_step(step.line)
            yield from getattr(self, "_do_" + step.verb.replace(" ", "_"))(step)
        yield SCAN_MS  # a last `never` or `always` judges a scan, too

    def _wait_for(self, condition, ms, describe, stretch=False):
        table = self.table
        start = table.world.now
        pulsed = table.pulsed

        def deadline():
            # The device neither parses nor formats between the first pulse and the end of the last.
            return start + ms + (table.pulsed - pulsed if stretch else 0)

        if condition():
            return False
        if not ms:
            self._fail(*describe())
        self._until = (condition, deadline, describe)
        return True

    def _do_set(self, step):
        for name, value in step.pairs:
            self.table.world.set(name, value)
        yield 0

    def _moves(self, moves):
        for i, (name, value) in enumerate(moves):
            if i:
                yield MOVE_MS
            self.table.world.set(name, value)
        yield STEP_MS

    def _do_cover(self, step):
        return self._moves((("cover", "on"), ("latch_a", "closed"), ("latch_b", "closed")))

    def _do_uncover(self, step):
        return self._moves((("latch_a", "open"), ("latch_b", "open"), ("cover", "off")))

    def _do_press(self, step):
        self.table.world.set(step.word, "pressed")
        yield step.ms
        self.table.world.set(step.word, "released")
        yield 0

    def _do_wait(self, step):
        yield step.ms

    def _matches(self, step):
        value = self.table.value
        return all(value(name) == want for name, want in step.pairs)

    def _seen_pairs(self, step):
        return " ".join("%s=%s" % (name, self.table.value(name)) for name, _ in step.pairs)

    def _do_until(self, step):
        def describe():
            return step, _pairs(step.pairs) + " within %d ms" % step.ms, self._seen_pairs(step)

        if self._wait_for(lambda: self._matches(step), step.ms, describe):
            yield None
        else:
            yield 0

    _do_expect = _do_until

    def _do_expect_event(self, step):
        def find():
            events = self.table.host.events
            for i in range(len(events)):
                if (
                    i not in self._taken
                    and events[i]["ev"] == step.word
                    and self._fields(events[i], step.pairs)
                ):
                    self._taken.append(i)
                    self._marked = len(events)
                    return True
            return False

        def describe():
            what = "event %s %s within %d ms" % (step.word, _pairs(step.pairs), step.ms)
            return step, what, "no such event"

        if self._wait_for(find, step.ms, describe, not step.within):
            yield None
        else:
            yield 0

    def _fields(self, event, pairs):
        from scenario import scalar

        return all(name in event and event[name] == scalar(value) for name, value in pairs)

    def _do_no_event(self, step):
        events = self.table.host.events
        for event in events[self._marked :]:
            if event["ev"] == step.word and self._fields(event, step.pairs):
                self._fail(step, "no event " + step.word, self.table.host.text(event))
        yield 0

    def _do_expect_reply(self, step):
        host = self.table.host

        def describe():
            return step, "reply %s within %d ms" % (step.word, step.ms), str(host.last_reply)

        if self._wait_for(lambda: host.last_reply is not None, step.ms, describe, not step.within):
            yield None
        else:
            yield 0
        if host.last_reply != step.word:
            self._fail(step, "reply " + step.word, "reply " + str(host.last_reply))

    def _do_never(self, step):
        self._never.append(step)
        yield 0

    def _do_always(self, step):
        self._always.append(step)
        yield 0

    def _do_release(self, step):
        self._always = []
        yield 0

    def _do_host(self, step):
        self.table.host.command(step.word, **dict(step.pairs))
        yield 0

    def _do_raw(self, step):
        self.table.world.line.to_device(step.word)
        yield 0

    def _do_power_off(self, step):
        world = self.table.world
        self.table.storage.chip.disarm()
        if world.powered:
            world.power_off()
            yield worlds.PowerCut()
        else:
            yield 0

    def _do_power_on(self, step):
        if not self.table.world.powered:
            self.table.world.power_on()
        yield 0

    def _do_power_cut(self, step):
        self.table.storage.chip.cut_at(step.ms)
        yield 0

    def _do_restart(self, step):
        why = 0
        if self.table.world.powered:
            try:
                self.table.world.reset("reset")
            except worlds.Restart as raised:
                why = raised
        yield why

    # -- Failing ------------------------------------------------------------------------------------------

    def _fail_at(self, step, expected, seen):
        self._fail(step, expected, seen)

    def _fail(self, step, expected, seen):
        table = self.table
        lines = [
            "%s:%d: at %d ms: expected %s; seen %s"
            % (self.scenario.path, step.line, table.world.now - REST_MS, expected, seen)
        ]
        for event in table.host.events[-5:]:
            lines.append("    " + table.host.text(event))
        self._failure = "\n".join(lines)
        self._end()


def _pairs(pairs):
    return " ".join("%s=%s" % pair for pair in pairs)
