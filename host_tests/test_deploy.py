"""Deployment on the virtual board: the real shakerctl, a round afterwards, and every way to break it."""

import json
import os
import shutil
import subprocess
import sys

import pytest
import serial
from mpremote.transport_serial import SerialTransport

from conftest import KEY, in_service, mpremote, on_board, shakerctl, slot_of, to_bench
from interpreter import FIRMWARE, HERE, run
from shakerctl import deploy, protocol, provision, release, trouble, usb, voice
from shakerctl.__main__ import main
from virtualboard import STOCK_BLOCKS, VirtualBoard

JUDGE = """
import os, sys
sys.path[:] = ["", ".frozen"]
def judge():
    place = {"boot": None, "__name__": "main"}
    with open("/main.py") as f: text = f.read()
    # main.py without its last lines, which would run the firmware.
    import sys as s
    s.modules["boot"] = s  # of which program_folder() wants `path`
    exec(text.split("\\ntry:\\n    main()")[0], place)
    with open("/boot.py") as f: compile(f.read(), "boot.py", "exec")
    folder = place["program_folder"]()
    from shaker import integrity
    from shaker.files import Files
    bad = integrity.check(Files(folder))
    for name in list(s.modules):
        if name.split(".")[0] == "shaker": del s.modules[name]
    return folder + (" altered: " + bad if bad else "")
"""


def ready(board, releases, which="one"):
    """Put a release on an empty board."""
    done = shakerctl("deploy", "--port", board.usb, "--image", releases[which])
    assert done.code == 0, done
    board.wait(in_service)


BLOCKS = 112  # of the chip whose power is cut


class Cable(Exception):
    """The test pulls the cable."""


def test_an_empty_board_is_deployed_and_plays_a_round_over_its_uart(tmp_path, releases):
    with VirtualBoard(tmp_path / "board") as board:
        settings = tmp_path / "settings.json"
        settings.write_text(json.dumps({"table": "T9", "key": KEY, "pulse_ms": 150, "gap_ms": 200}))
        done = shakerctl(
            "deploy", "--port", board.usb, "--image", releases["one"], "--settings", settings, "--json"
        )
        assert done.code == 0, done
        told = json.loads(done.out)
        assert told["slot"] == "/" + slot_of(releases["one"])
        assert told["copied"][-1] == "manifest.json"
        board.wait(in_service)
        events = []
        with serial.Serial(board.uart, 115200, timeout=0.02) as line:
            host = protocol.Client(line, bytes.fromhex(KEY), events.append)

            def until(what):
                """Pump until an event of this name has come."""
                for _ in range(3000):
                    if any(event["ev"] == what for event in events):
                        return
                    host.pump()
                pytest.fail(f"no {what} among {[event['ev'] for event in events]}")

            assert host.request("hello", 20)["table"] == "T9"
            until("boot")
            board.cover()
            until("covered")
            board.press("start")
            until("bets-open")
            assert board.output("cover_lock") == "on"
            board.press("bell")
            until("bets-closed")
            board.uncover()
            until("lifted")
            host.request("result", 20, dice=[1, 4, 6])
            until("result")
            board.wait(lambda seen: "n11" in seen["lamps"])
            host.request("paid", 20)
            until("paid")
        result = next(event for event in events if event["ev"] == "result")
        assert result["win"]["n11"] == 6
        assert [event["seq"] for event in events] == list(range(1, len(events) + 1))


def test_what_was_deployed_is_what_the_release_says(served, releases):
    slot = slot_of(releases["one"])
    to_bench(served)
    listed = mpremote(served.usb, "ls", ":/", "+", "ls", f":/{slot}", "+", "cat", ":/current")
    for name in ("boot.py", "main.py", "current", slot, "manifest.json", "shaker"):
        assert name in listed.out
    this = release.load(releases["one"])
    with usb.Usb(served.usb, voice.Voice(True, True)) as link:
        link.take()
        disk = deploy.Disk(link)
        assert disk.different(f"/{slot}", this.inside) == []
        assert disk.different("", this.scripts) == []
        assert disk.different("", {"current": (slot + "\n").encode(), "none": b""}) == ["none"]


def test_a_second_deployment_keeps_one_older_version_and_a_third_removes_it(served, releases, tmp_path):
    one, two = slot_of(releases["one"]), slot_of(releases["two"])
    to_bench(served)
    done = json.loads(shakerctl("deploy", "--port", served.usb, "--image", releases["two"], "--json").out)
    assert (done["before"], done["removed"]) == (one, [])
    served.wait(in_service)
    to_bench(served)
    folders = ["fw-1234567", "fw-123456789", "fw-ABCDEF00", "fw-notes"]
    files = ["fw-00000001", "fw-old.txt"]
    on_board(
        served,
        f"import os\nfor n in {['fw-00000000', *folders]!r}: os.mkdir('/' + n)\n"
        f"for n in {['fw-00000000/manifest.json', 'fw-notes/a.txt', *files]!r}: open('/' + n, 'w').close()",
    )
    told = shakerctl("deploy", "--port", served.usb, "--image", releases["one"], "--json")
    done = json.loads(told.out)
    assert (done["before"], done["copied"]) == (two, []), "it was still there, whole"
    assert done["removed"] == ["fw-00000000"]
    assert "Removed from the board: fw-00000000." in told.err
    served.wait(in_service)
    to_bench(served)
    names = on_board(served, "import os\nprint(sorted(os.listdir('/')))")
    assert one in names
    assert two in names
    assert [name for name in folders + files if repr(name) not in names] == [], "a technician's own"


def test_damaged_settings_give_way_to_a_whole_file_and_to_nothing_less(served, releases, tmp_path):
    to_bench(served)
    with usb.Usb(served.usb, voice.Voice(True, True)) as link:
        link.take()
        folder = provision.Place(link).folder
        link.exec(f"with open('{folder}/settings.json', 'w') as f: print(f.write('{{'))")
    done = shakerctl("provision", "--port", served.usb, "--yes", "--set", "table=T2")
    assert (done.code, "damaged" in done.err, done.err.count("\n")) == (1, True, 1), done
    whole = tmp_path / "whole.json"
    served.wait(lambda seen: seen["out"]["alarm"] == "on", "it runs again, and tells the fault")
    served.set(service="on")
    # With no more than the defaults in it: still not "in force already".
    whole.write_text(json.dumps({"table": "", "key": KEY}))
    words = ("--port", served.usb, "--yes", "--image", releases["one"], "--settings", whole)
    done = shakerctl("deploy", *words)
    assert done.code == 0, done
    served.set(service="off")
    assert "damaged" in done.out
    assert "nothing changes" not in done.out
    served.wait(lambda seen: any(seen["status"]), "the firmware runs")
    served.rest(500)  # and has judged the table
    for position in ("on", "off"):  # the fault is latched: a person clears it
        served.set(service=position)
        served.rest(200)
    served.wait(in_service)
    assert json.loads(shakerctl("send", "--port", served.uart, "--json", "settings").out)["ok"]["table"] == ""


def test_a_running_shaker_is_asked_for_and_stopped_in_an_orderly_way(served, releases):
    served.set(service="on")
    served.wait(lambda seen: seen["out"]["dome_lock"] == "off")
    refused = shakerctl("deploy", "--port", served.usb, "--image", releases["two"], input="n\n")
    assert refused.code == 1
    assert "service key on" in refused.err
    assert served.resets == []
    done = shakerctl("deploy", "--port", served.usb, "--image", releases["two"], input="y\n")
    assert done.code == 0, done
    assert served.resets == ["reset", "reset"], "once into the bench, once into the new version"
    assert served.heard(b"KeyboardInterrupt") == 0


def test_a_second_ctrl_c_ends_in_a_restart_too(served):
    """A person presses it twice: the prompt may not come, whatever ran when."""
    count = served.heard(b"shaker: running from")
    with open(served.usb, "wb", buffering=0) as port:
        port.write(b"\x03")
        served.expect(b"KeyboardInterrupt")
        port.write(b"\x03")
    served.expect(b"shaker: running from", count + 1)
    assert served.resets == ["reset"], "not by the watchdog"
    assert served.heard(b">>>") == 0


def test_a_board_whose_journal_is_broken_still_lets_its_technician_in(tmp_path, served_image):
    flash = bytearray(served_image.read_bytes())
    at = STOCK_BLOCKS * 4096
    flash[at:] = bytes(i * 7 & 255 for i in range(len(flash) - at))
    (tmp_path / "flash.bin").write_bytes(flash)
    with VirtualBoard(tmp_path / "board", image=tmp_path / "flash.bin") as board:
        board.wait(lambda seen: seen["out"]["alarm"] == "on", "no fault")
        board.rest(500)
        board.set(service="on")
        board.rest(500)
        done = shakerctl("provision", "--port", board.usb, "--yes", "--set", "table=T2")
        assert (done.code, "keep the board for examination" in done.err) == (1, True), done


def test_without_the_service_key_it_refuses_and_says_what_happened(served, releases):
    done = shakerctl("deploy", "--port", served.usb, "--image", releases["two"], "--yes")
    assert done.code == 1
    assert "not in service mode" in done.err
    assert done.err.count("\n") == 1


def test_a_port_that_goes_and_comes_back_at_each_reset(tmp_path, served_image, releases, monkeypatch):
    monkeypatch.setattr(usb, "BACK_S", 2.0)
    flash = tmp_path / "flash.bin"
    shutil.copyfile(served_image, flash)
    with VirtualBoard(tmp_path / "board", image=flash, vanish=True) as board:
        board.wait(in_service)
        board.set(service="on")
        board.wait(lambda seen: seen["out"]["dome_lock"] == "off")
        assert main(["deploy", "--port", board.usb, "--image", str(releases["two"]), "--yes"]) == 0
        board.expect(f"running from /{slot_of(releases['two'])}".encode())


# -- Broken deployments --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "step", [pytest.param(9, id="thinned"), pytest.param(1, id="every-file", marks=pytest.mark.long)]
)
def test_broken_at_each_file_and_each_step_of_the_switch_a_version_starts(in_bench, releases, step):
    board = in_bench
    one, two = slot_of(releases["one"]), slot_of(releases["two"])
    new = release.load(releases["two"])
    files = [f"/{two}/{path}" for path in new.inside]
    breaks = [f"{what} {path}" for path in files[::step] for what in ("open", "write", "compare")]
    breaks += [
        f"{what} /{name}.new" for name in ("main.py", "current") for what in ("open", "write", "compare")
    ]
    breaks += ["rename /main.py", "rename /current"]
    for at in breaks:

        def spend(what, at=at):
            if what == at:
                raise Cable(what)

        with usb.Usb(board.usb, voice.Voice(assume_yes=True)) as link:
            link.take()
            link.before_each = spend
            with pytest.raises(Cable):
                deploy.deploy(link, new, link.voice)
        assert on_board(board, JUDGE + "print(judge())").strip() == f"/{one}", at
        if at in ("rename /main.py", "rename /current"):
            board.order(restart=1)
            board.wait(in_service, "what was left does not start")
            to_bench(board)
    assert shakerctl("deploy", "--port", board.usb, "--image", releases["two"]).code == 0
    board.wait(in_service, "the new version does not start")
    assert board.heard(f"running from /{two}".encode()) > 0


def test_the_cable_pulled_in_mid_copy_takes_one_line_and_one_more_call(in_bench, releases):
    board = in_bench
    words = ["deploy", "--port", board.usb, "--image", str(releases["two"])]
    operations = board.flash_operations()
    process = subprocess.Popen(
        [sys.executable, "-m", "shakerctl", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    board.wait(lambda seen: process.poll() is not None or board.flash_operations() > operations + 60)
    board.unplug()
    _, err = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "cable" in err
    assert err.count("\n") == 1, err
    board.plug()
    board.order(restart=1)
    board.wait(in_service)
    assert board.heard(f"running from /{slot_of(releases['one'])}".encode()) > 0
    to_bench(board)
    assert shakerctl(*words).code == 0


def replay(log, skip, tmp_path, thin):
    """Return {operations of `log` done: what would start} for a chip that lost its power there."""
    code = (
        JUDGE
        + f"""
import vfs
sys.path[:] = [{str(HERE / "fakes")!r}, {str(FIRMWARE)!r}]
from flash import Flash
log = open({str(log)!r})
sys.modules.pop("shaker", None)
for name in list(sys.modules):
    if name.startswith("shaker"): del sys.modules[name]
sys.path[:] = ["", ".frozen"]
vfs.umount("/")
chip = Flash({BLOCKS})
done = 0
while True:
    line = log.readline()
    if not line: break
    kind, block, offset, data = line.split(" ")
    if kind == "e": chip._erase(int(block))
    else: chip._program(int(block), bytes.fromhex(data.strip()), int(offset))
    done += 1
    if done >= {skip} and (done % {thin} == 0 or done >= {skip} + LAST):
        vfs.mount(vfs.VfsLfs2(chip), "/")
        print(done, judge())
        vfs.umount("/")
"""
    )
    count = log.read_text("ascii").count("\n")
    said = run(
        code.replace("LAST", str(max(0, count - skip - 60))), path=(), heap_bytes=32_000_000, timeout_s=900
    )
    return {int(line.split(" ", 1)[0]): line.split(" ", 1)[1] for line in said.splitlines()}


@pytest.mark.parametrize(
    "thin", [pytest.param(97, id="thinned"), pytest.param(1, id="every-operation", marks=pytest.mark.long)]
)
def test_power_lost_at_any_flash_operation_of_a_deployment(tmp_path, releases, thin):
    log = tmp_path / "log"
    with VirtualBoard(tmp_path / "board", blocks=BLOCKS, log=log) as board:
        ready(board, releases)
        to_bench(board)
        before = board.flash_operations()
        assert shakerctl("deploy", "--port", board.usb, "--image", releases["two"]).code == 0
        board.wait(in_service)
    starts = replay(log, before, tmp_path, thin)
    one, two = "/" + slot_of(releases["one"]), "/" + slot_of(releases["two"])
    order = [starts[done] for done in sorted(starts)]
    assert set(order) == {one, two}, set(order)
    assert order == sorted(order, key=lambda folder: folder == two), "once new, it stays new"


def test_the_power_cut_in_the_switch_itself(in_bench, releases):
    board = in_bench
    with usb.Usb(board.usb, voice.Voice()) as link:
        link.take()

        def cut(what):
            if what == "rename /current":
                link.patience_s = 1
                board.order(root_cut=1)

        link.before_each = cut
        with pytest.raises(trouble.Trouble, match="stopped answering"):
            deploy.deploy(link, release.load(releases["two"]), link.voice)
    assert not board.seen["powered"]
    board.order(power="on")
    board.wait(in_service, "neither version starts")


# -- What a technician meets ---------------------------------------------------------------------------------


def refused(done, *words):
    """The command failed with one line that holds all `words`."""
    assert done.code == 1, done
    assert done.err.count("\n") == 1, done.err
    assert "Traceback" not in done.err + done.out
    for word in words:
        assert word in done.err, done.err


def test_no_such_port(tmp_path, releases):
    refused(shakerctl("deploy", "--port", tmp_path / "usb", "--image", releases["one"]), "no port", "plug")


def test_a_port_that_is_in_use(served, releases):
    with serial.Serial(served.usb, exclusive=True):
        refused(shakerctl("deploy", "--port", served.usb, "--image", releases["one"]), "in use", "close")


def test_a_file_is_no_port(tmp_path, releases):
    (tmp_path / "file").write_text("")
    refused(shakerctl("deploy", "--port", tmp_path / "file", "--image", releases["one"]), "serial port")


def test_a_silent_board(tmp_path, releases, monkeypatch, capsys):
    monkeypatch.setattr(usb, "STOP_S", 1.0)
    with VirtualBoard(tmp_path / "board") as board:
        board.order(power="off")
        code = main(["deploy", "--port", board.usb, "--image", str(releases["one"]), "--yes"])
    assert code == 1
    assert "says nothing" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"version": (1, 25, 0)}, ("1.25 is too old", "flash")),
        ({"machine": "Generic ESP32S3 module with ESP32S3"}, ("Wrong chip", "ESP32S3")),
        ({"platform": "rp2", "machine": "Raspberry Pi Pico with RP2040"}, ("Wrong chip", "Pico")),
        ({"blocks": 20}, ("No space", "free")),
    ],
)
def test_a_board_that_will_not_do(tmp_path, releases, options, words):
    with VirtualBoard(tmp_path / "board", **options) as board:
        refused(shakerctl("deploy", "--port", board.usb, "--image", releases["one"]), *words)


def test_what_has_the_name_of_ours_and_is_of_another_kind_is_named_and_kept(tmp_path, releases):
    slot = slot_of(releases["one"])
    deploying = ("deploy", "--image", releases["one"], "--port")
    with VirtualBoard(tmp_path / "board") as board:
        for path in ("/current", "/boot.py.new", f"/{slot}/manifest.json"):
            on_board(board, f"import os\nif {path.count('/')} > 1: os.mkdir('/{slot}')\nos.mkdir({path!r})")
            refused(shakerctl(*deploying, board.usb), f"{path} on the board is a folder", f"rm -r :{path}")
            on_board(board, f"import os\nos.rmdir({path!r})")
        on_board(board, f"import os\nos.rmdir('/{slot}')\nopen('/{slot}', 'w').close()")
        refused(shakerctl(*deploying, board.usb), f"/{slot} on the board is a file", f"rm -r :/{slot}")
        assert on_board(board, "import os\nprint(os.listdir('/'))").strip() == f"['boot.py', '{slot}']"


def test_space_is_made_from_versions_nobody_needs_before_it_is_refused(tmp_path, releases):
    with VirtualBoard(tmp_path / "board", blocks=72) as board:
        on_board(
            board,
            "import os\nos.mkdir('/fw-00000000')\nwith open('/fw-00000000/a.py', 'w') as f:\n"
            "  for i in range(100): f.write('#' * 1024)",
        )
        ready(board, releases)


def test_the_flash_fails_in_mid_copy(tmp_path, releases):
    with VirtualBoard(tmp_path / "board") as board:
        board.order(root_fail=40)
        refused(shakerctl("deploy", "--port", board.usb, "--image", releases["one"]), "board said", "again")
        ready(board, releases)


def test_a_command_that_fails_starts_the_shaker_it_stopped(served, releases, monkeypatch):
    def no_room(*_):
        raise trouble.Trouble("No space")

    monkeypatch.setattr(deploy, "_make_room", no_room)
    served.set(service="on")
    served.wait(lambda seen: seen["out"]["dome_lock"] == "off")
    refused(shakerctl("deploy", "--port", served.usb, "--image", releases["two"], "--yes"), "No space")
    served.expect(f"running from /{slot_of(releases['one'])}".encode(), 2)
    assert served.resets == ["reset", "reset"]


def test_a_shaker_that_cannot_be_started_again_is_said_to_be_stopped(in_bench, releases, monkeypatch):
    monkeypatch.setattr(usb, "CUT_S", 1)

    def pulled(*_):
        in_bench.unplug()
        raise trouble.unplugged(in_bench.usb)

    monkeypatch.setattr(deploy, "_make_room", pulled)
    done = shakerctl("deploy", "--port", in_bench.usb, "--image", releases["two"])
    refused(done, "went away")
    assert "The shaker is stopped" in done.out


def cut_in_a_paste(monkeypatch, error):
    """Let the paste of one piece of a file end half-way, as by Ctrl-C."""
    whole = usb.SerialTransport.raw_paste_write

    def half(link, data):
        if not data.startswith(b"f.write("):
            return whole(link, data)
        link.serial.read(2)
        link.serial.write(data[: len(data) // 2])
        raise error

    monkeypatch.setattr(usb.SerialTransport, "raw_paste_write", half)


def test_ctrl_c_in_a_copy_leaves_the_board_as_it_should_be(in_bench, releases, monkeypatch):
    with monkeypatch.context() as patch:
        cut_in_a_paste(patch, KeyboardInterrupt)
        done = shakerctl("deploy", "--port", in_bench.usb, "--image", releases["two"])
    assert (done.code, "interrupted" in done.err, done.err.count("\n")) == (1, True, 1)
    in_bench.expect(f"running from /{slot_of(releases['one'])}".encode(), 2)
    in_bench.wait(in_service)


def test_a_tool_that_died_in_mid_paste_is_no_running_shaker(in_bench, releases, monkeypatch):
    with monkeypatch.context() as patch:
        cut_in_a_paste(patch, Cable)
        patch.setattr(usb.Usb, "__exit__", lambda link, *_: link.wire.close())
        with pytest.raises(Cable):
            shakerctl("deploy", "--port", in_bench.usb, "--image", releases["two"])
    ready(in_bench, releases, "two")


def test_a_tool_that_died_in_the_raw_repl_is_no_running_shaker(tmp_path, releases):
    with VirtualBoard(tmp_path / "board") as board:
        with serial.Serial(board.usb, timeout=10) as port:
            port.write(b"\r\x01")
            assert b"raw REPL" in port.read_until(b"exit\r\n>")
        ready(board, releases)


def test_an_altered_program_runs_nothing_and_is_deployed_over_without_asking(in_bench, releases):
    board = in_bench
    slot = slot_of(releases["one"])
    on_board(board, f"with open('/{slot}/shaker/round.mpy', 'ab') as f: f.write(b'x')")
    board.order(restart=1)
    board.expect(b"program-altered: shaker/round.mpy")
    board.wait(lambda seen: seen["out"]["alarm"] == "on")
    assert board.output("dome_lock") == "off"
    done = json.loads(shakerctl("deploy", "--port", board.usb, "--image", releases["one"], "--json").out)
    assert done["copied"] == ["shaker/round.mpy"]
    board.wait(in_service)


@pytest.mark.parametrize("name", ["boot.py", "main.py"])
def test_boot_and_main_are_covered_by_the_manifest_too(in_bench, releases, name):
    on_board(in_bench, f"with open('/{name}', 'a') as f: f.write('# x')")
    in_bench.order(restart=1)
    in_bench.expect(f"program-altered: ../{name}".encode())


# Built-in modules that MicroPython looks for in sys.path first; the virtual board itself needs none of these.
SHADOWED = ("binascii", "hashlib", "io", "json", "struct")


def test_a_file_beside_the_program_is_never_imported_instead_of_a_built_in_module(in_bench):
    board = in_bench
    on_board(
        board,
        f"""
import os
os.mkdir("/lib")
for name in {SHADOWED!r}:
    for folder in ("/", "/lib/"):
        with open(folder + name + ".py", "w") as f: f.write("print('the file', __name__)")
""",
    )
    assert "the file struct" in on_board(board, "import struct")  # what the files do to who lets them
    count = board.heard(b"the file")
    board.order(restart=1)
    board.wait(in_service)
    assert json.loads(shakerctl("send", "--port", board.uart, "--json", "hello").out)
    assert board.heard(b"the file") == count


@pytest.mark.parametrize("soft_reset", [True, False])
def test_in_service_the_technician_has_the_path_of_the_port(in_bench, soft_reset):
    link = SerialTransport(os.path.realpath(in_bench.usb), timeout=60)
    try:
        link.enter_raw_repl(soft_reset=soft_reset)  # with it boot.py runs and main.py does not
        assert link.exec("import sys\nprint(sys.path)").strip() == b"['', '.frozen', '/lib']"
    finally:
        link.close()


def test_a_stock_image_without_partitions_serves_too(tmp_path, releases):
    with VirtualBoard(tmp_path / "board", data=0) as board:
        ready(board, releases)
        board.set(service="on")
        board.wait(lambda seen: seen["out"]["dome_lock"] == "off")
        to_bench(board)
        assert "tail.log" in on_board(board, "import os\nprint(os.listdir('/data'))")
