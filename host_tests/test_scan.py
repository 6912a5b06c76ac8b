"""What makes a scan fast must not make it wrong: frames that fit the stack, records kept up to date."""

import re
import subprocess

import pytest

import interpreter
from rig import Rig
from shaker import record
from shaker.events import Queue

MODULES = ("agitator", "board", "bolts", "core", "events", "inputs", "interlock", "round", "state", "ticks")
FRAME_WORDS = 11  # a longer frame comes from the heap (MicroPython py/objfun.c, VM_MAX_STATE_ON_STACK)
# Never called in a scan, or once at start.
OUTSIDE = {"<module>", "__init__", "_resting_bolts", "emit", "put", "load", "turns", "<listcomp>"}
BOARD = {"read", "write", "_change", "_drive_bolts", "feed", "ticks", "status"}


@pytest.fixture(scope="module")
def frames():
    """{(module, function): words of its frame}, as the interpreter itself compiles them."""
    found = {}
    code = "import world\nworld.World().install()\n" + "\n".join("import shaker." + name for name in MODULES)
    path = ":".join(map(str, (interpreter.FIRMWARE, interpreter.HERE / "fakes", interpreter.HERE)))
    done = subprocess.run(
        [interpreter.MICROPYTHON, "-v", "-v", "-X", "heapsize=16m", "-c", code],
        env={"MICROPYPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    where = None
    for line in done.stdout.splitlines():
        block = re.match(r"File (\S+), code block '(\S+)'", line)
        if block:
            module = re.search(r"shaker/(\w+)\.py$", block[1])
            where = (module[1], block[2]) if module and module[1] in MODULES else None
        words = re.match(r"\(N_STATE (\d+)\)", line)
        if words and where:
            found[where] = max(int(words[1]), found.get(where, 0))
    return found


def test_every_frame_in_a_scan_fits_on_the_stack(frames):
    assert len(frames) > 100
    wrong = [
        f"{module}.{function}: {words} words"
        for (module, function), words in frames.items()
        if words > FRAME_WORDS and function not in OUTSIDE and (module != "board" or function in BOARD)
    ]
    assert not wrong


class TwiceQueue(Queue):
    """A queue that also makes each record the long way, from the state itself."""

    def __init__(self):
        super().__init__()
        self.rig = None
        self.compared = 0

    def add(self, rec):
        other = Queue()
        the_round = self.rig.core.round
        other.put(
            the_round.state,
            the_round.t_s,
            the_round.t_ms,
            rec[record.OFF_EVENT],
            rec[record.OFF_A],
            rec[record.OFF_B],
            rec[record.OFF_X],
        )
        assert bytes(rec) == bytes(other.buf[: record.SIZE])
        self.compared += 1
        return super().add(rec)


@pytest.mark.parametrize("lever", [False, True])
def test_a_record_kept_up_to_date_is_the_record_made_anew(lever):
    rig = Rig(lever=lever)
    queue = TwiceQueue()
    queue.rig = rig
    rig.core._queue = rig.core.round._queue = rig.queue = queue
    rig.core.state.boot = 70000
    rig.core.state.changed = True
    for begin in ("VOID", "PAYOUT"):
        rig.go(begin)
    rig.device.command("result", (1, 4, 6))
    rig.set(cover="on")
    rig.run(100)
    rig.set(latch_a="invalid", dome="open")
    rig.run(400)
    rig.set(latch_a="open", dome="closed", cover="off")
    rig.run(100)
    rig.turn_service()
    rig.press("paid", 1000)
    rig.go("SHAKING")
    rig.run(700)
    rig.set(latch_b="open")
    rig.run(3000)
    rig.turn_service()
    assert {"shake-start", "fault", "clear", "paid", "void", "service", "refused"} - {
        event.name for event in rig.events
    } <= {"service", "refused"}
    assert queue.compared > 20
