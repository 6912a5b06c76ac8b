"""A robot croupier at the virtual table: plays whole rounds, whatever state it finds the table in.

Owns how a person reacts to what the table shows, and a Game: one table, one script, every invariant watched.
Runs on CPython and MicroPython. Units: ms.
"""

from invariants import Broken, Watch
from table import REST_MS, Table
from world import PowerCut

STEP_MS = 100
MOVE_MS = 150
POLL_MS = 5
GIVE_UP_MS = 120000  # a round that is not done by then never will be


class Game:
    """One table and a script: a generator function of the game that yields what play() waits for.

    It yields ms; a pair (condition, ms), and is sent whether the condition came true in that time; or an
    exception of the world's (PowerCut, Restart), which then happens to the firmware.
    """

    def __init__(self, program, script, options=None, prepare=None, watch=True):
        """prepare: called with the game before the power comes on; watch: check the invariants."""
        self.table = Table(program, options)
        self.world = self.table.world
        self.chip = self.table.storage.chip
        self.host = self.table.host
        self.watch = Watch(self.table, self.fail, options) if watch else None
        self.failure = None
        self.cuts = 0  # times the power went without being told to
        self.by_host = False  # void and paid are the host's commands, not the croupier's keys
        self.second = 0  # flash operation after the first such time at which it goes once more, 0 = never
        self._script = script(self)
        self._until = None
        self._result = None
        self.table.script = self._advance
        self.table.wake_at = REST_MS
        if prepare:
            prepare(self)

    def play(self):
        """Play to the end of the script; raises Broken."""
        self.table.run()
        if self.failure:
            lines = [self.failure] + ["    " + self.host.text(event) for event in self.host.events[-6:]]
            raise Broken("\n".join(lines))

    def fail(self, text):
        """Stop here: `text` says what is wrong."""
        if self.failure is None:
            self.failure = "at %d ms: %s" % (self.world.now, text)
        self._stop()

    def need(self, condition, text):
        """Fail with `text` unless `condition`."""
        if not condition:
            self.fail(text)

    def _stop(self):
        self.table.finished = True
        self.world.power_off()
        raise PowerCut("finished")

    def _advance(self):
        now = self.world.now
        if self._until:
            condition, end = self._until
            self._result = bool(condition())
            if not self._result and now < end:
                self.table.wake_at = min(now + POLL_MS, end)
                return
            self._until = None
        try:
            wait = self._script.send(self._result)
        except StopIteration:
            self._stop()
        self._result = None
        if isinstance(wait, BaseException):
            self.table.wake_at = now
            raise wait
        if isinstance(wait, tuple):
            self._until = (wait[0], now + wait[1])
            wait = 0
        self.table.wake_at = now + wait

    # -- What a person does: generators for scripts ------------------------------------------------------

    def value(self, name):
        """Return what the table shows."""
        return self.table.value(name)

    def press(self, key, ms=100):
        """Press a key for `ms`."""
        self.world.set(key, "pressed")
        yield ms
        self.world.set(key, "released")
        yield STEP_MS

    def cover(self):
        """Seat the cover and close the latches."""
        for name, value in (("cover", "on"), ("latch_a", "closed"), ("latch_b", "closed")):
            if self.world.value(name) != value:
                self.world.set(name, value)
                yield MOVE_MS

    def uncover(self):
        """Open the latches and lift the cover."""
        for name, value in (("latch_a", "open"), ("latch_b", "open"), ("cover", "off")):
            if self.world.value(name) != value:
                self.world.set(name, value)
                yield MOVE_MS

    def turn_service(self):
        """Turn the supervisor's key on and off: clears a fault whose cause is gone."""
        self.world.set("service", "on")
        yield STEP_MS
        self.world.set("service", "off")
        yield STEP_MS

    def restart(self):
        """Cut the power for a second."""
        if self.world.powered:
            self.world.power_off()
            yield PowerCut()
        yield from self.supply()

    def supply(self):
        """Give the power back, if it is gone, and let the table come to rest."""
        if not self.world.powered:
            self.cuts += 1
            if self.watch:
                self.watch.check_barred()
            yield 300
            if self.second:
                self.chip.cut_at(self.second)
                self.second = 0
            self.world.power_on()
        yield (self.up, 2000)
        yield 300

    def up(self):
        """Tell whether the firmware runs and has judged what it found."""
        app = self.table.running()
        return app is not None and app.core.round.judged

    def ask(self, cmd, **args):
        """Let the host send a command and wait for its reply, or until there is no host or no power."""
        host = self.host
        host.command(cmd, **args)
        yield (lambda: host.last_reply is not None or not host.alive or not self.world.powered, 5000)
        yield STEP_MS

    def step(self, dice, void=False):
        """Do the next thing a croupier does, seeing the table as it is.

        dice: what to tell the host, or None; void: let this payout end in a void round.
        """
        if not self.up():
            yield from self.supply()
            return
        phase = self.value("phase")
        if phase == "IDLE":
            yield from self.uncover()
            yield from self.cover()
            yield STEP_MS
        elif phase == "COVERED":
            yield from self.press("start")
            if self.value("phase") == "COVERED":
                yield from self.uncover()  # a latch not seen open, say
        elif phase == "SHAKING":
            yield (lambda: self.value("phase") != "SHAKING", 8000)
        elif phase == "BETTING":
            yield from self.press("bell")
        elif phase == "CLOSED":
            yield from self.uncover()
            yield STEP_MS
        elif phase == "PAYOUT":
            yield from self.uncover()
            if void and self.by_host:
                yield from self.ask("void")
            elif void:
                yield from self.press("void")
            else:
                if dice:
                    yield from self.ask("result", dice=dice)
                if self.by_host:
                    yield from self.ask("paid")
                else:
                    yield from self.press("paid", 1000)
        elif phase == "VOID":
            yield from self.uncover()
            yield from self.cover()
            yield STEP_MS
        elif phase == "FAULT":
            yield from self.turn_service()

    def finish(self, dice=(1, 4, 6)):
        """Bring whatever round there is to its end: IDLE."""
        give_up = self.world.now + GIVE_UP_MS
        while not (self.up() and self.value("phase") == "IDLE"):
            if self.world.now > give_up:
                self.fail("the round cannot be finished")
            yield from self.step(dice)

    def round(self, dice=(1, 4, 6), voids=0):
        """Play one round from IDLE to IDLE, `voids` times void before it is paid, through anything."""
        give_up = self.world.now + GIVE_UP_MS
        begun = False
        while True:
            if self.world.now > give_up:
                self.fail("the round does not end")
            phase = self.value("phase") if self.up() else "?"
            if phase == "IDLE" and begun:
                return
            if phase in ("SHAKING", "BETTING", "CLOSED", "PAYOUT", "VOID"):
                begun = True
            if phase == "PAYOUT" and voids:
                voids -= 1
                yield from self.step(dice, True)
            else:
                yield from self.step(dice)

    def settle(self, within_ms=20000):
        """Wait until the host has heard everything, and check its book."""
        yield (self.told, within_ms)
        if self.watch:
            self.watch.check_host()

    def told(self):
        """Tell whether the host knows every event."""
        app = self.table.running()
        return app is not None and app.queue.count == 0 and app.journal.last == self.host.last
