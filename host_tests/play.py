"""`make scenario FILES="…"`: plays scenario files on CPython and on the real MicroPython interpreter.

A file passes when it passes on both and their traces are the same. Prints what went wrong with file, line and
time, and `N passed, N failed` last; exits with 1 when anything failed, 2 when the call itself is wrong.
"""

import argparse
import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
FIRMWARE = ROOT / "firmware"
HEAP = "48m"  # the simulated flash chip and the traces live in it too


def stage(folder, files=None):
    """Copy what goes on the device into `folder` and add its manifest, as a deployment does.

    files: {path: content}; the firmware's sources unless given.
    """
    from shaker.version import VERSION
    from shakerctl import manifest

    if files is None:
        sources = [FIRMWARE / "boot.py", FIRMWARE / "main.py", *sorted((FIRMWARE / "shaker").glob("*.py"))]
        files = {str(path.relative_to(FIRMWARE)): path.read_bytes() for path in sources}
    files[manifest.NAME] = manifest.build(files, VERSION)
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


def environment(program):
    """Return {interpreter: environment} in which it finds the fakes and the staged program."""
    path = os.pathsep.join(str(p) for p in (HERE / "fakes", HERE, program))
    shims = os.pathsep.join((path, str(HERE / "shims")))
    return {
        "CPython": {**os.environ, "PYTHONPATH": shims, "PYTHONDONTWRITEBYTECODE": "1"},
        "MicroPython": {**os.environ, "MICROPYPATH": path + os.pathsep + ".frozen"},
    }


def interpreters():
    """Return {name: command}; raises FileNotFoundError when there is no micropython."""
    here = str(pathlib.Path(sys.executable).parent)
    micropython = shutil.which("micropython", path=os.pathsep.join((here, os.environ.get("PATH", ""))))
    if micropython is None:
        raise FileNotFoundError("no 'micropython' on PATH: run this with `make scenario`, which installs it")
    return {
        "CPython": [sys.executable],
        "MicroPython": [micropython, "-X", "heapsize=" + HEAP],
    }


def start(name, command, program, traces, paths, first):
    """Start interpreter `name` on `paths`, those before `first` left out."""
    traces.mkdir(exist_ok=True)
    script = str(HERE / "run_scenarios.py")
    return subprocess.Popen(
        [*command, script, str(program), str(traces), str(first), *map(str, paths[first:])],
        env=environment(program)[name],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def end(process):
    """Let a process be gone."""
    process.kill()
    process.wait()


def judged(output, first=0):
    """Return [(passed, explanation)] of the files done, from number `first` on, and what was said after."""
    found = []
    said = []  # what the firmware's top guard printed, say
    for line in output.splitlines():
        number = first + len(found)
        if line in (f"ok {number}", f"bad {number}"):
            found.append((line.startswith("ok"), said))
            said = []
        else:
            said.append(line if line.startswith("    ") else "    " + line)
    return found, said


def verdicts(output, count):
    """Return [(passed, explanation)] for each of `count` files from what was printed about them."""
    found, said = judged(output)
    return found + [stopped(said)] * (count - len(found))


def stopped(said):
    """Return the verdict on a file in which the interpreter stopped."""
    return False, ["    the interpreter stopped before this file was done:", *said[-12:]]


def difference(first, second):
    """Return the first line in which two traces differ, in words, or None."""
    a = first.read_text().splitlines() if first.exists() else []
    b = second.read_text().splitlines() if second.exists() else []
    for i in range(max(len(a), len(b))):
        here = a[i] if i < len(a) else "(end)"
        there = b[i] if i < len(b) else "(end)"
        if here != there:
            return (
                f"    traces differ at change {i + 1}:\n      CPython     {here}\n      MicroPython {there}"
            )
    return None


def play_all(paths, program, work):
    """Return {interpreter: [(passed, explanation)] of each file}; traces go to `work`/interpreter.

    One process each, and another one for what follows a file that no interpreter survives.
    """
    commands = interpreters()
    results = {name: [] for name in commands}
    while any(len(found) < len(paths) for found in results.values()):
        with contextlib.ExitStack() as ends:  # whatever happens, no process is left behind
            running = {}
            for name, found in results.items():
                if len(found) < len(paths):
                    process = start(name, commands[name], program, work / name, paths, len(found))
                    running[name] = ends.enter_context(process)
                    ends.callback(end, process)
            for name, process in running.items():
                found = results[name]
                done, said = judged(process.communicate()[0], len(found))
                found += done
                if len(found) < len(paths):
                    found.append(stopped(said))
    return results


def complaints(paths, trace=None):
    """Play `paths` on both interpreters; return what is wrong with each, in lines.

    trace: called with each path and its trace, every change as JSON lines, or None.
    """
    with tempfile.TemporaryDirectory() as scratch:
        work = pathlib.Path(scratch)
        program = work / "program"
        stage(program)
        results = play_all(paths, program, work)
        found = []
        for i, path in enumerate(paths):
            lines = []
            for name, result in results.items():
                passed, why = result[i]
                if not passed:
                    lines += [f"FAILED {path} on {name}", *why]
            traces = [work / name / f"{i}.trace" for name in results]
            if not lines:
                differs = difference(*traces)
                if differs:
                    lines += [f"FAILED {path}: the interpreters do not agree", differs]
            if trace and traces[0].exists():
                trace(path, traces[0].read_text())
            found.append(lines)
    return found


def keep_in(folder):
    """Return a `trace` for play() that writes each file's trace into `folder`; OSError where it cannot be."""
    folder.mkdir(parents=True, exist_ok=True)

    def keep(path, text):
        (folder / trace_name(path)).write_text(text)

    return keep


def trace_name(path):
    """Return the name of a scenario's trace: its path, so that files of one name do not meet."""
    path = pathlib.Path(path).resolve()
    path = path.relative_to(HERE / "scenarios") if path.is_relative_to(HERE / "scenarios") else path.name
    return str(path).replace("/", "-").removesuffix(".scn") + ".jsonl"


def play(paths, trace=None):
    """Play `paths` on both interpreters; print what failed; return (passed, failed)."""
    found = complaints(paths, trace)
    for lines in found:
        if lines:
            print("\n".join(lines))
    failed = sum(bool(lines) for lines in found)
    return len(paths) - failed, failed


def find_modules():
    """Let this interpreter import the project's own modules."""
    sys.path[:0] = [str(p) for p in (HERE, HERE / "fakes", HERE / "shims", FIRMWARE, ROOT / "tools")]


def main(argv=None):
    """Play the files of the command line."""
    find_modules()
    import scenario

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("files", nargs="+", metavar="FILE", help="scenario files (.scn), or folders of them")
    parser.add_argument("--trace", action="store_true", help="write every change as JSON lines")
    parser.add_argument(
        "--trace-dir", metavar="DIR", type=pathlib.Path, help="write them to a file each in DIR"
    )
    args = parser.parse_args(argv)
    trace = (lambda _, text: print(text, end="")) if args.trace else None
    if args.trace_dir:
        try:
            trace = keep_in(args.trace_dir)
        except OSError as error:
            parser.error(f"--trace-dir {args.trace_dir}: {error.strerror}")
    paths = []
    wrong = 0
    for name in args.files:
        path = pathlib.Path(name)
        try:
            files = sorted(path.glob("**/*.scn")) if path.is_dir() else [path]
        except OSError as error:
            files = []
            wrong += 1
            print(f"{path}: {error.strerror}")
        else:
            if not files:
                wrong += 1
                print(f"{path}: no scenario (.scn) in this folder")
        for file in files:
            try:
                scenario.parse(file.read_text(encoding="utf-8"), str(file))
                paths.append(file)
            except OSError as error:
                wrong += 1
                print(f"{file}: {error.strerror}")
            except UnicodeDecodeError:
                wrong += 1
                print(f"{file}: is not UTF-8 text")
            except scenario.ScenarioError as error:
                wrong += 1
                print(error)
    try:
        passed, failed = play(paths, trace) if paths else (0, 0)
    except FileNotFoundError as error:
        print(error)
        return 2
    print(f"{passed} passed, {failed + wrong} failed")
    return 1 if failed or wrong or not passed else 0


if __name__ == "__main__":
    try:
        code = main()
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("make scenario: interrupted.", file=sys.stderr)
        code = 130
    except BrokenPipeError:  # who reads has had enough; what is left in the buffer goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    sys.exit(code)
