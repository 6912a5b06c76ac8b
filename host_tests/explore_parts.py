"""Exhaustive proofs of what exploration.py takes for granted: debouncing, the guard, a bolt, a shake.

Each `prove_*` takes exploration.load()'s modules, raises Violation, and returns what it covered, in words.
Written from SPEC 4 and 5 alone.
"""

import itertools

from explore_rules import Violation, need
from shaker import names as n


def prove(modules):
    """Yield one line for each part proved; raises Violation."""
    for part in PARTS:
        yield part(modules)


# -- Debouncing: every sequence of samples of each contact, against a count for each input (SPEC 5) ------

# What is counted, as mask: (bit, which raw levels make it true)
_LATCH_RAW = {0b01: 0x0001, 0b10: 0x2000, 0b00: 0x0002, 0b11: 0x0002}  # nc no -> closed / open / invalid
_LIMITS = {  # bit: (samples to reach 1, samples to reach 0)
    0x0001: (7, 2),
    0x0002: (2, 2),
    0x2000: (2, 2),
    n.COVER: (7, 2),
    n.DOME: (7, 2),
    n.SERVICE: (5, 5),
    n.MOTION: (2, 7),
    n.START: (5, 5),
    n.LEVER: (5, 5),
    n.BELL: (5, 5),
    n.VOID_KEY: (5, 5),
    n.PAID: (5, 5),
}


def _follow(known, raw, bits):
    """Return the reference's next ((level, count)…) for `bits`, all read from `raw`."""
    found = []
    for (level, count), bit in zip(known, bits, strict=True):
        if bool(raw & bit) == level:
            count = 0
        else:
            count += 1
            if count == _LIMITS[bit][level]:
                level, count = not level, 0
        found.append((level, count))
    return tuple(found)


def _prove_group(inputs_class, bits, words, shift):
    """Walk every state that sequences of `words` {contact word: raw levels} reach; return how many."""
    start = (0, 0, 0, 0, 0, tuple((False, 0) for _ in bits))
    known: set[tuple] = {start}
    todo: list[tuple] = [start]
    everything = 0
    for bit in bits:
        everything |= bit
    while todo:
        levels, counting, c0, c1, c2, reference = todo.pop()
        for word, raw in words.items():
            inputs = inputs_class()
            inputs.levels, inputs.counting, inputs._c0, inputs._c1, inputs._c2 = levels, counting, c0, c1, c2
            inputs.sample(word)
            after = _follow(reference, raw, bits)
            want = 0
            for (level, _), bit in zip(after, bits, strict=True):
                want |= _moved(bit, shift) if level else 0
            part = _moved_all(everything, shift)
            got = inputs.levels & part
            need(
                got == want,
                "SPEC 5",
                f"inputs {levels:04x} + contacts {word:04x}: {got:04x}, SPEC wants {want:04x}",
            )
            need(inputs.rose == got & ~levels & 0x7FFF, "SPEC 5", "rose is not what rose")
            need(inputs.fell == levels & ~inputs.levels & part, "SPEC 5", "fell is not what fell")
            pack = (
                got,
                inputs.counting & part,
                inputs._c0 & part,
                inputs._c1 & part,
                inputs._c2 & part,
                after,
            )
            if pack not in known:
                need(len(known) < 5000, "SPEC 5", "the counters of one input do not come to an end")
                known.add(pack)
                todo.append(pack)
    return len(known)


def _moved(bit, shift):
    # Latch B has the bits of latch A, two places up (one for "seen open").
    return bit if not shift else (0x4000 if bit == 0x2000 else bit << 2)


def _moved_all(bits, shift):
    return sum(_moved(1 << i, shift) for i in range(15) if bits >> i & 1)


def prove_inputs(modules):
    """Every sequence of samples of each latch and each single contact."""
    inputs_class = modules["inputs"].Inputs
    total = 0
    # The other latch's pair reads open throughout; its own bits are left aside.
    for shift in (0, 2):
        words = {pair << shift | 0b10 << (2 - shift): raw for pair, raw in _LATCH_RAW.items()}
        total += _prove_group(inputs_class, (0x0001, 0x0002, 0x2000), words, shift)
    for bit in _LIMITS:
        if bit >= n.COVER and bit < 0x2000:
            total += _prove_group(inputs_class, (bit,), {0b1010: 0, 0b1010 | bit: bit}, 0)
    return f"inputs: {total} states of the counters, every sequence of samples"


# -- The guard alone: whatever a mistaken round might ask of it ----------------------------------------------


def _broken_by(out, wanted, levels, phase, origin, owed, service, told):
    """Return the rule of SPEC 4 that the guard's answer `out` breaks, or None."""
    where = origin if phase == n.FAULT else phase
    lock = bool(out & n.COVER_LOCK)
    bar = bool(out & n.COVER_BAR)
    drive = out & n.DRIVE
    may = phase == n.SHAKING and not owed and levels == n.SECURED and told & n.COVER_LOCK and lock
    due = n.DRIVE if wanted & n.DRIVE == n.DRIVE else wanted & n.AGITATOR_ENABLE
    if drive != (due if may else 0):
        return "I1"
    if lock != (where in (n.SHAKING, n.BETTING) and not owed):
        return "I2"
    if bar != owed:
        return "I3"
    alarm = phase == n.FAULT or (owed and levels & n.COVER)
    if bool(out & n.ALARM) != bool(alarm or wanted & n.ALARM):
        return "I3, alarm"
    dome = True
    if phase == n.IDLE:
        dome = not service
    elif phase == n.FAULT and origin == n.IDLE:
        dome = bool(levels & n.DOME or told & n.DOME_LOCK)
    if bool(out & n.DOME_LOCK) != dome:
        return "I4"
    if bool(out & n.FRONT_BOARD) != (phase == n.BETTING and bool(wanted & n.FRONT_BOARD)):
        return "I5"
    return "I6" if lock and bar else None


def prove_guard(modules):
    """Every request with every phase, origin, input that counts, debt, service mode and standing command."""
    guard = modules["interlock"].guard
    lock, bar, dome_bolt = n.COVER_LOCK, n.COVER_BAR, n.DOME_LOCK
    secured = [
        sum(bit for i, bit in enumerate((0x01, 0x04, n.COVER, n.DOME)) if mask >> i & 1) for mask in range(16)
    ]
    asked = (
        0,
        n.AGITATOR,
        n.AGITATOR_ENABLE,
        n.DRIVE,
        0x7F,
        0x7F & ~n.DRIVE,
        n.FRONT_BOARD,
        n.ALARM,
        lock | bar,
    )
    places = [(phase, n.IDLE) for phase in range(n.FAULT)] + [(n.FAULT, origin) for origin in range(n.FAULT)]
    standing = (0, lock, dome_bolt, lock | dome_bolt, bar, bar | dome_bolt, lock | bar | dome_bolt)
    total = 0
    for (phase, origin), owed, service, told, levels, wanted in itertools.product(
        places, (False, True), (False, True), standing, secured, asked
    ):
        out = guard(wanted, levels, phase, origin, owed, service, told)
        total += 1
        rule = _broken_by(out, wanted, levels, phase, origin, owed, service, told)
        if rule:
            asks = f"({wanted:02x}, {levels:04x}, {phase}, {origin}, {owed}, {service}, {told:02x})"
            raise Violation(rule, f"guard{asks} = {out:02x}")
    return f"interlock: {total} requests to the guard alone"


def prove_may_shake(modules):
    """Every combination that decides whether a shake may begin."""
    may_shake = modules["interlock"].may_shake
    total = 0
    for levels in range(0x40):
        for owed in (False, True):
            for seen in (False, True):
                total += 1
                ok = levels & n.SECURED == n.SECURED and not owed and seen
                need(
                    (may_shake(levels, owed, seen) == n.OK) == ok,
                    "I1, I3",
                    f"may_shake({levels:02x}, {owed}, {seen})",
                )
    return f"interlock: {total} questions whether a shake may begin"


# -- One bolt: every sequence of commands at the moments that matter ----------------------------------


def prove_bolt(modules):
    """One bolt at 2000 ms (six drives a minute): ten commands in every rhythm of four lengths."""
    bolt_class = modules["bolts"].Bolt
    total = 0
    for rhythm in _rhythms((5, 1000, 2500, 11000), 5):
        bolt = bolt_class(2000)
        now = 0
        on = False
        driven = []
        began = None
        for change in range(10):
            on = not on
            end = now + rhythm[change % len(rhythm)]
            while now < end:
                told = bolt.step(now & 0x3FFFFFFF, on)
                total += 1
                need(told or not on, "I6", "locking waits for the budget")
                if bolt.driving and began is None:
                    began = now
                if began is not None:
                    need(
                        not bolt.driving or now - began < 2000, "I6", f"a bolt is driven for {now - began} ms"
                    )
                    if not bolt.driving:
                        driven.append((began, now))
                        began = None
                # Nothing changes before the next moment that matters: go there.
                after = now + 5 if bolt._turn else now + 500 if bolt._waiting else end
                if bolt.driving:
                    after = min(after, bolt._until)
                now = max(now + 5, min(after, end))
        if began is not None:
            driven.append((began, began + 2000))
        for start, _ in driven:
            spent = sum(max(0, min(b, start + 60000) - a) for a, b in driven if start <= a < start + 60000)
            need(spent <= 12000, "I6", f"a bolt is driven {spent} ms in one minute")
    return f"bolts: {total} steps of one bolt, every rhythm of commands"


def _rhythms(times, length):
    if length == 0:
        yield ()
        return
    for rest in _rhythms(times, length - 1):
        for ms in times:
            yield (ms, *rest)


# -- One shake, scan by scan: the times of SPEC 5 ------------------------------------------------------


def prove_shake(modules):
    """The electronic shake at three sets of times, scan by scan, across the clock's wrap."""
    scans = 0
    for bolt, pulse, gap, settle in ((200, 100, 200, 300), (600, 250, 350, 700), (2000, 300, 1000, 3000)):
        settings = modules["settings"].Settings()
        settings.set(
            {"bolt_ms": bolt, "pulse_ms": pulse, "gap_ms": gap, "settle_ms": settle, "motion": False}
        )
        state = modules["state"].State()
        queue = modules["events"].Queue()
        core = modules["core"].Core(settings, state, queue, lambda: True)
        clock = (1 << 30) - 700
        edges = []
        started = opened = None
        core.begin(clock & 0x3FFFFFFF)
        drive = 0
        opened_word = 0b1010 | n.DOME
        closed_word = 0b0101 | n.DOME | n.COVER
        last = bolt + 3 * pulse + 2 * gap + settle + 800
        for now in range(0, last, 5):
            word = opened_word if now < 200 else closed_word
            if 300 <= now < 400:
                word |= n.START
            core.scan((clock + now) & 0x3FFFFFFF, word)
            queue.drop(queue.count)
            scans += 1
            if state.phase == n.SHAKING and started is None:
                started = now
            if core.outputs & n.DRIVE != drive:
                drive = core.outputs & n.DRIVE
                need(drive in (0, n.DRIVE), "I1", "one channel without the other")
                edges.append(now)
            if state.phase == n.BETTING and opened is None:
                opened = now
        need(started is not None, "SPEC 3", "start does not start", "expect phase=SHAKING")
        want = [started + bolt]
        for step in (pulse, gap, pulse, gap, pulse):
            want.append(want[-1] + step)
        rule = "SPEC 5, the shake"
        need(len(edges) == 6, rule, f"{len(edges) // 2} pulses", "expect phase=BETTING")
        for edge, at in zip(edges, want, strict=True):
            need(0 <= edge - at < 5, rule, f"an edge {edge - at} ms from its time")
        need(opened is not None and 0 <= opened - want[-1] - settle < 5, rule, f"betting opens at {opened}")
        need(edges[2] - edges[1] == edges[4] - edges[3], rule, "the gaps are not alike")
    return f"agitator: {scans} scans of whole shakes"


PARTS = (prove_inputs, prove_guard, prove_may_shake, prove_bolt, prove_shake)
