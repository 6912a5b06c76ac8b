"""What must hold at the table after every scan, whatever people, line, flash and supply do.

Written from SPEC sections 4, 5 and 7 alone and checked against the world (contacts, pins, bolts, pulses): of
the firmware only its phase, its origin and its settled service mode are believed, because the rules speak of
them. Knows nothing of how the firmware decides. Runs on CPython and MicroPython. Units: ms, scans.
"""

import json

from shaker import names

SCAN_MS = 5
OPEN_SCANS = 2  # opening counts after so many scans in a row
CLOSE_SCANS = 7  # closing after 30 ms of agreement
KEY_SCANS = 5
HOLD_MS = 800
LATE_SCANS = 2  # scans a bolt's drive may need to turn round after a change of phase
MINUTE_MS = 60000
BUDGET_MS = 12000
GUARDS = ("latch_a", "latch_b", "cover", "dome")
_CLOSED = {"latch_a": "closed", "latch_b": "closed", "cover": "on", "dome": "closed"}
_BOLTS = ("cover_lock", "cover_bar", "dome_lock")


class Broken(Exception):
    """An invariant does not hold; the text names it."""


def state_of(record):
    """Return what a 64-byte record says of the round: all that must survive a power cut."""
    return (record[2] & 15, record[2] >> 4, record[3], bytes(record[24:28]), bytes(record[18:20]),
            bytes(record[32:40]))  # fmt: skip


def _live(state):
    """Return the same of the firmware's state."""
    return (
        state.phase,
        state.origin,
        state.flags,
        _bytes(state.round, 4),
        _bytes(state.repeat, 2),
        _bytes(state.faults, 4) + bytes((state.fault, state.die1, state.die2, state.die3)),
    )


def _bytes(value, size):
    return bytes([value >> (8 * i) & 0xFF for i in range(size)])


class Settling:
    """One input as SPEC section 5 settles it; on = closed, on, pressed."""

    def __init__(self, rise, fall):
        self.rise = rise
        self.fall = fall
        self.on = False
        self.run = 0  # scans in a row that say otherwise

    def take(self, made):
        if made == self.on:
            self.run = 0
            return
        self.run += 1
        if self.run >= (self.rise if made else self.fall):
            self.on = made
            self.run = 0


class Watch:
    """Watches `table` (table.Table) through `hook()`, once after every scan; calls `fail(text)` when broken.

    `paid_holds`, `void_presses`, `commands`: what people and host did that may end a payout, or correct it.
    """

    def __init__(self, table, fail, options=None):
        self.table = table
        self.world = table.world
        self.fail = fail
        options = options or {}
        self.lever = options.get("actuation") == "lever"
        self.bolt_ms = int(options.get("bolt_ms", 600))
        self.pulse_ms = int(options.get("pulse_ms", 250))
        self.gap_ms = int(options.get("gap_ms", 350))
        self.front = options.get("front_board", "true") == "true"
        self.scans = 0
        self.base = 0  # number of the last event before the host's book begins
        self.heard = {}  # seq: the event's line, as first heard
        self.commands = {"paid": set(), "void": set(), "result": set()}  # each as often as it was meant
        self.paid_holds = 0
        self.void_presses = 0
        self.owed = False
        self.may_end = False
        self._barred = False  # both bolts have been on since this payout began, or should have been
        self._owed_for = 0  # scans
        self.seen_phases = set()
        self._allowed = [None]  # type: list  # states that a restart may find; None = whatever a blank chip gives
        self._boots = 0
        self._stalled = 0
        self._drives = {}
        for name in _BOLTS:
            self._drives[name] = []  # [start, end or None, stalled before]
        self._sides = 0
        self._session = ""
        self._fresh()
        table.on_boot = self.boot
        table.on_read = self.read
        table.on_scan = self.hook
        table.host.on_line = self.line

    def _fresh(self):
        self._settled = {}
        for name in GUARDS:
            self._settled[name] = Settling(CLOSE_SCANS, OPEN_SCANS)
        for name in ("start", "lever", "void", "paid", "service"):
            self._settled[name] = Settling(KEY_SCANS, KEY_SCANS)
        self._phase = None
        self._since = 0  # scans in this phase
        self._service_for = 0
        self._service = None
        self._scans_here = 0
        self._judged_for = 0
        self._pulses = 0
        self._strokes = 0
        self._lever_on = False
        self._started = False  # the start key (a stroke) was down since this boot
        self._paid_at = None
        self._void_on = False
        self._last_at = None
        self._operations = None

    # -- What is heard -------------------------------------------------------------------------------

    def line(self, text, way):
        """Take a line of the host's: `text` from "$" to the CRC, `way` "<" received, ">" sent."""
        if way == ">":
            thing = json.loads(text[1 : text.rfind("}") + 1])
            cmd = thing["cmd"]
            if cmd in self.commands:
                self.commands[cmd].add(text)
                self.may_end = self.may_end or cmd != "result"
        elif text.startswith('${"seq":'):
            seq = int(text[8 : text.find(",")])
            known = self.heard.get(seq)
            if known is None:
                self.heard[seq] = text
            elif known != text:
                self.fail("number %d was used twice: %s and %s" % (seq, known, text))

    # -- Restarts ------------------------------------------------------------------------------------

    def boot(self):
        """The device is about to start; whatever it knew is gone."""
        app = self.table.place.get("app")
        if app is not None:
            self._queued(app)
        self._fresh()

    def _queued(self, app):
        """Note which states the queue, perhaps written in part, may have left in flash."""
        queue = app.queue
        for i in range(queue.count):
            at = queue.slot(i)
            self._allowed.append(state_of(queue.buf[at : at + 64]))

    def _restored(self, app):
        if self.owed and app.core.state.owed():
            self.may_end = False  # the confirmation, if there was one, is lost, and must be made again
            self.check_barred()
        found = app.journal.newest
        if None not in self._allowed and found is not None and state_of(found) not in self._allowed:
            self.fail("I7: restored %s, which is none of %s" % (state_of(found), self._allowed))
        if None not in self._allowed and found is None:
            self.fail("I7: everything is forgotten")

    # -- Every scan ------------------------------------------------------------------------------------

    def read(self):
        """The firmware reads its inputs now."""
        world = self.world
        now = world.now
        if self._last_at is not None and now - self._last_at > SCAN_MS:
            self._stalled += now - self._last_at - SCAN_MS
        self._last_at = now
        settled = self._settled
        for name in GUARDS:
            settled[name].take(world.value(name) == _CLOSED[name])
        for name in ("start", "lever", "void", "paid"):
            settled[name].take(world.value(name) == "pressed")
        settled["service"].take(world.value("service") == "on")
        stroke = settled["lever"].on
        if stroke and not self._lever_on:
            self._strokes += 1
        self._lever_on = stroke
        if stroke or settled["start"].on:
            self._started = True
        pressed = settled["void"].on
        if pressed and not self._void_on:
            self.void_presses += 1
            self.may_end = True
        self._void_on = pressed
        if not settled["paid"].on:
            self._paid_at = None
        elif self._paid_at is None:
            self._paid_at = now
        elif self._paid_at >= 0 and now - self._paid_at >= HOLD_MS - SCAN_MS * KEY_SCANS:
            self.paid_holds += 1
            self._paid_at = -1
            self.may_end = True

    def hook(self):
        """Check everything, after a scan."""
        app = self.table.place.get("app")
        if app is None:
            return
        self.scans += 1
        core = app.core
        state = core.state
        world = self.world
        phase = names.PHASES[state.phase]
        where = names.PHASES[state.origin] if phase == "FAULT" else phase
        if state.faults >> (names.F_INTERNAL_ERROR - 1) & 1:
            self.fail("an exception reached the top")
        if self._scans_here == 0:
            self._restored(app)
        self._scans_here += 1
        self._judged_for = self._judged_for + 1 if core.round.judged else 0
        if app.queue.count == 0:
            self._allowed = [_live(state)]
        if phase != self._phase:
            self._enter(phase)
        else:
            self._since += 1
        service = state.service()
        self._service_for = self._service_for + 1 if service == self._service else 0
        self._service = service
        self.seen_phases.add(phase)
        on = {}
        for i in range(len(names.OUTPUTS)):
            on[names.OUTPUTS[i]] = world.outputs >> i & 1
        self._i1(on, phase)
        self._i2(on, where)
        self._i3(on, state.owed(), app)
        self._i4(on, phase, where, service, core)
        self._i5(on, phase)
        self._i6(on, app)
        self._pulsing()

    def _enter(self, phase):
        before = self._phase
        self._phase = phase
        self._since = 0
        if phase == "SHAKING":
            if before is not None:
                for name in GUARDS:
                    if not self._settled[name].on:
                        self.fail("I1: a shake began with %s not settled" % name)
                if before != "COVERED":
                    self.fail("I1: a shake began in " + before)
            self._pulses = self.world.pulses
            self._strokes = 1
        if phase == "BETTING" and before is not None:
            if before != "SHAKING":
                self.fail("I5: betting opened out of " + before)
            if self.lever:
                if self._strokes < 3:
                    self.fail("I5: betting opened after %d strokes" % self._strokes)
            elif self.world.pulses - self._pulses != 3:
                self.fail("I5: betting opened after %d pulses" % (self.world.pulses - self._pulses))

    def _i1(self, on, phase):
        if not on["agitator"] and not on["agitator_enable"]:
            return
        if phase != "SHAKING":
            self.fail("I1: drive in " + phase)
        if self.lever:
            self.fail("the agitator of a lever build is driven")
        if not self._started:
            self.fail("I1: a shake that nobody started")
        if self.owed and not self.may_end:
            self.fail("I1, I3: drive with payout outstanding")
        for name in GUARDS:
            if not self._settled[name].on:
                self.fail("I1: drive with %s open" % name)
        if not on["cover_lock"] or (on["agitator"] and self.world.bolt("cover_lock") < 1000):
            self.fail("I1, I2: drive with the cover not locked")

    def _i2(self, on, where):
        if where in ("SHAKING", "BETTING") and not on["cover_lock"] and self._since > LATE_SCANS:
            self.fail("I2: cover_lock off in " + where)

    def _i3(self, on, owed, app):
        if self.owed and not owed:
            if not self.may_end:
                self.fail("I3: a payout ended that nobody confirmed")
            if app.queue.count == 0:
                self.owed = False
        elif owed and not self.owed and app.queue.count == 0:
            self.owed = True
            self.may_end = False
            self._barred = False
            self._owed_for = 0
        if not self.owed or self.may_end:
            return
        self._owed_for = min(self._owed_for + 1, self._judged_for)
        self._barred = self._barred or (on["cover_bar"] and on["dome_lock"]) or self._owed_for > LATE_SCANS
        self.check_barred()
        if (
            self._settled["cover"].on
            and self._settled["cover"].run == 0
            and self._judged_for > LATE_SCANS
            and not on["alarm"]
        ):
            self.fail("I3: the cover lies on an unpaid round without an alarm")

    def check_barred(self):
        """Check I3 and I4 on an outstanding payout; also while nothing runs."""
        if self.owed and self._barred and not self.may_end:
            for name in ("cover_bar", "dome_lock"):
                if self.world.output(name) != "on":
                    self.fail("I3, I4, I7: %s off with payout outstanding" % name)

    def _i4(self, on, phase, where, service, core):
        if on["dome_lock"] or self._since <= LATE_SCANS or not self._judged_for > LATE_SCANS:
            return
        if where == "IDLE":
            if not self._settled["dome"].on or self._settled["dome"].run or core.bolts_stay:
                return  # never locked empty
            if phase == "IDLE" and service:
                return
            if phase == "FAULT" or self._service_for <= LATE_SCANS:
                return  # the lock follows
        self.fail("I4: dome_lock off in " + phase)

    def _i5(self, on, phase):
        if on["front_board"] and (phase != "BETTING" or not self.front):
            self.fail("I5: front_board on in " + phase)

    def _i6(self, on, app):
        world = self.world
        now = world.now
        if app.core.outputs & names.COVER_LOCK and app.core.outputs & names.COVER_BAR:
            self.fail("I6: cover_lock and cover_bar are commanded together")
        stalled = self._stalled + now - self._last_at  # the flash may have held up this very scan
        for i in range(3):
            name = _BOLTS[i]
            drives = self._drives[name]
            direction = world._bolt_dir[i]
            if drives and drives[-1][1] is None:
                drive = drives[-1]
                if direction != drive[3] or self._scans_here == 1:
                    drive[1] = now
                elif now - drive[0] > self.bolt_ms + stalled - drive[2]:
                    self.fail("I6: %s driven for %d ms" % (name, now - drive[0]))
            if direction and not (drives and drives[-1][1] is None):
                drives.append([now, None, stalled, direction])
                while drives[0][1] is not None and drives[0][1] < now - MINUTE_MS:
                    drives.pop(0)
                self._budget(name, drives, now, stalled)
        if on["cover_lock"] and on["cover_bar"] and self._since > LATE_SCANS:
            self.fail("I6: cover_lock and cover_bar are on together")

    def _budget(self, name, drives, now, stalled):
        """Not more than 20 % of the minute that ends with the drive that begins now, but over a restart."""
        if self._scans_here * SCAN_MS < MINUTE_MS:
            return
        end = now + self.bolt_ms
        driven = self.bolt_ms
        for began, ended, _, _ in drives[:-1]:
            ended = min(ended, began + self.bolt_ms)  # the last servo pulse may end 2 ms later
            driven += max(0, ended - max(began, end - MINUTE_MS))
        # The lock makes way for the bar at once (I6), by one drive.
        most = MINUTE_MS // 5 + stalled - drives[0][2] + (self.bolt_ms if name == "cover_lock" else 0)
        if driven > most:
            self.fail("I6: %s driven for %d ms of a minute" % (name, driven))

    def _pulsing(self):
        """Nothing is written to flash from the first pulse's start to the last one's end; knocks are even."""
        world = self.world
        count = world.pulses - self._pulses
        chip = self.table.storage.chip
        if self._phase != "SHAKING" or not 1 <= count <= 3:
            self._operations = None
            return
        last = (world.pulses - 1) % 64
        if count == 3 and world.now - world.pulse_at[last] >= world.pulse_ms[last]:
            self._operations = None
            first, second = world.pulse_at[last - 2], world.pulse_at[last - 1]
            gaps = (second - first, world.pulse_at[last] - second)
            want = self.pulse_ms + self.gap_ms
            if abs(gaps[0] - want) > SCAN_MS or abs(gaps[1] - want) > SCAN_MS:
                self.fail("pulses are %d and %d ms apart" % gaps)
            return
        if self._operations is None:
            self._operations = chip.operations
        elif chip.operations != self._operations:
            self.fail("flash was written between the pulses")

    # -- At the end ------------------------------------------------------------------------------------

    def check_host(self, reached=True):
        """Check the host's book: each event once, in order; reached: it has heard everything by now."""
        events = self.table.host.events
        for i in range(len(events)):
            if events[i]["seq"] != self.base + i + 1:
                self.fail("event %d has number %d" % (self.base + i + 1, events[i]["seq"]))
        self._check_book(events)
        app = self.table.running()
        if reached and app and app.journal.last != self.table.host.last:
            self.fail("the host knows %d of %d events" % (self.table.host.last, app.journal.last))

    def _check_book(self, events):
        """Check the rounds that `events` tell of: numbers, each bet ended once, no payment nobody made."""
        paid = 0
        void = 0
        last = None  # number of the newest round
        owing = None  # number of the round whose bets stand
        for event in events:
            what = event["ev"]
            rd = event["rd"]
            if what == "shake-start":
                if event["rep"] == 0:
                    if owing is not None:
                        self.fail("round %d began while the bets of %d stood" % (rd, owing))
                    if last is not None and rd != last + 1:
                        self.fail("round %d came after %d" % (rd, last))
                    last = rd
                elif owing != rd:
                    self.fail("a repeat of round %d, whose bets do not stand" % rd)
            elif what == "bets-open":
                owing = rd
            elif what == "void":
                void += 1
                if owing != rd:
                    self.fail("void of round %d, whose bets do not stand" % rd)
            elif what == "paid" or what == "abandoned":
                if what == "paid":
                    paid += 1
                if owing != rd:
                    self.fail("%s of round %d, whose bets do not stand" % (what, rd))
                owing = None
        self._check_count("paid", paid, self.paid_holds)
        self._check_count("void", void, self.void_presses)
        self._check_count("result", sum([1 for event in events if event["ev"] == "result"]), 0)
        up = False
        for event in events:
            if event["ev"] == "boot":
                up = False
            elif event["ev"] == "link":
                if event["up"] == up:
                    self.fail("link %s twice" % up)
                up = event["up"]

    def _check_count(self, what, count, keys):
        most = keys + len(self.commands[what])
        if count > most:
            self.fail("%d times %s, which was asked for %d times" % (count, what, most))
