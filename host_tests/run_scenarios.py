"""Plays scenario files on the interpreter that runs this: PROGRAM TRACES N FILE… -> one verdict line a file.

Their indices are N, N + 1, … Each file's trace goes to TRACES/<index>.trace. Runs on CPython and on
MicroPython; play.py compares them.
Prints "ok <index>" or "bad <index>" after whatever there is to say about that file.
"""

import gc
import sys

import scenario
from table import Failed, Player


def main(program, traces, first, paths):
    """Play every file; returns the number that failed."""
    bad = 0
    for index, path in enumerate(paths, first):
        player = None
        try:
            with open(path) as f:
                text = f.read()
            player = Player(scenario.parse(text, path), program)
            player.play()
            print("ok %d" % index)
        except (Failed, scenario.ScenarioError) as error:
            bad += 1
            print(str(error))
            print("bad %d" % index)
        if player:
            with open("%s/%d.trace" % (traces, index), "w") as f:
                for line in player.table.trace:
                    f.write(line)
                    f.write("\n")
            # All that this file held is given back, or a long one would leave no room for the next.
            player.table.forget()
            player = None
        gc.collect()
    return bad


if __name__ == "__main__":
    sys.exit(1 if main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:]) else 0)
