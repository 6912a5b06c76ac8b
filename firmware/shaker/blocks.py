"""The flash under the journal's file system, such that no exception ever jumps through LittleFS.

esp32.Partition raises OSError, which leaves LittleFS in the middle of what it does: the file stays open, and
when the garbage collector closes it again, perhaps minutes later, its old content is committed over durable
records. An error that is *returned* LittleFS handles itself: it marks the file as failed and drops it. Hence
Blocks, and Volume for the one call of MicroPython that overlooks a returned error. What neither mends: after
a read that failed LittleFS's read cache (lfs_bd_read) is taken to hold what was not read.

Must allocate nothing, and must contain no jump on the way of success: a pending Ctrl-C is raised at jumps, a
collection begins at allocations, and neither may happen inside LittleFS. Units: bytes. Sources: MicroPython
py/vm.c, extmod/vfs_blockdev.c, vfs_lfsx.c, vfs_lfsx_file.c, ports/esp32 mphalport.c (1.26 to 1.29).
"""

from micropython import const

_EIO = const(5)
_CAUGHT = (OSError, MemoryError, KeyboardInterrupt)  # made here: a tuple made in a handler would allocate
_FAILED = const(3)  # place in the list `call`, after the three arguments


# A frame of more than eleven words is allocated, and a handler takes nine, which leaves two locals: hence the
# list of arguments. The error is always EIO: Partition's own numbers are negative, which negated look like
# success, and ENOSPC would cost a segment.


def _inner(act, call):
    try:
        return act(call[0], call[1], call[2])
    except _CAUGHT:
        call[_FAILED] = True
        return -_EIO


def _outer(act, call):
    # Choosing the handler above is a jump: a Ctrl-C that is pending while an error is caught comes out there.
    try:
        return _inner(act, call)
    except _CAUGHT:
        return -_EIO


def _guarded(act, call):
    """Return act() such that it returns -EIO instead of raising."""

    def guarded(block, buf, offset=0, act=act, call=call):
        call[0] = block
        call[1] = buf
        call[2] = offset
        return _outer(act, call)

    return guarded


class Blocks:
    """`device`, a block device of the extended protocol, for LittleFS: errors are returned, as -EIO.

    A Ctrl-C that comes together with an error is lost; the next one is not. The device's ioctl must not fail
    when asked for the number (4) and the size (5) of its blocks.
    """

    def __init__(self, device):
        call = [0, None, 0, False]
        self._call = call
        self.readblocks = _guarded(device.readblocks, call)
        self.writeblocks = _guarded(device.writeblocks, call)
        self.ioctl = _guarded(lambda op, arg, _: device.ioctl(op, arg), call)

    def failed(self):
        """Tell whether anything failed since this was asked last."""
        failed = self._call[_FAILED]
        self._call[_FAILED] = False
        return failed


class Volume:
    """The file system `fs` on `blocks`, to be mounted; listing a folder that cannot be read raises OSError.

    MicroPython's own listing takes an error for one more entry, and goes on for ever if it stays.
    """

    def __init__(self, fs, blocks):
        self._fs = fs
        self._blocks = blocks

    def __getattr__(self, name):
        return getattr(self._fs, name)

    def ilistdir(self, path):
        """Yield the entries of `path`, as VfsLfs2 does."""
        self._blocks.failed()
        for entry in self._fs.ilistdir(path):
            if self._blocks.failed():
                raise OSError(_EIO)
            yield entry


def blank(device):
    """Tell whether every byte of the device is erased (0xFF). Raises OSError."""
    size = device.ioctl(5, 0)
    buf = bytearray(size)
    erased = b"\xff" * size
    for block in range(device.ioctl(4, 0)):
        device.readblocks(block, buf)
        if buf != erased:
            return False
    return True
