"""The pages that follow from the firmware: where each word of them comes from.

ROUND.md and round.svg come from round.py's TRANSITIONS and from driving the real round and interlock;
EVENTS.md from names.py, lines.py and the one catalogue of faults (shakerctl/faults.py); SETTINGS.md from the
table in settings.py. Where a comment of the firmware is the source, it must be there.
"""

from __future__ import annotations

import ast
import inspect
import io
import re
import struct
import tokenize
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path

import roundgraph
from rig import Rig
from roundgraph import Row
from shaker import events, interlock, lines, names, record, settings
from shaker import round as rounds
from shaker.state import State
from shakerctl import faults as catalogue
from sim.texts import REASONS

ROOT = Path(__file__).resolve().parents[1]
FIRMWARE = ROOT / "firmware"
DOCS = FIRMWARE / "docs"
_MADE = "<!-- Made by `make docs`; edit its sources, not this page. -->\n"


class DocsError(Exception):
    """A source does not say what a page needs; the text is one line."""


# -- Sources -----------------------------------------------------------------------------------------


def comments(source: str) -> dict[int, str]:
    """Return {line number: comment without its #} of Python source."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return {t.start[0]: t.string.lstrip("# ").rstrip() for t in tokens if t.type == tokenize.COMMENT}


def table(source: str, name: str) -> list[tuple[ast.expr, str]]:
    """Return (row, its comment) of the tuple of rows that module source assigns to `name`."""
    said = comments(source)
    for node in ast.parse(source).body:
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and node.targets[0].id == name
            and isinstance(node.value, ast.Tuple)
        ):
            return [(row, said.get(row.end_lineno or 0, "")) for row in node.value.elts]
    raise DocsError(f"no table {name}")


def transitions(source: str) -> list[Row]:
    """Return the rows of TRANSITIONS in the source of round.py."""
    rows = []
    for row, comment in table(source, "TRANSITIONS"):
        if not isinstance(row, ast.Tuple):
            raise DocsError(f"TRANSITIONS, line {row.lineno}: no row")
        before, after, event = (x.id.removeprefix("_") for x in row.elts if isinstance(x, ast.Name))
        condition, _, rule = (part.strip() for part in comment.partition("|"))
        if not condition or not rule:
            raise DocsError(f"TRANSITIONS, line {row.lineno}: its comment must say `condition | rule`")
        said = names.EVENTS[getattr(names, event)]
        rows.append(
            Row(
                names.PHASES[getattr(names, before)],
                names.PHASES[getattr(names, after)],
                said,
                condition,
                rule,
            )
        )
    return rows


def event_times(source: str) -> dict[str, str]:
    """Return {event: when} from the comments at the EV_ numbers in the source of names.py."""
    said = comments(source)
    found = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            if name.startswith("EV_"):
                if node.lineno not in said:
                    raise DocsError(f"names.py, {name}: a comment must say when")
                found[names.EVENTS[getattr(names, name)]] = said[node.lineno]
    missing = [name for name in names.EVENTS if name not in found]
    if missing:
        raise DocsError(f"names.py: no number for {', '.join(missing)}")
    return found


def raised_in(code: str, folder: Path = FIRMWARE) -> list[str]:
    """Return the functions, as `file: name`, that raise fault `code`."""
    constant = "F_" + code.upper().replace("-", "_")
    found = []
    for path in sorted(folder.rglob("*.py")):
        if path.name == "names.py":
            continue
        for function, owner in _functions(ast.parse(path.read_text("utf-8")).body, ""):
            if any(_raises(node, constant, code) for node in ast.walk(function)):
                found.append(f"{path.name}: {owner}{function.name}")
    return found


def _functions(body: Iterable[ast.stmt], owner: str) -> Iterable[tuple[ast.FunctionDef, str]]:
    for node in body:
        if isinstance(node, ast.FunctionDef):
            yield node, owner
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node.body, node.name + ".")


def _raises(node: ast.AST, constant: str, code: str) -> bool:
    if isinstance(node, ast.Return):
        return isinstance(node.value, ast.Name) and node.value.id.removeprefix("_") == constant
    if not isinstance(node, ast.Call) or not node.args:
        return False
    first = node.args[0]
    if isinstance(node.func, ast.Name) and node.func.id == "print":  # of what cannot be an event
        return isinstance(first, ast.Constant) and str(first.value).startswith(code)
    ends = len(node.args) > 1 and isinstance(node.args[1], ast.Constant) and node.args[1].value is False
    return (
        isinstance(node.func, ast.Attribute)
        and node.func.attr in ("fault", "fault_at_boot", "persistent")
        and isinstance(first, ast.Name)
        and first.id.removeprefix("_") == constant
        and not ends
    )


# -- Pages ---------------------------------------------------------------------------------------------


def grid(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    out = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    out += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(out) + "\n"


_ALL = names.SECURED
_OPEN = names.DOME  # cover off, latches open
# What is typical at the table in each phase: label, phase, origin, inputs, payout outstanding, service mode.
_SCENES = [
    ("IDLE", names.IDLE, 0, _OPEN, False, False),
    ("IDLE, service mode", names.IDLE, 0, _OPEN | names.SERVICE, False, True),
    ("COVERED", names.COVERED, 0, _ALL, False, False),
    ("SHAKING", names.SHAKING, 0, _ALL, False, False),
    ("SHAKING, a latch seen open", names.SHAKING, 0, _ALL & ~names.LATCH_A_CLOSED, False, False),
    ("BETTING", names.BETTING, 0, _ALL, False, False),
    ("CLOSED", names.CLOSED, 0, _ALL, False, False),
    ("PAYOUT", names.PAYOUT, 0, _OPEN, True, False),
    ("PAYOUT, cover put on", names.PAYOUT, 0, _OPEN | names.COVER, True, False),
    ("VOID", names.VOID, 0, _OPEN, False, False),
] + [
    (f"FAULT from {names.PHASES[phase]}", names.FAULT, phase, levels, phase == names.PAYOUT, False)
    for phase, levels in (
        (names.IDLE, _OPEN),
        (names.COVERED, _ALL),
        (names.SHAKING, _ALL),
        (names.BETTING, _ALL),
        (names.CLOSED, _ALL),
        (names.PAYOUT, _OPEN),
        (names.VOID, _OPEN),
    )
]  # fmt: skip


def outputs_table() -> str:
    """Return the table phase × outputs: what the interlock lets through when everything is asked for."""
    rows = []
    for label, phase, origin, levels, owed, service in _SCENES:
        out = 0
        for _ in range(3):  # the lock is told before the drive may act
            out = interlock.guard(
                names.DRIVE | names.FRONT_BOARD, levels, phase, origin, owed, service, out | names.COVER_LOCK
            )
        cells = []
        for i, name in enumerate(names.OUTPUTS):
            on = out >> i & 1
            cells.append(("pulses" if name.startswith("agitator") else "on") if on else "")
        rows.append([label, *cells])
    return grid(["", *(f"`{name}`" for name in names.OUTPUTS)], rows)


@cache
def resume() -> dict[tuple[str, bool, bool], str]:
    """Return {(phase of the fault, bets had opened, dice disturbed): phase after clear()}, from the round.

    Only what can be: which phases have opened bets is found by playing a round and its repeat.
    """
    met = set()
    rig = Rig()
    for phase in names.PHASES[: names.FAULT]:
        rig = Rig().go(phase)
        met.add((rig.state.phase, bool(rig.state.flags & record.FLAG_BETS)))
    for step in rig.cover_up, rig.shake:  # from VOID: the repeat
        step()
        met.add((rig.state.phase, bool(rig.state.flags & record.FLAG_BETS)))
    found = {}
    for origin, bets in sorted(met):
        for disturbed in (False, True):
            state = State()
            state.phase, state.origin, state.faults, state.fault = names.FAULT, origin, 1, 1
            state.flags = (record.FLAG_BETS if bets else 0) | (record.FLAG_DISTURBED if disturbed else 0)
            Rig(state=state, rest=0).core.round.clear(names.SECURED)
            found[names.PHASES[origin], bets, disturbed] = names.PHASES[state.phase]
    return found


def resume_table() -> str:
    """Return where a cleared fault leads."""
    found = resume()
    rows = [
        [phase, *(found.get((phase, *case), "–") for case in ((False, False), (True, False), (True, True)))]
        for phase in names.PHASES[: names.FAULT]
    ]
    return grid(["fault in", "bets had not opened", "bets had opened", "… and the dice were disturbed"], rows)


# Places from which each key is tried: label, phase, and what a person does before.
_PLACES: list[tuple[str, str, Callable[[Rig], object] | None]] = [
    ("IDLE", "IDLE", None),
    ("IDLE, dome off", "IDLE", lambda rig: rig.set(dome="open")),
    ("IDLE, service mode", "IDLE", lambda rig: rig.set(service="on")),
    ("COVERED", "COVERED", None),
    ("COVERED, service key on", "COVERED", lambda rig: rig.set(service="on")),
    ("SHAKING", "SHAKING", None),
    ("BETTING", "BETTING", None),
    ("CLOSED", "CLOSED", None),
    ("PAYOUT", "PAYOUT", None),
    ("PAYOUT, cover put on", "PAYOUT", lambda rig: rig.set(cover="on")),
    ("VOID", "VOID", None),
    ("VOID, service key on", "VOID", lambda rig: rig.set(service="on")),
    ("FAULT (from BETTING)", "BETTING", lambda rig: rig.set(latch_a="open")),
    ("FAULT, its cause present", "BETTING", lambda rig: rig.set(dome="open")),
]  # fmt: skip
_KEYS = ("start", "lever", "bell", "void", "paid", "service")


def _put(place: tuple[str, str, Callable[[Rig], object] | None], lever: bool) -> Rig:
    _, phase, deed = place
    rig = Rig(lever=lever).go(phase)
    if deed:
        deed(rig)
    rig.run(150)
    rig.said()
    return rig


def _try(rig: Rig, key: str | None) -> None:
    """Press a key (paid: long enough; service: turn it over and back), or let the same time pass."""
    if key == "service":
        before, after = ("off", "on") if rig.core.inputs.levels & names.SERVICE else ("on", "off")
        rig.set(service=before)
        rig.run(100)
        rig.set(service=after)
        rig.run(100)
    elif key:
        rig.press(key, 1000 if key == "paid" else 100)
    else:
        rig.run(1040)


def _said(rig: Rig, idle: list[str], before: str) -> str:
    said = [word for word in rig.said() if word not in idle]
    if not said:
        return "counts as a stroke" if rig.settings.lever and before == "SHAKING" else ""
    if said[0].startswith("refused "):
        return "`" + said[0].split()[2] + "`"
    after = rig.phase if rig.phase != before else ""
    words = ", ".join(said).replace("service 1", "service mode on").replace("service 0", "service mode off")
    return f"**→ {after}** {words}" if after else words


@cache
def keys_table(lever: bool) -> str:
    """Return the table phase × key, by pressing each key of a real round in each phase."""
    rows = []
    for place in _PLACES:
        quiet = _put(place, lever)
        _try(quiet, None)
        idle = quiet.said()
        row = [place[0]]
        for key in _KEYS:
            rig = _put(place, lever)
            before = rig.phase
            _try(rig, key)
            cell = _said(rig, idle, before)
            row.append("" if key != "lever" and cell.startswith("counts") else cell)
        rows.append(row)
    return grid(["", *(f"`{key}`" for key in _KEYS)], rows)


_COMMANDS = (("result", (1, 4, 6)), ("void", None), ("paid", None), ("clear", None), ("abandon", None),
             ("reboot", None))  # fmt: skip


@cache
def commands_table() -> str:
    """Return the table phase × command of the host, by asking the real device."""
    rows = []
    for place in _PLACES:
        row = [place[0]]
        for command, argument in _COMMANDS:
            rig = _put(place, False)
            before = rig.phase
            error = rig.device.command(command, argument)
            rig.scan()
            after = f"**→ {rig.phase}**" if rig.phase != before else "done"
            row.append(f"`{error}`" if error else after)
        rows.append(row)
    return grid(["", *(f"`{command}`" for command, _ in _COMMANDS)], rows)


_RESUME = (
    "from any phase: a fault. Agitator and front board off at once, alarm on, bolts as they are.",
    "Cleared by the service key (on, then off) or the host, once no cause is present. Then:",
    "payout outstanding → PAYOUT; else, the bell had rung and the dice lie undisturbed → CLOSED; else, bets"
    " had opened → VOID; else → IDLE.",
)


def _as_told(origin: str, bets: bool, disturbed: bool) -> str:
    """Return where a cleared fault leads by the words of _RESUME."""
    if origin == "PAYOUT":
        return "PAYOUT"
    if origin == "CLOSED" and not disturbed:
        return "CLOSED"
    return "VOID" if bets else "IDLE"


def round_picture(source: str) -> str:
    """Return round.svg for the source of round.py; DocsError when its words are not what the round does."""
    for case, after in resume().items():
        if after != _as_told(*case):
            raise DocsError(f"tools/docs.py: _RESUME is not what the round does: {case} leads to {after}")
    lost = [phase for phase in names.PHASES if phase not in roundgraph.PLACES]
    if lost:
        raise DocsError(f"tools/roundgraph.py: no place in the picture for {', '.join(lost)}")
    return roundgraph.svg(transitions(source), names.PHASES, _RESUME)


def round_page(source: str) -> str:
    """Return ROUND.md for the source of round.py."""
    rows = transitions(source)
    table_of_rows = grid(
        ["from", "to", "when", "event", "rule"],
        [[r.before, r.after, r.condition, f"`{r.event}`", r.rule] for r in rows],
    )
    return f"""# The round
{_MADE}
![The round: phases, and what leads from one to the next](round.svg)

From the table `TRANSITIONS` in [round.py](../shaker/round.py), whose every row is one change of phase and one
event. `A2.1` is Article 2, paragraph 1 of the [rules](regulation/README.md); the whole behaviour is in
[SPEC](SPEC.md), what may never happen in [INTERLOCK](INTERLOCK.md).

{table_of_rows}
The same for a viewer that draws Mermaid:

```mermaid
{roundgraph.mermaid(rows)}```

## Into FAULT and out of it

A fault leads from any phase to FAULT at once ([which ones, and what to do](EVENTS.md#faults)). No key and no
command but `clear` acts there. It ends when no cause of any fault is present and the supervisor has turned
the service key on and off, or the host has sent a signed `clear`. Where the round goes on then:

{resume_table()}
"Disturbed" dice: after {_and(names.FAULTS[code] for code in rounds._DISTURBING)}. A cover that is lifted in a
FAULT from CLOSED, with undisturbed dice, counts as lifted: the round goes on in PAYOUT.

## Outputs in each phase

What the [interlock](../shaker/interlock.py) lets through where the round asks for the drive and the front
board all the time. `pulses`: only in the three pulses. The front board only where the settings have it.
Lamps: the winning bets, while payout is outstanding and the host has sent the dice.

{outputs_table()}
## Keys in each phase

Found by pressing each key of the real round. A word in code type is the reason of a `refused` event; an
empty cell means that nothing happens and nothing is reported. `paid` is held for a second, `service` turned
over and back.

### Electronic build

{keys_table(False)}
### Lever build

{keys_table(True)}
## Commands in each phase

The host's signed commands, electronic build. In code type: the error. An error changes nothing.

{commands_table()}"""


def _and(words: Iterable[str]) -> str:
    words = [f"`{word}`" for word in words]
    return ", ".join(words[:-1]) + " and " + words[-1]


# Arguments with which each event is shown: a, b, x, y, text, dice. One line of them for each form it has.
_Arguments = tuple[int, int, int, int, str, tuple[int, int, int]]
_NO_DICE = (0, 0, 0)
_PLAIN: list[_Arguments] = [(0, 0, 0, 0, "", _NO_DICE)]
_FORMS: dict[int, list[_Arguments]] = {
    names.EV_BOOT: [(2, 2, 0, 0, "1.0.0", _NO_DICE)],
    names.EV_SHAKE_DONE: [(3, 0, 0, 0, "", _NO_DICE)],
    names.EV_RESULT: [(0, 0, 0, 0, "", (1, 4, 6))],
    names.EV_REFUSED: [(names.WHAT_START, names.WHY_NOT_COVERED, 0, 0, "", _NO_DICE)],
    names.EV_KEY_STUCK: [(names.WHAT_BELL, 0, 0, 0, "", _NO_DICE)],
    names.EV_FAULT: [
        (names.F_OPENED_IN_BETTING, 0, 0, 0, "", _NO_DICE),
        (names.F_OPENED_IN_SHAKE, 0, 2, 0, "", _NO_DICE),
        (names.F_INTERNAL_ERROR, 1, 0, 0, "journal:301", _NO_DICE),
    ],
    names.EV_CLEAR: [(names.F_OPENED_IN_BETTING, 0, 0, 0, "", _NO_DICE)],
    names.EV_RECOVERED: [(names.PAYOUT, 0, 0, 0, "", _NO_DICE)],
    names.EV_SERVICE: [(1, 0, 0, 0, "", _NO_DICE)],
    names.EV_SETTINGS: [
        (1, settings.NO_FIELD, 0, 0, "", _NO_DICE),
        (0, settings.field_index("pulse_ms"), 0, 0, "", _NO_DICE),
        (0, settings.NO_SUCH_FIELD, 0, 0, "colour", _NO_DICE),
        (0, settings.NO_FIELD, 0, 0, "", _NO_DICE),
    ],
    names.EV_LINK: [(1, 0, 0, 0, "", _NO_DICE)],
    names.EV_LOST: [(0, 0, 12, 40, "", _NO_DICE)],
}


def event_line(event: int, form: _Arguments) -> str:
    """Return what the device says of `event`, formatted by the firmware."""
    a, b, x, y, text, dice = form
    state = State()
    state.phase, state.round, state.boot = names.BETTING, 12, 3
    state.die1, state.die2, state.die3 = dice
    queue = events.Queue()
    queue.put(state, 123, 456, event, a, b, x, y)
    if text:
        queue.text(text.encode())
    rec = bytearray(queue.buf[: record.SIZE])
    struct.pack_into("<I", rec, record.OFF_SEQ, 41)
    return lines.event(rec)


def _events_table(source: str) -> str:
    when = event_times(source)
    rows = []
    for number, name in enumerate(names.EVENTS):
        own = []
        for form in _FORMS.get(number, _PLAIN):
            fields = event_line(number, form).partition('"rep":0')[2].strip(",}")
            if fields:
                own.append(f"`{fields}}}`" if fields.count("{") > fields.count("}") else f"`{fields}`")
        rows.append([f"`{name}`", when[name], "<br>".join(own)])
    return grid(["event", "when", "its own keys, as an example"], rows)


# Causes that last: how long, and how one comes about and goes at a real table. All others are gone at once.
_LASTING: dict[str, tuple[str, Callable[[Rig], object], Callable[[Rig], object]]] = {
    "dome-opened": (
        "while the dome is off",
        lambda rig: rig.set(dome="open"),
        lambda rig: rig.set(dome="closed"),
    ),
    "latch-a-wiring": (
        "while the pair disagrees",
        lambda rig: rig.set(latch_a="invalid"),
        lambda rig: rig.set(latch_a="open"),
    ),
    "latch-b-wiring": (
        "while the pair disagrees",
        lambda rig: rig.set(latch_b="invalid"),
        lambda rig: rig.set(latch_b="open"),
    ),
    "agitator-runaway": (
        "while the base moves",
        lambda rig: rig.set(motion="moving"),
        lambda rig: rig.set(motion="still"),
    ),
}
_OUTSIDE = {
    "clock-stalled": "until the clock moves",
    "settings-invalid": "until a start with sound settings",
    "journal-failed": "until a write succeeds",
}
for _code, _words in _OUTSIDE.items():
    _number = names.FAULTS.index(_code)
    _LASTING[_code] = (
        _words,
        lambda rig, number=_number: rig.core.round.persistent(number, True),
        lambda rig, number=_number: rig.core.round.persistent(number, False),
    )


def lasts(code: str) -> str:
    """Return how long the cause of fault `code` lasts, tried on a real round; DocsError when it is not so."""
    number = names.FAULTS.index(code)
    words, begin, end = _LASTING.get(
        code, ("gone at once", lambda rig: rig.core.round.fault(number), lambda rig: None)
    )
    rig = Rig().go("VOID")
    begin(rig)
    rig.run(500)
    levels = rig.core.inputs.levels
    refused = rig.core.round.clear(levels)
    if rig.state.faults >> number - 1 & 1 != bool(refused) or bool(refused) != (code in _LASTING):
        raise DocsError(f"{code}: its cause is not {words}")
    end(rig)
    rig.run(500)
    if refused and rig.core.round.clear(rig.core.inputs.levels):
        raise DocsError(f"{code}: its cause lasts longer than {words}")
    return words


@cache
def _faults_tables() -> str:
    care, make = [], []
    for number, code in enumerate(names.FAULTS):
        if not number:
            continue
        if code not in catalogue.FAULTS:
            raise DocsError(f"{code}: shakerctl/faults.py has no words for it")
        care.append([f"`{code}`", catalogue.cause(code), catalogue.FAULTS[code]["en"][1]])
        where = raised_in(code)
        if not where:
            raise DocsError(f"{code}: nothing raises it")
        never = where == ["main.py: main"]
        make.append(
            [
                str(number),
                f"`{code}`",
                "until the firmware is deployed again: nothing runs" if never else lasts(code),
                "yes" if number in rounds._DISTURBING else "",
                ", ".join(f"`{name}`" for name in where),
            ]
        )
    return (
        grid(["code", "what has happened", "what to do"], care)
        + "\n"
        + grid(["number", "code", "its cause", "disturbs the dice", "raised by"], make)
    )


def events_page(source: str) -> str:
    """Return EVENTS.md for the source of names.py."""
    whys = grid(
        ["reason", "in words"],
        [[f"`{why}`", REASONS[why][0]] for why in names.WHYS if why],
    )
    return f"""# Events and faults
{_MADE}
How they travel and are acknowledged is in [PROTOCOL](PROTOCOL.md), how they are kept in
[JOURNAL](../JOURNAL.md). Names and their numbers are those of [names.py](../shaker/names.py).

## Events

Every event begins with the same keys: its number, the boot it happened in, ms since that boot, Unix seconds
or null, its name, and then the phase after it, the round and its repeats:

```
{event_line(names.EV_BETS_OPEN, _PLAIN[0])}
```

{_events_table(source)}
`cause`: {_and(names.CAUSES)}. `what` and `key`: {_and(names.WHATS)}.

### Reasons

Of a `refused` event, its `why`:

{whys}
## Faults

In a FAULT the agitator is off, the alarm sounds, and the bolts stay as they are. The first fault's code
stays; a further one is reported too. A fault outlives a restart and a power cut.

**How any fault is cleared:** take its cause away, then turn the service key on and off, or have the host send
`clear`. While any cause is present that is refused (`cause-present`). Then
[the round goes on](ROUND.md#into-fault-and-out-of-it).

{_faults_tables()}
An `internal-error` names the kind of exception (`type`: {_and(names.ERRORS)}) and its place as `module:line`.
"""


def _kind(kind: object, name: str) -> tuple[str, str]:
    """Return (type, range) in words."""
    if kind is None:
        return "switch", "true, false"
    if kind == "id":
        return "text", f"up to {settings._ID_MOST} letters, digits, `.`, `_`, `-`"
    if kind == "key":
        return "text", "64 hex digits, or null for none"
    if kind == "record":
        return "object", ", ".join(f"`{field}`" for field in settings._RECORD) + ", or null for none"
    if not isinstance(kind, tuple):
        raise DocsError(f"settings.py, {name}: a kind that this page does not know")
    if isinstance(kind[0], str):
        return "word", ", ".join(f'"{word}"' for word in kind)
    unit = " ms" if name.endswith("_ms") else " %" if name == "duty" else ""
    return "whole number", f"{kind[0]} to {kind[1]}{unit}"


def regulated() -> set[str]:
    """Return the fields whose change needs an authorisation: those that options_word() tells apart."""
    found = set()
    plain = settings.Settings().options_word()
    for name, kind in settings._TABLE:
        old = getattr(settings.Settings(), name)
        others: list[object] = []
        if kind is None:
            others = [not old]
        elif isinstance(kind, tuple):
            others = [value for value in kind if value != old]
        for value in others:
            changed = settings.Settings()
            changed.set({name: value})
            if changed.options_word() != plain:
                found.add(name)
    return found


def settings_page(source: str) -> str:
    """Return SETTINGS.md for the source of settings.py."""
    said = {}
    for row, comment in table(source, "_TABLE"):
        if not isinstance(row, ast.Tuple) or not isinstance(row.elts[0], ast.Constant):
            raise DocsError(f"settings.py, line {row.lineno}: no row")
        if not comment:
            raise DocsError(f"settings.py, {row.elts[0].value}: its comment must say what it means")
        said[row.elts[0].value] = [part.strip() for part in comment.partition("|")]
    bound = regulated()
    rows = []
    for name, kind in settings._TABLE:
        meaning, _, article = said[name]
        default = getattr(settings.Settings(), name)
        shown = (
            "none"
            if default is None
            else str(default).lower()
            if isinstance(default, bool)
            else repr(default)
        )
        shown = shown.replace("'", '"')
        rows.append(
            [f"`{name}`", *_kind(kind, name), shown, meaning, article, "**yes**" if name in bound else ""]
        )
    head = ["setting", "type", "range", "default", "meaning", "article", "regulated"]
    return f"""# Settings
{_MADE}
From the table in [settings.py](../shaker/settings.py). A technician brings them in with
`shakerctl provision`, or by hand as [the firmware's page](../README.md#settings) says. The device takes a
file whole or refuses it whole, with the name of the first bad field, at a restart in IDLE,
or in any phase where the one in force was spoiled.

{grid(head, rows)}
**Regulated** settings are the alternatives of Articles 1 and 2. Where a record of the inspectorate's (DICJ)
authorisation is in force, each change of one needs a new `authorisation`: `ref` (its reference) and the dates
`requested`, `granted` and `adopted` (YYYY-MM-DD), adopted not before it was granted, and after it was
requested. `shakerctl` also counts the three working days of Article 8 by Macau's calendar. A table without a
record plays with any options, and says in `hello`, `status` and its `boot` event that none is authorised.
"""


def pages() -> dict[Path, str]:
    """Return {path: text} of everything this program makes."""
    the_round = inspect.getsource(rounds)
    return {
        DOCS / "ROUND.md": round_page(the_round),
        DOCS / "round.svg": round_picture(the_round),
        DOCS / "EVENTS.md": events_page(inspect.getsource(names)),
        DOCS / "SETTINGS.md": settings_page(inspect.getsource(settings)),
    }


def quotes(page: str, spec: str) -> list[str]:
    """Return one line for each invariant that INTERLOCK.md does not quote as SPEC has it."""

    def plain(text: str) -> str:
        return re.sub(r"\s+", " ", text.replace(">", " ")).strip()

    block = re.findall(r"^- (\*\*I\d\*\* .*(?:\n  .*)*)", spec, re.M)
    return [
        f"firmware/docs/INTERLOCK.md: does not quote {text[:6]} as SPEC has it"
        for text in block
        if plain(text) not in plain(page)
    ]
