r"""The chip of the virtual board: what MicroPython's ESP32 port does from reset to REPL, on the unix port.

`micropython virtualchip.py PORT OPTIONS` (options: see virtualboard.py, which starts it) has the USB port's
bytes on standard input and output and the table's control socket (live.py's protocol) at 127.0.0.1:PORT.
Owns the boot sequence, the REPL (friendly, raw, raw-paste), the file system `/` on a flash chip of its own,
and what makes the rest of this interpreter look like the board's; the hardware is the fakes'. The fakes are
imported before `/` becomes the device's, so nothing of the host can be seen from it.

A product image is the option `frozen`: a ROMFS image of what is frozen into it, mounted at /.frozen-image;
the program reads ".frozen" for that, in sys.path and in the package's __path__.

Unlike the real port: that mount is seen in `/`, no NVS, no Wi-Fi, print() ends lines with \\n alone, and
Ctrl-C is noticed where the program sleeps or reads the clock.
"""

import builtins
import gc
import json
import select
import sys

import vfs

import faketime
import live
import world as worlds
from flash import Flash
from power import PowerCut

_STDIN_MAX = 256  # bytes the port keeps for a program that does not read them
_WINDOW = 1024  # of raw paste
_SPINS = 40  # readings of the clock without a sleep that let 1 ms pass
_IDLE_MS = 5
_OPEN_FILES = 16
_IMAGE = "/.frozen-image"
_PORTS_BOOT = "# the port puts a file such as this one into each file system it makes\n"
_BANNER = 'MicroPython v%d.%d.%d on 2025-08-09; %s\r\nType "help()" for more information.\r\n'
_ROM = "ets Jul 29 2019 12:21:46\r\n\r\nrst:0x%x,boot:0x13 (SPI_FAST_FLASH_BOOT)\r\n"

real_open = builtins.open
real_import = builtins.__import__
_MODULES = {}


class SoftReset(BaseException):
    """The interpreter is to start again; the hardware stays as it is."""


class LiveWorld(worlds.World):
    """A world for programs that wait by reading the clock: they, too, let time pass."""

    def __init__(self):
        self.supply_welded = False  # Q2: what AGITATOR_ENABLE switches is on for ever
        worlds.World.__init__(self)
        self._spins = 0

    def pin_level(self, pin):
        """As World.pin_level()."""
        if pin == worlds.pins.AGITATOR_ENABLE and self.supply_welded:
            return 1
        return worlds.World.pin_level(self, pin)

    def ticks_ms(self):
        """As World.ticks_ms()."""
        self._spins += 1
        if self._spins > _SPINS and self.on_sleep:
            self._spins = 0
            self.on_sleep(1)
        return worlds.World.ticks_ms(self)

    def advance(self, ms):
        """As World.advance()."""
        self._spins = 0
        worlds.World.advance(self, ms)


class LoggedFlash(Flash):
    """A chip that writes down each program and erase as a line `p|e block offset hex` in `log`."""

    log = None

    def _program(self, block, buf, offset):
        Flash._program(self, block, buf, offset)
        if self.log:
            self.log.write("p %d %d %s\n" % (block, offset, bytes(buf).hex()))

    def _erase(self, block):
        Flash._erase(self, block)
        if self.log:
            self.log.write("e %d 0 \n" % block)


class Wire:
    """One mount's way to a chip; once `live` is False nothing passes."""

    def __init__(self, chip):
        self.chip = chip
        self.live = True

    def readblocks(self, block, buf, offset=0):
        """As Flash."""
        return self.chip.readblocks(block, buf, offset) if self.live else -5

    def writeblocks(self, block, buf, offset=None):
        """As Flash."""
        return self.chip.writeblocks(block, buf, offset) if self.live else -5

    def ioctl(self, op, arg):
        """As Flash."""
        if op in (4, 5):
            return self.chip.ioctl(op, arg)
        if op == 6:
            return self.chip.ioctl(op, arg) if self.live else -5
        return 0


class Control(live.Control):
    """The table's control, with what only a board with a USB port has."""

    def __init__(self, board, port):
        live.Control.__init__(self, board.world, port)
        self.board = board

    def apply(self, order):
        """Carry out one order: live.py's, or swap (two contacts' wires), q2_welded, root_cut, root_fail (the
        n-th flash operation of `/` cuts the power or fails), cut_main (from now on no main.py runs).
        """
        world = self.world
        if "swap" in order:
            wires = list(world._contact_pins)
            a, b = [live.names.CONTACTS.index(name) for name in order["swap"]]
            wires[a], wires[b] = wires[b], wires[a]
            world._contact_pins = tuple(wires)
            world._wires()
        if "q2_welded" in order:
            world.supply_welded = True
        if order.get("power") == "on":
            self.board.usb.forget()
        if "cut_main" in order:
            self.board.cut_main = True
        if "root_cut" in order:
            self.board.root.cut_at(order["root_cut"])
        if "root_fail" in order:
            self.board.root.fail_at(order["root_fail"])
        try:
            live.Control.apply(self, order)
        finally:
            if "sync" in order:
                self._shown_at = world.now - live.SHOW_MS
                self.show(self.board.root.operations)
                self._send({"sync": order["sync"], "now": world.now})

    def tell(self, thing):
        """Say something to the board's owner."""
        self._send(thing)


class Usb:
    """The bytes of the USB port. `leave` is called when the process at its other end has gone."""

    def __init__(self, leave):
        self._leave = leave
        self._poll = select.poll()
        self._poll.register(sys.stdin, select.POLLIN)
        self._in = sys.stdin.buffer
        self.waiting = bytearray()
        self.interrupts = False  # a program runs: Ctrl-C is KeyboardInterrupt

    def pump(self, wait_ms=0):
        """Take what has come."""
        if not self._poll.poll(wait_ms):
            return
        data = self._in.read(4096)
        if data is None:
            return
        if not data:
            self._leave()
        if self.interrupts:
            at = data.rfind(b"\x03")
            if at >= 0:
                self.waiting = bytearray(data[at + 1 :])
                raise KeyboardInterrupt()
            data = data[: max(_STDIN_MAX - len(self.waiting), 0)]
        self.waiting.extend(data)

    def forget(self):
        """Lose what has come."""
        self.pump()
        self.waiting = bytearray()

    def get(self):
        """Return the next byte as an int, or -1."""
        if not self.waiting:
            return -1
        byte = self.waiting[0]
        self.waiting = self.waiting[1:]
        return byte

    def put(self, text):
        """Send text."""
        sys.stdout.write(text)


class Implementation:
    """sys.implementation of the image that the board pretends to run."""

    def __init__(self, version, name):
        self.name = "micropython"
        self.version = (version[0], version[1], version[2], "")
        self._machine = name
        self._mpy = sys.implementation._mpy


class FrozenPath:
    """The list sys.path of a product image."""

    def __getitem__(self, at):
        return [".frozen" if place == _IMAGE else place for place in sys.path][at]

    def __setitem__(self, at, value):
        path = self[:]
        path[at] = value
        sys.path[:] = [_IMAGE if place == ".frozen" else place for place in path]

    def insert(self, at, place):
        """As list.insert()."""
        self[at:at] = [place]


class FrozenPackage:
    """What a statement `import package` sees of a frozen one."""

    def __init__(self, module):
        self._module = module
        self.__path__ = ".frozen" + module.__path__[len(_IMAGE) :]

    def __getattr__(self, name):
        return getattr(self._module, name)


def import_frozen(name, *more):
    """The built-in __import__ of a product image; `more`: globals, locals, names to import from it, level."""
    module = real_import(name, *more)
    if (len(more) < 3 or not more[2]) and getattr(module, "__path__", "").startswith(_IMAGE):
        return FrozenPackage(module)
    return module


class FakeSys:
    """The module sys of that image; what it does not say is this interpreter's."""

    def __init__(self, platform, implementation, frozen):
        self.platform = platform
        self.implementation = implementation
        if frozen:
            self.path = FrozenPath()

    def __getattr__(self, name):
        return getattr(sys, name)


class TargetWiring:
    """The module target_wiring of a loopback jig (see tools/README.md): here the table itself is the jig."""

    def __init__(self, world):
        self._world = world

    def set_input(self, name, value):
        """Put an input where names.INPUT_VALUES says."""
        self._world.set(name, value)

    def release(self):
        """Let the motion sensor follow the base."""
        self._world.unpin_motion()

    def output(self, name):
        """Return True when the jig sees output `name` on."""
        return self._world.output(name) == "on"


class Board:
    """The board, from power-on to power-off."""

    def __init__(self, port, options):
        self.world = LiveWorld()
        self.usb = Usb(self.leave)
        self._leaving = False
        self.root = LoggedFlash(options["blocks"])
        self.root.world = self.world
        self.data = Flash(options["data"]) if options["data"] else None
        self._image = None
        if options["image"]:
            self._image = real_open(options["image"], "r+b")
            for chip in (self.root, self.data):
                if chip:
                    self._image.readinto(chip.data)
        if options["log"]:
            self.root.log = real_open(options["log"], "w")
        self.options = options
        self.raw = False  # the raw REPL is the one in use
        self.cut_main = False
        self._wires = []
        self._opened = [None] * _OPEN_FILES
        self._next = 0
        self._place = {}
        self.control = Control(self, port)
        self._wall = live.wall_ms()
        self._rate = options["rate"]
        self.world.on_sleep = self.sleep
        worlds.install(self.world)
        builtins.open = self.open
        faketime.ticks_us = self.ticks_us
        faketime.sleep = self.sleep_s
        implementation = Implementation(options["version"], options["machine"])
        self._banner = _BANNER % (tuple(options["version"]) + (options["machine"],))
        modules = sys.modules  # type: dict
        self._frozen = None
        if options["frozen"]:
            with real_open(options["frozen"], "rb") as file:
                self._frozen = vfs.VfsRom(file.read())
        modules["sys"] = FakeSys(options["platform"], implementation, self._frozen)
        modules["target_wiring"] = TargetWiring(self.world)
        for name in list(sys.modules):
            if name == "shaker" or name.startswith("shaker."):
                del sys.modules[name]  # the fakes keep theirs; the device has its own
        for name in sys.modules:
            _MODULES[name] = True
        vfs.umount("/")

    def open(self, *args):
        """The built-in open, remembered: no finaliser may find a file of a mount that is gone."""
        file = real_open(*args)
        self._opened[self._next] = file
        self._next = (self._next + 1) % _OPEN_FILES
        return file

    # -- Time --------------------------------------------------------------------------------------------

    def sleep_s(self, s):
        """time.sleep()."""
        faketime.sleep_ms(int(s * 1000))

    def ticks_us(self):
        """time.ticks_us(), on the world's clock."""
        return faketime.ticks_ms() * 1000 & 0x3FFFFFFF

    def sleep(self, ms):
        """Let `ms` pass with the wall clock, and look after the port and the table."""
        while ms > 0:
            step = ms if ms < 20 else 20
            self._wall += step / self._rate
            behind = live.wall_ms() - self._wall
            if behind > 100:  # the machine was busy: do not race after it
                self._wall += behind
            elif behind < 0:
                live.nap_ms(int(-behind))
            self.world.advance(step)
            ms -= step
            self.tend()
        self.usb.pump()

    def tend(self):
        """Look after the table."""
        self.control.poll()
        if self.control.closed:
            self.leave()
        self.control.show(self.root.operations)

    def idle(self):
        """Wait a moment for a byte; the world goes on."""
        if not self.usb.waiting:
            self.usb.pump(_IDLE_MS)
        passed = live.wall_ms() - self._wall
        if passed >= 1:
            self._wall += passed
            self.world.advance(int(passed if passed < 100 else 100))
            self.tend()

    def leave(self):
        """End, as by a power cut: whatever runs must not notice."""
        self._leaving = True
        if self.world.powered:
            self.world.power_off()
        raise PowerCut()

    # -- Reset -------------------------------------------------------------------------------------------

    def begin(self):
        """Put the interpreter into the state after a reset."""
        for name in list(sys.modules):
            if name not in _MODULES:
                del sys.modules[name]
        sys.path[:] = ["", _IMAGE if self._frozen else ".frozen", "/lib"]
        worlds.install(self.world)
        self._place = {"__name__": "__main__"}
        gc.collect()
        if self.data:
            wire = Wire(self.data)
            self.data.world = self.world
            self.world.partitions["data"] = wire
            self._wires.append(wire)
        wire = Wire(self.root)
        self._wires.append(wire)
        blank = self.root.programs == 0 and self.root.data[:4] == b"\xff\xff\xff\xff"
        if blank:
            vfs.VfsLfs2.mkfs(wire)  # as the port does with a partition it finds so
        vfs.mount(vfs.VfsLfs2(wire), "/")
        __import__("os").chdir("/")
        if blank:
            with open("/boot.py", "w") as f:
                f.write(_PORTS_BOOT)
        if self._frozen:
            vfs.mount(self._frozen, _IMAGE)
            builtins.__import__ = import_frozen

    def end(self):
        """Drop every mount without writing."""
        for wire in self._wires:
            wire.live = False
        self._wires.clear()
        for file in self._opened:
            if file:
                try:
                    file.close()
                except OSError:
                    pass
        for i in range(_OPEN_FILES):
            self._opened[i] = None
        builtins.__import__ = real_import
        for place in ("/data", _IMAGE, "/"):
            try:
                vfs.umount(place)
            except OSError:
                pass  # nothing is mounted there

    def run(self):
        """Run until the other end goes."""
        while True:
            try:
                if not self.world.powered:
                    self.usb.waiting = bytearray()
                    self.idle()
                    continue
                self.begin()
                self.boot()
            except SoftReset:
                self.usb.put("MPY: soft reboot\r\n")
                try:
                    self.world.reset("soft-reset")
                except worlds.Restart:
                    self.world.restart()
            except worlds.Restart as why:
                if str(why) != "soft-reset":
                    self.usb.waiting = bytearray()
                    self.raw = False
                    self.control.tell({"reset": str(why)})
                    self.usb.put(_ROM % {"power-on": 1, "watchdog": 8}.get(str(why), 12))
                self.world.restart()
            except PowerCut:
                self.raw = False
                if self._leaving:
                    self.save()
                    return
            finally:
                self.usb.interrupts = False
                self.end()

    def save(self):
        """Keep what the chips hold for another run."""
        if self._image:
            self._image.seek(0)
            for chip in (self.root, self.data):
                if chip:
                    self._image.write(chip.data)
            self._image.close()
        if self.root.log:
            self.root.log.close()

    def boot(self):
        """boot.py, main.py, then the REPL, as the port's main task."""
        if self.script("boot.py") and not self.raw and not self.cut_main:
            self.script("main.py")
        while True:
            if self.raw:
                self.raw_repl()
            else:
                self.friendly_repl()

    def script(self, name):
        """Run what is frozen by this name, else the file of the root, if there is one."""
        try:
            with open((_IMAGE if self._frozen else "") + "/" + name) as f:
                text = f.read()
        except OSError:
            return True
        return self.execute(text, name)

    def execute(self, text, name, kind="exec", mark=""):
        """Run `text`; return False when it ended with an exception, which is printed after `mark`."""
        usb = self.usb
        try:
            usb.interrupts = True
            exec(compile(text, name, kind), self._place)
            usb.interrupts = False
            usb.put(mark)
            return True
        except SystemExit:
            raise SoftReset()
        except (Exception, KeyboardInterrupt) as error:
            usb.interrupts = False
            usb.put(mark)
            sys.print_exception(error)
            return False
        finally:
            usb.interrupts = False

    # -- REPL --------------------------------------------------------------------------------------------

    def byte(self):
        """Wait for a byte."""
        while True:
            byte = self.usb.get()
            if byte >= 0:
                return byte
            self.idle()

    def friendly_repl(self):
        """The REPL for people; returns when the raw one is wanted."""
        put = self.usb.put
        put(self._banner + ">>> ")
        line = ""
        while True:
            c = self.byte()
            if c == 1:
                self.raw = True
                put("\r\n")
                return
            if c == 2:
                put("\r\n" + self._banner + ">>> ")
                line = ""
            elif c == 3:
                put("\r\n>>> ")
                line = ""
            elif c == 4 and not line:
                put("\r\n")
                raise SoftReset()
            elif c == 13:
                put("\r\n")
                if line.strip():
                    self.execute(line, "<stdin>", "single")
                line = ""
                put(">>> ")
            elif c in (8, 127):
                if line:
                    line = line[:-1]
                    put("\b \b")
            elif c >= 32:
                line += chr(c)
                put(chr(c))

    def raw_repl(self):
        """The REPL for programs; returns when the friendly one is wanted."""
        put = self.usb.put
        prompt = "raw REPL; CTRL-B to exit\r\n>"
        put(prompt)
        line = bytearray()
        while True:
            c = self.byte()
            if c == 1:
                if line == b"\x05A":
                    line = self.paste()
                    self.run_raw(line)
                else:
                    put(prompt)
                line = bytearray()
            elif c == 2:
                self.raw = False
                put("\r\n")
                return
            elif c == 3:
                line = bytearray()
            elif c == 4:
                put("OK")
                if not line:
                    put("\r\n")
                    raise SoftReset()
                self.run_raw(line)
                line = bytearray()
            else:
                line.append(c)

    def paste(self):
        """Receive a program by raw paste."""
        put = self.usb.put
        put("R\x01" + chr(_WINDOW & 0xFF) + chr(_WINDOW >> 8) + "\x01")
        got = bytearray()
        room = _WINDOW
        while True:
            if not self.usb.waiting:
                self.idle()
                continue
            data = self.usb.waiting
            ends = [at for at in (data.find(b"\x04"), data.find(b"\x03")) if at >= 0]
            take = min(ends) if ends else len(data)
            got.extend(data[:take])
            room -= take
            while room <= 0:
                room += _WINDOW
                put("\x01")
            if ends:
                stopped = data[take] == 3
                self.usb.waiting = data[take + 1 :]
                put("\x04")
                return b"raise KeyboardInterrupt" if stopped else got
            self.usb.waiting = bytearray()

    def run_raw(self, program):
        """Run a program of the raw REPL."""
        self.execute(bytes(program), "<stdin>", "exec", "\x04")
        self.usb.put("\x04>")


if __name__ == "__main__":
    Board(int(sys.argv[1]), json.loads(sys.argv[2])).run()
