"""The figures of SPEC 12 in one table, and the same as JSON in build/bench.json.

Instructions are counted on the real MicroPython interpreter under valgrind (counting.py), the rest is
simulated (simulated.py). What is held to what:

- a limit of SPEC 12: missing it is an error;
- a target of the task that SPEC does not have: shown as MISSED as long as it is;
- what has been reached (reached.json): being worse than that is an error, being better is for the file.

Exit code 1: an error; 2: something has to be installed first.
"""

import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import counting
import interpreter
import simulated
from interpreter import FIRMWARE, HERE, MICROPYTHON
from romfs import romfs_image
from shakerctl import image

ROOT = HERE.parent
BENCH = HERE / "bench"
OUT = ROOT / "build" / "bench.json"
PEERS = Path(sys.executable).parents[1] / "bench"  # the packages of requirements.txt, see the Makefile
WEBASSEMBLY = PEERS / "node_modules/@micropython/micropython-webassembly-pyscript/micropython.mjs"
LIMIT_BYTES = 64 * 1024  # SPEC 12, of code and of heap
REACHED = BENCH / "reached.json"
TOLERANCE = 1.02  # instructions differ a little between two builds of the same interpreter
YARDSTICK = 18200  # instructions: eight switches polled once, given with the task
MISSED = "MISSED"


class Table:
    """Rows: a figure, its value, what it may be or is compared with, and how it stands to that."""

    def __init__(self):
        self.rows = []
        self.figures = []  # those for the README
        self.missed = 0

    def title(self, text):
        """Begin a group."""
        self.rows.append((text, "", "", ""))

    def row(self, name, value, unit="", limit=None, least=False, against="", readme="", target=False):
        """Add a figure. limit: what it may be at most (least: at least), or, with against, what a peer has.

        target: the limit is not one of SPEC, so missing it is no error. readme: its name in the README, if it
        goes there.
        """
        verdict = "" if not limit else f"{value / limit:.2f} x"
        text = "" if limit is None else f"{'>' if least else '<='} {limit:,.10g} {unit}".rstrip()
        if against:
            text = f"{limit:,.10g} {against}"
        elif limit is not None and (value < limit if least else value > limit):
            verdict = f"{verdict} {MISSED}".lstrip()
            self.missed += not target
        self.say(name, f"{value:,.10g} {unit}".rstrip(), text, verdict, readme)

    def say(self, name, value, text="", verdict="", readme=""):
        """Add a row of words."""
        self.rows.append(("  " + name, value, text, verdict))
        if readme:
            limit = f"{text} ({verdict})" if text and verdict else text
            self.figures.append({"what": readme, "value": value, "limit": limit.replace("<=", "≤")})

    def reached(self, name, value, best):
        """Hold instructions against the fewest that have been reached; `best` None: never measured."""
        if best is None:
            self.say(name, f"{value:,}", f"not in {REACHED.name}", MISSED)
            self.missed += 1
        else:
            self.row(name, value, "", round(best * TOLERANCE))
            if value < best / TOLERANCE:
                self.say(f"better than {REACHED.name} says: enter it there", f"{value:,}")

    def show(self):
        """Print all rows, in columns."""
        wide = [max(len(row[i]) for row in self.rows if row[1]) for i in range(4)]
        for name, value, limit, verdict in self.rows:
            line = f"{name:<{wide[0]}}  {value:>{wide[1]}}  {limit:<{wide[2]}}  {verdict}"
            print(line.rstrip())


def say(text):
    """Tell what is being measured; the table comes at the end."""
    print(text, file=sys.stderr, flush=True)


# -- Instructions ---------------------------------------------------------------------------------------


def speed(table, found):
    """Instructions per scan and per step, and what peers need."""
    say("instructions: the firmware under valgrind")
    counted = counting.count("scans")
    steady = counting.differences(counted)
    marking = min(instructions for label, instructions in counted if label == "marking alone")
    scans = {}
    for label, instructions in counted:
        if label.startswith("scan "):
            scans.setdefault(label[5:], []).append(instructions - marking)
    say("instructions: peers under valgrind")
    peers = counting.differences(counting.count("peers", PEERS))
    phases = {name: count for name, count in steady.items() if not name.startswith("app")}
    table.title("Instructions per scan: read, decide, assert every output (MicroPython, callgrind)")
    table.say("the yardstick: eight switches polled once", f"{YARDSTICK:,}")
    for name, count in phases.items():
        table.row(f"at rest: {name}", round(count), "", YARDSTICK // 2, target=True)
    median = statistics.median(phases.values())
    at_rest = round(max(phases.values()))
    table.row("at rest, worst phase, against the best peer", at_rest, "", round(min(peers.values())))
    table.row(
        "at rest, median of all", round(median), "", YARDSTICK // 2, target=True,
        readme="instructions of a scan at rest, median of all phases",
    )  # fmt: skip
    table.row(
        "at rest, worst phase", at_rest, "", YARDSTICK // 2, target=True,
        readme="instructions of a scan at rest, worst phase (target: half the yardstick)",
    )  # fmt: skip
    for name, count in peers.items():
        table.row(
            f"against {name}", at_rest, "", round(count), against="there",
            readme=f"the same, against {name}, eight inputs polled",
        )  # fmt: skip
    groups = {}
    for name, counts in scans.items():
        what, phase, did = name.split()
        kind = {"-": "nothing changes", "outputs": "outputs change"}.get(did, "an event")
        groups.setdefault(f"{kind}, {what} contacts", []).extend(counts)
        if did not in ("-", "outputs") and what == "calm":
            table.row(f"{did} in {phase}", max(counts), "", YARDSTICK, target=True)
    for name, counts in sorted(groups.items()):
        dear = sum(count > YARDSTICK for count in counts)
        table.row(f"{name}: median", round(statistics.median(counts)), "", YARDSTICK, target=True)
        table.row(f"{name}: worst, {dear} of {len(counts)} above", max(counts), "", YARDSTICK, target=True)
    worst = max(max(counts) for counts in scans.values())
    table.row(
        "worst scan of all", worst, "", YARDSTICK, target=True,
        readme="instructions of the worst scan of a round (target: the yardstick)",
    )  # fmt: skip
    table.row(
        "worst scan of all, against the best peer at rest", worst, "", round(min(peers.values())),
        readme="the same, against the best of the peers at rest",
    )  # fmt: skip
    reached = json.loads(REACHED.read_text("utf-8"))
    table.title(f"The same, held against what has been reached ({REACHED.name}), and 2 %")
    table.reached("at rest, worst phase", at_rest, reached.get("at rest, worst phase"))
    table.reached("worst scan of all", worst, reached.get("worst scan of all"))
    table.title("Instructions per step of the whole application, link and journal included")
    for name, count in steady.items():
        if name.startswith("app"):
            table.row(name[5:], round(count))
    found["instructions"] = {
        "yardstick": YARDSTICK,
        "at_rest": phases,
        "at_rest_median": median,
        "peers": peers,
        "scans": {name: sorted(counts) for name, counts in scans.items()},
        "worst": worst,
        "application": {name[5:]: count for name, count in steady.items() if name.startswith("app")},
    }


def starting(table, found):
    """Instructions from the first line of boot.py on."""
    say("start")
    with tempfile.TemporaryDirectory() as parent:
        program = Path(parent)
        for at, data in image.release_files(FIRMWARE).items():
            if at.endswith(".mpy"):
                (program / at).parent.mkdir(parents=True, exist_ok=True)
                (program / at).write_bytes(data)
        found["start_instructions"] = dict(counting.count("starts", program))
    table.title("Start: instructions, one after the other; boot.py is compiled, modules are .mpy in RAM")
    for name, instructions in found["start_instructions"].items():
        table.row(name, instructions, readme=f"start, instructions: {name}")


# -- Memory -----------------------------------------------------------------------------------------------


def _live(words, folder, env=None):
    """Run the stages; return ({stage: bytes live}, those of them in names, those of the fakes before)."""
    done = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, errors="replace")
    lines = [line.split() for line in done.stdout.splitlines()]
    passed = ["ended", "0", "1"] in lines and ["ended", "verify", "ok"] in lines
    if done.returncode or not passed:
        raise RuntimeError(f"{words[0]}: {done.stdout[-500:]}{done.stderr[-2000:]}")
    live = {line[0]: int(line[1]) for line in lines if line[0] not in ("ended", "qstr")}
    fakes = live.pop("begin")
    names = [int(count) for count in re.findall(r"n_total_bytes=([0-9]+)", done.stdout)]
    return {stage: count - fakes for stage, count in live.items()}, names[-1] - names[0], fakes


def _least(folder, low, high):
    """Return the least heap between the two in which all stages pass, to 1 KiB."""
    while high - low > 1024:
        middle = (low + high) // 2
        try:
            _heap_run(folder, f"least-{middle}", True, middle)
            high = middle
        except RuntimeError:
            low = middle
    return high


def _heap_run(parent, name, from_rom, heap=16 << 20):
    """Measure on the unix port, the modules in RAM or in a read-only file system."""
    folder = Path(parent) / name
    (folder / "program").mkdir(parents=True)
    files = {p: data for p, data in image.release_files(FIRMWARE).items() if p.endswith(".mpy")}
    code = "import heap\nheap.run()"
    path = [BENCH, HERE / "fakes", HERE, ".frozen"]
    if from_rom:
        (folder / "romfs.img").write_bytes(romfs_image(files))
        code = (
            'import sys, vfs\nrom = open("romfs.img", "rb").read()\n'
            'vfs.mount(vfs.VfsRom(rom), "/rom")\nsys.path.insert(0, "/rom")\n' + code
        )
    else:
        for at, data in files.items():
            (folder / "program" / at).parent.mkdir(parents=True, exist_ok=True)
            (folder / "program" / at).write_bytes(data)
        path.insert(0, folder / "program")
    env = dict(os.environ, MICROPYPATH=":".join(map(str, path)))
    return _live([MICROPYTHON, "-X", f"heapsize={heap}", "-c", code], folder, env)


def memory(table, found):
    """Heap after start and the most that is live in a round, from RAM and from ROMFS."""
    say("memory")
    table.title("Heap of the whole application after start, modules included. The limit is for the product's")
    table.title(
        "image, whose code lies in flash; with a stock image the modules lie in RAM, and it runs, too."
    )
    with tempfile.TemporaryDirectory() as parent:
        wide_ram, _, _ = _heap_run(parent, "ram", False)
        wide_rom, _, fakes = _heap_run(parent, "rom", True)
        least = _least(parent, fakes, fakes + 4 * wide_rom["start"]) - fakes
        table.row("64-bit words, .mpy loaded into RAM", wide_ram["start"], "bytes")
        table.row("64-bit words, .mpy in ROMFS", wide_rom["start"], "bytes")
        # What start, round and line need beside what is live, fragments included.
        table.row(
            "the same: the least heap in which all passes",
            least, "bytes", readme="least heap to start, play and answer all in, 64-bit words",
        )  # fmt: skip
        found["heap"] = {"words64_ram": wide_ram, "words64_romfs": wide_rom, "words64_least": least}
        node = shutil.which("node", path=f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}")
        if node and WEBASSEMBLY.exists():
            words = [node, BENCH / "heap.mjs", WEBASSEMBLY, BENCH / "heap.py"]
            folders = [BENCH, HERE / "fakes", HERE]
            narrow, _, _ = _live([*words, Path(parent) / "ram" / "program", *folders], parent)
            narrow_rom, in_names, _ = _live([*words, Path(parent) / "rom" / "romfs.img", *folders], parent)
            table.row(
                "32-bit words as on the ESP32, .mpy in ROMFS", narrow_rom["start"], "bytes", LIMIT_BYTES,
                readme="heap after start, 32-bit words, code in place",
            )  # fmt: skip
            table.row(
                "of it names, which a frozen image has in flash", in_names, "bytes",
                readme="of it names, which a frozen image has in flash",
            )  # fmt: skip
            table.row(
                "32-bit words, .mpy loaded into RAM", narrow["start"], "bytes", LIMIT_BYTES,
                against="bytes, no limit", readme="the same with a stock image, modules in RAM",
            )  # fmt: skip
            table.row("32-bit words, grown in a round", max(narrow.values()) - narrow["start"], "bytes")
            found["heap"]["words32_ram"] = narrow
            found["heap"]["words32_romfs"] = narrow_rom
            found["heap"]["words32_names"] = in_names
        else:
            table.say(
                "32-bit words as on the ESP32", "not measured", "needs npm",
                readme="heap after start, 32-bit words, code in place",
            )  # fmt: skip


# -- What simulation gives -----------------------------------------------------------------------------------


def simulation(table, found):
    """Latency, pulses, start, journal, line, size."""
    say("latency and pulses")
    latency = found["latency"] = simulated.latency()
    table.title("Latch to both agitator outputs off, opened before each scan of a shake, in scans of 5 ms")
    for opening, counts in latency.items():
        on = {scans: times for scans, times in counts.items() if scans}
        said = ", ".join(f"{scans} in {times}" for scans, times in sorted(on.items()))
        table.row(f"{opening}: {said}; worst", max(on), "scans", 2)
    worst = max(max(counts) for counts in latency.values())
    table.row(
        "worst of all", worst, "scans", 2, readme="latch open to both agitator outputs off, worst instant"
    )
    pulses = found["pulses"] = simulated.pulses()
    table.title(f"Pulses, {pulses['shakes']} shakes with settings of all lengths")
    table.row(
        "worst error of an edge", pulses["edge_error_ms"], "ms", 5, readme="worst error of a pulse's edge"
    )
    table.row(
        "worst difference of the two gaps",
        pulses["gap_difference_ms"],
        "ms",
        5,
        readme="the two gaps differ by",
    )
    table.title("Start: a restored phase is judged and the bolts go, in simulated ms of scanning")
    start = found["start"] = simulated.start()
    for what, ms in start.items():
        table.row(what, ms, "ms", 1000, readme=f"start of scanning to a judged table, {what}")
    say("journal and line")
    wear = found["journal"] = simulated.journal()
    table.title("Journal, a round on a real LittleFS, partition of 2 MiB")
    table.row(
        "flash writes",
        wear["programs_per_round"],
        "a round",
        12,
        readme="flash writes of a round, erases apart",
    )
    table.row("erases", wear["erases_per_round"], "a round")
    table.row(
        "life at 60 rounds an hour, 100,000 erases a block", round(wear["life_years"], 1), "years", 20, True,
        readme="flash life at 60 rounds an hour",
    )  # fmt: skip
    table.title("1000 events over 115200 Bd, against a line that carries each of them once and nothing else")
    found["line"] = []
    for ppm in (0, 1000, 10000):
        line = simulated.line(ppm)
        found["line"].append(line)
        name = f"{ppm / 10000:g} % of bytes damaged"
        table.row(
            f"{name}: time", line["seconds"], "s", round(line["limit_seconds"], 2), against="s",
            readme=f"1000 events to the host, {name}",
        )  # fmt: skip
        if ppm:
            floor = round(line["floor_seconds"], 2)
            table.row(
                f"{name}: the same", line["seconds"], "s", floor, against="s, with repeats",
                readme="the same, against each event repeated until no byte of it is damaged",
            )  # fmt: skip
        table.row(f"{name}: sent", line["bytes"], "bytes", round(line["bytes_once"]), against="bytes")
    sizes = found["size"] = simulated.size()
    table.title("Cross-compiled firmware")
    table.row("all modules", sum(sizes.values()), "bytes", LIMIT_BYTES, readme="cross-compiled firmware")


def interpreter_version():
    """Return the version of the MicroPython that is measured."""
    return interpreter.run(
        "import sys\nprint('.'.join([str(n) for n in sys.implementation.version[:3]]))"
    ).strip()


def main():
    """Measure everything, print the table, write the JSON; returns the exit code."""
    try:
        counting.valgrind()
        if not PEERS.is_dir():
            raise counting.Missing(f"{PEERS} is missing: run this by `make bench`")
    except counting.Missing as error:
        print(error, file=sys.stderr)
        return 2
    table = Table()
    found = {}
    speed(table, found)
    starting(table, found)
    simulation(table, found)
    memory(table, found)
    table.show()
    OUT.parent.mkdir(exist_ok=True)
    on = f"{platform.machine()}, MicroPython {interpreter_version()}, unix port"
    OUT.write_text(json.dumps({"on": on, "figures": table.figures, **found}, indent=1) + "\n", "utf-8")
    print(f"\nThe same as JSON: {OUT.relative_to(ROOT)}")
    return 1 if table.missed else 0
