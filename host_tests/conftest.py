"""What several test files share: releases, and virtual boards that are ready for service."""

import contextlib
import io
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from mpremote.transport_serial import SerialTransport

from interpreter import FIRMWARE
from shakerctl import image, release
from shakerctl.__main__ import main
from virtualboard import VirtualBoard

# What a shell starts in the background ignores Ctrl-C, and so does all it starts; some tests press it.
signal.signal(signal.SIGINT, signal.default_int_handler)

KEY = "00112233445566778899aabbccddeeff" * 2
TOOL_S = 120


class Done:
    """How a command of ours ended."""

    def __init__(self, code, out, err):
        self.code = code
        self.out = out
        self.err = err

    def __repr__(self):
        return f"exit {self.code}\n{self.out}\n{self.err}"


def process(words, **options):
    """Run a command as a process of its own."""
    done = subprocess.run(words, capture_output=True, text=True, timeout=TOOL_S, **options)
    return Done(done.returncode, done.stdout, done.stderr)


def shakerctl(*words, **options):
    """Run shakerctl: with options of subprocess.run as a process, else here, which is quicker."""
    line = [str(word) for word in words]
    if options:
        return process([sys.executable, "-m", "shakerctl", *line], **options)
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(line)
    return Done(code, out.getvalue(), err.getvalue())


def mpremote(port, *words):
    """Run the real mpremote on a port."""
    return process([sys.executable, "-m", "mpremote", "connect", str(port), *words])


def on_board(board, code):
    """Return what `code` prints in the raw REPL, by mpremote's own transport."""
    link = SerialTransport(os.path.realpath(board.usb), timeout=TOOL_S)
    try:
        link.enter_raw_repl()
        return link.exec(code).decode()
    finally:
        link.close()


@pytest.fixture(scope="session")
def releases(tmp_path_factory):
    """Two releases as `make image` makes them; they differ in a module, in main.py and in their version."""
    folder = tmp_path_factory.mktemp("releases")
    image.build(FIRMWARE, folder / "one")
    changed = folder / "tree"
    shutil.copytree(FIRMWARE, changed, ignore=shutil.ignore_patterns("__pycache__", "docs"))
    version = changed / "shaker/version.py"
    version.write_text(version.read_text().replace('VERSION = "', 'VERSION = "9.'))
    main = changed / "main.py"
    main.write_text(main.read_text() + "# another one\n")
    image.build(changed, folder / "two")
    return {"one": folder / "one", "two": folder / "two"}


@pytest.fixture(scope="session")
def served_image(tmp_path_factory, releases):
    """The flash of a board that was deployed and provisioned with KEY and table T1."""
    folder = tmp_path_factory.mktemp("served")
    flash = folder / "flash.bin"
    (folder / "settings.json").write_text(f'{{"table":"T1","key":"{KEY}"}}')
    with VirtualBoard(folder / "board", image=flash) as board:
        done = shakerctl(
            "deploy", "--port", board.usb, "--image", releases["one"], "--settings", folder / "settings.json"
        )
        assert done.code == 0, done
        board.wait(in_service)
    return flash


@pytest.fixture
def key_file(tmp_path):
    """The table's key as a file."""
    path = tmp_path / "key"
    path.write_text(KEY + "\n")
    return path


@pytest.fixture
def served(tmp_path, served_image):
    """A board in service: the first release runs, the table is at rest."""
    flash = tmp_path / "flash.bin"
    shutil.copyfile(served_image, flash)
    with VirtualBoard(tmp_path / "board", image=flash) as board:
        board.wait(in_service, "the shaker did not start")
        yield board


@pytest.fixture
def in_bench(served):
    """The same board, its shaker stopped by its technician: the REPL is free, every output off."""
    to_bench(served)
    return served


def to_bench(board):
    """Turn the service key, press Ctrl-C, and wait until the board is free; the key goes off again."""
    board.set(service="on")
    board.wait(lambda seen: seen["out"]["dome_lock"] == "off", "no service mode")
    count = board.heard(b"bench:")
    with open(board.usb, "wb", buffering=0) as port:
        port.write(b"\x03")
    board.expect(b"bench:", count + 1)
    board.set(service="off")


def in_service(seen):
    """The firmware runs: at rest it bolts the dome, and the status LED shows the phase."""
    return seen["out"]["dome_lock"] == "on" and seen["out"]["alarm"] == "off" and any(seen["status"])


def slot_of(folder: Path):
    """Return the slot that a release lies in on a board."""
    return release.load(folder).slot
