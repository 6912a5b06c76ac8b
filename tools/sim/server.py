"""Puts the table together and serves it: HTTP for what stands still, one WebSocket for what moves.

Loopback only. Every request must name this server as its Host, and a WebSocket must come from its own page
(Origin); so neither another page in the same browser nor a name that resolves to 127.0.0.1 can drive it.
Nothing can be changed but over the WebSocket.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import json
import logging
import pathlib
import time
from typing import Any

from aiohttp import WSMsgType, http_exceptions, web

from shaker import names
from shaker.version import VERSION
from shakerctl import faults, protocol
from sim import plant, reference, texts, uart, vcd
from sim.machine import Machine

STATIC = pathlib.Path(__file__).parent / "static"
KEEP_MS = 30_000  # of the time line
EVENTS = 60  # the last ones are shown to a page that opens
FRAME_S = 0.03  # what moves is sent at most this often
SILENT_S = 3.0
STROKE_S = 0.25  # a lever's stroke moves the dice that long
QUEUE = 400  # messages a page may be behind before it is cut off
ORDER_BYTES = 2000

_TABLES = (
    "UI", "BETS", "PHASES", "THINGS", "VALUES", "EVENTS", "REASONS", "BLOCKED", "COLOUR_NAMES", "FIGURES",
    "COLOURS",
)  # fmt: skip
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Page:
    """One connected page."""

    def __init__(self) -> None:
        self.outbox: asyncio.Queue[str] = asyncio.Queue(QUEUE)
        self.xray = False
        self.behind = False

    def send(self, **message: Any) -> None:
        """Queue one message."""
        self.post(json.dumps(message, separators=(",", ":")))

    def post(self, text: str) -> None:
        """Queue one message that is text already."""
        try:
            self.outbox.put_nowait(text)
        except asyncio.QueueFull:
            self.behind = True


class Sim:
    """The whole virtual table."""

    def __init__(self, settings: dict[str, Any], seed: int | None = None):
        """settings: as in settings.json, already found good."""
        key = settings.get("key")
        self.settings = settings
        self.lever = settings.get("actuation") == "lever"
        self.has_key = key is not None
        self.pages: set[Page] = set()
        self.port = 0
        self._seed = seed
        self._world: dict[str, Any] = {}
        self._samples: collections.deque[vcd.Sample] = collections.deque()
        self._events: collections.deque[dict[str, Any]] = collections.deque(maxlen=EVENTS)
        self._new_samples: list[vcd.Sample] = []
        self._new_events: list[dict[str, Any]] = []
        self._dirty = True
        self._world_at = time.monotonic()
        self._clear_heard()
        self.machine = Machine(settings, self._on_world, self._on_uart)
        self.plant = plant.Plant(self._order, seed)
        self.uart = uart.Uart(bytes.fromhex(key) if key else None, self._send, self._on_message, seed)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._stroke: asyncio.TimerHandle | None = None
        self._renewal = asyncio.Lock()

    # -- Life --------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start the device. Raises MachineError."""
        await self.machine.start()
        self._begin(self._broadcast())

    async def stop(self) -> None:
        """End everything."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.uart.close()
        await self.machine.stop()

    async def renew(self) -> None:
        """Take a new device with an empty journal to a table at rest; one for all who ask meanwhile."""
        if self._renewal.locked():
            return
        async with self._renewal:
            await self._renew()

    async def _renew(self) -> None:
        await self.machine.stop()
        self._world = {}
        self._samples.clear()
        self._new_samples.clear()
        self._events.clear()
        self._new_events.clear()
        self._clear_heard()
        self.plant = plant.Plant(self._order, self._seed)
        self.uart.lost = self.uart.noisy = False
        self.uart.renew()
        self.machine = Machine(self.settings, self._on_world, self._on_uart)
        await self.machine.start()
        for page in self.pages:
            page.send(kind="renewed")
        self._dirty = True

    def _begin(self, what: Any) -> None:
        task = asyncio.create_task(what)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _order(self, **what: Any) -> None:
        self._dirty = True
        self.machine.order(**what)

    def _send(self, data: bytes) -> None:
        self.machine.send(data)

    # -- From the device ---------------------------------------------------------------------------------

    def _clear_heard(self) -> None:
        self._heard: dict[str, Any] = {
            "phase": None,
            "round": 0,
            "repeat": 0,
            "fault": None,
            "seq": 0,
            "ack": 0,
        }
        self._heard_at = time.monotonic()
        self._last_seq = 0

    def _on_world(self, world: dict[str, Any]) -> None:
        moved = self._world.get("moving", False)
        self._world = world
        self._world_at = time.monotonic()
        self.plant.bolts = world["bolts"]
        if world["moving"] and not moved:
            self.plant.dice.tumbling = True
        elif moved and not world["moving"]:
            self.plant.dice.settle()
        inputs = [names.INPUT_VALUES[name].index(world["in"][name]) for name in names.INPUTS]
        outputs = [int(world["out"][name] == "on") for name in names.OUTPUTS]
        word = vcd.pack([*inputs, *outputs, int(world["moving"]), int(world["powered"])])
        lamps = sum(1 << names.LAMPS.index(name) for name in world["lamps"])
        sample = vcd.Sample(world["t"], word, lamps)
        if not self._samples or (self._samples[-1].word, self._samples[-1].lamps) != (word, lamps):
            self._samples.append(sample)
            self._new_samples.append(sample)
        while len(self._samples) > 1 and self._samples[1].t < world["t"] - KEEP_MS:
            self._samples.popleft()
        self._dirty = True

    def _on_uart(self, data: bytes) -> None:
        self.uart.from_device(data)

    def _on_message(self, message: protocol.Message) -> None:
        self._heard_at = time.monotonic()
        heard = self._heard
        what = protocol.kind(message)
        if what == "heartbeat":
            heard.update(phase=message["ph"], round=message["rd"], repeat=message["rep"])
            heard.update(fault=message["flt"], seq=message["seq"], ack=message["ack"])
        elif what == "event" and message["seq"] > self._last_seq:
            self._last_seq = message["seq"]
            heard.update(phase=message["ph"], round=message["rd"], repeat=message["rep"], seq=message["seq"])
            if message["ph"] != "FAULT":
                heard["fault"] = None
            elif message["ev"] == "fault" and heard["fault"] is None:
                heard["fault"] = message["code"]
            self._events.append(message)
            self._new_events.append(message)
        self._dirty = True

    # -- To the pages ------------------------------------------------------------------------------------

    def now(self) -> int:
        """Return the world's clock in ms, as near as can be told between its messages."""
        return int(self._world.get("t", 0) + (time.monotonic() - self._world_at) * 1000)

    def dump(self) -> str:
        """Return the last 30 s as VCD text; times begin at 0."""
        end = self.now()
        start = max(0, end - KEEP_MS)
        samples = list(self._samples) or [vcd.Sample(0, 0, 0)]
        shifted = [vcd.Sample(max(0, s.t - start), s.word, s.lamps) for s in samples]
        return vcd.write(shifted, end - start, f"0 is {start} ms of the table's clock")

    def state(self) -> dict[str, Any]:
        """Return what every page sees, but for the dice."""
        taken = self.uart.taken
        host = "host_lost" if self.uart.lost else "host_program" if taken else "host_builtin"
        if host == "host_builtin" and not self.has_key:
            host = "host_nokey"
        return {
            "kind": "state",
            "world": self._world,
            "colour": reference.colour_name(self._world.get("status", [0, 0, 0])),
            "now": self.now(),
            "plant": self.plant.state(),
            "heard": self._heard,
            "silent": time.monotonic() - self._heard_at > SILENT_S,
            "alive": self.machine.running,
            "host": host,
            "lost": self.uart.lost,
            "noisy": self.uart.noisy,
        }

    async def _broadcast(self) -> None:
        slow = 0.0
        before = None
        while True:
            await asyncio.sleep(FRAME_S)
            self.uart.look()
            samples, self._new_samples = self._new_samples, []
            events, self._new_events = self._new_events, []
            beat = time.monotonic() - slow > 0.5  # what changes by itself: silence, takeover, the clock
            if not (self._dirty or beat):
                continue
            if beat:
                slow = time.monotonic()
            self._dirty = False
            state = self.state()
            for page in self.pages:
                if samples:
                    page.send(kind="trace", rows=[[s.t, s.word] for s in samples])
                if events:
                    page.send(kind="events", events=events)
                if state != before or beat:
                    page.send(**state, dice=self._dice(page))
            before = state

    def _dice(self, page: Page) -> dict[str, Any]:
        return self.plant.dice.seen(page.xray or not self.plant.cover)

    def greet(self, page: Page) -> None:
        """Bring a page that has just opened up to date."""
        page.send(kind="trace", rows=[[s.t, s.word] for s in self._samples])
        page.send(kind="events", events=list(self._events))
        page.send(**self.state(), dice=self._dice(page))

    def data(self) -> dict[str, Any]:
        """Return what stands still: words, rules, names."""
        return {
            "version": VERSION,
            "languages": texts.LANGUAGES,
            "htmlLanguages": texts.HTML_LANGUAGE,
            "texts": {name.lower(): _by_language(getattr(texts, name)) for name in _TABLES},
            "hints": {
                phase: {"text": dict(zip(texts.LANGUAGES, text, strict=True)), "about": list(about)}
                for phase, (text, about) in texts.HINTS.items()
            },
            "faults": {
                language: {
                    code: [faults.cause(code, language), faults.remedy(code, language)]
                    for code in faults.FAULTS
                }
                for language in faults.LANGUAGES
            },
            "bets": reference.bets(),
            "faces": reference.faces(),
            "lamps": names.LAMPS,
            "phases": names.PHASES,
            "signals": [list(signal) for signal in vcd.SIGNALS],
            "contacts": names.CONTACTS,
            "keepMs": KEEP_MS,
            "lever": self.lever,
            "layouts": self.settings.get("layouts", 1),
            "pty": self.uart.pty.name,
        }

    # -- From the pages ----------------------------------------------------------------------------------

    async def act(self, page: Page, order: dict[str, Any]) -> None:
        """Carry out what a person did on a page. Raises ValueError, KeyError or TypeError for nonsense."""
        if order["do"] == "renew":
            await self.renew()
            return
        async with self._renewal:  # no hand finds a table half exchanged
            self._act(page, order)

    def _act(self, page: Page, order: dict[str, Any]) -> None:
        what = order["do"]
        table = self.plant
        self._dirty = True
        try:
            if what == "move":
                table.move(order["what"], order["to"])
            elif what == "press":
                table.press(order["key"], page)
                if order["key"] == "lever" and self.lever:
                    self._pull()
            elif what == "release":
                table.release(order["key"], page)
            elif what == "pry":
                table.pry(order["what"])
            elif what == "result":
                self._begin(self._result(page, _dice(order["dice"])))
            elif what == "turn":
                die = _whole(order["die"], 0, 2)
                if not table.dome:
                    table.dice.turn(die)
            elif what == "xray":
                page.xray = _flag(order["on"])
            elif what == "force":
                table.force(order["how"])
            elif what == "damage":
                table.damage(_contacts(order["cuts"]), _contacts(order["sticks"]))
            elif what == "motor":
                table.set_motor(order["how"])
            elif what == "bounce":
                table.set_bounce(20 if _flag(order["on"]) else 0)
            elif what == "power":
                self._order(power="on" if _flag(order["on"]) else "off")
            elif what == "restart":
                self._order(restart=1)
            elif what == "line":
                self.uart.lost, self.uart.noisy = _flag(order["lost"]), _flag(order["noisy"])
            else:
                raise ValueError(what)
        except plant.Blocked as blocked:
            page.send(kind="blocked", what=blocked.what, by=blocked.by)

    def _pull(self) -> None:
        self.plant.dice.tumbling = True
        if self._stroke is not None:
            self._stroke.cancel()
        self._stroke = asyncio.get_running_loop().call_later(STROKE_S, self._pulled)

    def _pulled(self) -> None:
        self.plant.dice.settle()
        self._dirty = True

    async def _result(self, page: Page, dice: list[int]) -> None:
        error = None
        try:
            await self.uart.command("result", dice=dice)
        except protocol.ProtocolError as refused:
            error = refused.code
        except protocol.Silent:
            error = "no-answer"
        page.send(kind="reply", cmd="result", dice=dice, err=error)


def _by_language(table: dict[str, tuple[str, str, str]]) -> dict[str, dict[str, str]]:
    return {
        language: {name: words[i] for name, words in table.items()}
        for i, language in enumerate(texts.LANGUAGES)
    }


# What a page sent, checked: each raises ValueError.


def _list(given: Any) -> list[Any]:
    if type(given) is not list:
        raise ValueError("not a list")
    return given


def _contacts(given: Any) -> set[str]:
    found = {name for name in _list(given) if name in names.CONTACTS}
    if len(found) != len(given):
        raise ValueError("contacts")
    return found


def _dice(given: Any) -> list[int]:
    if len(_list(given)) != 3:
        raise ValueError("not three dice")
    return [_whole(face, 1, 6) for face in given]


def _flag(given: Any) -> bool:
    if type(given) is not bool:
        raise ValueError("neither true nor false")
    return given


def _whole(given: Any, least: int, most: int) -> int:
    if type(given) is not int or not least <= given <= most:
        raise ValueError("no whole number in range")
    return given


class Unparsed(logging.Filter):
    """Leaves out what aiohttp logs, with a traceback, of requests that are no HTTP: they are answered 400."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the record is printed."""
        error = record.exc_info[1] if record.exc_info else None
        return not isinstance(error, (http_exceptions.HttpProcessingError, web.RequestPayloadError))


def own_hosts(port: int) -> set[str]:
    """Return what a browser may call this server at `port` in Host; it leaves port 80 out."""
    names = ("127.0.0.1", "localhost")
    return {f"{name}:{port}" for name in names} | (set(names) if port == 80 else set())


def make_app(sim: Sim) -> web.Application:
    """Return the web application around a started `sim`."""

    @web.middleware
    async def guard(request: web.Request, handler: Any) -> web.StreamResponse:
        if request.host not in own_hosts(sim.port):
            raise web.HTTPForbidden(text="This table answers only at its own address.\n")
        origin = request.headers.get("Origin")
        if origin is not None and origin != f"http://{request.host}":
            raise web.HTTPForbidden(text="Another page may not use this table.\n")
        return await handler(request)

    async def add_headers(request: web.Request, response: web.StreamResponse) -> None:
        response.headers.update(_HEADERS)

    async def index(request: web.Request) -> web.FileResponse:
        return web.FileResponse(STATIC / "index.html")

    async def static(request: web.Request) -> web.FileResponse:
        name = request.match_info["name"]
        if name not in files:  # whatever it is, it never reaches the file system
            raise web.HTTPNotFound
        return web.FileResponse(STATIC / name)

    async def data(request: web.Request) -> web.Response:
        return web.json_response(sim.data())

    async def dump(request: web.Request) -> web.Response:
        name = time.strftime("shaker-%Y%m%d-%H%M%S.vcd")
        return web.Response(
            text=sim.dump(),
            content_type="text/plain",
            headers={"Content-Disposition": f'attachment; filename="{name}"'},
        )

    async def socket(request: web.Request) -> web.WebSocketResponse:
        if request.headers.get("Origin") != f"http://{request.host}":
            raise web.HTTPForbidden(text="Only this table's own page may drive it.\n")
        ws = web.WebSocketResponse(heartbeat=20, max_msg_size=ORDER_BYTES)
        await ws.prepare(request)
        page = Page()
        sim.greet(page)
        sim.pages.add(page)
        sender = asyncio.create_task(_send_all(ws, page))
        try:
            async for message in ws:
                if message.type is not WSMsgType.TEXT:
                    break
                try:
                    await sim.act(page, json.loads(message.data))
                except (ValueError, KeyError, TypeError, RecursionError):
                    await ws.close(code=1008, message=b"no such order")
        finally:
            sim.pages.discard(page)
            sim.plant.let_go(page)
            sender.cancel()
        return ws

    async def shut(app: web.Application) -> None:
        for page in sim.pages:
            page.behind = True
            page.send(kind="bye")

    files = {path.name for path in STATIC.iterdir()}
    app = web.Application(middlewares=[guard])
    app.on_response_prepare.append(add_headers)
    app.on_shutdown.append(shut)
    app.add_routes(
        [
            web.get("/", index),
            web.get("/data.json", data),
            web.get("/trace.vcd", dump),
            web.get("/socket", socket),
            web.get("/static/{name}", static),
        ]
    )
    return app


async def _send_all(ws: web.WebSocketResponse, page: Page) -> None:
    with contextlib.suppress(ConnectionError, RuntimeError):
        while True:
            await ws.send_str(await page.outbox.get())
            if page.behind:
                await ws.close(code=1013, message=b"too slow, or the table closes")
                return
