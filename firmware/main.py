"""Runs after boot.py: checks the program, then runs it; and the top guard, which alone catches everything.

Whatever reaches the top, Ctrl-C included, ends with every output safe, one `fault internal-error` event and
a restart: never in a REPL with a live output. The REPL is reached on purpose only: Ctrl-C in service mode
(key on, no round open) leaves a note in RTC memory and restarts, and the next start stops here, outputs safe
and without a watchdog, for a technician's mpremote. So does a program that does not match its manifest.

MicroPython looks for most of its own modules in sys.path first, for io and time, but not for sys. More than
".frozen" is in it only while `boot` and `shaker` are looked for, and neither imports anything by it. What is
frozen comes before files: the port puts a /boot.py of its own into each file system it makes.
"""

import sys

sys.path.insert(0, ".frozen")
import boot

sys.path[:] = [".frozen"]  # no file, in / or in /lib, may be imported instead of what is built in or frozen

import io
import time

from micropython import const

app = None
_BENCH = const(b"bench")  # RTC memory: the next start is for the technician
_RESTART_MS = const(1000)  # shorter than the watchdog's patience
_NO_APP_MS = const(5000)  # the firmware did not even start: no watchdog runs


def program_folder():
    """Import `shaker` and return the folder it is in: what /current names, ".frozen", or where a copy lies.

    Its modules need no path afterwards: they are looked for in the package.
    """
    sys.path[:] = boot.path
    try:
        with open("/current") as f:
            sys.path.insert(0, "/" + f.read().strip())
    except OSError:
        pass
    import shaker

    sys.path[:] = [".frozen"]
    return "".join(shaker.__path__)[:-7] or "."  # a list on CPython


def place(error):
    """Return where `error` was raised, as `module:line`, at most 18 characters."""
    lines = io.StringIO()
    sys.print_exception(error, lines)
    # The last line of its kind:   File "shaker/app.py", line 12, in step
    parts = lines.getvalue().split('  File "')[-1].split('", line ')
    if not parts[1:]:  # no traceback
        return "?"
    return (parts[0].split("/")[-1].split(".")[0] + ":" + parts[1].split(",")[0])[-18:]


def main():
    """Check the program and run it; returns only to leave the REPL to a technician."""
    global app
    note = boot.machine.RTC()
    if note.memory() == _BENCH:
        note.memory(b"")
        print("bench: all off, nothing runs; reset to start")
        return
    program = program_folder()
    from shaker import integrity
    from shaker.files import Files

    files = Files(program)
    altered = integrity.check(files)
    if altered is not None:
        boot.Pin(boot.OUTPUTS[6]).value(1)  # the alarm, an output since boot.safe()
        print("program-altered:", altered, "- nothing runs; deploy again")
        return
    from shaker.app import App

    app = App(files)
    print("shaker: running from", program)  # a deployment waits for this line
    app.run()
    boot.machine.reset()


def guard(error):
    """Make everything safe, record `error`, and restart."""
    try:
        boot.safe()
        if app and isinstance(error, KeyboardInterrupt) and app.may_be_serviced():
            boot.machine.RTC().memory(_BENCH)  # first: the journal may be what is broken
            app.stop()
        else:
            sys.print_exception(error)
            if app:
                app.crash(type(error).__name__, place(error))
        time.sleep_ms(_RESTART_MS if app else _NO_APP_MS)
    except Exception as second:  # the record may fail; the restart may not
        sys.print_exception(second)
        time.sleep_ms(_RESTART_MS)
    finally:  # after a second Ctrl-C too: no reason to end in the REPL
        boot.machine.reset()


try:
    main()
    sys.path[:] = boot.path[1:]  # the technician's: as the port made it
except BaseException as fatal:
    guard(fatal)
