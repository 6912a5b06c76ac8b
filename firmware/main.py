"""Runs after boot.py: checks the program, then runs it; and the top guard, which alone catches everything.

Whatever reaches the top, Ctrl-C included, ends with every output safe, one `fault internal-error` event and
a restart: never in a REPL with a live output. The REPL is reached on purpose only: Ctrl-C in service mode
(key on, no round open) leaves a note in RTC memory and restarts, and the next start stops here, outputs safe
and without a watchdog, for a technician's mpremote. So does a program that does not match its manifest.
"""

import io
import sys
import time

import boot

app = None
BENCH = b"bench"  # RTC memory: the next start is for the technician
_RESTART_MS = 1000  # shorter than the watchdog's patience
_NO_APP_MS = 5000  # the firmware did not even start: no watchdog runs


def program_folder():
    """Return the folder the program is in: the one /current names, else the one `shaker` is found in."""
    try:
        with open("/current") as f:
            slot = f.read().strip()
    except OSError:
        slot = ""
    if slot:
        folder = "/" + slot
        sys.path.insert(0, folder)
        return folder
    import shaker

    parts = shaker.__file__.split("/")
    return "/".join(parts[:-2]) or "."


def place(error):
    """Return where `error` was raised, as `module:line`, at most 18 characters."""
    lines = io.StringIO()
    sys.print_exception(error, lines)
    where = "?"
    for line in lines.getvalue().split("\n"):
        if line.strip().startswith("File ") and ", line " in line:
            name, rest = line.split('"')[1], line.split(", line ")[1]
            number = rest.split(",")[0].strip()
            where = name.split("/")[-1].split(".")[0] + ":" + number
    return where[-18:]


def main():
    """Check the program and run it; returns only to leave the REPL to a technician."""
    global app
    note = boot.machine.RTC()
    if note.memory() == BENCH:
        note.memory(b"")
        print("bench: the shaker is not running, every output is off; reset to start it")
        return
    program = program_folder()
    from shaker import integrity
    from shaker.files import Files

    files = Files(program)
    altered = integrity.check(files)
    if altered is not None:
        boot.alarm()
        print("program-altered:", altered, "- nothing runs; deploy again")
        return
    from shaker.app import App

    app = App(files)
    print("shaker: running from", program)  # a deployment waits for this line
    app.run()
    boot.machine.reset()


def guard(error):
    """Make everything safe, record `error`, and restart."""
    boot.safe()
    if app is None:
        sys.print_exception(error)
        time.sleep_ms(_NO_APP_MS)
    else:
        try:
            if isinstance(error, KeyboardInterrupt) and app.may_be_serviced():
                app.stop()
                boot.machine.RTC().memory(BENCH)
            else:
                app.crash(type(error).__name__, place(error))
                sys.print_exception(error)
        except Exception as second:  # the record may fail; the restart may not
            sys.print_exception(second)
        time.sleep_ms(_RESTART_MS)
    boot.machine.reset()


try:
    main()
except BaseException as fatal:
    guard(fatal)
