"""The device's file system over a fake chip: a real VfsLfs2 on MicroPython, littlefs-python on CPython.

Both are given the same geometry, so the same file operations cause the same programs and erases
(test_storage compares them); "power cut at write N" therefore means the same on both interpreters.
On MicroPython the file system is mounted at /data. A mount that a power cut ended is dead for good: whatever
its open files still try (a finaliser, say) never reaches the chip.
"""

import sys

from shaker.files import Files

if sys.implementation.name == "micropython":
    import vfs

    lfs = None
else:
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
_ENODEV = 19
_ENOSPC = 28


_mounted = []  # the Storage that MicroPython has at MOUNT


class _Port:
    """One mount's wire to the chip; once `live` is False nothing passes."""

    def __init__(self, flash):
        self.flash = flash
        self.live = True

    def readblocks(self, block, buf, offset=0):
        if not self.live:
            return -_EIO
        return self.flash.readblocks(block, buf, offset)

    def writeblocks(self, block, buf, offset=0):
        if not self.live:
            return -_EIO
        return self.flash.writeblocks(block, buf, offset)

    def ioctl(self, op, arg):
        if not self.live and op == 6:
            return -_EIO
        if op in (4, 5, 6):
            return self.flash.ioctl(op, arg)
        return 0


class Storage:
    """The file system on `flash`. `read_size`/`prog_size` as VfsLfs2's readsize/progsize."""

    def __init__(self, flash, read_size=READ_SIZE, prog_size=PROG_SIZE, lookahead=LOOKAHEAD):
        self.flash = flash
        self._sizes = (read_size, prog_size, lookahead)
        self._port = None
        self._fs = None
        self.files = None

    def format(self):
        """Make an empty file system (the technician's act, never the device's); it is not mounted."""
        self.unmount()
        if lfs is None:
            read_size, prog_size, lookahead = self._sizes
            vfs.VfsLfs2.mkfs(_Port(self.flash), readsize=read_size, progsize=prog_size, lookahead=lookahead)
        else:
            port = _Context(self.flash)
            config = self._config(port)
            port.check(lambda: lfs.format(lfs.LFSFilesystem(), config))

    def mount(self):
        """Mount what is on the chip and return its Files. Raises OSError when there is no file system."""
        self.unmount()
        if lfs is None:
            read_size, prog_size, lookahead = self._sizes
            port = _Port(self.flash)
            fs = vfs.VfsLfs2(port, readsize=read_size, progsize=prog_size, lookahead=lookahead, mtime=False)
            vfs.mount(fs, MOUNT)
            _mounted.append(self)
            files = _MountedFiles(MOUNT)
        else:
            port = _Context(self.flash)
            fs = lfs.LFSFilesystem()
            port.config = self._config(port)  # littlefs keeps only a pointer to it
            port.check(lambda: lfs.mount(fs, port.config))
            files = LfsFiles(fs, port)
        self._port = port
        self._fs = fs
        self.files = files
        return files

    def unmount(self):
        """Drop the present mount, if any, without writing."""
        if lfs is None and _mounted and _mounted[0] is not self:
            _mounted.pop().unmount()
        if self._port:
            self._port.live = False
            if lfs is None:
                self.files.bury()
                vfs.umount(MOUNT)
                _mounted.clear()
        self._port = None
        self._fs = None
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

    def _config(self, port):
        read_size, prog_size, lookahead = self._sizes
        return lfs.LFSConfig(
            context=port,
            block_size=self.flash.block_size,
            block_count=self.flash.blocks,
            read_size=read_size,
            prog_size=prog_size,
            cache_size=4 * max(read_size, prog_size),
            lookahead_size=lookahead,
            block_cycles=BLOCK_CYCLES,
        )


class _MountedFiles(Files):
    """Files that remembers what it opened last: no finaliser may find a file of a dead mount still open."""

    def __init__(self, root):
        Files.__init__(self, root)
        self._opened = [None] * 4
        self._next = 0

    def open(self, name, mode):
        file = Files.open(self, name, mode)
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


class _Context:
    """littlefs-python's side of the wire. What the chip raises passes the C code by way of `check`."""

    def __init__(self, flash):
        self.flash = flash
        self.live = True
        self.config = None
        self._raised = None

    def read(self, cfg, block, off, size):
        buf = bytearray(size)
        if not self._run(lambda: self.flash.readblocks(block, buf, off)):
            return bytearray(size)
        return buf

    def prog(self, cfg, block, off, data):
        return 0 if self._run(lambda: self.flash.writeblocks(block, data, off)) else -_EIO

    def erase(self, cfg, block):
        return 0 if self._run(lambda: self.flash.ioctl(6, block)) else -_EIO

    def sync(self, cfg):
        return 0

    def _run(self, act):
        if not self.live or self._raised is not None:
            return False
        try:
            act()
            return True
        except BaseException as e:  # handed on by check(), on this side of the C code
            self._raised = e
            return False

    def check(self, act):
        """Run a littlefs call; raise what the chip raised, or littlefs's own error as OSError."""
        if not self.live:
            raise OSError(_ENODEV)
        self._raised = None
        try:
            result = act()
        except LittleFSError as e:
            raised, self._raised = self._raised, None
            if raised is not None:
                raise raised from None
            raise OSError(-e.code, str(e)) from None
        raised, self._raised = self._raised, None
        if raised is not None:
            raise raised
        return result


class LfsFiles(Files):
    """Files over littlefs-python: the same calls into littlefs that MicroPython's VfsLfs2 makes."""

    def __init__(self, fs, port):
        Files.__init__(self, "")
        self._fs = fs
        self._port = port

    def open(self, name, mode):
        file = _LfsFile(self._fs, self._port, name, mode)
        return file if "b" in mode else _Text(file)

    def listdir(self):
        return self._port.check(lambda: [s.name for s in self._scan()])

    def _scan(self):
        handle = lfs.dir_open(self._fs, "/")
        found = []
        while True:
            entry = lfs.dir_read(self._fs, handle)
            if not entry:
                break
            if entry.name not in (".", ".."):
                found.append(entry)
        lfs.dir_close(self._fs, handle)
        return found

    def rename(self, old, new):
        self._port.check(lambda: lfs.rename(self._fs, old, new))

    def remove(self, name):
        self._port.check(lambda: lfs.remove(self._fs, name))

    def size(self, name):
        try:
            return self._port.check(lambda: lfs.stat(self._fs, name)).size
        except OSError:
            return -1


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
    def __init__(self, fs, port, name, mode):
        self._fs = fs
        self._port = port
        flags = lfs.LFSFileFlag(_flags(mode))
        self._handle = port.check(lambda: lfs.file_open(fs, name, flags))

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self.close()

    def read(self, size=-1):
        if size < 0:
            size = self._do(lambda: lfs.file_size(self._fs, self._handle))
        return bytes(self._do(lambda: lfs.file_read(self._fs, self._handle, size)))

    def readinto(self, buf):
        data = self.read(len(buf))
        buf[: len(data)] = data
        return len(data)

    def write(self, data):
        return self._do(lambda: lfs.file_write(self._fs, self._handle, bytes(data)))

    def seek(self, offset, whence=0):
        return self._do(lambda: lfs.file_seek(self._fs, self._handle, offset, whence))

    def tell(self):
        return self._do(lambda: lfs.file_tell(self._fs, self._handle))

    def flush(self):
        self._do(lambda: lfs.file_sync(self._fs, self._handle))

    def close(self):
        handle, self._handle = self._handle, None
        if handle is not None:
            self._port.check(lambda: lfs.file_close(self._fs, handle))

    def _do(self, act):
        if self._handle is None:
            raise ValueError("the file is closed")
        return self._port.check(act)


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
