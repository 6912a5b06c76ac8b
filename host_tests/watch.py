"""Plays one scenario in real time and prints what the table sees and what the UART says: PROGRAM FILE.

Runs under MicroPython, started by run.py. The left column is seconds since power-on.
"""

import sys

import scenario
from table import REST_MS, Failed, Player, real_time

WORDS = {  # what a change means to somebody at the table
    "agitator=on": "the agitator knocks",
    "cover_lock=on": "bolt: the closed latches are locked",
    "cover_lock=off": "bolt: the latches may be opened",
    "cover_bar=on": "bolt: the latches are barred, the dome cannot be covered",
    "cover_bar=off": "bolt: the bar is withdrawn",
    "dome_lock=on": "bolt: the glass dome is locked on the base",
    "front_board=on": "the front board lights",
    "front_board=off": "the front board goes dark",
    "alarm=on": "alarm!",
    "alarm=off": "the alarm stops",
}


def stamp(ms):
    """Return `ms` as seconds with three decimals."""
    return "%4d.%03d" % (ms // 1000, ms % 1000)


def main(program, path):
    """Play the file; return 0 when it passed."""
    with open(path) as f:
        text = f.read()
    lines = text.split("\n")
    player = Player(scenario.parse(text, path), program)
    table = player.table
    table.pace = real_time()

    def note(kind, what):
        if kind != "in" and kind != "event" and kind != "agitator_enable":
            change = "%s=%s" % (kind, what)
            if change != "agitator=off":
                print("%s  table  %s" % (stamp(table.world.now), WORDS.get(change, change)))

    def step(number):
        line = lines[number - 1].strip()
        if not line.startswith(("never", "always", "expect", "wait")):
            print("%s  people %s" % (stamp(table.world.now), line))

    def said(line, way):
        print("%s  UART %s %s" % (stamp(table.world.now), way, line))

    table.note = note
    table.host.on_line = said
    player.on_step = step
    print("One round, in real time. `people` act, the `table` reacts; UART < is the device, > the host.")
    print("(the table rests for %d s first: contacts settle, the bolts are driven once)" % (REST_MS // 1000))
    try:
        player.play()
    except Failed as error:
        print(error)
        return 1
    print("The round is closed: every prize is paid, the dome may be covered again.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
