"""Random walks of the plain core, scan by scan in real time, each state looked up among those explored.

Owns the evidence that the search's abstraction leaves nothing out: here are real debouncing, bouncing
contacts, real timers, late scans, a clock that stands, a motor, the bolts' budget, cuts, and people who do
anything, one key at a time.
"""

import random

import exploration
from shaker import names as n
from shaker import record

_LATCHES = (0b0101, 0b0110, 0b1001, 0b1010, 0b0000, 0b1111, 0b0010, 0b0001)


class Walk:
    """One table: `modules` of exploration.load(), `config` as settings, everything else from `seed`."""

    def __init__(self, modules, config, seed):
        self.random = random.Random(seed)
        self.modules = modules
        times = self.random.choice(
            (
                exploration.FAST,
                {},
                {
                    "bolt_ms": 2000,
                    "pulse_ms": 300,
                    "gap_ms": 1000,
                    "settle_ms": 3000,
                    "lever_window_ms": 1000,
                },
                {"bolt_ms": 1000, "pulse_ms": 250, "gap_ms": 205, "settle_ms": 301},
            )
        )
        self.settings = modules["settings"].Settings()
        self.settings.set({**times, **config})
        self.now = self.random.choice((0, (1 << 30) - 4000, 1 << 29))
        self.word = 0b1010 | n.DOME
        self.newest = None
        self.key = 0
        self.key_scans = 0
        self.coast = 0
        self.phases = set()
        self._boot()

    def _boot(self):
        self.core, self.queue = exploration.build(self.modules, self.settings, lambda: True)
        self.device = self.modules["device"].Device(
            self.core, exploration._Journal(), self.queue, self.settings, "00", 0
        )
        if self.newest:
            self.core.state.load(self.newest)
        self.pulses = 0
        self.core.begin(self.now & 0x3FFFFFFF)

    def step(self):
        """One scan; returns the live state, or None while nothing has been judged."""
        core = self.core
        r = self.random
        s = core.state
        self._people()
        if core.round.judged and not core.agitator.pulsing and r.random() < 0.02:
            name = r.choice(exploration.COMMANDS)
            self.device.command(name, exploration.DICE if name == "result" else None)
        if r.random() < 0.0005:
            core.round.persistent(n.F_JOURNAL_FAILED, True)
            core.wake()
        elif core.round.journal_bad and r.random() < 0.01:
            core.round.persistent(n.F_JOURNAL_FAILED, False)
        late = r.random()
        self.now += (
            5 if late > 0.01 else 0 if late < 0.002 else r.choice((1, 9, 20, 60, 251 if late < 0.003 else 40))
        )
        word = self.word
        if r.random() < 0.02:
            word ^= 1 << r.randrange(6)  # one sample of noise on a contact
        if core.agitator.drive or r.random() < 0.0005:
            self.coast = r.choice((0, 20, 70))
        elif self.coast:
            self.coast -= 1
        word = word | n.MOTION if self.coast else word & ~n.MOTION
        before = core.outputs
        shaking = s.phase == n.SHAKING
        ignored = core.round._ignored
        core.scan(self.now & 0x3FFFFFFF, word)
        if s.phase != n.SHAKING:
            self.pulses = 0
        elif self.settings.lever:
            pressed = core.inputs.rose & n.LEVER & ~ignored
            # The stroke that comes as the window of the last shake ends begins another, in one scan.
            anew = not shaking or any(r[1] == n.EV_SHAKE_START for r in self._records())
            self.pulses = 1 if anew else min(3, self.pulses + bool(pressed))
        else:
            self.pulses = (self.pulses if shaking else 0) + bool(core.outputs & ~before & n.AGITATOR)
        self._make_durable()
        if r.random() < 0.0008:
            self._cut()
        if core is not self.core or not core.round.judged:
            return None
        self.phases.add(s.phase)
        return exploration.canonical(core, self.pulses, True)

    def _records(self):
        queue = self.queue
        return [bytes(queue.buf[queue.slot(i) : queue.slot(i) + record.SIZE]) for i in range(queue.count)]

    def _make_durable(self):
        if not self.core.agitator.pulsing and self.queue.count:
            records = self._records()
            self.newest = records[-1]
            if self.random.random() < 0.01:  # a torn batch: a prefix is left
                self.newest = self.random.choice(records)
                self._boot()
            else:
                self.queue.drop(self.queue.count)

    def _cut(self):
        if self.random.random() < 0.3:
            self.core.round.fault(n.F_INTERNAL_ERROR, 0)
            self.newest = self._records()[-1] if self.queue.count else self.newest
        if self.random.random() < 0.7:
            self.word = self.word & n.KEYS | self._contacts()
        self._boot()

    def _contacts(self):
        r = self.random
        good = r.random() < 0.5
        word = r.choice((0b0101, 0b1010)) if good else r.choice(_LATCHES)
        return (
            word
            | (n.COVER if r.random() < 0.5 else 0)
            | (n.DOME if good or r.random() < 0.7 else 0)
            | (n.SERVICE if r.random() < 0.2 else 0)
        )

    def _people(self):
        r = self.random
        self.key_scans += 1
        phase = self.core.state.phase
        if self.key and self.key_scans > 6 and r.random() < (0.004 if r.random() < 0.5 else 0.05):
            self.word &= ~self.key
            self.key = self.key_scans = 0
        elif not self.key and self.key_scans > 12 and r.random() < 0.04:
            wish = {
                n.COVERED: n.LEVER if self.settings.lever else n.START,
                n.SHAKING: n.LEVER,
                n.BETTING: n.BELL,
                n.PAYOUT: n.PAID,
                n.VOID: n.PAID,
            }.get(phase)
            if wish is None or r.random() < 0.3:
                wish = r.choice(exploration.KEY_BITS)
            if phase in (n.BETTING, n.CLOSED) and wish == n.LEVER and r.random() < 0.9:
                return
            self.key = wish
            self.key_scans = 0
            self.word |= wish
        if r.random() < 0.01:
            self._hands(phase)

    def _hands(self, phase):
        r = self.random
        if r.random() < 0.75:  # what the round waits for
            if phase in (n.IDLE, n.VOID) and r.random() < 0.8:
                self.word = self.word & ~0xF & ~n.SERVICE | n.COVER | n.DOME | 0b0101
            elif phase == n.CLOSED:
                self.word = self.word & ~0xF & ~n.COVER | 0b1010
            elif phase == n.PAYOUT:
                self.word &= ~n.COVER
            elif phase == n.FAULT:
                self.word |= n.DOME
                self.word ^= n.SERVICE
                if r.random() < 0.5:
                    self.word = self.word & ~0xF | r.choice((0b0101, 0b1010))
            return
        if phase in (n.SHAKING, n.BETTING) and r.random() < 0.8:
            return
        what = r.randrange(5)
        if what < 2:
            self.word = self.word & ~0xF | r.choice(_LATCHES)
        else:
            self.word ^= (n.COVER, n.DOME, n.SERVICE)[what - 2]
