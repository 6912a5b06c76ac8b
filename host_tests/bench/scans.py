"""Scans of the firmware between marks: the core on its board in every phase, and the whole application.

Runs on MicroPython under valgrind (counting.py). The registers are a dict, the peripherals cost a call and do
nothing, the clock and the UART are builtin functions: what is counted is the firmware.
"""

import io
from collections import OrderedDict

import marks
import world as worlds

WORLD = worlds.World()
WORLD.install()

OPEN = 0x2A  # contact words: latches open, dome closed
CLOSED = 0x35  # latches closed, cover on, dome closed
_IN = 0x3FF4403C
_IN1 = 0x3FF44040
_SELECT = 0x3FF44530
_REST = 0x100


class Registers:
    """The GPIO registers, and the inputs in them.

    An ordered dict is searched from its beginning. A hashed one costs a scan up to 2,500 instructions more or
    less, by luck: the interpreter remembers in 128 places where it found a key, and names share them.
    """

    def __init__(self, contacts, outputs):
        self.mem = OrderedDict()
        for address in (_IN, _IN1, 0x3FF44004):
            self.mem[address] = 0
        for pin in outputs:
            self.mem[_SELECT + 4 * pin] = _REST
        for address in (0x3FF4400C, 0x3FF44024):
            self.mem[address] = 0
        self._pins = contacts
        self.contacts(OPEN)

    def contacts(self, word):
        """Let the contacts be made that `word` says."""
        levels = 0
        for i, pin in enumerate(self._pins):
            if not word >> i & 1:
                levels |= 1 << pin
        self.mem[_IN] = levels & 0x0FFFFFFF
        self.mem[_IN1] = levels >> 32


class Silent:
    """An RMT, PWM or pin that does nothing; as on a board, its methods are builtin functions."""

    value = io.BytesIO().tell
    write_pulses = {}.get
    duty_u16 = io.BytesIO().seek


class Table:
    """A core on a board, scanned as app.py does; `press` and the like change its contacts."""

    def __init__(self):
        from shaker import board as hardware
        from shaker import names, pins
        from shaker.core import Core
        from shaker.events import Queue
        from shaker.settings import Settings
        from shaker.state import State

        self.names = names
        self.registers = Registers(pins.CONTACTS, pins.OUTPUTS)
        hardware.mem32 = self.registers.mem
        settings = Settings()
        self.queue = Queue()
        self.core = Core(settings, State(), self.queue, bool)
        self.core.round._room = lambda: True
        board = hardware.Board(settings)
        board._rmt = Silent()
        board._bolts = [Silent(), Silent(), Silent()]
        board._outputs = [Silent() for _ in pins.OUTPUTS]
        self.now = 1000
        self.core.begin(self.now)
        self._write = board.write
        self._turn = self.core.turns(board.read, board.write).send
        self._turn(None)
        self.word = OPEN
        self.noise = 0  # a contact (mask) that is at another level in every second scan
        self.odd = False

    def _plant(self):
        self.now += 5
        word = self.word
        if self.core.outputs & self.names.DRIVE == self.names.DRIVE:
            word |= self.names.MOTION
        self.odd = not self.odd
        if self.odd:
            word ^= self.noise
        self.registers.contacts(word)

    def scan(self):
        """One scan."""
        if self._turn(self.now):
            self._write(self.core.outputs, self.core.driving)

    def scans(self, n):
        """So many scans with nothing changing: this is what is counted for one phase."""
        turn = self._turn
        write = self._write
        core = self.core
        now = self.now
        for _ in range(n):
            now += 5
            if turn(now):
                write(core.outputs, core.driving)
        self.now = now

    def run(self, n):
        """So many scans, uncounted; their events are forgotten."""
        for _ in range(n):
            self._plant()
            self.scan()
            self.queue.drop(self.queue.count)

    def until(self, phase):
        """Scan, uncounted, until the phase has come."""
        while self.core.state.phase != phase:
            self.run(1)

    def counted(self, n, what):
        """So many scans, each counted by itself and labelled by what it did."""
        core = self.core
        names = self.names
        turn = self._turn
        write = self._write
        for _ in range(n):
            self._plant()
            phase = core.state.phase
            outputs = core.outputs
            now = self.now
            marks.begin_one()
            if turn(now):
                write(core.outputs, core.driving)
            marks.end_one()
            said = [names.EVENTS[self.queue.buf[self.queue.slot(i) + 1]] for i in range(self.queue.count)]
            self.queue.drop(self.queue.count)
            did = "+".join(said) or ("outputs" if outputs != core.outputs else "-")
            marks.label("scan %s %s %s" % (what, names.PHASES[phase], did))

    # -- What people do -----------------------------------------------------------------------------

    def cover(self):
        """Seat the cover and close the latches."""
        self.word = CLOSED

    def press(self, key):
        """Press a key (contact's mask); 0 releases all."""
        self.word = self.word & ~self.names.KEYS | key

    def lift(self):
        """Open the latches and take the cover off."""
        self.word = OPEN


def phases():
    """Count a scan in every phase, at rest."""
    table = Table()
    names = table.names
    table.run(400)
    marks.per_turn("IDLE", table.scans, 50, 150)
    table.cover()
    table.run(100)
    marks.per_turn("COVERED", table.scans, 50, 150)
    table.press(names.START)
    table.run(30)
    marks.per_turn("SHAKING, lock travelling", table.scans, 20, 60)
    table.press(0)
    while not table.core.agitator.drive:
        table.run(1)
    table.run(5)
    table.registers.contacts(table.word | names.MOTION)
    marks.per_turn("SHAKING, in a pulse", table.scans, 10, 30)
    while table.core.agitator.drive:
        table.run(1)
    table.run(10)
    marks.per_turn("SHAKING, between pulses", table.scans, 10, 40)
    table.until(names.BETTING)
    table.run(150)
    marks.per_turn("BETTING", table.scans, 50, 150)
    table.press(names.BELL)
    table.run(150)
    marks.per_turn("CLOSED, key held", table.scans, 50, 150)
    table.press(0)
    table.run(10)
    marks.per_turn("CLOSED", table.scans, 50, 150)
    table.lift()
    table.run(200)
    marks.per_turn("PAYOUT", table.scans, 50, 150)
    table.press(names.VOID_KEY)
    table.run(50)
    table.press(0)
    table.run(200)
    marks.per_turn("VOID", table.scans, 50, 150)
    table.word &= ~names.DOME
    table.run(100)
    marks.per_turn("FAULT", table.scans, 50, 150)


def whole_round(what, noise):
    """Count each scan in which something happens, over a round with every transition."""
    table = Table()
    names = table.names
    table.run(400)
    table.noise = noise
    table.cover()
    table.counted(10, what)
    table.run(150)
    table.press(names.START)
    table.counted(8, what)
    table.press(0)
    table.counted(8, what)
    table.run(90)
    while table.core.state.phase == names.SHAKING:
        agitator = table.core.agitator
        left = agitator._edge - table.now
        if 10 < left < agitator._settle_ms and left < 240:
            table.run(left // 5 - 1)
        table.counted(3, what)
    table.counted(3, what)
    table.run(150)
    table.press(names.BELL)
    table.counted(8, what)
    table.press(0)
    table.counted(8, what)
    table.run(150)
    table.lift()
    table.counted(10, what)
    table.run(150)
    table.press(names.VOID_KEY)
    table.counted(8, what)
    table.press(0)
    table.run(150)
    table.cover()
    table.counted(10, what)
    table.run(100)
    table.press(names.START)
    table.counted(8, what)
    table.press(0)
    table.until(names.BETTING)
    table.run(100)
    table.press(names.BELL)
    table.run(20)
    table.press(0)
    table.lift()
    table.run(150)
    table.press(names.PAID)
    table.counted(8, what)
    table.run(150)
    table.counted(10, what)
    table.press(0)
    table.run(150)
    # A shake that is opened, and the supervisor's key.
    table.cover()
    table.run(150)
    table.press(names.START)
    table.run(10)
    table.press(0)
    table.run(130)
    table.word &= ~0x01
    table.counted(4, what)
    table.lift()
    table.run(150)
    table.word |= names.SERVICE
    table.counted(8, what)
    table.run(20)
    table.word &= ~names.SERVICE
    table.counted(8, what)


class Uart:
    """A UART with `waiting` bytes of `text`, said again and again; `rate` of them come with each scan."""

    def __init__(self, text):
        self.text = text
        self.at = 0
        self.waiting = 0

    def any(self):
        """Return how many bytes wait."""
        return self.waiting

    def readinto(self, buf, n):
        """Read up to n bytes."""
        n = min(n, self.waiting)
        self.waiting -= n
        for i in range(n):
            buf[i] = self.text[self.at]
            self.at = (self.at + 1) % len(self.text)
        return n

    def write(self, buf, off, n):
        """Take n bytes."""
        return n


class Clock:
    """ticks_ms() as a builtin function, told where to be."""

    def __init__(self):
        self._at = io.BytesIO()
        self.ticks_ms = self._at.tell
        self.seek = self._at.seek


def application():
    """Count app.step() as a whole: nobody on the line, and a line that is full."""
    import host
    from storage import Storage
    from table import settings_text

    storage = Storage(WORLD, 256, 256)
    storage.provision("settings.json", settings_text({}))
    storage.mount()
    from shaker import app as application
    from shaker import board as hardware
    from shaker import pins
    from shaker.files import Files

    registers = Registers(pins.CONTACTS, pins.OUTPUTS)
    clock = Clock()
    hardware.mem32 = registers.mem
    hardware.time = clock
    app = application.App(Files("."))
    app.board._rmt = Silent()
    app.board._bolts = [Silent(), Silent(), Silent()]
    quiet = Uart(b"$")
    quiet.any = io.BytesIO().tell  # returns 0
    app.link._uart = quiet
    now = 1000
    clock.seek(now)
    app.core.begin(app.board.ticks())

    def steps(n):
        nonlocal now
        seek = clock.seek
        step = app.step
        for _ in range(n):
            now += 5
            seek(now)
            step()

    def loaded(n):
        nonlocal now
        for _ in range(n):
            now += 5
            clock.seek(now)
            busy.waiting += 57
            app.step()

    steps(1000)
    marks.per_turn("app, nobody on the line", steps, 200, 600)
    busy = Uart(host.encode(1, "status", {}))
    app.link._uart = busy
    loaded(400)
    marks.per_turn("app, line full", loaded, 100, 300)


marks.begin()
for _ in range(3):  # what marking itself costs
    marks.begin_one()
    marks.end_one()
    marks.label("marking alone")
phases()
whole_round("calm", 0)
whole_round("bouncing", 0x80)  # the contact of a key that nobody waits for
application()
