"""Runs a piece of Python under the real MicroPython interpreter (unix port) of this environment."""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
FIRMWARE = ROOT / "firmware"
MICROPYTHON = Path(sys.executable).with_name("micropython")


class InterpreterError(Exception):
    """What ran under MicroPython ended with an error; the text is what it wrote."""


def run(code, stdin="", path=(FIRMWARE, HERE / "fakes", HERE), heap_bytes=2_000_000, cwd=None, timeout_s=120):
    """Return what `code` prints under MicroPython when fed `stdin` (ASCII); raises InterpreterError.

    Give it data by stdin, not in sys.argv: MicroPython dies of a word longer than 255 characters.
    """
    done = subprocess.run(
        [MICROPYTHON, "-X", f"heapsize={heap_bytes}", "-c", code],
        env=dict(os.environ, MICROPYPATH=":".join(map(str, path))),
        cwd=cwd,
        input=stdin.encode("ascii"),
        capture_output=True,
        timeout=timeout_s,
    )
    if done.returncode:
        raise InterpreterError((done.stdout + done.stderr).decode("utf-8", "replace"))
    return done.stdout.decode("utf-8")
