"""The host dies at each event of a round, or the device restarts, and the line damages 1 % of the bytes.

Played by the robot croupier on the whole firmware, in which the host voids and pays. Whatever happens, the
host's book ends with each event exactly once and in order, no command acts twice, even where someone sends
what was sent before again, and the link is reported up and down in turn.

Runs on CPython and MicroPython: PROGRAM SHARE plays one story in SHARE.
"""

import sys

from croupier import Game
from host import encode
from power import PowerCut
from world import Restart

DAMAGE_PPM = 10000
AWAY_MS = (20, 300, 900, 6000, 60)  # the host comes back after so long; 6 s are noticed
EVENTS = range(3, 23)  # those of a void round, its repeat and the round after it
QUIET_MS = 900000  # resending at 1 % takes its time; it is simulated


class Trouble:
    """What goes wrong at each event of the host's: mode and, for some, the number `at` of the event.

    heard: the host dies as it hears an event, before it keeps it. kept: right after. reset, power: the device
    restarts at event `at`, once.
    """

    def __init__(self, game, mode, at=0):
        self.game = game
        self.mode = mode
        self.at = at
        self.deaths = 0
        self.restarts = 0
        self.replayed = 0
        self.due = None  # what happens to the device at the next step of the script
        self._struck = set()
        self._back = None
        self._signed = []
        self._take = game.host._event
        game.host._event = self.event
        host = game.host
        self._line = host.on_line
        host.on_line = self.line
        host.noise_in.ppm = host.noise_out.ppm = DAMAGE_PPM

    def line(self, text, way):
        """Keep what the host signs, to say it again later."""
        self._line(text, way)
        if way == ">" and "~" in text and len(self._signed) < 40:
            self._signed.append(text)

    def event(self, now, event):
        """Stand between the host and an event that arrived whole."""
        new = event["seq"] not in self._struck
        self._struck.add(event["seq"])
        if self.mode == "heard" and new:
            self.die(now)
            return
        self._take(now, event)
        if self.mode == "kept" and new:
            self.die(now)
        elif self.mode in ("reset", "power") and event["seq"] == self.at and new:
            self.due = self.mode

    def die(self, now):
        """The host dies, to come back later."""
        self.game.host.kill()
        self._back = now + AWAY_MS[self.deaths % len(AWAY_MS)]
        self.deaths += 1

    def run(self, script):
        """Run `script`, a generator, with the trouble in between its waits."""
        game = self.game
        result = None
        while True:
            self.revive()
            if self.due:
                yield from self.strike()
                result = None
            try:
                wait = script.send(result)
            except StopIteration:
                return
            if isinstance(wait, tuple):
                condition = wait[0]
                end = game.world.now + wait[1]
                while not condition() and game.world.now < end and not self.due:
                    self.revive()
                    yield 5
                result = bool(condition())
            elif isinstance(wait, int):
                end = game.world.now + wait
                while game.world.now < end and not self.due:
                    self.revive()
                    yield min(5, end - game.world.now)
                result = None
            else:
                yield wait
                result = None

    def revive(self):
        """Bring the host back when it is time; say again what it said before."""
        game = self.game
        now = game.world.now
        if self._back is not None and now >= self._back:
            game.host.restart()
            self._back = None
        if self._signed and now % 701 < 5:  # someone records the line and plays it back
            text = self._signed[now % len(self._signed)]
            game.world.line.to_device(text.encode() + b"\r\n")
            self.replayed += 1

    def strike(self):
        """Restart the device."""
        game = self.game
        due, self.due = self.due, None
        if not game.world.powered:
            return
        self.restarts += 1
        if due == "power":
            game.world.power_off()
            yield PowerCut()
        else:
            why = None
            try:
                game.world.reset("reset")
            except Restart as raised:
                why = raised
            yield why
        yield from game.supply()


def story(program, mode, at=0):
    """Play a void round, its repeat and one round more in trouble; return the trouble."""
    troubles = []

    def script(game):
        game.by_host = True
        trouble = Trouble(game, mode, at)
        troubles.append(trouble)

        def rounds():
            yield from game.round(voids=1)
            yield from game.finish()
            yield from game.round(dice=(3, 3, 3))

        yield from trouble.run(rounds())
        trouble.mode = "calm"
        yield from trouble.run(_settle(game))
        done = [event for event in game.host.events if event["ev"] == "paid"]
        game.need(
            done and done[-1]["rd"] == game.table.running().core.state.round, "the last round is unpaid"
        )
        game.watch.check_host()

    Game(program, script).play()
    return troubles[0]


def _settle(game):
    """Give the host time to hear everything."""
    yield (lambda: game.host.alive and game.told(), QUIET_MS)


def forged(program):
    """Frames signed with another key, or an earlier session's nonce, never act. Raises Broken."""

    def script(game):
        while game.value("phase") != "PAYOUT":
            yield from game.step(None)
        nonce = game.host.hello["nonce"]
        key = bytes(31) + b"\1"
        for number in range(100000, 100010):
            game.world.line.to_device(encode(number, "paid", {}, key, nonce))
            game.world.line.to_device(encode(number, "void", {}, None, None))
            yield 50
        good = encode(200000, "paid", {}, game.host.key, nonce)
        yield from game.restart()
        game.world.line.to_device(good)  # of the session before
        yield 1000
        game.need(game.value("phase") == "PAYOUT", "a forged command ended the payout")
        yield from game.finish()
        yield from game.settle()

    Game(program, script).play()


def main(program, share=1):
    """Play; print what was done. Returns 1 at the first story that goes wrong."""
    stories = [("heard", 0), ("kept", 0)]
    for at in EVENTS:
        stories += [("reset", at), ("power", at)]
    played = 0
    for i in range(len(stories)):
        mode, at = stories[i]
        if i >= 2 and i % share:
            continue
        try:
            trouble = story(program, mode, at)
        except Exception as error:
            print("%s at event %d" % (mode, at))
            sys.print_exception(error)
            return 1
        played += 1
        print("%s %d: %d deaths, %d restarts, %d frames said again" % (
            mode, at, trouble.deaths, trouble.restarts, trouble.replayed
        ))  # fmt: skip
    try:
        forged(program)
    except Exception as error:
        print("forged")
        sys.print_exception(error)
        return 1
    print("stories %d" % played)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], *[int(word) for word in sys.argv[2:]]))
