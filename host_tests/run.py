"""`make run`: one whole round on a virtual table, in real time: the real firmware under a real MicroPython.

This half stages the program and starts the interpreter; watch.py, which it starts, plays and prints.
"""

import pathlib
import subprocess
import sys
import tempfile

import play

SCENARIO = play.HERE / "scenarios" / "one_round.scn"


def main():
    """Play the round; return the exit status."""
    play.find_modules()
    try:
        command = play.interpreters()["MicroPython"]
    except FileNotFoundError as error:
        print(error)
        return 2
    with tempfile.TemporaryDirectory() as scratch:
        program = pathlib.Path(scratch) / "program"
        play.stage(program)
        watch = [*command, str(play.HERE / "watch.py"), str(program), str(SCENARIO)]
        # In a session of its own: a Ctrl-C is ours, and no exception inside the simulated firmware.
        return subprocess.run(
            watch, env=play.environment(program)["MicroPython"], check=False, start_new_session=True
        ).returncode


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("stopped")
        sys.exit(130)
