"""`shakerctl monitor`: what a shaker sees and does, live, from heartbeat and events. Never acknowledges."""

from __future__ import annotations

import contextlib
import json
import time
from collections import deque
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table

from shakerctl import line, protocol
from shakerctl.firmware import names
from shakerctl.trouble import Trouble
from shakerctl.voice import hush

EVENTS_SHOWN = 12
OLD_S = 3.0  # a heartbeat older than this is no present state


def inputs_of(mask: int) -> dict[str, str]:
    """Return {input: value} of a heartbeat's `in`."""
    found = {}
    for i, name in enumerate(names.INPUTS):
        number = mask >> (2 * i) & 3 if i < 2 else mask >> (i + 2) & 1
        values = names.INPUT_VALUES[name]
        found[name] = values[number] if number < len(values) else "?"
    return found


def outputs_of(mask: int) -> dict[str, str]:
    """Return {output: on/off} of a heartbeat's `out`."""
    return {name: "on" if mask >> i & 1 else "off" for i, name in enumerate(names.OUTPUTS)}


def lamps_of(mask: int) -> list[str]:
    """Return the lit lamps of a heartbeat's `lamps`."""
    return [name for i, name in enumerate(names.LAMPS) if mask >> i & 1]


def state_of(beat: dict[str, Any]) -> dict[str, Any]:
    """Return a heartbeat in words."""
    return {
        "phase": beat["ph"],
        "round": beat["rd"],
        "repeat": beat["rep"],
        "fault": beat["flt"] or "none",
        "seq": beat["seq"],
        "acknowledged": beat["ack"],
        "inputs": inputs_of(int(beat["in"], 16)),
        "outputs": outputs_of(int(beat["out"], 16)),
        "lamps": lamps_of(int(beat["lamps"], 16)),
    }


def event_line(event: dict[str, Any]) -> str:
    """Return an event in one line."""
    common = ("seq", "boot", "t", "at", "ev", "ph", "rd", "rep")
    rest = " ".join(f"{name}={json.dumps(value)}" for name, value in event.items() if name not in common)
    return f"{event['seq']:>6} {event['t'] / 1000:>9.3f}s {event['ph']:<8} {event['ev']} {rest}".rstrip()


def picture(port: str, beat: dict[str, Any] | None, age: float, events: deque[str]) -> Group:
    """Return the screen."""
    if beat is None:
        return Group(f"waiting for the shaker on {port} … (Ctrl-C ends)")
    state = state_of(beat)
    head = f"{state['phase']}  round {state['round']}  repeat {state['repeat']}  fault {state['fault']}"
    if age > OLD_S:
        head += f"  - silent for {age:.0f} s"
    table = Table(box=None, pad_edge=False, show_header=False)
    ins = [f"{name:<9}{value}" for name, value in state["inputs"].items()]
    outs = [f"{name:<16}{value}" for name, value in state["outputs"].items()]
    for i in range(max(len(ins), len(outs))):
        table.add_row(ins[i] if i < len(ins) else "", outs[i] if i < len(outs) else "")
    lamps = "lamps: " + (" ".join(state["lamps"]) or "none")
    return Group(Panel(head), table, lamps, Panel("\n".join(events) or "no events yet", title="events"))


def monitor(port: str, seconds: float | None, plain: bool, as_json: bool) -> int:
    """Show the shaker until interrupted, or for `seconds`."""
    events: deque[str] = deque(maxlen=EVENTS_SHOWN)
    seen: set[tuple[int, int]] = set()
    early: list[dict[str, Any]] = []  # events that came before the shaker said which is its newest
    first: int | None = None  # number of the first event to show
    last_head = ""

    def tell(event: dict[str, Any]) -> None:
        if event["seq"] < (first or 0) or (event["boot"], event["seq"]) in seen:
            return  # old, or said again because nobody here acknowledges
        seen.add((event["boot"], event["seq"]))
        events.append(event_line(event))
        if as_json:
            print(json.dumps(event), flush=True)
        elif plain:
            print(events[-1], flush=True)

    def heard(message: dict[str, Any]) -> None:
        nonlocal last_head
        kind = protocol.kind(message)
        if kind == "event" and first is None:
            early.append(message)
        elif kind == "event":
            tell(message)
        elif kind == "heartbeat" and as_json:
            print(json.dumps(state_of(message)), flush=True)
        elif kind == "heartbeat" and plain:
            state = state_of(message)
            head = f"{state['phase']} round {state['round']} fault {state['fault']} " + " ".join(
                f"{name}={value}" for part in ("inputs", "outputs") for name, value in state[part].items()
            )
            if head != last_head:
                last_head = head
                print(head, flush=True)

    end = None if seconds is None else time.monotonic() + seconds

    def go(link: protocol.Client, show: Any) -> None:
        nonlocal first
        shown = 0.0
        began = time.monotonic()
        while end is None or time.monotonic() < end:
            link.pump()
            if first is None and (link.session or time.monotonic() - began > OLD_S):
                # Who is not answered can still listen.
                first = int((link.session or {}).get("last", 0)) - EVENTS_SHOWN + 1
                link.receiver.skip(first)
                for event in sorted(early, key=lambda event: event["seq"]):
                    tell(event)
            if show and time.monotonic() - shown > 0.1:
                shown = time.monotonic()
                show(picture(port, link.heartbeat, shown - (link.heard_at or shown), events))

    with line.client(port, on_message=heard) as link:
        try:
            line.wait_for(link, port, lambda: link.heard_at is not None)
            with contextlib.suppress(KeyboardInterrupt):
                if plain or as_json:
                    go(link, None)
                else:
                    with Live(console=Console(), refresh_per_second=10) as live:
                        go(link, live.update)
        except OSError as error:
            hush()
            if not isinstance(error, BrokenPipeError):  # else who reads has had enough
                raise Trouble(f"The output cannot be written ({error.strerror}).") from None
    return 0
