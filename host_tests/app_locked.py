"""The whole application, every step under micropython.heap_lock(): one that allocates ends in MemoryError.

Unlocked is what may allocate, and only outside the pulses: what writes to flash (Journal.append and mark),
parses (Splitter.decode, what a Session answers) and formats (Link.fill from where it has a text on).

Runs on a real MicroPython interpreter: PROGRAM [NAME ...]; prints a line for each case and build.
"""

import sys

import micropython

from awkward import restart, said, unread, write
from croupier import Game
from shaker import names

CASES = {}
# Of a shake with the default times: ms after its start, in the lock's travel, a pulse, a gap, the settling.
STAGES_MS = (200, 650, 950, 2200)


def case(script):
    """Register a script under its name."""
    CASES[script.__name__] = script
    return script


class Lock:
    """Locks the heap in each step of the game's firmware, and lifts that where it may allocate."""

    def __init__(self, game):
        self.game = game
        self.steps = 0
        self.lifted = 0
        self.core = None
        self._on = False
        self._wrong = None
        game.table.on_boot = self.boot

    def lift(self):
        """From here on the firmware may allocate; never between the pulses."""
        if self._on:
            self._on = False
            micropython.heap_unlock()
            self.lifted += 1
        if self.core and self.core.agitator.pulsing:
            self._wrong = "what allocates runs in a pulse"

    def lower(self):
        """It may not any more."""
        if self.core and not self._on:
            self._on = True
            micropython.heap_lock()

    def step(self, app, step):
        """One step of the application."""
        line = self.game.world.line
        line.arrive(line.rxbuf)  # what the fakes must allocate for that, outside
        self.core = app.core
        error = None
        self.lower()
        try:
            step(app)
        except MemoryError as e:
            error = e
        finally:
            if self._on:
                self._on = False
                micropython.heap_unlock()
            self.core = None
        self.steps += 1
        if error:
            sys.print_exception(error)
            self._wrong = "a step allocated"
        if self._wrong:
            self.game.fail(self._wrong)

    def boot(self):
        """Put this boot's firmware under the lock. Each wrapper takes as many arguments as what it wraps:
        to collect any number of them would allocate.
        """
        from shaker import app, frame, journal, lines, link, session

        whole = app.App.step
        app.App.step = lambda self_: self.step(self_, whole)
        self._lift_one(journal.Journal, "append")
        self._lift_one(journal.Journal, "mark")
        self._lift_none(frame.Splitter, "decode")
        self._lift_none(session.Session, "step")
        self._lift_handle(session.Session)
        self._lift_fill(link, lines)

    def _lift_none(self, owner, name):
        plain = getattr(owner, name)

        def lifted(of):
            self.lift()
            try:
                return plain(of)
            finally:
                self.lower()

        setattr(owner, name, lifted)

    def _lift_one(self, owner, name):
        plain = getattr(owner, name)

        def lifted(of, argument):
            self.lift()
            try:
                return plain(of, argument)
            finally:
                self.lower()

        setattr(owner, name, lifted)

    def _lift_handle(self, owner):
        self._handle = owner.handle

        def lifted(of, body, mac, thing):  # with one more closed over, the call itself would allocate
            self.lift()
            try:
                return self._handle(of, body, mac, thing)
            finally:
                self.lower()

        owner.handle = lifted

    def _lift_fill(self, link, lines):
        fill = link.Link.fill
        event = link.Link._event
        heartbeat = lines.heartbeat
        wrap = link.wrap

        def lifted_event(of, now):
            self.lift()
            text = event(of, now)
            if text is None:
                self.lower()
            return text

        def lifted_heartbeat(device, journal):
            self.lift()
            return heartbeat(device, journal)

        def lifted_wrap(text):
            self.lift()
            return wrap(text)

        def closed_fill(of, now):
            fill(of, now)
            self.lower()

        link.Link._event = lifted_event
        lines.heartbeat = lifted_heartbeat
        link.wrap = lifted_wrap
        link.Link.fill = closed_fill


def shaking(game, ms):
    """Begin a shake, and let `ms` of it pass; on a lever build all strokes, unless the lock still travels."""
    for _ in range(6):
        yield from to(game, "COVERED")
        yield from stroke(game)
        if game.value("phase") == "SHAKING":
            break
        yield from game.uncover()  # a latch not seen open
        yield 15000  # or a bolt's budget
    game.need(game.value("phase") == "SHAKING", "no shake")
    yield ms - 60
    if game.lever and ms > 200:
        yield from stroke(game)
        yield from stroke(game)


def to(game, phase):
    """Play as the croupier until `phase`."""
    while not (game.up() and game.value("phase") == phase):
        if game.lever and game.up() and game.value("phase") == "COVERED":
            for _ in range(3):
                yield from stroke(game)
            if game.value("phase") == "COVERED":
                yield from game.uncover()
        yield from game.step((1, 4, 6))


def stroke(game):
    """Press what begins the shake."""
    game.world.set("lever" if game.lever else "start", "pressed")
    yield 40
    game.world.set("lever" if game.lever else "start", "released")
    yield 40


def there(game, phase):
    """Play to `phase` by croupier; void and a fault on purpose."""
    if phase == "VOID":
        yield from there(game, "PAYOUT")
        yield from game.step(None, True)
    elif phase == "FAULT":
        yield from there(game, "BETTING")
        game.world.set("latch_a", "open")
        yield 100
        game.world.set("latch_a", "closed")
        yield 100
    elif phase == "SHAKING":
        yield from shaking(game, 200)
    else:
        yield from to(game, phase)
    game.need(game.value("phase") == phase, "no " + phase)


@case
def rounds(game):
    """A round by keys, a void one and its repeat, corrected dice; the same by the host; service mode."""
    for by_host in (False, True):
        game.by_host = by_host
        yield from there(game, "VOID")
        yield from there(game, "PAYOUT")
        yield from game.ask("result", dice=(6, 6, 6))
        yield from game.step((1, 4, 6))
        yield from there(game, "VOID")
        game.world.set("service", "on")
        yield from game.press("paid", 1000)
        if game.value("phase") != "IDLE":
            yield from game.ask("abandon")
        yield 600
        game.world.set("dome", "open")
        yield 1200
        game.world.set("dome", "closed")
        game.world.set("service", "off")
        yield 1000
    for command in ("status", "counts", "settings"):
        yield from game.ask(command)
    yield from game.ask("rounds", n=1)
    yield from game.ask("replay", **{"from": 1})
    yield from game.ask("verify", nonce="0a")
    yield 62000  # the mark that a boot has lasted
    yield from game.ask("reboot")
    yield 3000
    game.need(len(said(game, "boot")) == 2, "no restart")


@case
def keys(game):
    """Every key in every phase, and at every stage of a shake."""
    for phase in ("IDLE", "COVERED", "BETTING", "CLOSED", "PAYOUT", "VOID", "FAULT"):
        yield from there(game, phase)
        for key in ("start", "lever", "bell", "void", "paid", "service"):
            if game.value("phase") != phase:
                yield from there(game, phase)
            if key == "service":
                yield from game.turn_service()
            else:
                yield from game.press(key, 60)
    for ms in STAGES_MS:
        for key in ("start", "lever", "bell", "void", "paid"):
            yield from shaking(game, ms)
            yield from game.press(key, 60)
            yield from to(game, "IDLE")


@case
def strikes(game):
    """Contacts that open, fail and bounce at every stage of a shake, and the fault's clear."""
    for ms in STAGES_MS:
        for name, bad, good in (
            ("latch_a", "open", "closed"),
            ("latch_b", "invalid", "closed"),
            ("cover", "off", "on"),
            ("dome", "open", "closed"),
        ):
            yield from shaking(game, ms)
            game.world.bounce_ms = 3
            game.world.set(name, bad)
            yield 350
            game.world.set(name, good)
            yield 100
            game.world.bounce_ms = 0
            game.need(game.value("phase") in ("FAULT", "BETTING"), "it goes on")
            yield from to(game, "IDLE")


@case
def motor(game):
    """A motor that does not move, one that does not stop, and a scan that comes late in a pulse."""
    for kind in ("dead", "runaway"):
        yield from shaking(game, 300)
        game.world.set_motor(kind)
        yield 2500
        game.world.set_motor("ok")
        yield 500
        yield from to(game, "IDLE")
    yield from shaking(game, 650)
    game.world.line.stall(300)
    yield 300
    yield from to(game, "IDLE")


@case
def line(game):
    """More bytes than the ring holds while the pulses run; noise; a host that is gone, and back."""
    yield from shaking(game, 650)
    game.world.line.to_device(b"x" * 1200)
    yield (lambda: game.value("phase") == "BETTING", 5000)
    game.need(game.lever or game.table.running().link.overrun, "the ring held it all")
    game.host.kill()
    yield 8000
    game.host.restart()
    game.host.noise_in.ppm = game.host.noise_out.ppm = 10000
    yield from to(game, "IDLE")
    yield 5000


@case
def flash(game):
    """A journal that refuses and recovers, and one with no room for another round."""
    for phase in ("BETTING", "PAYOUT"):
        yield from there(game, phase)
        game.chip.read_only = True
        yield from game.press("bell" if phase == "BETTING" else "void", 60)
        yield 3000
        game.chip.read_only = False
        yield 3000
        yield from to(game, "IDLE")
    game.host.absent = True
    yield from restart(game, lambda files: _fill(game, files))
    yield from to(game, "COVERED")
    yield from stroke(game)
    game.need(game.value("phase") == "COVERED", "a round began without room")


def _fill(game, files):
    from table import settings_text

    game.options["host"] = "required"
    write("settings.json", settings_text(game.options))(files)
    unread(files, names.IDLE)


@case
def restarts(game):
    """A restart in every phase, by power and by a reset that leaves a key down and the cover on."""
    for phase in ("IDLE", "COVERED", "SHAKING", "BETTING", "CLOSED", "PAYOUT", "VOID", "FAULT"):
        yield from there(game, phase)
        yield from game.restart()
        yield 1000
    yield from there(game, "PAYOUT")
    game.world.set("cover", "on")
    game.world.set("bell", "pressed")
    yield from game.restart()
    yield 1500
    game.world.set("bell", "released")
    game.world.set("cover", "off")
    yield 500
    yield from to(game, "IDLE")


def main(program, *wanted):
    """Play the cases (all by default) in both builds; return the exit status."""
    for lever in (False, True):
        for name in wanted or sorted(CASES):
            options = {"actuation": "lever" if lever else "electronic"}
            locks = []

            def prepare(game, lever=lever, options=options, locks=locks):
                game.lever = lever
                game.options = options
                locks.append(Lock(game))

            said = "%s %s" % ("lever" if lever else "electronic", name)
            try:
                Game(program, CASES[name], options, prepare, watch=False).play()
                if locks[0].steps < 400 or not locks[0].lifted:
                    raise ValueError("not under the lock")
            except Exception as error:
                print(said)
                sys.print_exception(error)
                return 1
            print(said)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
