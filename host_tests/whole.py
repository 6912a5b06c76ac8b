"""Runs a module of the whole firmware's tests, on CPython or MicroPython, on a staged program."""

import os
import pathlib
import subprocess
import tempfile

import play

INTERPRETERS = ("CPython", "MicroPython")
_LONG_S = 1800


class Wrong(AssertionError):
    """What the module printed before it ended with an error."""


def staged():
    """Return the folder of the firmware as a deployment makes it, staged once for this process."""
    if not _staged:
        folder = tempfile.TemporaryDirectory()
        play.stage(pathlib.Path(folder.name))
        _staged.append(folder)
    return pathlib.Path(_staged[0].name)


_staged: list = []


def released(folder):
    """Write the firmware into `folder` as `make deploy` copies it, cross-compiled; return the folder."""
    from shakerctl import image

    play.stage(folder, image.release_files(play.FIRMWARE))
    return folder


def run(interpreter, module, *args, program=None, heap=None):
    """Return the lines that host_tests/<module>.py prints when given the program and `args`; raises Wrong."""
    program = program or staged()
    command = list(play.interpreters()[interpreter])
    if heap and interpreter == "MicroPython":
        command[2] = f"heapsize={heap}"
    done = subprocess.run(
        [*command, play.HERE / f"{module}.py", program, *map(str, args)],
        env={**os.environ, **play.environment(program)[interpreter]},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_LONG_S,
    )
    lines = [line for line in done.stdout.splitlines() if not line.startswith("shaker: running")]
    if done.returncode:
        raise Wrong(f"{module} on {interpreter}:\n" + "\n".join(lines[-40:]))
    return lines


def restage(folder, path, text):
    """Write `text` to file `path` of the staged firmware in `folder`, and the manifest that goes with it."""
    from shaker.version import VERSION
    from shakerctl import manifest

    (folder / path).write_text(text)
    files = {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*.py")}
    (folder / manifest.NAME).write_bytes(manifest.build(files, VERSION))


def mutant(folder, path, old, new):
    """Stage the firmware in `folder` with `old` replaced by `new` in file `path`; return the folder."""
    play.stage(folder)
    text = (folder / path).read_text()
    if text.count(old) != 1:
        raise Wrong(f"{path} has {text.count(old)} times: {old}")
    restage(folder, path, text.replace(old, new))
    return folder


def allocating(folder, module, old, what="[0]"):
    """Stage the firmware with `what`, which allocates, before text `old` of a module; return the folder."""
    indent = old[: len(old) - len(old.lstrip())]
    return mutant(folder, f"shaker/{module}.py", old, indent + what + "\n" + old)
