"""The virtual table's server: words, plant, time line, line and pseudo-terminal, and who may drive it."""

import asyncio
import contextlib
import itertools
import json
import os
import socket
import subprocess
import sys
import time
import tty

import aiohttp
import pytest

import simrun
from shaker import lights, names, rules
from shaker.version import VERSION
from shakerctl import faults, protocol
from sim import plant, reference, texts, uart, vcd
from sim.server import own_hosts

# -- Words ---------------------------------------------------------------------------------------------


def test_every_name_of_the_firmware_has_words_in_three_languages():
    assert list(texts.BETS) and set(texts.BETS) == set(names.LAMPS)
    assert set(texts.PHASES) == set(texts.HINTS) == set(names.PHASES)
    assert set(texts.EVENTS) == set(names.EVENTS)
    assert set(names.WHYS[1:]) <= set(texts.REASONS)
    assert {*names.INPUTS, *names.OUTPUTS, *names.WHATS} <= set(texts.THINGS)
    assert {value for values in names.INPUT_VALUES.values() for value in values} <= set(texts.VALUES)
    assert set(texts.COLOUR_NAMES) == set(lights.COLOURS)
    assert set(texts.FIGURES) == set(rules.FIGURES)
    assert tuple(texts.LANGUAGES) == faults.LANGUAGES
    for table in (texts.UI, texts.BETS, texts.PHASES, texts.THINGS, texts.EVENTS, texts.REASONS):
        for name, words in table.items():
            assert len(words) == 3 and all(words), name
    for i in range(3):
        assert len({words[i] for words in texts.BETS.values()}) == len(texts.BETS)


def test_every_fault_has_a_cause_and_a_way_out():
    assert tuple(faults.FAULTS) == names.FAULTS[1:]
    for code, languages in faults.FAULTS.items():
        assert tuple(languages) == faults.LANGUAGES
        for language in languages:
            assert faults.cause(code, language) and faults.remedy(code, language)
    with pytest.raises(KeyError):
        faults.cause("none")


def test_odds_come_from_the_rules():
    bets = {bet["bet"]: bet for bet in reference.bets()}
    assert tuple(bets) == names.LAMPS
    assert bets["fish"]["pays"] == [1, 2, 3] and bets["fish3"] == {"bet": "fish3", "pays": [150], "wins": 1}
    assert bets["small"]["wins"] == bets["big"]["wins"] == 105  # 108 each, less the three triples of A7
    assert reference.colour_name(list(lights.COLOURS["amber"])) == "amber"


# -- Hands and dice ------------------------------------------------------------------------------------


def table(bolts=(0, 0, 0)):
    orders = []
    made = plant.Plant(lambda **what: orders.append(what), seed=1)
    made.bolts = list(bolts)
    return made, orders


def blocked(made, what, to):
    with pytest.raises(plant.Blocked) as why:
        made.move(what, to)
    return why.value.by


def test_bolts_and_things_hold_what_they_hold():
    made, orders = table()
    assert blocked(made, "latch_a", "closed") == "no_cover"
    made.move("cover", "on")
    made.move("latch_a", "closed")
    assert blocked(made, "cover", "off") == "latch_a"
    assert blocked(made, "dome", "open") == "cover"
    made.bolts = [1000, 0, 1000]
    assert blocked(made, "latch_a", "open") == "cover_lock"
    made.bolts = [0, 1000, 1000]
    made.move("latch_a", "open")
    assert blocked(made, "latch_a", "closed") == "cover_bar"
    made.move("cover", "off")
    assert blocked(made, "dome", "open") == "dome_lock"
    assert orders[-1] == {"set": {"cover": "off"}} and made.dome
    made.pry("dome")
    assert orders[-1] == {"set": {"dome": "open"}} and not made.dome
    with pytest.raises(ValueError):
        made.move("cover", "away")


def test_two_hands_on_one_key_release_it_once():
    made, orders = table()
    made.press("bell", 1)
    made.press("bell", 2)
    made.let_go(1)
    assert orders == [{"set": {"bell": "pressed"}}]
    made.let_go(2)
    assert orders[1:] == [{"set": {"bell": "released"}}]


def test_dice_fall_as_forced_and_are_not_seen_through_the_cover():
    made, _ = table()
    for how in plant.LYING:
        made.force(how)
        made.dice.settle()
        assert made.dice.seen(True)["lying"] == how
        hidden = made.dice.seen(False)
        assert "faces" not in hidden and hidden["lying"] == "flat"
    for _ in range(200):
        made.dice.settle()
        for up, front in zip(made.dice.faces, made.dice.front):
            assert front not in (up, 7 - up)
    twins = [plant.Dice(7), plant.Dice(7)]
    for dice in twins:
        dice.settle()
    assert twins[0].faces == twins[1].faces  # the same seed, the same dice


def test_damage_is_exactly_what_was_chosen():
    made, orders = table()
    made.damage({"latch_a_no"}, {"bell"})
    made.damage({"latch_b_nc"}, set())
    assert orders[-2:] == [{"mend": 1}, {"cut": "latch_b_nc"}]


# -- The time line as a file ---------------------------------------------------------------------------


def parse_vcd(text):
    """Return ({name: [(t, value)]}, end) of a VCD file; independent of sim.vcd."""
    head, body = text.split("$enddefinitions $end\n")
    named = {}
    for line in head.splitlines():
        word = line.split()
        if word[0] == "$var":
            named[word[3]] = (word[4], int(word[2]))
    assert "$timescale 1 ms $end" in head
    changes = {name: [] for name, _ in named.values()}
    now = None
    for word in body.splitlines():
        if word.startswith("#"):
            assert now is None or int(word[1:]) > now
            now = int(word[1:])
        elif word.startswith("b"):
            value, code = word[1:].split()
            assert len(value) <= named[code][1]
            changes[named[code][0]].append((now, int(value, 2)))
        elif not word.startswith("$"):
            assert named[word[1:]][1] == 1
            changes[named[word[1:]][0]].append((now, int(word[0])))
    return changes, now


def test_vcd_says_what_was_sampled():
    count = len(vcd.SIGNALS)
    first = [0] * count
    second = [2, 1, *([1] * (count - 2))]
    samples = [
        vcd.Sample(0, vcd.pack(first), 0),
        vcd.Sample(7, vcd.pack(second), 1 << 38 | 5),
        vcd.Sample(9, vcd.pack(second), 1 << 38 | 5),
        vcd.Sample(20, vcd.pack(first), 0),
    ]
    assert vcd.unpack(vcd.pack(second)) == second
    changes, end = parse_vcd(vcd.write(samples, 30000, "a $comment$"))
    assert end == 30000
    assert changes["latch_a"] == [(0, 0), (7, 2), (20, 0)]
    assert changes["lamps"] == [(0, 0), (7, 1 << 38 | 5), (20, 0)]
    for i, (name, _) in enumerate(vcd.SIGNALS):
        assert changes[name] == [(0, 0), (7, second[i]), (20, 0)]


# -- The line ------------------------------------------------------------------------------------------


async def until(condition, seconds=15):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come about"
        await asyncio.sleep(0.02)


@contextlib.asynccontextmanager
async def line(key=simrun.KEY):
    sent, heard = [], []
    made = uart.Uart(key, sent.append, heard.append, seed=3)
    try:
        yield made, sent, heard
    finally:
        made.close()


def test_a_program_takes_over_with_hello_and_gives_back_when_quiet(monkeypatch):
    monkeypatch.setattr(uart, "TAKEOVER_S", 0.6)

    async def play():
        async with line() as (made, sent, _):
            await until(lambda: any(b'"hello"' in data for data in sent))  # the built-in host begins
            for _ in range(2):  # connections in a row
                port = os.open(made.pty.name, os.O_RDWR | os.O_NOCTTY)
                await until(lambda: made.pty.connected)
                os.write(port, b"noise\r\n$nothing*00000000\r\n")
                await until(lambda: b"noise\r\n$nothing*00000000\r\n" in b"".join(sent))
                assert not made.taken
                hello = protocol.encode(7, "hello")
                os.write(port, hello[:9])
                os.write(port, hello[9:])
                await until(lambda: made.taken)
                del sent[:]
                made.from_device(b"$hello\r\n")
                await until(lambda p=port: os.read(p, 100) == b"$hello\r\n")  # raw: as sent, and no echo
                os.close(port)
                await until(lambda: not made.pty.connected)
                assert sent == []  # silent while the program is the host
                await until(lambda: made.taken is False)
                made.look()
                await until(lambda: any(b'"hello"' in data for data in sent))

    asyncio.run(play())


def test_a_command_that_no_line_can_carry_fails_for_who_asked_and_the_host_lives():
    async def play():
        async with asyncio.timeout(20), line() as (made, _, _):
            with pytest.raises(ValueError):
                await made.command("result", dice=[10**120, 1, 1])
            with pytest.raises(TypeError):
                await made.command("result", dice=[{1}])
            asked = asyncio.create_task(made.command("status"))
            given_up = asyncio.create_task(made.command("status"))
            await asyncio.sleep(0.1)
            given_up.cancel()
            with pytest.raises(protocol.Silent):
                await asked
            with pytest.raises(protocol.Silent):
                await made.command("status")

    asyncio.run(play())


def test_what_nobody_reads_is_lost_and_blocks_nothing():
    async def play():
        async with line() as (made, _, _):
            made.from_device(b"x" * 100000)
            port = os.open(made.pty.name, os.O_RDWR | os.O_NOCTTY)
            try:
                tty.setraw(port)
                await until(lambda: made.pty.connected)
                made.from_device(b"fresh")
                await until(lambda: os.read(port, 100) == b"fresh")
                made.from_device(b"y" * 1000000)
            finally:
                os.close(port)

    asyncio.run(play())


def test_a_noisy_line_damages_and_a_lost_one_carries_nothing():
    async def play():
        async with line() as (made, sent, heard):
            made.noisy = True
            whole = protocol.frame(b'{"re":1,"ok":{}}')
            for _ in range(50):
                made.from_device(whole)
            assert len(heard) == 50  # the tap is at the device's pin
            made._send(bytes(2000))
            assert 0 < sum(map(bool, sent[-1])) < 60
            made.lost = True
            count = len(sent)
            made._send(b"gone")
            assert len(sent) == count

    asyncio.run(play())


# -- The whole -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sim(tmp_path_factory):
    with simrun.SimRun(tmp_path_factory.mktemp("sim"), "--seed", "2") as running:
        yield running


class Driver:
    """A page without a browser."""

    def __init__(self, ws):
        self.ws = ws
        self.state = None
        self.events = []
        self.other = []

    async def do(self, **order):
        await self.ws.send_str(json.dumps(order))

    async def until(self, condition):
        async with asyncio.timeout(20):
            while not (self.state and condition()):
                message = json.loads(await self.ws.receive_str())
                if message["kind"] == "state":
                    self.state = message
                elif message["kind"] == "events":
                    self.events += message["events"]
                else:
                    self.other.append(message)

    async def phase(self, name):
        await self.until(lambda: self.state["heard"]["phase"] == name)

    async def press(self, key, until):
        await self.do(do="press", key=key)
        await self.until(until)
        await self.do(do="release", key=key)


def drive(sim, play):
    async def run():
        headers = {"Origin": "http://127.0.0.1:%d" % sim.port}
        async with (
            aiohttp.ClientSession() as session,
            session.ws_connect(sim.url + "socket", headers=headers) as ws,
        ):
            driver = Driver(ws)
            await driver.do(do="renew")
            await driver.until(lambda: any(m["kind"] == "renewed" for m in driver.other))
            driver.state = None
            driver.events = []
            await driver.phase("IDLE")
            return await play(driver, session)

    return asyncio.run(run())


async def to_payout(driver):
    for what, to in (("cover", "on"), ("latch_a", "closed"), ("latch_b", "closed")):
        await driver.do(do="move", what=what, to=to)
    await driver.phase("COVERED")
    await driver.press("start", lambda: driver.state["colour"] == "amber")
    await driver.phase("BETTING")
    assert "faces" not in driver.state["dice"]  # nobody can see them, not even with the browser's tools
    await driver.press("bell", lambda: driver.state["heard"]["phase"] == "CLOSED")
    await driver.until(lambda: driver.state["world"]["bolts"][0] == 0)
    for what, to in (("latch_a", "open"), ("latch_b", "open"), ("cover", "off")):
        await driver.do(do="move", what=what, to=to)
    await driver.phase("PAYOUT")
    await driver.until(lambda: "faces" in driver.state["dice"])


def test_a_round_is_on_the_time_line_as_it_was(sim):
    async def play(driver, session):
        await to_payout(driver)
        dice = driver.state["dice"]["faces"]
        await driver.do(do="result", dice=dice)
        won = list(rules.winning(dice))
        await driver.until(lambda: driver.state["world"]["lamps"] == won)
        await driver.press("paid", lambda: driver.state["heard"]["phase"] == "IDLE")
        async with session.get(sim.url + "trace.vcd") as answer:
            return won, await answer.text()

    won, text = drive(sim, play)
    changes, end = parse_vcd(text)
    rises = [t for t, value in changes["agitator"] if value]
    falls = [t for t, value in changes["agitator"] if not value][1:]
    assert [fall - rise for rise, fall in zip(rises, falls)] == pytest.approx([100] * 3, abs=5)
    assert [b - a for a, b in itertools.pairwise(rises)] == pytest.approx([550] * 2, abs=5)
    assert sum(1 << names.LAMPS.index(name) for name in won) in [value for _, value in changes["lamps"]]
    assert changes["front_board"][-1][1] == 0 and end <= 30000


def open_port(sim):
    import serial

    return serial.Serial(sim.pty, 115200, timeout=0.02)


def test_programs_connect_one_after_the_other_as_to_a_real_one(sim):
    async def nothing(driver, session):
        pass

    drive(sim, nothing)
    for _ in range(3):
        events = []
        with open_port(sim) as port:
            client = protocol.Client(port, simrun.KEY, events.append)
            assert client.request("status", 10)["ph"] == "IDLE"
            client.request("replay", 10, from_=1)  # the built-in host has acknowledged them
            end = time.monotonic() + 10
            while not events:
                assert time.monotonic() < end
                client.pump()
            assert events[0]["ev"] == "boot" and events[0]["ver"] == VERSION


def test_the_croupier_announces_while_a_program_is_the_host(sim):
    async def play(driver, session):
        with open_port(sim) as port:
            client = protocol.Client(port, simrun.KEY)
            await asyncio.to_thread(client.request, "status", 10)
            await driver.until(lambda: driver.state["host"] == "host_program")
            ended = asyncio.Event()

            async def keep_up():
                while not ended.is_set():
                    await asyncio.to_thread(client.pump)

            pumping = asyncio.create_task(keep_up())
            await to_payout(driver)
            await driver.do(do="result", dice=[1, 1, 1])
            await driver.until(lambda: "fish3" in driver.state["world"]["lamps"])
            ended.set()
            await pumping
            await asyncio.to_thread(client.request, "paid", 10)  # its own session was opened again
            await driver.phase("IDLE")

    drive(sim, play)


def test_events_come_once_and_in_order_over_a_noisy_line(sim):
    async def play(driver, session):
        await driver.do(do="line", lost=False, noisy=True)
        await driver.until(lambda: driver.state["noisy"])
        with open_port(sim) as port:
            events = []
            first = driver.state["heard"]["seq"] + 1
            # Without a key it cannot acknowledge: every event is sent until it has come through.
            client = protocol.Client(port, None, events.append, last=first - 1)
            await asyncio.to_thread(client.pump)
            await driver.until(lambda: driver.state["host"] == "host_program")
            for number, key in enumerate(("bell", "void", "paid", "start")):
                count = number + 1
                await driver.press(
                    key, lambda n=count: sum(event["ev"] == "refused" for event in driver.events) == n
                )
            end = time.monotonic() + 60
            while sum(event["ev"] == "refused" for event in events) < 4:
                assert time.monotonic() < end
                await asyncio.to_thread(client.pump)
            assert [event["seq"] for event in events] == list(range(first, first + len(events)))
            assert client.reader.damaged

    drive(sim, play)


def test_pages_that_renew_at_once_get_one_new_table(tmp_path):
    async def play(sim):
        headers = {"Origin": "http://127.0.0.1:%d" % sim.port}
        async with aiohttp.ClientSession() as session, contextlib.AsyncExitStack() as stack:
            pages = []
            for _ in range(3):
                ws = await stack.enter_async_context(session.ws_connect(sim.url + "socket", headers=headers))
                pages.append(Driver(ws))
            for page in pages:
                await page.do(do="renew")
                await asyncio.sleep(0.1)
            await pages[0].do(do="move", what="cover", to="on")  # waits for the new table
            for page in pages:
                await page.until(lambda p=page: any(m["kind"] == "renewed" for m in p.other))
                page.state = None
            await pages[0].phase("IDLE")
            await pages[0].until(lambda: pages[0].state["world"]["in"]["cover"] == "on")
            return len(simrun.children(sim.pid))

    with simrun.SimRun(tmp_path) as sim:
        assert asyncio.run(play(sim)) == 1


def test_a_browser_leaves_port_80_out():
    assert own_hosts(80) == {"127.0.0.1", "localhost", "127.0.0.1:80", "localhost:80"}
    assert own_hosts(8080) == {"127.0.0.1:8080", "localhost:8080"}


def test_only_its_own_page_drives_it(sim):
    async def play():
        own = "127.0.0.1:%d" % sim.port
        async with aiohttp.ClientSession() as session:
            for headers in (
                {},
                {"Origin": "http://evil.example"},
                {"Origin": "null"},
                {"Origin": "http://127.0.0.1:1"},
                {"Origin": "http://localhost:%d" % sim.port},  # not the Host it asked for
                {"Origin": "http://evil.example", "Host": "evil.example"},  # a name that leads here
            ):
                with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                    await session.ws_connect(sim.url + "socket", headers=headers)
                assert refused.value.status == 403
            for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
                async with session.get(sim.url + "data.json", headers=headers) as answer:
                    assert answer.status == 403
            async with session.get(sim.url, headers={"Host": own}) as answer:
                assert answer.status == 200
                assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]

    asyncio.run(play())


NONSENSE = (
    "[]", "{", '{"do":"fly"}', '{"do":"motor","how":"up"}', "x" * 5000, "[" * 1900,
    '{"do":"result","dice":[1%s,1,1]}' % ("0" * 120), '{"do":"result","dice":[7,1,1]}',
    '{"do":"result","dice":[0,1,1]}', '{"do":"result","dice":[true,1,1]}', '{"do":"result","dice":[1,1]}',
    '{"do":"result","dice":null}', '{"do":"result"}', '{"do":"move","what":"cover","to":NaN}',
    '{"do":"move","what":[],"to":{}}', '{"do":"press","key":{}}', '{"do":"release","key":"x"}',
    '{"do":"turn","die":true}', '{"do":"turn","die":3}', '{"do":"xray","on":1}', '{"do":"bounce","on":null}',
    '{"do":"power","on":"on"}', '{"do":"line","lost":true,"noisy":0}',
    '{"do":"damage","cuts":"","sticks":[]}', '{"do":"damage","cuts":["x"],"sticks":[]}',
    '{"do":"damage","cuts":[[]],"sticks":[]}',
)  # fmt: skip


@pytest.mark.parametrize("order", NONSENSE)
def test_nonsense_ends_the_connection_and_nothing_else(sim, order):
    async def play():
        headers = {"Origin": "http://127.0.0.1:%d" % sim.port}
        async with aiohttp.ClientSession() as session:
            async with session.ws_connect(sim.url + "socket", headers=headers) as ws:
                await ws.send_str(order)
                async with asyncio.timeout(20):
                    async for _ in ws:
                        pass
                assert ws.close_code in (1008, 1009)
            async with session.get(sim.url) as answer:
                assert answer.status == 200

    asyncio.run(play())


def test_what_is_no_http_or_no_file_gets_its_status_and_no_traceback(tmp_path):
    host = b"Host: 127.0.0.1:%d\r\n"
    chunked = b"POST / HTTP/1.1\r\n" + host + b"Transfer-Encoding: chunked\r\n\r\n"
    asked = (
        (b"GET /static/" + b"b" * 300 + b" HTTP/1.1\r\n" + host + b"\r\n", 404),
        (b"GET /static/%%00 HTTP/1.1\r\n" + host + b"\r\n", 404),
        (b"GET /static/%%2e%%2e%%2fserver.py HTTP/1.1\r\n" + host + b"\r\n", 404),
        (b"GET /static/main.js HTTP/1.1\r\n" + host + b"\r\n", 200),
        (b"GET /" + b"a" * 20000 + b" HTTP/1.1\r\n" + host + b"\r\n", 400),
        (b"GET / HTTP/1.1\r\n" + host + host.replace(b"%d", b"1") + b"\r\n", 400),
        (chunked + b"ZZ\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: [::1\r\n\r\n", 403),
        (b"\x00\xff\x16\x03garbage\r\n\r\n", 400),
    )
    with simrun.SimRun(tmp_path) as sim:  # whose end fails if it printed anything
        for request, status in asked:
            with socket.create_connection(("127.0.0.1", sim.port), 20) as line:
                line.sendall(request.replace(b"%d", b"%d" % sim.port).replace(b"%%", b"%"))
                assert line.recv(13)[9:12] == b"%d" % status, request[:60]
        with socket.create_connection(("127.0.0.1", sim.port), 20) as line:
            line.sendall(chunked.replace(b"%d", b"%d" % sim.port))
            assert line.recv(13)[9:12] == b"405"
            line.sendall(b"ZZ\r\n")  # the body goes bad after the answer
            while line.recv(4096):
                pass


def test_it_listens_on_the_loopback_only(sim):
    with socket.socket() as other, pytest.raises(OSError):
        other.settimeout(2)
        other.connect(("127.0.0.2", sim.port))


def complaint(*arguments):
    done = subprocess.run(
        [sys.executable, str(simrun.ROOT / "tools" / "sim"), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1 and done.stdout == "" and done.stderr.count("\n") == 1
    return done.stderr


def test_what_is_wrong_is_said_in_one_line(sim, tmp_path):
    assert "in use" in complaint("--port", str(sim.port))
    assert "65535" in complaint("--port", "70000")
    assert "layouts" in complaint("--layouts", "9")
    assert "No such file" in complaint("--settings", str(tmp_path / "none.json"))
    bad = tmp_path / "bad.json"
    bad.write_text('{"gap_ms":1}')
    assert "gap_ms" in complaint("--settings", str(bad))
