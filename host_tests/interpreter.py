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


def run(code, *words, path=(FIRMWARE, HERE / "fakes", HERE), heap_bytes=2_000_000, cwd=None, timeout_s=120):
    """Return what `code` prints under MicroPython, with sys.argv[1:] = `words`; raises InterpreterError."""
    done = subprocess.run(
        [MICROPYTHON, "-X", f"heapsize={heap_bytes}", "-c", code, *map(str, words)],
        env=dict(os.environ, MICROPYPATH=":".join(map(str, path))),
        cwd=cwd,
        capture_output=True,
        timeout=timeout_s,
    )
    if done.returncode:
        raise InterpreterError((done.stdout + done.stderr).decode("utf-8", "replace"))
    return done.stdout.decode("utf-8")
