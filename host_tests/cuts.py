"""The power goes at each flash operation of a story, in the middle of it or beside it, and comes back.

Each story is played by the robot croupier on the whole firmware; after the cut the robot goes on from
wherever the table stands and plays one round more. Watched all the while (invariants.py): the state
restored is the old one or the new one, numbers are contiguous and unique, a payout stays outstanding,
nothing is paid or void that nobody declared, nothing shakes that nobody started.

Runs on CPython and MicroPython: PROGRAM SHARE [SEED] plays one cut in SHARE, SEED says which.
"""

import sys

import flash
from croupier import Game
from shaker import names
from shaker.events import Queue
from shaker.journal import Journal
from shaker.state import State

HOWS = (flash.TORN, flash.BEFORE, flash.AFTER)
ACTING = '"front_board":false,"gap_ms":400,"authorisation":{"ref":"DICJ 7","requested":"2026-03-02",'
ACTING += '"granted":"2026-03-06","adopted":"2026-03-09"}'
TABLE = '{"table":"bench","key":"%s",%s}'


def _seq_file(journal, last):
    """Fill a journal up to event `last` with a table's idle days, 20 events at a time."""
    queue = Queue()
    state = State()
    state.boot = journal.boot
    state.round = 100
    queue.put(state, 1, 0, names.EV_BOOT)
    while True:
        while queue.count < min(20, last - journal.last):
            queue.put(state, 1, 0, names.EV_REFUSED, names.WHAT_BELL, names.WHY_WRONG_PHASE)
        if not queue.count:
            return
        journal.append(queue)
        journal.ack(journal.last)


class Story:
    """One story: `script(game)` is what the robot does; `prepare(game)` is done before the power comes on."""

    def __init__(self, name, script, prepare=None, from_boot=False):
        self.name = name
        self.script = script
        self.prepare = prepare
        self.from_boot = from_boot  # cuts begin with the first operation of the first boot
        self._chip = None  # what prepare() made of the chip, and the last event on it

    def play(self, program, cut=None, again=0):
        """Play it; cut: (operation, how) or None; again: cut once more at that operation after the first cut.

        Returns the number of flash operations in which a cut may fall.
        """
        counted = []

        def script(game):
            if cut and not self.from_boot:
                game.chip.cut_at(cut[0], cut[1])
            start = 0 if self.from_boot else game.chip.operations
            if again:
                game.second = again
            yield from self.script(game)
            counted.append(game.chip.operations - start)
            if cut:
                game.need(game.cuts > 0 or not game.chip.armed, "the power was not cut")
            game.chip.disarm()
            yield from game.finish()
            yield from game.round(dice=(2, 2, 5))
            yield from game.settle()

        def prepare(game):
            if self.prepare:
                if self._chip is None:
                    last = self.prepare(game)
                    self._chip = (bytes(game.chip.data), last)
                game.chip.data[:] = self._chip[0]
                game.host.store.last = game.watch.base = self._chip[1]
            if self.from_boot:
                game.chip.programs = game.chip.erases = 0
                if cut:
                    game.chip.cut_at(cut[0], cut[1])

        Game(program, script, prepare=prepare).play()
        return counted[0]


def _round(game):
    yield from game.round()


def _void_round(game):
    yield from game.round(voids=1)


def _fault_round(game):
    """The cover is lifted in betting; the fault is cleared, the shake repeated."""
    while not (game.up() and game.value("phase") == "BETTING"):
        yield from game.step(None)
    yield from game.uncover()
    yield from game.round()


def _settings_change(game):
    """New settings come in while a payout is outstanding; they wait for a restart in IDLE."""
    while not (game.up() and game.value("phase") == "PAYOUT"):
        yield from game.step(None)
    if game.world.powered:
        game.world.power_off()
        yield flash.PowerCut()
    key = "".join(["%02x" % byte for byte in range(32)])
    left = game.chip._cut_in, game.chip._cut_how  # the bench has a supply of its own
    game.chip.disarm()
    before = game.chip.operations
    game.table.storage.provision("settings.new", TABLE % (key, ACTING))
    game.bench = game.chip.operations - before
    game.chip._cut_in, game.chip._cut_how = left
    yield from game.finish()
    game.need(game.table.running().core.settings.front_board or game.cuts > 1, "adopted with a round open")
    if game.value("phase") == "IDLE" and game.table.running().core.settings.front_board:
        game.host.command("reboot")
        yield (lambda: not game.up(), 3000)
    yield (game.up, 3000)
    yield 500
    if not game.up():
        yield from game.supply()
    yield from game.settle()
    settings = game.table.running().core.settings
    game.need(not settings.front_board and settings.gap_ms == 400, "the new settings are not in force")
    game.need(settings.authorised and settings.key is not None, "the new settings are not whole")
    told = [e for e in game.host.events if e["ev"] == "settings" and e["adopted"]]
    game.need(told, "the host was not told of the new settings")
    game.watch.front = False
    game.watch.gap_ms = 400


def _near_the_end(last):
    def prepare(game):
        def act(files):
            journal = Journal(files, 7)
            journal.open()
            _seq_file(journal, last)

        game.table.storage.service(act)
        return last

    return prepare


STORIES = (
    Story("round", _round),
    Story("first boot", _round, from_boot=True),
    Story("void and repeat", _void_round),
    Story("fault", _fault_round),
    Story("settings", _settings_change),
    Story("segment change", _round, _near_the_end(250)),
    Story("segment change and drop", _round, _near_the_end(5 * 256 - 6)),
)


def main(program, share=1, seed=0):
    """Play one cut in `share` of every story; print how many. Returns 1 at one that goes wrong."""
    tried = 0
    n = 0
    for story in STORIES:
        operations = story.play(program)
        for at in range(1, operations + 1):
            for how in HOWS:
                n += 1
                if (n + seed) % share:
                    continue
                tried += 1
                again = n // share % 5  # some power cuts come in pairs
                try:
                    story.play(program, (at, how), again)
                except Exception as error:
                    print("%s: cut %s at operation %d of %d" % (story.name, how, at, operations))
                    sys.print_exception(error)
                    return 1
        print("%s: %d operations" % (story.name, operations))
    print("cuts %d" % tried)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], *[int(word) for word in sys.argv[2:]]))
