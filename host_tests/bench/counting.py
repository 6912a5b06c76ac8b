"""Runs a program on the real MicroPython interpreter under valgrind and reads its marks (marks.py).

Owns the command line of callgrind and its dumps. Instructions are those of the whole interpreter, whatever
the machine is doing besides, so a figure is the same every time.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from interpreter import FIRMWARE, HERE, MICROPYTHON

BENCH = HERE / "bench"


class Missing(Exception):
    """Something that has to be installed by hand; the text says how."""


def valgrind():
    """Return the path of valgrind, or raise Missing."""
    found = shutil.which("valgrind")
    if not found:
        raise Missing("make bench counts instructions with valgrind. Debian: apt-get install valgrind")
    return found


def _totals(folder):
    """Return the instructions of every dump, in order."""
    found = {}
    for path in folder.glob("count.*"):
        total = re.search(r"^totals: (\d+)", path.read_text(errors="replace"), re.M)
        if total and path.suffix[1:].isdigit():
            found[int(path.suffix[1:])] = int(total[1])
    return [found[number] for number in sorted(found)]


def count(program, *path):
    """Run <program>.py of this folder; return [(label, instructions)] of its marks. path: further folders."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        words = [valgrind(), "--tool=callgrind", f"--callgrind-out-file={folder / 'count'}"]
        words += [
            "--dump-before=getenv",
            sys.executable,
            MICROPYTHON,
            "-X",
            "heapsize=32m",
            BENCH / f"{program}.py",
        ]
        places = [*path, BENCH, HERE / "fakes", HERE, FIRMWARE, ".frozen"]
        env = dict(os.environ, MICROPYPATH=":".join(map(str, places)), PYTHONHASHSEED="0")
        done = subprocess.run(words, cwd=name, env=env, capture_output=True, text=True, errors="replace")
        labels = [line[5:] for line in done.stdout.splitlines() if line.startswith("MARK ")]
        if done.returncode or not labels:
            raise RuntimeError(f"{program} under valgrind:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
        totals = _totals(folder)
    # The last dump is the program's end; before it, in turn, what lay between the marks of a pair and what
    # lay between two pairs.
    inside = totals[-2 : -2 - 2 * len(labels) : -2][::-1]
    return list(zip(labels, inside, strict=True))


def differences(counted):
    """Return {label: instructions for one turn} of what per_turn() marked."""
    few, many, found = {}, {}, {}
    for label, instructions in counted:
        words = label.split()
        if words[-2] in ("few", "many"):
            where = few if words[-2] == "few" else many
            where[" ".join(words[:-2])] = (int(words[-1]), instructions)
    for label, (turns, instructions) in many.items():
        found[label] = (instructions - few[label][1]) / (turns - few[label][0])
    return found
