"""The virtual board behaves as an ESP32 at its USB port, seen with the real mpremote and with plain bytes."""

import hashlib
import os
import time

import pytest
import serial
from mpremote.transport import TransportExecError
from mpremote.transport_serial import SerialTransport

from conftest import mpremote, on_board
from virtualboard import UNREAD_S, VirtualBoard, _Port


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    with VirtualBoard(tmp_path_factory.mktemp("board"), blocks=48) as board:
        yield board


@pytest.fixture
def board(shared):
    """An empty board at its prompt."""
    on_board(
        shared,
        "import os, machine\nfor n in os.listdir('/'):\n  try: os.remove('/' + n)\n  except OSError: pass\n"
        "machine.RTC().memory(b'')",
    )
    return shared


def run(board, code):
    return on_board(board, code).split()


def put(board, name, text):
    on_board(board, f"with open('/{name}', 'w') as f: f.write({text!r})")


def start(board, code):
    """Let `code` run, and do not wait for it."""
    link = SerialTransport(os.path.realpath(board.usb), timeout=20)
    link.enter_raw_repl()
    link.exec_raw_no_follow(code)
    link.close()


def restart(board):
    """Reset it by machine.reset(), and wait until it has."""
    count = len(board.resets)
    start(board, "import machine\nmachine.reset()")
    board.wait(lambda seen: len(board.resets) > count, "no reset")


def test_mpremote_copies_lists_hashes_and_removes_files(board, tmp_path):
    text = b"hello\n" * 500
    (tmp_path / "note.txt").write_bytes(text)
    copied = mpremote(board.usb, "cp", str(tmp_path / "note.txt"), ":/note.txt", "+", "ls", ":")
    assert "3000 note.txt" in copied.out, copied
    seen = mpremote(board.usb, "sha256sum", ":/note.txt", "+", "cat", ":/note.txt", "+", "rm", ":/note.txt")
    assert hashlib.sha256(text).hexdigest() in seen.out
    assert seen.out.count("hello") == 500
    assert "note.txt" not in mpremote(board.usb, "ls", ":", "+", "df").out


def test_mpremote_resets_it(board):
    put(board, "main.py", "print('main ran')\n")
    count = board.heard(b"main ran")
    assert mpremote(board.usb, "soft-reset").code == 0
    assert mpremote(board.usb, "reset").code == 0
    board.expect(b"main ran", count + 1)
    board.wait(lambda seen: board.resets, "no reset")  # what it prints and what it does come by two ways


def test_mpremote_works_at_the_terminals_own_name_too(board):
    name = os.path.realpath(board.usb)
    assert name.startswith("/dev/pts/")
    assert mpremote(name, "eval", "6 * 7").out.strip() == "42"


def test_the_root_is_the_devices_own_and_hides_the_host(board):
    assert run(board, "import os\nprint(os.listdir('/'), os.getcwd())") == ["[]", "/"]
    assert run(board, "try: open('/etc/passwd')\nexcept OSError as e: print('errno', e.args[0])")[-1] == "2"
    assert run(board, "import sys\nprint(sys.platform, sys.implementation.version[:2])") == [
        "esp32",
        "(1,",
        "27)",
    ]


def test_files_survive_a_soft_reset_a_reset_and_a_power_cut(board):
    put(board, "note.txt", "kept")
    restart(board)
    board.order(power="off")
    board.order(power="on")
    assert run(board, "print(open('/note.txt').read())") == ["kept"]


def test_rtc_memory_survives_a_reset_and_no_power_cut(board):
    run(board, "import machine\nmachine.RTC().memory(b'note')")
    restart(board)
    assert run(board, "import machine\nprint(machine.RTC().memory(), machine.reset_cause())")[0] == "b'note'"
    board.order(power="off")
    board.order(power="on")
    assert run(board, "import machine\nprint(machine.RTC().memory())") == ["b''"]


def test_a_soft_reset_forgets_every_name_and_leaves_levels(board):
    run(board, "import machine\nx = 1\nmachine.Pin(19, machine.Pin.OUT, value=1)")
    board.wait(lambda seen: seen["out"]["alarm"] == "on")
    said = board.heard(b"MPY: soft reboot")
    assert run(board, "print('x' in globals())") == ["False"]
    assert board.heard(b"MPY: soft reboot") == said + 1
    assert board.output("alarm") == "on", "nothing turns a GPIO off for you (PITFALLS 1)"
    restart(board)
    assert board.output("alarm") == "on", "nor does a reset by the program"
    board.order(power="off")
    board.order(power="on")
    board.wait(lambda seen: seen["powered"] and seen["out"]["alarm"] == "off")


def test_boot_py_runs_first_then_main_py_in_the_same_names(board):
    put(board, "boot.py", "x = 'from boot'\nprint('boot ran')\n")
    put(board, "main.py", "print('main saw', x)\n")
    count = board.heard(b"main saw from boot")
    restart(board)
    board.expect(b"main saw from boot", count + 1)


def test_the_raw_repl_skips_main_py(board):
    put(board, "boot.py", "print('boot ran')\n")
    put(board, "main.py", "print('main ran')\n")
    boots, mains = board.heard(b"boot ran"), board.heard(b"main ran")
    run(board, "pass")
    assert board.heard(b"boot ran") == boots + 1
    assert board.heard(b"main ran") == mains


def test_an_exception_in_boot_py_makes_it_skip_main_py(board):
    put(board, "boot.py", "1 / 0\n")
    put(board, "main.py", "print('main ran')\n")
    errors, mains = board.heard(b"ZeroDivisionError"), board.heard(b"main ran")
    restart(board)
    board.expect(b"ZeroDivisionError", errors + 1)
    assert run(board, "print(1)") == ["1"]
    assert board.heard(b"main ran") == mains


def test_ctrl_c_interrupts_a_program_and_the_prompt_follows(board):
    put(board, "main.py", "import time\nprint('busy')\nwhile True: time.sleep_ms(5)\n")
    count = board.heard(b"busy")
    restart(board)
    board.expect(b"busy", count + 1)
    with serial.Serial(board.usb, timeout=20) as port:
        port.write(b"hello\x03")
        assert b"KeyboardInterrupt" in port.read_until(b">>> ")
        port.write(b"6 * 7\r")
        assert b"\r\n42\n>>> " in port.read_until(b"\n>>> ")


def test_a_program_that_waits_by_the_clock_alone_lets_time_pass(board):
    code = "from time import *\nt = ticks_ms()\nwhile ticks_diff(ticks_ms(), t) < 50: pass\nprint('over')"
    assert run(board, code) == ["over"]


def test_the_watchdog_resets_a_program_that_does_not_feed_it(board):
    count = len(board.resets)
    mpremote(
        board.usb,
        "exec",
        "--no-follow",
        "import machine, time\nmachine.WDT(timeout=500)\ntime.sleep_ms(5000)",
    )
    board.wait(lambda seen: board.resets[count:] == ["watchdog"], "no bite")


def test_the_pins_are_the_tables_and_the_plant_answers(board):
    code = "import machine\nprint(machine.Pin(13, machine.Pin.IN).value())"
    board.set(cover="off")
    assert run(board, code) == ["1"]
    board.set(cover="on")
    assert run(board, code) == ["0"]
    board.set(cover="off")
    with pytest.raises(TransportExecError, match="not in the pin table"):
        run(board, "import machine\nmachine.Pin(1)")


def test_a_full_flash_says_so(board):
    code = "f = open('/big', 'wb')\nfor _ in range(300): f.write(b'x' * 1024)"
    with pytest.raises(TransportExecError, match=r"OSError: 28|ENOSPC"):
        run(board, code)
    run(board, "import os\nos.remove('/big')")


def test_a_pulled_cable_stops_nothing(board):
    code = "import machine, time\ntime.sleep_ms(1000)\nmachine.Pin(19, machine.Pin.OUT, value=1)"
    start(board, code)
    board.unplug()
    assert not os.path.exists(board.usb)
    board.wait(lambda seen: seen["out"]["alarm"] == "on", "the program stopped")
    board.plug()
    assert run(board, "print('back')") == ["back"]


def test_what_nobody_reads_is_lost_and_never_waited_for(tmp_path):
    port = _Port(tmp_path / "port")
    begun = time.monotonic()
    for _ in range(9):
        port.write(b"x" * 5000)
    assert time.monotonic() - begun < UNREAD_S
    with serial.Serial(str(port.path), timeout=0) as late:  # empties the line as it opens
        time.sleep(UNREAD_S + 0.1)
        port.flush()
        while late.read(4096):
            port.flush()
        port.write(b"y" * 9000)
        heard = b""
        while len(heard) < 9000:  # a reader that is there gets everything
            heard += late.read(100)
            port.flush()
        assert heard == b"y" * 9000
    port.close()


def test_partitions_are_there_only_where_the_image_has_them(board, tmp_path):
    code = "import esp32\nprint(len(esp32.Partition.find(esp32.Partition.TYPE_DATA, label='data')))"
    assert run(board, code) == ["1"]
    with VirtualBoard(tmp_path / "stock", data=0) as stock:
        assert run(stock, code) == ["0"]
