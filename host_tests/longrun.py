"""Thousands of rounds in one life, on a capped heap: memory flat, numbers right, no drift.

The whole firmware on the virtual table with the shortest timings the settings allow. Most rounds are
driven STEP_MS to a scan, since debouncing counts scans and a late scan is allowed; each TRUE-th runs at
the true pace.

Runs on CPython and MicroPython (where memory is looked at): PROGRAM ROUNDS. Prints how it goes each
REPORT rounds, and figures last; memory is what is in use after a collection, in bytes, fakes included.
"""

import gc
import sys
from array import array

import croupier
import host
import table as tables
from croupier import Game

STEP_MS = 50
TRUE = 50
EXACT_MS = 5
LOOK = 100  # rounds between two looks at the memory
REPORT = 1000
FLAT_BYTES = 512  # a number that grew into another word, a list that got its next few places
host.ASK_MS, host.ASK_MAX_MS = 150, 300  # an answer takes several scans, and most of these are long
OPTIONS = {
    "bolt_ms": "200", "pulse_ms": "100", "gap_ms": "200", "settle_ms": "300", "motion": "false",
}  # fmt: skip


class Long:
    """The run and its book."""

    def __init__(self, program, rounds):
        self.rounds = rounds
        self.step_ms = STEP_MS
        self.scans = 0
        self.seq = 0
        self.paid = 0
        # What keeps the book must not grow with it.
        self.memory = array("I", [0] * (rounds // LOOK + 1))
        self.looks = 0
        self.segments = 0
        self._segment = 0
        self.game = Game(program, self.script, OPTIONS, watch=False)
        self.table = self.game.table
        self.table.on_boot = self.boot
        self.started = 0

    def boot(self):
        """Have the firmware's own run() replaced by one that lets the run set the pace."""
        from shaker.app import App

        long = self

        def run(app):
            app.board.start_watchdog(2000)
            app.core.begin(app.board.ticks())
            long.started = long.table.world.now
            while True:
                app.step()
                long.scans += 1
                long.table.sleep(long.step_ms)

        App.run = run

    def wait(self, scans):
        """Wait for so many scans."""
        return scans * self.step_ms

    def until(self, phase):
        """Wait for a phase."""
        game = self.game
        yield (lambda: game.value("phase") == phase, 10000)
        game.need(game.value("phase") == phase, "%s is never reached" % phase)

    def press(self, key):
        self.game.world.set(key, "pressed")
        yield self.wait(7)
        self.game.world.set(key, "released")

    def script(self, game):
        """Play all rounds."""
        set_ = game.world.set
        yield (game.told, 20000)
        self.look()
        for number in range(1, self.rounds + 1):
            self.step_ms = EXACT_MS if number % TRUE == 0 else STEP_MS
            tables.HOST_MS = croupier.POLL_MS = self.step_ms
            for name, value in (("cover", "on"), ("latch_a", "closed"), ("latch_b", "closed")):
                set_(name, value)
            yield from self.until("COVERED")
            yield from self.press("start")
            yield from self.until("BETTING")
            yield from self.press("bell")
            for name, value in (("latch_a", "open"), ("latch_b", "open"), ("cover", "off")):
                set_(name, value)
            yield from self.until("PAYOUT")
            dice = [1 + number % 6, 1 + number // 6 % 6, 1 + number // 36 % 6]
            game.host.command("result", dice=dice)
            if number % 3:
                game.host.command("paid")
            else:
                set_("paid", "pressed")
            yield from self.until("IDLE")
            set_("paid", "released")
            yield self.wait(7)
            self.book(number)
            if number % LOOK == 0:
                yield (game.told, 20000)
                self.look()
            if number % REPORT == 0:
                print(
                    "round %d, segment %d, memory %d" % (number, self.segments, self.memory[self.looks - 1])
                )
        yield (game.told, 20000)
        self.book(self.rounds)
        game.need(self.paid == self.rounds, "%d of %d rounds were paid" % (self.paid, self.rounds))
        self.finish()

    def book(self, number):
        """Take the events that came, check their numbers, and forget them."""
        game = self.game
        events = game.host.store.events
        for event in events:
            self.seq += 1
            game.need(event["seq"] == self.seq, "event %d came as %d" % (self.seq, event["seq"]))
            if event["ev"] == "paid":
                self.paid += 1
                game.need(event["rd"] == self.paid, "round %d was paid as %d" % (self.paid, event["rd"]))
            game.need(event["ev"] not in ("fault", "lost", "refused"), game.host.text(event))
        del events[:]
        del self.table.trace[:]
        self.table._last_events = 0
        app = self.table.running()
        core = app.core
        game.need(core.state.round == number, "round %d is counted as %d" % (number, core.state.round))
        passed = game.world.now - self.started
        drift = passed - core.round.t_s * 1000 - core.round.t_ms
        game.need(0 <= drift <= self.step_ms, "the device's clock is %d ms off" % drift)
        game.need(game.world.boots == 1, "it has restarted")
        segment = app.journal._segments[-1]
        if segment != self._segment:
            self._segment = segment
            self.segments += 1

    def look(self):
        """Note how much memory is in use."""
        gc.collect()
        if hasattr(gc, "mem_alloc"):
            self.memory[self.looks] = gc.mem_alloc()
            self.looks += 1

    def finish(self):
        """Check and print the figures."""
        game = self.game
        app = self.table.running()
        counts = app.journal.counts()
        game.need(counts["rounds"] == self.rounds, "the journal counts %d rounds" % counts["rounds"])
        game.need(counts["pulses"] == 3 * self.rounds, "the journal counts %d pulses" % counts["pulses"])
        game.need(game.world.pulses == 3 * self.rounds, "%d pulses" % game.world.pulses)
        game.need(sum(counts["dice"].values()) == 3 * self.rounds, "dice")
        game.need(app.link.overrun == 0 and app.queue.dropped == 0, "something was dropped")
        start = self.memory[0]
        first = max(1, self.looks // 10)  # after what is made once, when first needed
        memory = list(self.memory)[first : self.looks]
        most = grown = per_1000 = 0
        if memory:
            most = max(memory)
            grown = most - min(memory)
            per_1000 = (memory[-1] - memory[0]) * 1000 // (len(memory) * LOOK)
        game.need(grown <= FLAT_BYTES, "memory is not flat: %s" % memory)
        print("rounds %d, scans %d, events %d, segments %d, start %d, most %d, grown %d, per_1000 %d" % (
            self.rounds, self.scans, self.seq, self.segments, start, most, grown, per_1000
        ))  # fmt: skip


if __name__ == "__main__":
    Long(sys.argv[1], int(sys.argv[2])).game.play()
