"""Make everything that follows from the pin table, and refuse a table that would make an unsafe board.

Owns the rules about pins. The facts are in pins.csv (which GPIO) and signals.csv (all else, by name).
Writes firmware/shaker/pins.py, the literal block of firmware/boot.py, and the wiring table and picture in
board/. Must never be imported by firmware.

    .venv/bin/python board/generate.py           write what is out of date
    .venv/bin/python board/generate.py --check   exit 1, one line for each broken rule or stale file
"""

import argparse
import csv
import pathlib
import sys

BOARD = pathlib.Path(__file__).resolve().parent
ROOT = BOARD.parent
FLASH_PINS = range(6, 12)
REPL_PINS = (1, 3)
INPUT_ONLY = range(34, 40)
STRAPPING = (0, 2, 5, 12, 15)
MISSING = (20, 24, 28, 29, 30, 31, 37, 38)  # no pad, or not led out of an ESP32-WROOM-32E
COLUMNS = ["name", "role", "direction", "pull", "active", "connector", "resistor", "strapping", "reason"]
ROLES = {
    "latch": "in", "contact": "in", "key": "in", "sensor": "in",
    "actuator": "out", "load": "out", "led": "out", "line": None,
}  # fmt: skip
EXTRA = ("LAYOUT", "STATUS", "UART_TX", "UART_RX")


class Signal:
    """One row of the table: `gpio` (int) from pins.csv, every other column of signals.csv as text."""

    def __init__(self, gpio, row):
        self.gpio = gpio
        self.name = row["name"]
        self.role = row["role"]
        self.direction = row["direction"]
        self.pull = row["pull"]
        self.active = row["active"]
        self.connector = row["connector"]
        self.resistor = row["resistor"]
        self.strapping = row["strapping"]
        self.reason = row["reason"]


def vocabulary():
    """Return (contacts, outputs): the pin names that the firmware's names.py asks for, in its order."""
    for path in (ROOT / "host_tests" / "shims", ROOT / "firmware"):
        if str(path) not in sys.path:
            sys.path.insert(0, str(path))
    from shaker import names

    return [n.upper() for n in names.CONTACTS], [n.upper() for n in names.OUTPUTS]


def load(pins_path, signals_path):
    """Read both files; return (signals in the order of pins.csv, list of complaints, one line each)."""
    bad = []
    gpios = {}
    for number, line in enumerate(pins_path.read_text().splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        cells = line.split(",")
        gpio = cells[1][4:] if len(cells) == 2 and cells[1].startswith("GPIO") else ""
        if not (gpio.isascii() and gpio.isdigit() and cells[0]):
            bad.append(f"{pins_path.name}:{number}: expected NAME,GPIOn, got {line!r}")
        elif cells[0] in gpios:
            bad.append(f"{pins_path.name}:{number}: {cells[0]} is listed twice")
        else:
            gpios[cells[0]] = int(gpio)
    rows = {}
    with signals_path.open(newline="") as file:
        reader = csv.DictReader(file)
        if reader.fieldnames != COLUMNS:
            return [], [*bad, f"{signals_path.name}:1: columns must be {','.join(COLUMNS)}"]
        for row in reader:
            where = f"{signals_path.name}:{reader.line_num}"
            if None in row or None in row.values():
                bad.append(
                    f"{where}: {row['name']} has {'more' if None in row else 'fewer'} cells than columns"
                )
            elif row["name"] in rows:
                bad.append(f"{where}: {row['name']} is listed twice")
            else:
                rows[row["name"]] = row
    bad += [f"{n} is in {pins_path.name} but not in {signals_path.name}" for n in gpios if n not in rows]
    bad += [f"{n} is in {signals_path.name} but not in {pins_path.name}" for n in rows if n not in gpios]
    return [Signal(gpio, rows[n]) for n, gpio in gpios.items() if n in rows], bad


def check(signals):
    """Return what is wrong with the table, one clear line for each rule that is broken."""
    bad = []
    contacts, outputs = vocabulary()
    wanted = [*contacts, *outputs, *EXTRA]
    have = {s.name: s for s in signals}
    bad += [
        f"{n}: the firmware needs this signal and the table has no such pin" for n in wanted if n not in have
    ]
    bad += [f"{n}: the firmware knows no such signal" for n in have if n not in wanted]
    used = {}
    for s in signals:
        if s.gpio in used:
            a, b = used[s.gpio], s.name
            bad.append(f"{b}: GPIO{s.gpio} is already used by {a}")
            if a[:-3] == b[:-3] and {a[-3:], b[-3:]} == {"_NO", "_NC"}:
                bad.append(
                    f"{b}: both contacts of {a[:-3].lower()} are on GPIO{s.gpio}; a latch needs two pins"
                )
        used.setdefault(s.gpio, s.name)
        bad += [f"{s.name}: {complaint}" for complaint in _check_pin(s)]
    return bad


def _check_pin(s):
    pin = f"GPIO{s.gpio}"
    if s.role not in ROLES:
        yield f"role {s.role!r} is none of {' '.join(ROLES)}"
        return
    if s.direction not in ("in", "out"):
        yield f"direction {s.direction!r} is neither in nor out"
    elif ROLES[s.role] not in (None, s.direction):
        yield f"a {s.role} is an {ROLES[s.role]}put, the table says {s.direction}"
    if s.pull not in ("up", "none"):
        yield f"pull {s.pull!r} is neither up nor none"
    if s.active not in ("low", "high"):
        yield f"active level {s.active!r} is neither low nor high"
    if s.gpio > 39 or s.gpio in MISSING:
        yield f"{pin} does not exist on an ESP32-WROOM-32E"
    if s.gpio in FLASH_PINS:
        yield f"{pin} belongs to the flash chip (6-11)"
    if s.gpio in REPL_PINS:
        yield f"{pin} belongs to the REPL's UART (1, 3)"
    if s.gpio in INPUT_ONLY:
        if s.direction == "out":
            yield f"{pin} is input-only (34-39) and cannot be an output"
        if s.pull != "none":
            yield f"{pin} has no internal pull (34-39); name a resistor instead"
    if s.gpio in STRAPPING:
        if s.role in ("actuator", "load"):
            yield f"{pin} is a strapping pin and may carry no {s.role}"
        if not s.strapping:
            yield f"{pin} is a strapping pin and the table states no reason why that is safe"
    elif s.strapping:
        yield f"{pin} is no strapping pin, yet a reason for one is stated"
    if s.role in ("latch", "contact", "key", "sensor"):
        if s.active != "low":
            yield "a contact must be active low (to ground, with a pull-up), so that a cut wire reads safe"
        if not s.resistor.endswith(" to 3V3"):
            yield "no hardware pull-up is named; a cut wire must read safe"
    if s.role in ("actuator", "load", "led"):
        if s.active != "high":
            yield f"the {s.role} must be active high, so that its pull-down means off"
        if not s.resistor.endswith(" to GND"):
            yield f"no hardware pull-down is named for the {s.role}"
        if s.role != "led" and s.gpio > 31:
            yield f"{pin}: a {s.role} must be on GPIO0-31, so that one register write sets every output"
    if not s.connector:
        yield "no connector is named"
    if not s.reason:
        yield "no electrical reason is stated"


HEADER = '"""Pin numbers (ESP32 GPIO). Generated from board/pins.csv by board/generate.py: do not edit."""'


def render_pins(signals):
    """Return the text of firmware/shaker/pins.py."""
    have = {s.name: s for s in signals}
    contacts, outputs = vocabulary()

    def row(names):
        return ", ".join(str(have[n].gpio) for n in names)

    lines = [HEADER, "", "from micropython import const", ""]
    lines += [f"{s.name} = const({s.gpio})" for s in signals]
    lines += [
        "",
        "# In the order of names.CONTACTS and names.OUTPUTS.",
        f"CONTACTS = ({row(contacts)})",
        f"OUTPUTS = ({row(outputs)})",
        "# Contacts that have the chip's own pull-up besides their resistor; all are made when low.",
        f"PULLED = ({row(n for n in contacts if have[n].pull == 'up')})",
    ]
    return "\n".join(lines) + "\n"


BEGIN = "# -- generated from board/pins.csv by board/generate.py: do not edit --"
END = "# -- end of the generated block --"


def render_boot(signals, text):
    """Return boot.py's `text` with the literal block between its two marks made anew."""
    have = {s.name: s for s in signals}
    outputs = vocabulary()[1]
    pins = "".join(f"    {have[n].gpio},  # {n.lower()}\n" for n in outputs)
    head, _, rest = text.partition(BEGIN)
    tail = rest.partition(END)[2]
    return f"{head}{BEGIN}\nOUTPUTS = [\n{pins}]\n{END}{tail}"


def connectors(path, signals):
    """Return ({connector: (part, {pin: what it carries})}, complaints) of both tables together."""
    bad = []
    found = {}
    with path.open(newline="") as file:
        rows = [(row["pin"], row["carries"]) for row in csv.DictReader(file)]
    for pin, carries in [*rows, *((s.connector, s.name) for s in signals)]:
        connector, dot, number = pin.partition(".")
        if not dot:
            found[connector] = (carries, {})
        elif connector not in found or not number.isdigit():
            bad.append(f"{carries}: {pin} is on no connector that {path.name} names")
        elif int(number) in found[connector][1]:
            bad.append(f"{carries}: {pin} already carries {found[connector][1][int(number)]}")
        else:
            found[connector][1][int(number)] = carries
    return found, bad


def render_readme(signals, sockets, text):
    """Return README.md's `text` with the wiring and connector tables made anew."""
    rows = [
        "| signal | GPIO | direction | pull | active | connector | resistor | why |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for s in signals:
        why = s.reason + (f". Strapping pin: {s.strapping}" if s.strapping else "")
        cells = (f"`{s.name}`", s.gpio, s.direction, s.pull, s.active, s.connector, s.resistor, why)
        rows.append("| " + " | ".join(str(c) for c in cells) + " |")
    text = _between(text, "wiring", "\n".join(rows))
    rows = ["| connector | for | pins |", "|---|---|---|"]
    for name, (part, pins) in sockets.items():
        rows.append(
            f"| {name} | {part} | {', '.join(f'{n} {pins[n]}' for n in sorted(pins)) or '(as its kind)'} |"
        )
    return _between(text, "connectors", "\n".join(rows))


def _between(text, what, block):
    head, _, rest = text.partition(f"<!-- {what}: generated by board/generate.py -->")
    tail = rest.partition(f"<!-- end of {what} -->")[2]
    return f"{head}<!-- {what}: generated by board/generate.py -->\n{block}\n<!-- end of {what} -->{tail}"


_COLOURS = {
    "latch": "#b3261e", "contact": "#8a5a00", "key": "#1b6e3c", "sensor": "#5b4bb5",
    "actuator": "#b3261e", "load": "#8a5a00", "led": "#5b4bb5", "line": "#00629b",
}  # fmt: skip
_ROW = 26
_WIDTH = 960


def render_svg(signals):
    """Return the wiring picture: the module in the middle, inputs left, outputs right."""
    left = [s for s in signals if s.direction == "in"]
    right = [s for s in signals if s.direction == "out"]
    height = 90 + _ROW * max(len(left), len(right))
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif"'
        ' font-size="12" role="img" aria-labelledby="title">',
        '<title id="title">Wiring of the shaker: which connector leads to which pin of the ESP32</title>',
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<rect x="400" y="40" width="160" height="{height - 60}" rx="6" fill="#f1f3f4" stroke="#3c4043"/>',
        '<text x="480" y="28" text-anchor="middle" font-weight="bold">ESP32-WROOM-32E</text>',
        '<text x="20" y="28" font-weight="bold">inputs</text>',
        f'<text x="{_WIDTH - 20}" y="28" text-anchor="end" font-weight="bold">outputs</text>',
    ]
    for side, rows in ((0, left), (1, right)):
        for i, s in enumerate(rows):
            out += _svg_row(s, 68 + i * _ROW, side)
    return "\n".join([*out, "</svg>"]) + "\n"


def _svg_row(s, y, right):
    def x(at):
        return _WIDTH - at if right else at

    colour = _COLOURS[s.role]
    anchor = ("end", "start") if right else ("start", "end")
    box = x(310) if right else x(200)
    label = f"{s.connector} {s.name}"
    strap = " *" if s.strapping else ""
    return [
        f'<text x="{x(20)}" y="{y + 4}" text-anchor="{anchor[0]}" fill="{colour}">{label}</text>',
        f'<path d="M{x(196)} {y}H{x(400)}" stroke="{colour}" stroke-width="1.5" fill="none"/>',
        f'<rect x="{box}" y="{y - 9}" width="110" height="18" rx="3" fill="#ffffff" stroke="{colour}"/>',
        f'<text x="{box + 55}" y="{y + 4}" text-anchor="middle" font-size="10">{s.resistor}</text>',
        f'<text x="{x(408)}" y="{y + 4}" text-anchor="{anchor[0]}">{s.gpio}{strap}</text>',
    ]


def products(signals, sockets):
    """Return {path: text} of every file that follows from the table."""
    boot = ROOT / "firmware" / "boot.py"
    readme = BOARD / "README.md"
    return {
        ROOT / "firmware" / "shaker" / "pins.py": render_pins(signals),
        boot: render_boot(signals, boot.read_text()),
        readme: render_readme(signals, sockets, readme.read_text()),
        BOARD / "wiring.svg": render_svg(signals),
    }


def main(argv=None):
    """Run the command line; return the exit status."""
    parser = argparse.ArgumentParser(description="make everything that follows from the pin table")
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a file is out of date")
    parser.add_argument("--pins", type=pathlib.Path, default=BOARD / "pins.csv")
    parser.add_argument("--signals", type=pathlib.Path, default=BOARD / "signals.csv")
    options = parser.parse_args(argv)
    try:
        signals, bad = load(options.pins, options.signals)
    except OSError as error:
        print(f"{error.filename}: {error.strerror}", file=sys.stderr)
        return 1
    bad = bad or check(signals)
    sockets, loose = connectors(BOARD / "connectors.csv", signals)
    bad += loose
    for line in bad:
        print(f"pin table: {line}", file=sys.stderr)
    if bad:
        return 1
    stale = 0
    for path, text in products(signals, sockets).items():
        if path.exists() and path.read_text() == text:
            continue
        stale += 1
        shown = path.relative_to(ROOT)
        if options.check:
            print(f"{shown} does not follow from the pin table: run 'make pins'", file=sys.stderr)
        else:
            path.write_text(text)
            print(f"wrote {shown}")
    return 1 if stale and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
