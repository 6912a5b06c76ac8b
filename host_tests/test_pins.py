"""The pin table: what is generated from it is current, and a bad table is refused with one clear line."""

import csv
import importlib.util
import io
import shutil
from pathlib import Path

import pytest

from shaker import names, pins

ROOT = Path(__file__).resolve().parent.parent
BOARD = ROOT / "board"

_spec = importlib.util.spec_from_file_location("generate", BOARD / "generate.py")
assert _spec and _spec.loader
generate = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(generate)


class Bench:
    """A copy of the table to spoil."""

    def __init__(self, folder):
        self.pins = folder / "pins.csv"
        self.signals = folder / "signals.csv"
        shutil.copy(BOARD / "pins.csv", self.pins)
        shutil.copy(BOARD / "signals.csv", self.signals)

    def pin(self, name, gpio):
        """Move a signal to another pin."""
        lines = self.pins.read_text().splitlines()
        self.pins.write_text(
            "\n".join(f"{name},GPIO{gpio}" if x.startswith(f"{name},") else x for x in lines)
        )

    def swap(self, one, other):
        """Let two signals change places, so that no pin is used twice."""
        table = dict(x.split(",GPIO") for x in self.pins.read_text().splitlines() if x[0] != "#")
        self.pin(one, table[other])
        self.pin(other, table[one])

    def signal(self, name, **columns):
        """Change columns of a signal."""
        rows = list(csv.DictReader(io.StringIO(self.signals.read_text())))
        with self.signals.open("w", newline="") as file:
            writer = csv.DictWriter(file, generate.COLUMNS)
            writer.writeheader()
            for row in rows:
                writer.writerow({**row, **columns} if row["name"] == name else row)

    def drop(self, path, name):
        """Take a signal out of one of the files."""
        path.write_text(
            "\n".join(x for x in path.read_text().splitlines() if not x.startswith(f"{name},")) + "\n"
        )

    def complaints(self, capsys):
        """Return what the generator writes, line by line; it must refuse."""
        status = generate.main(["--check", "--pins", str(self.pins), "--signals", str(self.signals)])
        assert status == 1
        return capsys.readouterr().err.splitlines()


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)


def test_the_table_keeps_every_rule_and_everything_made_from_it_is_current(capsys):
    assert generate.main(["--check"]) == 0
    assert capsys.readouterr() == ("", "")


def test_constants_are_those_of_the_table():
    signals, bad = generate.load(BOARD / "pins.csv", BOARD / "signals.csv")
    assert not bad
    by_name = {s.name: s.gpio for s in signals}
    assert {n: getattr(pins, n) for n in by_name} == by_name
    assert tuple(by_name[n.upper()] for n in names.CONTACTS) == pins.CONTACTS
    assert tuple(by_name[n.upper()] for n in names.OUTPUTS) == pins.OUTPUTS
    assert set(pins.PULLED) < set(pins.CONTACTS)


def test_the_table_has_the_form_of_the_port():
    # The port's generator skips blank lines and comments and wants exactly two cells in every other line.
    for row in csv.reader(io.StringIO((BOARD / "pins.csv").read_text())):
        if row and not row[0].startswith("#"):
            name, cpu = row
            assert name.isidentifier() and cpu.startswith("GPIO") and int(cpu[4:]) < 40


BAD = {
    "a pin twice": (
        lambda t: t.pin("BELL", 34),
        "BELL: GPIO34 is already used by START",
    ),
    "an output on an input-only pin": (
        lambda t: t.swap("LAYOUT", "BELL"),
        "LAYOUT: GPIO35 is input-only (34-39) and cannot be an output",
    ),
    "a pull where there is none": (
        lambda t: t.signal("BELL", pull="up"),
        "BELL: GPIO35 has no internal pull (34-39); name a resistor instead",
    ),
    "a flash pin": (
        lambda t: t.pin("SERVICE", 9),
        "SERVICE: GPIO9 belongs to the flash chip (6-11)",
    ),
    "a REPL pin": (
        lambda t: t.pin("SERVICE", 3),
        "SERVICE: GPIO3 belongs to the REPL's UART (1, 3)",
    ),
    "no such pin": (
        lambda t: t.pin("SERVICE", 20),
        "SERVICE: GPIO20 does not exist on an ESP32-WROOM-32E",
    ),
    "far beyond": (
        lambda t: t.pin("SERVICE", 77),
        "SERVICE: GPIO77 does not exist on an ESP32-WROOM-32E",
    ),
    "a strapping pin without a reason": (
        lambda t: t.signal("PAID", strapping=""),
        "PAID: GPIO15 is a strapping pin and the table states no reason why that is safe",
    ),
    "a reason without a strapping pin": (
        lambda t: t.signal("BELL", strapping="because"),
        "BELL: GPIO35 is no strapping pin, yet a reason for one is stated",
    ),
    "an actuator on a strapping pin": (
        lambda t: (t.swap("COVER_BAR", "VOID"), t.signal("COVER_BAR", strapping="said to be safe"),
                   t.signal("VOID", strapping="")),
        "COVER_BAR: GPIO5 is a strapping pin and may carry no actuator",
    ),
    "an actuator without a pull-down": (
        lambda t: t.signal("AGITATOR", resistor=""),
        "AGITATOR: no hardware pull-down is named for the actuator",
    ),
    "an actuator with a pull-up": (
        lambda t: t.signal("ALARM", resistor="R27 10k to 3V3"),
        "ALARM: no hardware pull-down is named for the load",
    ),
    "an actuator that is on when low": (
        lambda t: t.signal("DOME_LOCK", active="low"),
        "DOME_LOCK: the actuator must be active high, so that its pull-down means off",
    ),
    "a contact to 3V3": (
        lambda t: t.signal("COVER", active="high"),
        "COVER: a contact must be active low (to ground, with a pull-up), so that a cut wire reads safe",
    ),
    "a contact without a pull-up part": (
        lambda t: t.signal("START", resistor=""),
        "START: no hardware pull-up is named; a cut wire must read safe",
    ),
    "an output beyond the first register": (
        lambda t: t.swap("ALARM", "LATCH_A_NO"),
        "ALARM: GPIO32: a load must be on GPIO0-31, so that one register write sets every output",
    ),
    "no connector": (
        lambda t: t.signal("COVER", connector=""),
        "COVER: no connector is named",
    ),
    "no reason": (
        lambda t: t.signal("COVER", reason=""),
        "COVER: no electrical reason is stated",
    ),
    "an unknown role": (
        lambda t: t.signal("COVER", role="thing"),
        "COVER: role 'thing' is none of latch contact key sensor actuator load led line",
    ),
    "an input for an actuator": (
        lambda t: t.signal("ALARM", direction="in"),
        "ALARM: a load is an output, the table says in",
    ),
    "an unknown direction": (
        lambda t: t.signal("UART_TX", direction="sideways"),
        "UART_TX: direction 'sideways' is neither in nor out",
    ),
    "an unknown pull": (
        lambda t: t.signal("COVER", pull="sometimes"),
        "COVER: pull 'sometimes' is neither up nor none",
    ),
    "an unknown level": (
        lambda t: t.signal("UART_RX", active="lukewarm"),
        "UART_RX: active level 'lukewarm' is neither low nor high",
    ),
    "a signal missing": (
        lambda t: (t.drop(t.pins, "DOME"), t.drop(t.signals, "DOME")),
        "DOME: the firmware needs this signal and the table has no such pin",
    ),
    "a signal nobody knows": (
        lambda t: (t.pins.write_text(t.pins.read_text().replace("BELL,", "GONG,")),
                   t.signals.write_text(t.signals.read_text().replace("BELL,", "GONG,"))),
        "GONG: the firmware knows no such signal",
    ),
    "only in one file": (
        lambda t: t.drop(t.signals, "DOME"),
        "DOME is in pins.csv but not in signals.csv",
    ),
    "only in the other": (
        lambda t: t.drop(t.pins, "DOME"),
        "DOME is in signals.csv but not in pins.csv",
    ),
    "a name twice": (
        lambda t: t.pins.write_text(t.pins.read_text() + "BELL,GPIO37\n"),
        "pins.csv:27: BELL is listed twice",
    ),
    "a line of another form": (
        lambda t: t.pins.write_text(t.pins.read_text() + "GONG,37\n"),
        "pins.csv:27: expected NAME,GPIOn, got 'GONG,37'",
    ),
    "a row too short": (
        lambda t: t.signals.write_text(t.signals.read_text() + "GONG,key\n"),
        "signals.csv:26: GONG has fewer cells than columns",
    ),
    "other columns": (
        lambda t: t.signals.write_text(t.signals.read_text().replace("pull", "tug", 1)),
        "signals.csv:1: columns must be " + ",".join(generate.COLUMNS),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_a_bad_table_is_refused_with_one_clear_line(case, bench, capsys):
    spoil, line = BAD[case]
    spoil(bench)
    complaints = bench.complaints(capsys)
    assert "pin table: " + line in complaints
    assert len(complaints) <= 4  # moving a signal breaks rules at both ends; never a traceback


def test_both_contacts_of_a_latch_on_one_pin_are_refused(bench, capsys):
    bench.pin("LATCH_B_NC", 27)
    assert bench.complaints(capsys) == [
        "pin table: LATCH_B_NC: GPIO27 is already used by LATCH_B_NO",
        "pin table: LATCH_B_NC: both contacts of latch_b are on GPIO27; a latch needs two pins",
    ]


def test_a_table_that_is_not_there_is_one_line(bench, capsys):
    bench.pins.unlink()
    (line,) = bench.complaints(capsys)
    assert line.endswith("pins.csv: No such file or directory")


def test_a_moved_pin_makes_what_was_generated_stale(bench, capsys):
    bench.swap("ALARM", "FRONT_BOARD")
    complaints = bench.complaints(capsys)
    assert "firmware/shaker/pins.py does not follow from the pin table: run 'make pins'" in complaints
    assert "firmware/boot.py does not follow from the pin table: run 'make pins'" in complaints
