"""The same eight inputs, debounced at the same reaction time by what people use: one turn = each polled once.

Runs on MicroPython under valgrind (counting.py), with the packages of requirements.txt in its path. A pin is
a builtin function that returns its level; nothing is pressed, so this is what a peer costs at rest.
"""

import asyncio
import io
import sys

import marks

INPUTS = 8
POLL_MS = 5
SETTLE_MS = 20


def pin():
    """Return a pin: a builtin function that returns 0."""
    return io.BytesIO().tell


class Turns:
    """Counts how often all inputs have been polled."""

    def __init__(self):
        self.polls = 0

    async def until(self, turns):
        """Let the other tasks run until every input has been polled so often."""
        while self.polls < turns * INPUTS:
            await asyncio.sleep_ms(POLL_MS)


class Switch:
    """A switch as one writes it: a task that polls, waits until the level has lasted, and calls back."""

    def __init__(self, level, turns):
        self.level = level
        self.turns = turns
        self.closed = bool(level())
        self.on_close = None
        self.on_open = None
        self.task = asyncio.create_task(self.watch())

    async def watch(self):
        """Poll for ever."""
        changed_for = 0
        while True:
            self.turns.polls += 1
            now = bool(self.level())
            if now == self.closed:
                changed_for = 0
            else:
                changed_for += POLL_MS
                if changed_for >= SETTLE_MS:
                    self.closed = now
                    changed_for = 0
                    act = self.on_close if now else self.on_open
                    if act:
                        act()
            await asyncio.sleep_ms(POLL_MS)


async def plain(count):
    """Plain asyncio, written for this comparison."""
    turns = Turns()
    for _ in range(INPUTS):
        Switch(pin(), turns)
    await turns.until(20)
    await count(turns)


async def debouncer(count):
    """adafruit_debouncer, each in a task of its own."""
    from adafruit_debouncer import Debouncer

    turns = Turns()

    async def watch():
        contact = Debouncer(pin(), interval=SETTLE_MS / 1000)
        while True:
            turns.polls += 1
            contact.update()
            if contact.rose or contact.fell:
                raise ValueError("nothing is pressed")
            await asyncio.sleep_ms(POLL_MS)

    tasks = [asyncio.create_task(watch()) for _ in range(INPUTS)]
    await turns.until(20)
    await count(turns)
    return tasks


class Module:
    """A module of CircuitPython that has no counterpart here."""

    Pin = object


class Keys:
    """CircuitPython's key scanner, which debounces in C: at rest, with no event."""

    def __init__(self, pins, value_when_pressed, pull, interval):
        self.events = self
        self.get_into = {}.get  # returns None


class Event:
    """What get_into() fills."""

    def __init__(self, number, pressed):
        self.pressed = pressed


async def button(count):
    """async_button.Button, polling as often as the scan does."""
    keypad = Module()
    keypad.Keys = Keys
    keypad.Event = Event
    modules: dict = sys.modules
    for name in ("digitalio", "microcontroller", "countio"):
        modules[name] = Module()
    modules["keypad"] = keypad
    from async_button import Button

    turns = Turns()

    class Counted(Button):
        """A Button that counts its polls, in the call that it makes anyway."""

        def __init__(self):
            super().__init__(None, False, interval=POLL_MS / 1000, long_click_enable=True)
            self.keys.get_into = self.look

        def look(self, event):
            turns.polls += 1

    buttons = [Counted() for _ in range(INPUTS)]
    await turns.until(20)
    await count(turns)
    return buttons


def measure(name, run):
    """Count what one turn of a peer costs."""

    async def count(turns):
        for kind, n in (("few", 40), ("many", 120)):
            begun = turns.polls
            marks.begin_one()
            await turns.until(begun // INPUTS + n)
            marks.end_one()
            print("MARK %s %s %d" % (name, kind, (turns.polls - begun) // INPUTS))

    asyncio.run(run(count))
    asyncio.new_event_loop()


marks.begin()
for name, run in (
    ("asyncio, plain", plain),
    ("adafruit-circuitpython-debouncer in asyncio", debouncer),
    ("circuitpython-async-button", button),
):
    measure(name, run)
