"""What blocks.py must do: the same checks for CPython and for a real MicroPython, and what only that shows.

test_blocks.py runs every function named check_… on both, mp_check_… under MicroPython, and losses() there
too, with the firmware's blocks.py and without.
"""

import gc
import sys

from power import PowerCut
from shaker import names
from shaker.blocks import Blocks, Volume, blank
from shaker.events import Queue
from shaker.files import Files
from shaker.journal import Journal
from shaker.state import State

BLOCK = 4096
SEGMENT = 16
KEEP = 3


class Device:
    """Answers every call with what it was called with, or raises `error`."""

    error = None

    def readblocks(self, *args):
        """Answer or raise."""
        if self.error:
            raise self.error
        return args

    writeblocks = readblocks
    ioctl = readblocks


def check_a_result_passes():
    blocks = Blocks(Device())
    assert blocks.readblocks(1, 2, 3) == (1, 2, 3)
    assert blocks.writeblocks(4, 5, 6) == (4, 5, 6)
    assert blocks.ioctl(6, 7) == (6, 7)
    assert not blocks.failed()


def check_an_error_is_returned():
    device = Device()
    blocks = Blocks(device)
    # As ESP-IDF's are, as a full disk's, without a number, and a Ctrl-C.
    for error in (OSError(5), OSError(-261), OSError(28), OSError(), MemoryError(), KeyboardInterrupt()):
        device.error = error
        assert blocks.readblocks(1, 2, 3) == -5
        assert blocks.writeblocks(1, 2, 3) == -5
        assert blocks.ioctl(6, 1) == -5
        assert blocks.failed() and not blocks.failed()


def check_a_power_cut_and_a_mistake_pass():
    device = Device()
    blocks = Blocks(device)
    for error in (PowerCut(), ValueError()):
        device.error = error
        for call in (lambda: blocks.readblocks(1, 2, 3), lambda: blocks.writeblocks(1, 2, 3)):
            try:
                call()
            except (PowerCut, ValueError) as passed:
                assert passed is error
            else:
                raise AssertionError("it was held up")


def check_blank():
    chip = Chip(3)
    assert blank(chip)
    chip.data[-1] = 0xFE
    assert not blank(chip)


def mp_check_success_allocates_nothing():
    from micropython import heap_lock, heap_unlock, mem_total

    blocks = Blocks(Still())
    buf = bytearray(8)
    blocks.readblocks(1, buf, 2)
    before = mem_total()  # of all that was ever allocated: frames that are freed again count too
    heap_lock()
    try:
        blocks.readblocks(1, buf, 2)
        blocks.writeblocks(1, buf, 2)
        blocks.ioctl(6, 1)
    finally:
        heap_unlock()
    blocks.readblocks(1, buf, 2)
    blocks.writeblocks(1, buf, 2)
    blocks.ioctl(6, 1)
    after = mem_total()
    assert after == before, after - before


def mp_check_an_error_is_returned_under_a_locked_heap_too():
    from micropython import heap_lock, heap_unlock

    device = Device()
    device.error = OSError(5)
    blocks = Blocks(device)
    heap_lock()  # as in a finaliser
    try:
        answer = blocks.ioctl(6, 1)
    finally:
        heap_unlock()
    assert answer == -5


def mp_check_nothing_pending_is_handled_on_the_way_of_success():
    from micropython import schedule

    # What is scheduled runs where a Ctrl-C is raised: at a jump. The lines after schedule() have none.
    ran = []
    blocks = Blocks(Still())
    schedule(ran.append, 1)
    blocks.readblocks(1, None, 2)
    blocks.writeblocks(1, None, 2)
    blocks.ioctl(6, 1)
    count = len(ran)
    assert count == 0
    for _ in range(3):
        pass
    assert len(ran) == 1
    broken = Blocks(Broken())
    schedule(ran.append, 2)
    broken.ioctl(6, 1)
    count = len(ran)
    assert count == 2  # where an error is caught there is one: what the second guard is for


class Still:
    """A device without a jump that allocates nothing."""

    def readblocks(self, block, buf, offset):
        return 0

    writeblocks = readblocks

    def ioctl(self, op, arg):
        return 0


class Broken(Still):
    """A device without a jump whose ioctl fails."""

    def ioctl(self, op, arg):
        raise OSError(5)


class Chip:
    """A flash chip that allocates nothing, as esp32.Partition, in C, does not; also inside a finaliser.

    The `fail`-th program or erase from now raises OSError, and so do the `more` after it. `fail_read`: reads.
    """

    def __init__(self, blocks=32, data=None):
        self.blocks = blocks
        self.data = data or bytearray(b"\xff" * (BLOCK * blocks))
        self.fail = 0
        self.fail_read = 0
        self.more = 0
        self.failed = 0

    def readblocks(self, block, buf, offset=0):
        """As Partition."""
        self._operation("fail_read")
        at = block * BLOCK + offset
        data = self.data
        for i in range(len(buf)):
            buf[i] = data[at + i]

    def writeblocks(self, block, buf, offset=0):
        """As Partition."""
        self._operation()
        at = block * BLOCK + offset
        data = self.data
        for i in range(len(buf)):
            data[at + i] &= buf[i]

    def ioctl(self, op, arg):
        """As Partition."""
        if op == 4:
            return self.blocks
        if op == 5:
            return BLOCK
        if op == 6:
            self._operation()
            at = arg * BLOCK
            data = self.data
            for i in range(BLOCK):
                data[at + i] = 0xFF
        return 0

    def _operation(self, countdown="fail"):
        left = getattr(self, countdown)
        if left > 1:
            setattr(self, countdown, left - 1)
        elif left:
            setattr(self, countdown, 1 if self.failed < self.more else 0)
            self.failed += 1
            raise OSError(-261)


def mount(chip, guarded):
    """Mount the chip at /data as board.mount_data() does, or as it must not be."""
    import vfs

    blocks = Blocks(chip)
    fs = vfs.VfsLfs2(blocks if guarded else chip, readsize=256, progsize=256, mtime=False)
    vfs.mount(Volume(fs, blocks) if guarded else fs, "/data")
    return Files("/data")


def made():
    """Return what is on a chip whose journal is about to begin a segment and to drop one."""
    import vfs

    chip = Chip()
    vfs.VfsLfs2.mkfs(chip, readsize=256, progsize=256)
    writer = Writer(mount(chip, False))
    for _ in range(SEGMENT * (KEEP + 1) - 6):
        writer.one()
    vfs.umount("/data")
    return bytes(chip.data)


class Writer:
    """A journal and a queue."""

    def __init__(self, files):
        self.journal = Journal(files, 7, SEGMENT, KEEP)
        self.journal.open()
        self.queue = Queue()
        self.state = State()
        self.state.boot = self.journal.boot
        self.t = self.journal.last

    def one(self):
        """Add an event; try again as the application does, which also looks at the flash anew."""
        self.t += 1
        self.queue.put(self.state, self.t, 0, names.EV_TIME)
        for _ in range(8):
            try:
                self.journal.append(self.queue)
                return
            except OSError:
                pass
        raise AssertionError("it never recovers")

    def held(self):
        """Return {number: record} of all that is in the journal."""
        found = {}
        buf = bytearray(64)
        for seq in range(self.journal.first, self.journal.last + 1):
            found[seq] = bytes(buf) if self.journal.read(seq, buf) else None
        return found


def _deep(n):
    """Write over what is left of dead frames, where the collector would find files."""
    row = [n] * 40
    return _deep(n - 1) + row[0] if n else 0


def lost(kept, guarded, n, more, after):
    """Let operation n and the `more` after it fail, add `after` events, collect, cut the power, restart.

    Returns what is wrong then, "" = nothing; None when there was no operation n.
    """
    import vfs

    chip = Chip(data=bytearray(kept))
    writer = Writer(mount(chip, guarded))
    chip.more = more
    chip.fail = n
    for _ in range(after):
        writer.one()
    failed = chip.failed
    chip.fail = 0
    writer.one()
    durable = writer.held()
    _deep(20)
    gc.collect()
    _deep(20)
    gc.collect()
    writer.one()  # on what the collector left behind
    durable.update(writer.held())
    vfs.umount("/data")
    if not failed:
        return None
    try:
        writer = Writer(mount(Chip(data=bytearray(chip.data)), guarded))
        found = writer.held()
        first, last = writer.journal.first, writer.journal.last
        writer.one()
        found.update(writer.held())
        vfs.umount("/data")
    except OSError as error:
        return "it cannot be read: %s" % error
    if last != max(durable):
        return "events up to %d were durable, restored up to %d" % (max(durable), last)
    for seq in durable:
        if seq >= first and found.get(seq) != durable[seq]:
            return "event %d is another" % seq
    return "" if writer.journal.last == last + 1 else "no new number"


def losses(guarded, more=0):
    """Try every n; return (how many were tried, what went wrong)."""
    kept = made()
    tried = 0
    found = []
    for after in (1, 4, 12):
        n = 1
        wrong = lost(kept, guarded, n, more, after)
        while wrong is not None:
            tried += 1
            if wrong:
                found.append("operation %d, %d appends: %s" % (n, after, wrong))
            n += 1
            wrong = lost(kept, guarded, n, more, after)
    return tried, found


def mp_check_a_listing_is_whole_or_an_error():
    import os

    import vfs

    chip = Chip()
    vfs.VfsLfs2.mkfs(chip, readsize=256, progsize=256)
    mount(chip, True)
    whole = ["a-name-that-takes-some-room-%d" % i for i in range(30)]
    for name in whole:
        with open("/data/" + name, "w") as f:
            f.write("x" * 300)
    errors = 0
    for more in (0, 1000000):
        n = 0
        while True:
            n += 1
            chip.failed = 0
            chip.more = more
            chip.fail_read = n
            try:
                assert sorted(os.listdir("/data")) == sorted(whole)
            except OSError:
                errors += 1
            chip.fail_read = 0
            if not chip.failed:
                break
    vfs.umount("/data")
    assert errors > 10, errors


def mp_check_the_board_mounts_its_data_partition_so():
    import os

    import esp32
    import vfs

    from shaker import board

    class World:
        """As much of a World as a data partition needs."""

        partitions = {"data": Chip()}

        @staticmethod
        def alive():
            """It is."""

    esp32.install(World)
    assert board.mount_data() == ("/data", 7)
    chip = World.partitions["data"]
    with open("/data/a", "w") as f:
        f.write("x" * 300)
    seen = []
    for act in (lambda: open("/data/b", "w").close(), lambda: os.listdir("/data")):
        chip.fail = chip.fail_read = 1
        chip.more = 1000000
        try:
            act()
        except OSError as error:
            seen.append(error.errno)
    vfs.umount("/data")
    assert seen == [5, 5], seen  # not the -261 that the chip raises


def main():
    """Run every check; print a line for each."""
    for name in sorted(globals()):
        if name.startswith("check_") or name.startswith("mp_check_"):
            try:
                globals()[name]()
                print("ok", name)
            except Exception as error:
                print("bad", name)
                sys.print_exception(error, sys.stdout)
