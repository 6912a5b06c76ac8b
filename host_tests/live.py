"""The virtual table in real time: the firmware runs, people and programs act on its world over a socket.

`live.py PROGRAM PORT [SETTINGS.json]`, under MicroPython or CPython, connects to 127.0.0.1:PORT and speaks
JSON lines. To the world:
    {"set":{"cover":"on"}}                  physical inputs
    {"cut":"latch_a_no"} {"stick":"bell"} {"mend":1} {"bounce":MS}   contacts
    {"motor":"ok|dead|runaway|welded"} {"unpin":1}   motor; motion follows the base again
    {"power":"on|off"} {"restart":1}        power and reset
    {"uart":"hex"}                          bytes to the device
From the world: {"uart":"hex"}, what the device sent, and whenever something of it changed
    {"t":MS,"in":{name:value},"out":{name:value},"bolts":[lock,bar,dome 0-1000],"moving":bool,
     "lamps":[name],"status":[r,g,b],"powered":bool,"flash":operations}
Owns nothing of the game. Simulated time follows the wall clock and never runs ahead of it.
"""

import json
import socket
import sys

import world as worlds
from shaker import names
from table import Table

if sys.implementation.name == "micropython":
    import faketime

    wall_ms = faketime.real_ticks_ms
    nap_ms = faketime.real_sleep_ms
else:
    import time

    def wall_ms():
        """Milliseconds on the wall clock."""
        return time.monotonic_ns() // 1000000

    def nap_ms(ms):
        """Sleep."""
        time.sleep(ms / 1000)


SHOW_MS = 20  # what moves slowly (bolts, lamps) is shown at most this often; contacts and outputs at once


class Control:
    """The socket end: applies what arrives to `world`, shows what changed."""

    def __init__(self, world, port):
        self.world = world
        self._socket = socket.socket()
        self._socket.connect(socket.getaddrinfo("127.0.0.1", port)[0][-1])
        self._socket.setblocking(False)
        self._rx = b""
        self._shown = None
        self._shown_at = 0
        self._quick = None
        self.closed = False

    def poll(self):
        """Apply everything that has arrived. A reset or power cut of the device raises as in the fakes."""
        while True:
            try:
                data = self._socket.recv(4096)
            except OSError:
                break
            if not data:
                self.closed = True
                break
            self._rx += data
        while True:
            line, found, rest = self._rx.partition(b"\n")
            if not found:
                return
            self._rx = rest
            self.apply(json.loads(line))

    def apply(self, order):
        """Carry out one order."""
        world = self.world
        for name, value in order.get("set", {}).items():
            world.set(name, value)
        if "cut" in order:
            world.cut(order["cut"])
        if "stick" in order:
            world.stick(order["stick"])
        if "mend" in order:
            world.mend()
        if "unpin" in order:
            world.unpin_motion()
        if "motor" in order:
            world.set_motor(order["motor"])
        if "bounce" in order:
            world.bounce_ms = order["bounce"]
        if "uart" in order:
            text = order["uart"]
            world.line.to_device(bytes([int(text[i : i + 2], 16) for i in range(0, len(text), 2)]))
        if order.get("power") == "on" and not world.powered:
            world.power_on()
        if order.get("power") == "off" and world.powered:
            world.power_off()
            raise worlds.PowerCut()
        if "restart" in order and world.powered:
            world.reset("reset")

    def show(self, flash_writes=0):
        """Send the line's bytes, and the world when it changed."""
        world = self.world
        sent = world.line.from_device()
        if sent:
            self._send({"uart": "".join("%02x" % b for b in sent)})
        quick = (world.contacts, world.outputs, world.moving)
        if quick == self._quick and world.now - self._shown_at < SHOW_MS:
            return
        self._quick = quick
        self._shown_at = world.now
        seen = {
            "in": {name: world.value(name) for name in names.INPUTS},
            "out": {name: world.output(name) for name in names.OUTPUTS},
            "bolts": [world.bolt(name) for name in ("cover_lock", "cover_bar", "dome_lock")],
            "moving": bool(world.moving),
            "lamps": world.lamps(),
            "status": list(world.status()),
            "powered": bool(world.powered),
            "flash": flash_writes,
        }
        if seen != self._shown:
            self._shown = seen
            seen = dict(seen)
            seen["t"] = world.now
            self._send(seen)

    def _send(self, thing):
        data = (json.dumps(thing) + "\n").encode()
        self._socket.setblocking(True)
        self._socket.write(data) if hasattr(self._socket, "write") else self._socket.sendall(data)
        self._socket.setblocking(False)


class LiveTable(Table):
    """A Table whose time is the wall clock's and whose people act through `control`."""

    def __init__(self, program, port, options=None):
        Table.__init__(self, program, options)
        self.host.absent = True  # the real host is at the other end of the socket
        self.control = Control(self.world, port)
        self._wall = wall_ms()

    def sleep(self, ms):
        """Let `ms` pass in the firmware, not before they have passed on the wall."""
        self.pass_time(ms)

    def pass_time(self, ms):
        """Advance the world by `ms` with the wall clock."""
        world = self.world
        self._wall += ms
        behind = wall_ms() - self._wall
        if behind > 100:  # the machine was busy: do not race after it
            self._wall += behind
            behind = 0
        if behind < 0:
            nap_ms(-behind)
        world.advance(ms)
        self.control.poll()
        if self.control.closed:
            self.finished = True
            world.power_off()
            raise worlds.PowerCut()
        self.control.show(self.storage.chip.operations)


def main(program, port, settings=None):
    """Run a table until the other end closes."""
    table = LiveTable(program, port)
    if settings:
        with open(settings) as f:
            table.storage.provision("settings.json", f.read())
    table.run()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:4])
