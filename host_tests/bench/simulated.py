"""Figures that simulation gives, on CPython: latency, pulses, start, journal, line, size."""

import copy
import tempfile
from pathlib import Path

import host
import journal_bench
import linebench
from interpreter import FIRMWARE
from rig import SCAN_MS, Rig
from shaker import frame, lines, names
from shakerctl import image

LINE_BAUD = 115200
BYTES_A_SCAN = 57  # what the line carries in 5 ms, ten bits a byte
OPENINGS = (
    ("latch_a", "open"),
    ("latch_b", "open"),
    ("latch_a", "invalid"),
    ("cover", "off"),
    ("dome", "open"),
)


def latency():
    """Open something before every scan of a shake; return {opening: {scans until both outputs are off: n}}.

    An opening at any moment between two scans meets the next scan as one just before it does, so these are
    all instants there are. Where the drive is off already it has to stay off: counted as 0.
    """
    found = {name + " " + value: {} for name, value in OPENINGS}
    rig = Rig().go("SHAKING")
    while rig.phase == "SHAKING":
        for name, value in OPENINGS:
            other = copy.deepcopy(rig)
            other.set(**{name: value})
            scans = 0
            for scan in range(1, 100):
                driven = other.core.outputs & names.DRIVE
                other.scan()
                if driven and not other.core.outputs & names.DRIVE:
                    scans = scan
            counts = found[name + " " + value]
            counts[scans] = counts.get(scans, 0) + 1
        rig.scan()
    return found


def pulses():
    """Shake with many settings; return the worst error of an edge and the worst difference of the gaps."""
    worst = uneven = shakes = 0
    for pulse_ms in range(100, 301, 8):
        for gap_ms in (200, 203, 350, 777, 1000):
            rig = Rig(pulse_ms=pulse_ms, gap_ms=gap_ms).go("COVERED")
            rig.press("start", 30)
            rig.until("SHAKING")
            begun = rig.last("shake-start").now
            rig.until("BETTING")
            driven = [(now, bool(outputs & names.AGITATOR)) for now, outputs in rig.trace if now >= begun]
            edges = [
                now - begun
                for (now, on), (_, before) in zip(driven[1:], driven, strict=False)
                if on != before
            ]
            due, at = [], 600
            for _ in range(3):
                due += [at, at + pulse_ms]
                at += pulse_ms + gap_ms
            worst = max([worst] + [abs(edge - when) for edge, when in zip(edges, due, strict=True)])
            uneven = max(uneven, abs((edges[2] - edges[1]) - (edges[4] - edges[3])))
            shakes += 1
    return {"shakes": shakes, "edge_error_ms": worst, "gap_difference_ms": uneven}


def start():
    """Return after how many ms of scanning a restored phase is judged, contacts at rest and bouncing."""
    found = {}
    for what, bounce in (("at rest", False), ("contacts that never rest", True)):
        rig = Rig(rest=0)
        while not rig.core.round.judged:
            if bounce:
                rig.set(cover="on" if rig.now // SCAN_MS % 2 else "off")
            rig.scan()
        found[what] = rig.now
    return found


def journal(rounds=200):
    """Return what a round costs in flash (journal_bench.wear), and its flash writes."""
    return journal_bench.wear(rounds=rounds)


def _mixed(bench, count):
    state = bench.device.state
    kinds = (
        names.EV_COVERED, names.EV_SHAKE_START, names.EV_SHAKE_DONE, names.EV_BETS_OPEN, names.EV_BETS_CLOSED,
        names.EV_LIFTED, names.EV_RESULT, names.EV_PAID,
    )  # fmt: skip
    for number in range(count):
        event = kinds[number % len(kinds)]
        state.round = 1 + number // len(kinds)
        state.die1, state.die2, state.die3 = (1, 4, 6) if event == names.EV_RESULT else (0, 0, 0)
        bench.device.emit(event, 3)
        bench.journal.append(bench.queue)


def line(damage_ppm, count=1000):
    """Deliver `count` events of rounds to a host over a line that damages bytes; return bytes and seconds.

    `limit_seconds`: the line carrying each event once and nothing else; `floor_seconds`: carrying each as
    often as it takes, on the average, until no byte of it is damaged.
    """
    bench = linebench.Bench(pipe=linebench.Pipe(BYTES_A_SCAN))
    there = host.Host(linebench.KEY, bench.pipe, damage_ppm, 5)
    _mixed(bench, count)
    lengths = [len(frame.wrap(lines.event(record))) for record in bench.journal.records.values()]
    sent = 0
    write = bench.pipe.write

    def counted(buf, off, n):
        nonlocal sent
        sent += n
        return write(buf, off, n)

    bench.pipe.write = counted
    while there.last < count:
        bench.run(SCAN_MS, there)
        if bench.now > 600_000:
            raise RuntimeError(f"{there.last} of {count} events in ten minutes")
    if [event["seq"] for event in there.events] != list(range(1, len(there.events) + 1)):
        raise RuntimeError("an event came twice, or out of order")
    bare = sum(lengths)
    often = sum(length / (1 - damage_ppm / 1e6) ** length for length in lengths)
    return {
        "damaged": damage_ppm / 1e6,
        "seconds": bench.now / 1000,
        "bytes": sent,
        "bytes_once": bare,
        "limit_seconds": bare * 10 / LINE_BAUD,
        "floor_seconds": often * 10 / LINE_BAUD,
    }


def size():
    """Return {module: bytes cross-compiled}."""
    with tempfile.TemporaryDirectory() as folder:
        return {name: len(data) for name, data in image.compile_all(FIRMWARE, Path(folder)).items()}
