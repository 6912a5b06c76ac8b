"""Memory of the whole application on a MicroPython interpreter: after start, and what is live in a round.

Run on MicroPython, in an empty folder and with the cross-compiled firmware in the path: on the unix port by
run(), and, for the 32-bit words of an ESP32, on the WebAssembly port by heap.mjs. That one collects only
between calls from outside, so what is measured is cut into STAGES, with look() after each. Prints the bytes
that are live, those of the fakes taken off.
"""

import gc
import os

import micropython

import world as worlds
from host import Host

_DATA = "data"
WORLD = worlds.World()
WORLD.install()
place = {}


def begin():
    """Make the folder the journal lies in."""
    os.mkdir(_DATA)
    with open(_DATA + "/settings.json", "w") as f:
        f.write('{"table":"bench","key":"%s"}' % ("00" * 32))


def modules():
    """Import the firmware."""
    from shaker import app
    from shaker import board as hardware
    from shaker.files import Files

    hardware.mount_data = lambda: (_DATA, 7)
    hardware.Board.random = lambda self, n: WORLD.urandom(n)
    place["make"] = lambda: app.App(Files("."))


def start():
    """Start the application."""
    app = place.pop("make")()
    app.core.begin(app.board.ticks())
    place["app"] = app


def _run(ms, until=None):
    app = place["app"]
    for _ in range(ms // 5):
        WORLD.advance(5)
        app.step()
        if until is not None and app.core.state.phase == until:
            return


def _put(ms, **inputs):
    for name, value in inputs.items():
        WORLD.set(name, value)
    _run(ms)


def cover():
    """Come to rest, cover the cup."""
    _run(2000)
    _put(300, cover="on", latch_a="closed", latch_b="closed")


def shake():
    """Begin the shake, into its first pulse."""
    _put(100, start="pressed")
    _put(650, start="released")


def bets():
    """Come to betting."""
    _run(6000, 3)


def bell():
    """Close betting, lift the cover, tell the dice."""
    _put(100, bell="pressed")
    _put(700, bell="released")
    _put(800, latch_a="open", latch_b="open", cover="off")
    place["app"].device.command("result", (1, 4, 6))
    _run(200)


def pay():
    """Pay."""
    _put(1000, paid="pressed")
    _put(800, paid="released")
    state = place["app"].core.state
    print("ended", state.phase, state.round)


def talk():
    """Ask everything a host can ask, and take every event once more."""
    host = Host(None, WORLD.line)
    for name, arguments in (
        ("status", {}),
        ("rounds", {"n": 1}),
        ("counts", {}),
        ("settings", {}),
        ("replay", {"from": 1}),
        ("verify", {"nonce": "a1b2c3d4e5f60718"}),
    ):
        host.command(name, **arguments)
        while host.last_reply is None:
            WORLD.advance(5)
            place["app"].step()
            host.step(WORLD.now)
        print("ended", name, host.last_reply)


STAGES = (begin, modules, start, cover, shake, bets, bell, pay, talk)


def look(name):
    """Print what is live after a stage, and what of it names take."""
    print(name, gc.mem_alloc())
    micropython.qstr_info()


def run():
    """Go through all stages, where collecting is possible at any time."""
    for stage in STAGES:
        stage()
        gc.collect()
        look(stage.__name__)
