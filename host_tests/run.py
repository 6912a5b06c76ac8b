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
        try:
            return subprocess.run(watch, env=play.environment(program)["MicroPython"], check=False).returncode
        except KeyboardInterrupt:
            print("stopped")
            return 130


if __name__ == "__main__":
    sys.exit(main())
