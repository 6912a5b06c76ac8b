"""A journal over a fake chip, events to put in it, and the proof that no power cut harms it.

Runs on CPython and MicroPython alike: test_journal.py imports it, and runs it under the real interpreter.
"""

import struct

import flash as chips
from flash import Flash
from power import PowerCut
from shaker import names, record
from shaker.events import Queue
from shaker.journal import Journal
from shaker.state import State
from storage import Storage

ROUND_APPENDS = 7
DEFAULT = (32, 2)  # read/prog size as VfsLfs2's defaults, and the records its inline files hold
PARTITION = (256, 7)  # as board.py mounts the data partition


class Broken(Exception):
    """A promise of the journal was not kept."""


def need(condition, *what):
    """Raise Broken with `what` unless `condition`."""
    if not condition:
        raise Broken(" ".join([str(w) for w in what]))


class Bench:
    """Journal, queue and chip; `events` is what was handed over, `durable` how many of them append() took."""

    def __init__(self, sizes=PARTITION, blocks=64, segment=256, keep=5):
        self.size, self.tail = sizes
        self.segment = segment
        self.keep = keep
        self.flash = Flash(blocks)
        self.storage = Storage(self.flash, self.size, self.size)
        self.storage.format()
        self.events = []
        self.required = False
        self.boot()

    def boot(self):
        """Power on: mount, open; what was in RAM is gone."""
        self.flash.power_on()
        self.files = self.storage.mount()
        self.journal = Journal(self.files, self.tail, self.segment, self.keep)
        self.journal.required = self.required
        self.journal.open()
        self.queue = Queue()
        self.state = State()
        if self.journal.newest:
            self.state.load(self.journal.newest)
        self.state.boot = self.journal.boot
        self.t_s = 0

    def put(self, event, a=0, x=0, y=0, b=0):
        """Queue one event with the present state."""
        self.t_s += 1
        self.queue.put(self.state, self.t_s, 0, event, a, b, x, y)

    def append(self):
        """Hand the queue over, noting what was in it before."""
        queue = self.queue
        for i in range(queue.count):
            at = queue.slot(i)
            self.events.append(bytes(queue.buf[at : at + 60]))
        self.journal.append(queue)

    def one(self, event, a=0, x=0, y=0):
        """Queue one event and append."""
        self.put(event, a, x, y)
        self.append()

    def start(self):
        """The boot event."""
        self.one(names.EV_BOOT)

    def round(self, dice=(1, 4, 6), void=False):
        """A round as the firmware reports it: seven appends, eight events."""
        s = self.state
        s.phase = names.COVERED
        self.one(names.EV_COVERED)
        s.phase = names.SHAKING
        s.round += 1
        s.repeat = 0
        self.one(names.EV_SHAKE_START)
        s.phase = names.BETTING
        s.flags = record.FLAG_BETS
        self.put(names.EV_SHAKE_DONE, 3)
        self.one(names.EV_BETS_OPEN)
        s.phase = names.CLOSED
        self.one(names.EV_BETS_CLOSED)
        s.phase = names.PAYOUT
        self.one(names.EV_LIFTED)
        if void:
            s.phase = names.VOID
            self.one(names.EV_VOID)
            return
        s.die1, s.die2, s.die3 = dice
        self.one(names.EV_RESULT)
        s.phase = names.IDLE
        s.flags = 0
        self.one(names.EV_PAID)
        s.die1 = s.die2 = s.die3 = 0

    # -- a chip and what was told to it, to come back to --------------------------------------------------
    def keep_here(self):
        """Return a copy of everything durable."""
        return bytes(self.flash.data), list(self.events)

    def back_to(self, kept):
        """Return to what keep_here() saw, and boot."""
        self.flash.disarm()
        self.flash.power_on()
        self.flash.data[:] = kept[0]
        self.events = list(kept[1])
        self.boot()


def alike(rec, event):
    """Tell whether a record is the event handed over: number, time and ack are the journal's own."""
    return (
        rec[:4] == event[:4]
        and rec[8:20] == event[8:20]
        and rec[24:28] == event[24:28]
        and rec[32:60] == event[32:60]
    )


def tally(events):
    """Count rounds, voids, pulses and faces in a plain list of events, by the words of the contract."""
    rounds = voids = pulses = 0
    faults = {}
    dice = {1: 0, 2: 0, 3: 0, 4: 0, 5: 0, 6: 0}
    for e in events:
        what = e[1]
        if what == names.EV_PAID:
            rounds += 1
            for face in e[37:40]:
                if face:
                    dice[face] += 1
        elif what == names.EV_VOID:
            voids += 1
        elif what == names.EV_SHAKE_DONE:
            pulses += e[40]
        elif what == names.EV_FAULT:
            faults[e[40]] = faults.get(e[40], 0) + 1
            if e[40] != names.F_INTERNAL_ERROR:
                pulses += struct.unpack_from("<I", e, 42)[0]
    return {"rounds": rounds, "voids": voids, "pulses": pulses, "faults": faults, "dice": dice}


def inspect(bench, least, most):
    """Check a freshly opened journal: a clean prefix of bench.events, `least` to `most` of them, all counted.

    `lost` events, which the journal makes by itself, are left aside. Returns how many events are in it.
    """
    journal = bench.journal
    need(journal.ok and journal.problem is None, "problem", journal.problem)
    buf = bytearray(64)
    held = []
    for seq in range(journal.first, journal.last + 1):
        need(journal.read(seq, buf), "event", seq, "of", journal.first, journal.last, "cannot be read")
        need(struct.unpack_from("<I", buf, 4)[0] == seq, "number")
        if buf[1] != names.EV_LOST:
            held.append(bytes(buf[:60]))
        else:
            need(struct.unpack_from("<I", buf, 46)[0] < journal.first, "called lost, yet held")
    need(
        not journal.read(journal.first - 1, buf) and not journal.read(journal.last + 1, buf),
        "beyond the ends",
    )
    for count in range(most, least - 1, -1):
        if not held or (count >= len(held) and alike(held[-1], bench.events[count - 1])):
            break
    else:
        raise Broken(f"no prefix: {least} to {most} events were expected, {len(held)} are held")
    start = count - len(held)
    for i in range(len(held)):
        need(alike(held[i], bench.events[start + i]), "event differs at", i)
    if journal.newest and journal.newest[0] == record.KIND_EVENT:
        need(journal.read(journal.last, buf) and buf == journal.newest, "the newest record is not the state")
    need(
        journal.counts() == tally(bench.events[:count]),
        "counters",
        journal.counts(),
        tally(bench.events[:count]),
    )
    return count


def cut_everywhere(bench, script, hows=(chips.TORN, chips.BEFORE, chips.AFTER), step=1):
    """Run script(bench) with a power cut at each of its flash operations; return how many cuts were tried.

    After each cut: reboot, look, add an event, reboot, look again.
    """
    kept = bench.keep_here()
    before = bench.flash.operations
    script(bench)
    operations = bench.flash.operations - before
    tried = 0
    for n in range(1, operations + 1, step):
        for how in hows:
            bench.back_to(kept)
            was = len(bench.events)
            bench.flash.cut_at(n, how)
            steps = []
            try:
                script(bench, steps)
                need(False, "no cut at", n)
            except PowerCut:
                pass
            try:
                least = was + (steps[-1] if steps else 0)
                most = len(bench.events)
                bench.boot()
                found = inspect(bench, least, most)
                last = bench.journal.last
                del bench.events[found:]
                bench.start()
                need(bench.journal.last > last, "no new number")
                need(
                    struct.unpack_from("<I", bench.journal.newest, 8)[0] == bench.journal.boot, "boot counter"
                )
                boot = bench.journal.boot
                bench.boot()
                need(inspect(bench, found + 1, found + 1) == found + 1, "the added event")
                need(bench.journal.boot == boot + 1, "boots")
            except Broken as e:
                raise Broken(f"cut {how} at operation {n} of {operations}: {e}") from None
            tried += 1
    bench.back_to(kept)
    return tried


def _noted(bench, steps, act):
    """Run act() with bench.append() noting in `steps` how many events are durable since the script began."""
    base = len(bench.events)
    plain = bench.journal.append

    def append(queue):
        plain(queue)
        if steps is not None:
            steps.append(len(bench.events) - base)

    bench.journal.append = append
    act()


def round_script(bench, steps=None):
    """One boot event and one whole round."""

    def act():
        bench.start()
        bench.round()

    _noted(bench, steps, act)


def turnover_script(bench, steps=None):
    """Rounds over a segment change with the drop of an old segment."""

    def act():
        first = bench.journal.first
        bench.start()
        while bench.journal.first == first:
            bench.round()
        bench.round()

    _noted(bench, steps, act)


def marks_script(bench, steps=None):
    """Marks before, between and after events."""

    def act():
        for what in (record.MARK_ALIVE, record.MARK_CLEAN, record.MARK_ALIVE, record.MARK_CLEAN):
            bench.journal.mark(what, bench.t_s)
            bench.one(names.EV_COVERED)
            bench.journal.mark(what, bench.t_s)

    _noted(bench, steps, act)


def small(sizes, acked=False):
    """Return a bench with a small journal, 16 events a segment and 3 segments, that has turned over."""
    bench = Bench(sizes, segment=16, keep=3)
    bench.start()
    while bench.journal.first == 1:
        bench.round()
        if acked:
            bench.journal.ack(bench.journal.last)
    for _ in range(2):
        bench.round(void=True)
        bench.round((2, 2, 5))
    return bench


def blank(sizes):
    """Return a bench with a blank journal."""
    return Bench(sizes, segment=16, keep=3)


def prove(step=1, sizes=(DEFAULT, PARTITION), hows=(chips.TORN, chips.BEFORE, chips.AFTER)):
    """Cut everywhere in everything; return the number of cuts tried. Raises Broken."""
    tried = 0
    for size in sizes:
        tried += cut_everywhere(blank(size), round_script, hows, step)
        tried += cut_everywhere(small(size), round_script, hows, step)
        tried += cut_everywhere(small(size), turnover_script, hows, step)
        tried += cut_everywhere(small(size, True), turnover_script, hows, step)
        tried += cut_everywhere(small(size), marks_script, hows, step)
    return tried


def fail_everywhere(bench, script, step=1):
    """Run script(bench) with one flash operation that fails, each in turn; append() is then tried again."""
    kept = bench.keep_here()
    before = bench.flash.operations
    script(bench)
    operations = bench.flash.operations - before
    tried = 0
    for n in range(1, operations + 1, step):
        bench.back_to(kept)
        was = len(bench.events)
        plain = bench.journal.append
        failed = []

        def append(queue, plain=plain, failed=failed):
            try:
                plain(queue)
            except OSError as e:
                failed.append(e)
                need(queue.count > 0, "a failed write dropped its events")
                plain(queue)

        bench.journal.append = append
        bench.flash.fail_at(n)
        try:
            script(bench)
            bench.boot()
            inspect(bench, len(bench.events), len(bench.events))
            need(len(bench.events) > was, "nothing written")
        except Broken as e:
            raise Broken(f"failure at operation {n} of {operations}: {e}") from None
        tried += 1
    return tried


# -- figures --------------------------------------------------------------------------------------------
def wear(sizes=PARTITION, rounds=400, partition_bytes=2 << 20, rounds_per_hour=60, cycles=100000):
    """Measure what a round costs in flash; return a dict: operations per append and per round, and the life.

    `life_years` assumes that LittleFS spreads the erases over the whole partition: it allocates in a ring and
    moves a metadata pair after 100 erases, so `worst_to_mean` (most erased block to the mean) falls towards 1
    with the number of moves.
    """
    bench = Bench(sizes, 64)
    bench.start()
    for _ in range(200):  # past the first segment changes: the steady state
        bench.round()
        bench.journal.ack(bench.journal.last)
    flash = bench.flash
    programs, erases = flash.programs, flash.erases
    for _ in range(rounds):
        bench.round()
        bench.journal.ack(bench.journal.last)
    programs = flash.programs - programs
    erases = flash.erases - erases
    per_year = erases / rounds * rounds_per_hour * 24 * 365
    return {
        "rounds": rounds,
        "appends": rounds * ROUND_APPENDS,
        "programs_per_append": programs / (rounds * ROUND_APPENDS),
        "erases_per_append": erases / (rounds * ROUND_APPENDS),
        "programs_per_round": programs / rounds,
        "erases_per_round": erases / rounds,
        "writes_per_round": ROUND_APPENDS,
        "life_years": partition_bytes / flash.block_size * cycles / per_year,
        "worst_to_mean": max(flash.block_erases) * flash.blocks / sum(flash.block_erases),
    }
