"""`shakerctl bench-test`: proves at the bench that a board is wired right, before it goes under a table.

Order: the wiring at rest; each input by itself, with nothing driven; then, only if all of that is right, the
outputs that move nothing; then a whole round by the firmware's own round and interlock, which drives agitator
and bolts; then a shake with each channel of the agitator alone, which must not move the base; then the time
from a latch's opening to both agitator channels off. Ends in a report.

With a jig (`--loopback`, the module target_wiring on the board) nobody has to move or to look at anything.
"""

from __future__ import annotations

import hashlib
import html
import json
import tempfile
import time
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from shakerctl.deploy import FROZEN, Disk
from shakerctl.firmware import names
from shakerctl.trouble import Trouble
from shakerctl.usb import Usb
from shakerctl.voice import Voice

LATENCY_US = 10_000  # SPEC 12: two scans
TOLERANCE_US = 1_000  # of the board's millisecond clock
WRONG_S = 2.0  # a wrong answer that stands still for so long is one
ONBOARD = Path(__file__).with_name("onboard.py")

REST = {name: values[0] for name, values in names.INPUT_VALUES.items()} | {"dome": "closed"}
# What to do, and how to undo it; motion is moved by hand here, by the agitator later.
INPUTS = (
    ("latch_a", "closed", "Close latch A", "Open latch A"),
    ("latch_b", "closed", "Close latch B", "Open latch B"),
    ("cover", "on", "Seat the cover, latches open", "Take the cover off"),
    ("dome", "open", "Take the glass dome off its seat", "Seat the glass dome"),
    ("start", "pressed", "Hold START", "Release START"),
    ("lever", "pressed", "Hold the lever", "Release the lever"),
    ("bell", "pressed", "Hold the BELL", "Release the BELL"),
    ("void", "pressed", "Hold VOID", "Release VOID"),
    ("paid", "pressed", "Hold PAID", "Release PAID"),
    ("service", "on", "Turn the service key on", "Turn the service key off"),
    ("motion", "moving", "Move the base by hand and hold the sensor's target", "Let the base rest"),
)
PARTS = ("wiring", "input", "output", "interlock", "latency")
LIT_MS = 3000
SAFE_S = 5.0  # for the board to answer at the end: whoever pressed Ctrl-C does not wait longer
CHANNELS = (  # off, on
    ("agitator", "agitator_enable", "with the drive (Q1) off the base stays still"),
    ("agitator_enable", "agitator", "with the supply (Q2) off the base stays still"),
)
LATCHES = (("latch_a", "A"), ("latch_b", "B"))


def word_of(state: dict[str, str]) -> int:
    """Return the contact word of a table whose inputs are as in `state`."""
    word = 0
    for i, contact in enumerate(names.CONTACTS):
        name = contact.removesuffix("_no").removesuffix("_nc")
        value = names.INPUT_VALUES[name].index(state[name])
        made = value == (0 if contact.endswith("_nc") else 1)
        word |= made << i
    return word


def contacts_of(word: int) -> list[str]:
    """Return the names of the contacts that are made."""
    return [name for i, name in enumerate(names.CONTACTS) if word >> i & 1]


@dataclass
class Check:
    """One line of the report."""

    part: str  # one of PARTS
    name: str
    ok: bool
    detail: str = ""


@dataclass
class Report:
    """What was found."""

    board: str
    firmware: str
    manifest_sha256: str  # "frozen" for a program in the image
    started: str
    by: str  # operator or loopback
    parts: tuple[str, ...]  # what a complete test consists of
    checks: list[Check] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Everything was right, and everything was tested."""
        return {check.part for check in self.checks} >= set(self.parts) and all(c.ok for c in self.checks)

    def thing(self) -> dict[str, Any]:
        """Return the report for programs."""
        return {**asdict(self), "passed": self.passed}

    def page(self) -> str:
        """Return the report for people: one HTML page that needs nothing else."""
        rows = "".join(
            f"<tr class={'ok' if c.ok else 'bad'}><td>{c.part}<td>{html.escape(c.name)}"
            f"<td>{'ok' if c.ok else 'FAILED'}<td>{html.escape(c.detail)}"
            for c in self.checks
        )
        verdict = "PASSED" if self.passed else "FAILED"
        return (
            "<!doctype html><meta charset=utf-8>"
            f"<title>Bench test {html.escape(self.board)}: {verdict}</title>"
            "<style>body{font:15px sans-serif;margin:2em}td{padding:.2em 1em .2em 0;vertical-align:top}"
            ".bad{background:#fcc;font-weight:bold}</style>"
            f"<h1>Bench test: {verdict}</h1><p>Board {html.escape(self.board)}<br>"
            f"Firmware {html.escape(self.firmware)}, manifest {html.escape(self.manifest_sha256)}<br>"
            f"{html.escape(self.started)}, by {self.by}</p><table>{rows}</table>\n"
        )


class Failed(Exception):
    """A part failed in a way that makes the next ones senseless or unsafe."""


def _firmware(usb: Usb, disk: Disk, program: str) -> tuple[str, str]:
    """Return version and manifest's SHA-256 of the program in that folder; "frozen" for one without."""
    if program == FROZEN:
        usb.exec("from shaker.version import VERSION")
        return usb.eval("VERSION"), "frozen"
    text = disk.text(program + "/manifest.json")
    try:
        return json.loads(text)["version"], hashlib.sha256(text.encode()).hexdigest()
    except (ValueError, KeyError, TypeError, RecursionError):
        raise Trouble("The firmware on the board has no manifest: `shakerctl deploy` it again.") from None


class BenchTest:
    """One run on a board that is ours (usb.take())."""

    def __init__(self, usb: Usb, voice: Voice, loopback: bool, patience_s: float):
        self.usb = usb
        self.voice = voice
        self.loopback = loopback
        self.patience_s = patience_s
        disk = Disk(usb)
        program = disk.program()
        version, manifest = _firmware(usb, disk, program)
        usb.exec(ONBOARD.read_text("utf-8"))
        facts = usb.eval("bench.facts()")
        found, self.lever, self.motion, self.front_board = facts
        if found != "IDLE":
            raise Trouble(
                f"A round is open on this board ({found}): finish it under its table or give it up, "
                "and run it again with the service key on."
            )
        if loopback and not usb.eval("bench.loopback()"):
            raise Trouble(
                "There is no target_wiring on the board: copy your jig's there first "
                "(`mpremote fs cp target_wiring.py :`), or leave --loopback out."
            )
        self.report = Report(
            board=usb.ident,
            firmware=f"{version} ({program.removeprefix('/')})",
            manifest_sha256=manifest,
            started=datetime.now().astimezone().isoformat(timespec="seconds"),
            by="loopback" if loopback else "operator",
            parts=PARTS[:4] if self.lever else PARTS,
        )

    def run(self) -> Report:
        """Run every part; stops where going on would be senseless or unsafe."""
        try:
            self.wiring()
            self.inputs()
            if not all(check.ok for check in self.report.checks):
                raise Failed("Wrong wiring: nothing is driven. Mend it and run the test again.")
            self.outputs()
            self.round()
            if not self.lever:
                self.channels()
                for name, letter in LATCHES:
                    self.latency(name, letter)
        except Failed as why:
            self.voice.say(str(why))
        finally:
            self.usb.exec("bench.safe()", SAFE_S)
        return self.report

    def _check(self, part: str, name: str, ok: bool, detail: str = "") -> bool:
        self.report.checks.append(Check(part, name, bool(ok), detail))
        self.voice.say(f"{'ok    ' if ok else 'FAILED'} {part}: {name}" + (f" - {detail}" if detail else ""))
        return bool(ok)

    def _instruct(self, text: str) -> None:
        if not self.loopback:
            self.voice.say(f"  >> {text}.")

    def _put(self, **moves: str) -> None:
        if self.loopback:
            self.usb.exec(f"bench.put({tuple(moves.items())!r})")

    # -- Wiring and inputs -----------------------------------------------------------------------------------

    def _await(self, wanted: int, before: int, patience: float, early: bool = True) -> tuple[bool, int]:
        """Wait for the contact word `wanted`; `early`: not when another word than `before` stands still."""
        end = time.monotonic() + patience
        wrong, since = before, time.monotonic()
        while True:
            word, steady = self.usb.eval("bench.contacts()")
            if steady and word == wanted:
                return True, word
            now = time.monotonic()
            if word != wrong:
                wrong, since = word, now
            stands = early and word != before and now - since > (0 if self.loopback and steady else WRONG_S)
            if stands or now > end:
                return False, word

    def wiring(self) -> None:
        """The table at rest must read as such, with nothing driven."""
        self._put(**REST)
        if self.loopback:
            self.usb.exec("bench.jig.release() if hasattr(bench.jig, 'release') else None")
        self._instruct("Put the table at rest: cover off, latches open, dome seated, no key, service key off")
        rest = word_of(REST)
        good, word = self._await(rest, rest, WRONG_S)
        if not good and not self.loopback:
            # The key that stopped the shaker is still on, or the table was not at rest: no wrong wire yet.
            wrong = [c for i, c in enumerate(names.CONTACTS) if (word ^ rest) >> i & 1]
            self._instruct(f"Not at rest yet: {', '.join(wrong)}. Put it so; what stays wrong is the wiring")
            good, word = self._await(rest, rest, self.patience_s, early=False)
        for i, contact in enumerate(names.CONTACTS):
            made, want = word >> i & 1, rest >> i & 1
            detail = ""
            if made != want:
                detail = (
                    "reads made at rest: a short, or the wrong pin"
                    if made
                    else "reads open at rest: a cut wire?"
                )
            self._check("wiring", contact, made == want, detail)
        if not good:
            raise Failed(
                "The table does not read as at rest: nothing is driven. Mend the wiring and run it again."
            )

    def inputs(self) -> None:
        """Each input by itself: it must answer, and no other may."""
        rest = word_of(REST)
        patience = 1.0 if self.loopback else self.patience_s
        for name, value, act, undo in INPUTS:
            if name == "motion" and not self.motion:
                continue
            wanted = word_of({**REST, name: value})
            self._instruct(act)
            self._put(**{name: value})
            good, word = self._await(wanted, rest, patience)
            detail = ""
            if not good:
                wrong = [c for i, c in enumerate(names.CONTACTS) if (word ^ rest) >> i & 1]
                asked = [c for i, c in enumerate(names.CONTACTS) if (wanted ^ rest) >> i & 1]
                answered = " and ".join(wrong) or "nothing"
                detail = f"asked for {' and '.join(asked)}, {answered} answered"
            self._instruct(undo)
            self._put(**{name: REST[name]})
            if name == "motion" and self.loopback:
                self.usb.exec("bench.jig.release() if hasattr(bench.jig, 'release') else None")
            back, left = self._await(rest, word, patience)
            if good and not back:
                detail = "does not come back: " + " and ".join(
                    c for i, c in enumerate(names.CONTACTS) if (left ^ rest) >> i & 1
                )
            self._check("input", name, good and back, detail)
            if not back:
                raise Failed("The table does not come back to rest: nothing is driven.")

    # -- Outputs that move nothing ---------------------------------------------------------------------------

    def outputs(self) -> None:
        """Alarm, status LED and layout."""
        on, off = self.usb.eval("bench.alarm(700)")
        if self.loopback:
            self._check(
                "output", "alarm", on and not off, "" if on and not off else f"on seen {on}, off seen {off}"
            )
        else:
            self._check(
                "output", "alarm", self.voice.confirm("Did the buzzer sound and the red beacon light?")
            )
        for colour, rgb in (("red", (60, 0, 0)), ("green", (0, 60, 0)), ("blue", (0, 0, 60))):
            self.usb.exec(f"bench.status({rgb!r}, 500)")
            ok = self.loopback or self.voice.confirm(f"Did the status LED show {colour}?")
            self._check("output", f"status {colour}", ok, "not seen by the jig" if self.loopback else "")
        self.usb.exec(f"bench.lamps({20 if self.loopback else 80})")
        ok = self.loopback or self.voice.confirm("Did every lamp of the layout light, in order?")
        self._check("output", "layout", ok, "not seen by the jig" if self.loopback else "")

    # -- The round -------------------------------------------------------------------------------------------

    def _run(
        self, text: str, until: tuple[str, ...], moves: Any = (), seconds: float = 10.0, more: str = ""
    ) -> Any:
        """Let the board scan until `until`; the operator, or the jig with `moves`, does what `text` says."""
        self._instruct(text)
        total = seconds if self.loopback else seconds + self.patience_s
        given = moves if self.loopback else ()
        events: tuple[Any, ...] = ()
        knocks, latency = 0, -1
        end = time.monotonic() + total
        while True:  # the board comes back every few seconds, so that it does not go on without us
            ms = max(1, int(1000 * (end - time.monotonic())))
            code = f"bench.run({until!r}, {ms}, {tuple(given)!r}{more})"
            phase, fault, mask, said, seen, us, arrived, saw = self.usb.eval(code, 30 + 2 * ms / 1000)
            events += tuple(said)
            knocks += seen
            latency = max(latency, us)
            if arrived or given or time.monotonic() >= end:
                return (phase, fault, mask, events, knocks, latency, saw)

    def _step(self, name: str, text: str, until: tuple[str, ...], moves: Any = (), outputs: str = "") -> Any:
        """One step of the round: it must arrive at `until` with exactly these outputs on."""
        result = self._run(text, until, moves)
        phase, fault, mask = result[0], result[1], result[2]
        on = [n for i, n in enumerate(names.OUTPUTS) if mask >> i & 1]
        arrived = phase == until[0]
        right = set(on) == set(outputs.split())
        detail = "" if arrived and right else f"{phase}, fault {fault}, on: {' '.join(on) or 'nothing'}"
        if self.loopback:
            for output in names.OUTPUTS:
                if output not in ("agitator", "agitator_enable") and (output in result[6]) != (output in on):
                    right = False
                    detail = f"the jig sees {output} {'off' if output in on else 'on'}"
        if not self._check("interlock", name, arrived and right, detail):
            raise Failed("The round does not go on as it should: the test ends here.")
        return result

    def _look(self, name: str, question: str) -> None:
        if not self.loopback:
            self._check("output", name, self.voice.confirm(question))

    def round(self) -> None:
        """A whole round, by the firmware's own rules; every bolt and the agitator act in it."""
        press = [(0, "start", "pressed"), (150, "start", "released")]
        cover = [(0, "cover", "on"), (200, "latch_a", "closed"), (400, "latch_b", "closed")]
        lift = [(0, "latch_a", "open"), (200, "latch_b", "open"), (400, "cover", "off")]
        self.usb.exec("bench.begin()")
        self._step("at rest the dome is locked", "Wait", ("IDLE", "dome-locked"), outputs="dome_lock")
        self._look("dome_lock", "Is the glass dome bolted now?")
        if not self.lever:
            result = self._step(
                "START without the cover is refused", "Press START", ("IDLE", "refused"), press, "dome_lock"
            )
            self._check("interlock", "and moves nothing", result[4] == 0)
        self._step("covered", "Seat the cover, close both latches", ("COVERED",), cover, "dome_lock")
        strokes = [
            (400 * i + t, "lever", v) for i in range(3) for t, v in ((0, "pressed"), (150, "released"))
        ]
        front = " front_board" if self.front_board else ""
        result = self._step(
            "three pulses, then betting opens",
            "Stroke the lever three times" if self.lever else "Press START",
            ("BETTING",),
            strokes if self.lever else press,
            "cover_lock dome_lock" + front,
        )
        if self.motion and not self.lever:
            self._check(
                "output", "agitator", result[4] == 3, f"{result[4]} movements seen by the motion sensor"
            )
        elif not self.lever:
            self._look("agitator", "Did the base shake three times?")
        self._look("cover_lock", "Are the closed latches bolted, so that they cannot be opened?")
        if self.front_board and not self.loopback:
            # Outputs are on only while the board scans: never while it waits for an answer.
            self._instruct("Look at the front board: it is lit for three seconds now")
            self.usb.eval(f"bench.run(('PAYOUT',), {LIT_MS})")
            self._look("front_board", "Was the front board lit?")
        ring = [(0, "bell", "pressed"), (150, "bell", "released")]
        self._step(
            "the bell ends betting and frees the cover", "Press the BELL", ("CLOSED",), ring, "dome_lock"
        )
        self._look("cover_lock off", "Can the latches be opened again?")
        self._step(
            "lifted", "Open the latches, take the cover off", ("PAYOUT", "open"), lift, "cover_bar dome_lock"
        )
        self._look("cover_bar", "Is the bar out, so that the open latches cannot be closed?")
        self._step(
            "covering an unpaid round raises the alarm",
            "Put the cover on, latches open",
            ("PAYOUT", "alarm"),
            [(0, "cover", "on")],
            "cover_bar dome_lock alarm",
        )
        self._step(
            "until it is taken off",
            "Take the cover off",
            ("PAYOUT", "quiet"),
            [(0, "cover", "off")],
            "cover_bar dome_lock",
        )
        pay = [(0, "paid", "pressed"), (1200, "paid", "released")]
        self._step("PAID, held, ends the round", "Hold PAID for a second", ("IDLE",), pay, "dome_lock")
        self._look("cover_bar off", "Can the latches be closed again? (Leave them open.)")
        key = [(0, "service", "on")]
        self._step("the service key frees the dome", "Turn the service key on", ("IDLE", "dome-free"), key)
        self._look("dome_lock off", "Can the glass dome be taken off? (Seat it again.)")
        key = [(0, "service", "off")]
        self._step("and locks it", "Turn the service key off", ("IDLE", "dome-locked"), key, "dome_lock")

    def channels(self) -> None:
        """A shake with one channel of the agitator alone: what moves the base has failed closed, as Q1 or Q2.

        The round and the interlock are the firmware's own; the cover stays unbolted, as in latency().
        """
        if self.loopback and not self.motion:
            return  # nobody sees it
        cover = [(0, "cover", "on"), (200, "latch_a", "closed"), (400, "latch_b", "closed")]
        press = [(0, "start", "pressed"), (150, "start", "released")]
        lift = [(0, "latch_a", "open"), (200, "latch_b", "open"), (400, "cover", "off")]
        for off, on, name in CHANNELS:
            self._run("Seat the cover, close both latches", ("COVERED",), cover)
            until = "FAULT" if self.motion else "BETTING"
            more = f", False, None, {1 << names.OUTPUTS.index(off)}"
            result = self._run("Press START: the base must not move now", (until,), press, more=more)
            if self.motion:
                ok = result[1] == "agitator-stalled" and not result[4]
            else:
                ok = result[0] == until and not self.voice.confirm("Did the base move?")
            text = f"{result[0]}, fault {result[1]}, {result[4]} movements with {on} alone"
            if not self._check("interlock", name, ok, "" if ok else text):
                raise Failed("One channel alone must not move the base: the test ends here.")
            self.usb.exec("bench.begin()")  # the fault was what we wanted
            self._run("Open the latches, take the cover off", ("IDLE", "dome-locked", "open"), lift)

    def latency(self, name: str, letter: str) -> None:
        """Measure a latch's opening to both channels off, in mid-shake, on the board's own clock."""
        cover = [(0, "cover", "on"), (200, "latch_a", "closed"), (400, "latch_b", "closed")]
        self._run("Seat the cover, close both latches", ("COVERED",), cover)
        moves = [(0, "start", "pressed"), (150, "start", "released"), (-77, name, "open")]
        result = self._open_in_shake(name, letter, moves)
        while (
            result[5] < 0
            and not self.loopback
            and self.voice.confirm("No pulse was running then. Once more?")
        ):
            self._run("Seat the cover, close both latches", ("COVERED",), cover)
            result = self._open_in_shake(name, letter, moves)
        ok = result[1] == "opened-in-shake" and 0 <= result[5] <= LATENCY_US + TOLERANCE_US
        self._check(
            "latency",
            f"latch {letter} open to agitator off",
            ok,
            f"{result[5] / 1000:.1f} ms, fault {result[1]}",
        )

    def _open_in_shake(self, name: str, letter: str, moves: Any) -> Any:
        result = self._run(
            f"Press START, and open latch {letter} while it shakes (it is not bolted now)",
            ("FAULT",),
            moves,
            more=f", False, {name!r}",
        )
        self._run(
            "Open both latches, take the cover off, turn the service key on and off",
            ("IDLE", "dome-locked", "open"),
            [
                (0, "latch_a", "open"),
                (0, "latch_b", "open"),
                (100, "cover", "off"),
                (200, "service", "on"),
                (500, "service", "off"),
            ],
        )
        return result


def check_folder(folder: Path) -> None:
    """Make the report's folder and prove that it can be written to, before the test and not after it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise _unwritable(folder, error) from None


def _unwritable(folder: Path, error: OSError) -> Trouble:
    return Trouble(f"The report cannot be written to {folder} ({error.strerror}): choose another --report.")


def bench_test(usb: Usb, voice: Voice, loopback: bool, patience_s: float, folder: Path) -> int:
    """Run the test and write the report; 0 when everything passed. Call check_folder() first."""
    report = BenchTest(usb, voice, loopback, patience_s).run()
    stem = f"bench-{report.board}-{report.started[:19].replace(':', '')}"
    where, failed = str(folder / f"{stem}.json"), None
    try:
        (folder / f"{stem}.json").write_text(json.dumps(report.thing(), indent=1) + "\n", "utf-8")
        (folder / f"{stem}.html").write_text(report.page(), "utf-8")
    except OSError as error:
        where, failed = "", error
    bad = [check for check in report.checks if not check.ok]
    text = (
        "Bench test passed."
        if report.passed
        else f"Bench test FAILED: {len(bad)} of {len(report.checks)} checks."
    )
    text += f" Report: {folder / stem}.html and .json" if where else ""
    voice.result({**report.thing(), "report": where}, text)
    if failed is not None:
        raise _unwritable(folder, failed)
    return 0 if report.passed else 1
