"""The device's file system over a fake chip: a real VfsLfs2 on MicroPython, littlefs-python on CPython.

Both are given the same geometry, so the same file operations cause the same programs and erases
(test_storage.py compares them); "power cut at write N" therefore means the same on both interpreters.

The firmware's shaker.blocks stands between the two, as on the board.

Two uses: over a `Flash` alone, where mount() returns the Files; and over a `World`, whose data partition the
chip then is: there mount() only makes ready what the firmware's own mount_data() mounts at /data. On CPython
the names `vfs`, and `open` and `os` inside shaker.files, are then this module's. A mount that a power cut
ended is dead for good: whatever its open files still try (a finaliser, say) never reaches the chip.
"""

import sys

from flash import Flash
from shaker.blocks import Blocks, Volume
from shaker.files import Files

if sys.implementation.name == "micropython":
    import vfs

    lfs = None
else:
    import os

    from littlefs import LittleFSError, lfs

MOUNT = "/data"
READ_SIZE = 32  # what MicroPython's VfsLfs2 takes by default; its cache is four times the larger
PROG_SIZE = 32
LOOKAHEAD = 32
BLOCK_CYCLES = 100
_CREATE = 0x0100
_TRUNCATE = 0x0400
_APPEND = 0x0800
_EIO = 5
_ENOENT = 2
_ENOSPC = 28


class _Port:
    """One mount's wire to the chip; once `live` is False nothing passes."""

    def __init__(self, flash):
        self.flash = flash
        self.live = True

    def readblocks(self, block, buf, offset=0):
        return self.flash.readblocks(block, buf, offset) if self.live else -_EIO

    def writeblocks(self, block, buf, offset=0):
        return self.flash.writeblocks(block, buf, offset) if self.live else -_EIO

    def ioctl(self, op, arg):
        if op == 6 and not self.live:
            return -_EIO
        return self.flash.ioctl(op, arg) if op in (4, 5, 6) else 0


class Storage:
    """The file system on `target`: a Flash, or a World (then a chip of `blocks` blocks is made here).

    `chip` is the Flash.

    `read_size`/`prog_size` as VfsLfs2's readsize/progsize; the firmware gives its own in a World.
    """

    def __init__(self, target, read_size=READ_SIZE, prog_size=PROG_SIZE, lookahead=LOOKAHEAD, blocks=64):
        self._sizes = (read_size, prog_size, lookahead)
        self.world = None
        if hasattr(target, "partitions"):
            self.world = target
            target = Flash(blocks)
        self.chip = target
        self._port = None
        self._tracker = None
        self.files = None

    def format(self):
        """Make an empty file system (the technician's act, never the device's); it is not mounted."""
        self.unmount()
        port = _Port(self.chip)
        read_size, prog_size, lookahead = self._sizes
        make = (FakeVfs if lfs else vfs).VfsLfs2.mkfs
        make(Blocks(port), readsize=read_size, progsize=prog_size, lookahead=lookahead)

    def provision(self, name, text):
        """Put a file on the chip of a World, as a technician does before it goes to the table."""

        def put(files):
            with files.open(name, "w") as f:
                f.write(text)

        self.service(put)

    def service(self, act):
        """Call act(files) on the chip of a World that has no power: the technician's bench."""
        self.chip.world = None
        try:
            if self.chip.programs == 0:
                self.format()
            act(self._mount())
            self.unmount()
        finally:
            self.chip.world = self.world

    def mount(self):
        """Over a Flash: mount what is on the chip and return its Files; OSError when there is no file system.

        Over a World: make the chip its data partition, for the firmware to mount; call it before each boot.
        """
        if self.world is None:
            return self._mount()
        self.unmount()
        self.chip.world = self.world
        self._port = _Port(self.chip)
        self.world.partitions["data"] = self._port
        self._tracker = _Tracker()
        __import__("shaker.files")  # a fresh one: the firmware is imported anew at each boot
        module = sys.modules["shaker.files"]
        if lfs is None:
            module.open = self._tracker.open
        else:
            fake = FakeVfs()
            modules = sys.modules  # type: dict
            modules["vfs"] = fake
            module.open = fake.open
            module.os = fake
        return None

    def _mount(self):
        self.unmount()
        port = _Port(self.chip)
        if lfs is None:
            self._tracker = _Tracker()
            read_size, prog_size, lookahead = self._sizes
            blocks = Blocks(port)
            fs = vfs.VfsLfs2(blocks, readsize=read_size, progsize=prog_size, lookahead=lookahead, mtime=False)
            vfs.mount(Volume(fs, blocks), MOUNT)
            files = _TrackedFiles(self._tracker)
        else:
            files = FakeVfs.VfsLfs2(Blocks(port), *self._sizes).files
        self._port = port
        self.files = files
        return files

    def unmount(self):
        """Drop the present mount, if any, without writing."""
        if self._port:
            self._port.live = False
        if self._tracker:
            self._tracker.bury()
        if lfs is None:
            try:
                vfs.umount(MOUNT)
            except OSError:
                pass  # nothing is mounted there
        self._port = None
        self._tracker = None
        self.files = None

    def fill(self, leave=0, name="foreign.bin"):
        """Fill the file system with a foreign file until `leave` bytes or fewer remain. Returns its size."""
        block = b"F" * 1024
        size = 0
        n = 0
        done = False
        while not done:  # several files: a full file's end is lost, so the last ones are small
            part = name + str(n)
            try:
                with self.files.open(part, "wb") as f:
                    for _ in range(16 if n < 64 else 1):
                        f.write(block)
            except OSError as e:
                if e.errno != _ENOSPC:
                    raise
                done = True
            size += max(self.files.size(part), 0)
            n += 1
        while leave > 0 and n > 0:
            n -= 1
            part = name + str(n)
            leave -= max(self.files.size(part), 0)
            size -= max(self.files.size(part), 0)
            self.files.remove(part)
        return size


class _Tracker:
    """An open() that remembers what it opened last, so that no finaliser finds a dead mount's file open."""

    def __init__(self):
        self._opened = [None] * 4
        self._next = 0

    def open(self, path, mode):
        file = open(path, mode)
        self._opened[self._next] = file
        self._next = (self._next + 1) & 3
        return file

    def bury(self):
        """Close what is still open, in vain."""
        for file in self._opened:
            if file:
                try:
                    file.close()
                except OSError:
                    pass


class _TrackedFiles(Files):
    def __init__(self, tracker):
        Files.__init__(self, MOUNT)
        self._tracker = tracker

    def open(self, name, mode):
        return self._tracker.open(self.root + "/" + name, mode)


class FakeVfs:
    """CPython's stand-in for the modules `vfs` and, for paths under a mount, `os` and open()."""

    def __init__(self):
        self._mounts = {}

    class VfsLfs2:
        """A littlefs on a block device, with what MicroPython's VfsLfs2 configures."""

        def __init__(self, device, readsize=READ_SIZE, progsize=PROG_SIZE, lookahead=LOOKAHEAD, mtime=False):
            context = _Context(device, readsize, progsize, lookahead)
            context.mount()
            self.files = LfsFiles(context)

        @staticmethod
        def mkfs(device, readsize=READ_SIZE, progsize=PROG_SIZE, lookahead=LOOKAHEAD):
            """Format the device."""
            context = _Context(device, readsize, progsize, lookahead)
            context.check(lambda: lfs.format(lfs.LFSFilesystem(), context.config))

    def mount(self, fs, path):
        """Let `path` lead to `fs`."""
        self._mounts[path] = fs.files

    def umount(self, path):
        """Forget what is mounted at `path`."""
        del self._mounts[path]

    def _at(self, path):
        folder, _, name = path.rpartition("/")
        if folder not in self._mounts:
            raise OSError(_ENOENT)
        return self._mounts[folder], name

    def open(self, path, mode="r"):
        """As the built-in open; what is not under a mount is the host's."""
        folder, _, name = path.rpartition("/")
        if folder in self._mounts:
            return self._mounts[folder].open(name, mode)
        return open(path, mode)

    def listdir(self, path):
        """As os.listdir."""
        if path in self._mounts:
            return self._mounts[path].listdir()
        return os.listdir(path)

    def rename(self, old, new):
        """As os.rename, within one mount."""
        files, name = self._at(old)
        files.rename(name, self._at(new)[1])

    def remove(self, path):
        """As os.remove."""
        files, name = self._at(path)
        files.remove(name)

    def stat(self, path):
        """As os.stat; only the size is meant."""
        folder, _, name = path.rpartition("/")
        if folder not in self._mounts:
            return os.stat(path)
        size = self._mounts[folder].size(name)
        if size < 0:
            raise OSError(_ENOENT)
        return (0x8000, 0, 0, 0, 0, 0, size, 0, 0, 0)


class _Context:
    """littlefs-python's side of the wire. What the chip raises or answers passes the C code by `check`."""

    def __init__(self, device, read_size, prog_size, lookahead):
        self.device = device
        self.config = lfs.LFSConfig(  # kept here, because littlefs keeps only a pointer to it
            context=self,
            block_size=device.ioctl(5, 0),
            block_count=device.ioctl(4, 0),
            read_size=read_size,
            prog_size=prog_size,
            cache_size=4 * max(read_size, prog_size),
            lookahead_size=lookahead,
            block_cycles=BLOCK_CYCLES,
        )
        self.fs = None
        self._raised = None
        self.failed = False

    def mount(self):
        """Start littlefs afresh from what is on the chip."""
        self.failed = False
        fs = lfs.LFSFilesystem()
        self.check(lambda: lfs.mount(fs, self.config))
        self.fs = fs

    def recover(self):
        """Mount anew after the chip raised: this build of littlefs has its assertions on, and aborts on a
        cache that a failed program left behind, which MicroPython's build overwrites.
        """
        if self.failed:
            self.mount()

    def read(self, cfg, block, off, size):
        buf = bytearray(size)
        self._run(self.device.readblocks, block, buf, off)
        return buf

    def prog(self, cfg, block, off, data):
        return self._run(self.device.writeblocks, block, data, off)

    def erase(self, cfg, block):
        return self._run(self.device.ioctl, 6, block)

    def sync(self, cfg):
        return 0

    def _run(self, act, *args):
        if self._raised is not None:
            return -_EIO
        try:
            result = act(*args)
        except BaseException as e:  # handed on by check(), on this side of the C code
            self._raised = e
            return -_EIO
        if result is not None and result < 0:  # littlefs-python would take a failed read for a good one
            self._raised = OSError(-result)
        return result

    def check(self, act):
        """Run a littlefs call; raise what the chip raised, or littlefs's own error as OSError."""
        self._raised = None
        try:
            result = act()
        except LittleFSError as e:
            self._raise()
            raise OSError(-e.code, str(e)) from None
        self._raise()
        return result

    def _raise(self):
        raised, self._raised = self._raised, None
        if raised is not None:
            self.failed = True
            raise raised


class LfsFiles(Files):
    """Files over littlefs-python: the same calls into littlefs that MicroPython's VfsLfs2 makes."""

    def __init__(self, context):
        Files.__init__(self, "")
        self._context = context

    def _do(self, act, *args):
        self._context.recover()
        return self._context.check(lambda: act(self._context.fs, *args))

    def open(self, name, mode):
        self._context.recover()
        file = _LfsFile(self._context, name, mode)
        return file if "b" in mode else _Text(file)

    def listdir(self):
        return self._do(lambda fs: [entry.name for entry in _entries(fs)])

    def rename(self, old, new):
        self._do(lfs.rename, old, new)

    def remove(self, name):
        self._do(lfs.remove, name)

    def size(self, name):
        try:
            return self._do(lfs.stat, name).size
        except OSError:
            return -1


def _entries(fs):
    handle = lfs.dir_open(fs, "/")
    while True:
        entry = lfs.dir_read(fs, handle)
        if not entry:
            break
        if entry.name not in (".", ".."):
            yield entry
    lfs.dir_close(fs, handle)


def _flags(mode):
    """The littlefs flags that MicroPython's open derives from `mode`."""
    if "w" in mode:
        flags = 2 | _CREATE | _TRUNCATE
    elif "a" in mode:
        flags = 2 | _CREATE | _APPEND
    else:
        flags = 1
    return flags | 3 if "+" in mode else flags


class _LfsFile:
    def __init__(self, context, name, mode):
        self._context = context
        self._fs = context.fs
        flags = lfs.LFSFileFlag(_flags(mode))
        self._handle = context.check(lambda: lfs.file_open(self._fs, name, flags))

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self.close()

    def read(self, size=-1):
        if size < 0:
            size = self._do(lfs.file_size)
        return bytes(self._do(lfs.file_read, size))

    def readinto(self, buf):
        data = self.read(len(buf))
        buf[: len(data)] = data
        return len(data)

    def write(self, data):
        return self._do(lfs.file_write, bytes(data))

    def seek(self, offset, whence=0):
        return self._do(lfs.file_seek, offset, whence)

    def tell(self):
        return self._do(lfs.file_tell)

    def flush(self):
        self._do(lfs.file_sync)

    def close(self):
        handle, self._handle = self._handle, None
        if handle is not None and self._usable():
            self._context.check(lambda: lfs.file_close(self._fs, handle))

    def _usable(self):
        return self._fs is self._context.fs and not self._context.failed

    def _do(self, act, *args):
        if self._handle is None:
            raise ValueError("the file is closed")
        if not self._usable():
            raise OSError(_EIO)
        return self._context.check(lambda: act(self._fs, self._handle, *args))


class _Text:
    def __init__(self, file):
        self._file = file

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self._file.close()

    def read(self, size=-1):
        return self._file.read(size).decode()

    def write(self, text):
        return self._file.write(text.encode())

    def flush(self):
        self._file.flush()

    def close(self):
        self._file.close()
