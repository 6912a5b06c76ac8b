"""The flash partition `data` of the virtual table, as esp32.Partition.find and vfs show it to the firmware.

On MicroPython the firmware mounts a real VfsLfs2 on it; on CPython, which has no vfs, a stand-in for that module
mounts littlefs-python instead (storage.py). Either way shaker.files.Files("/data") reaches it.
"""

import sys

from flash import Flash
from storage import Storage

MOUNT = "/data"
SIZE = 128  # what the firmware mounts a partition of its own with
_micropython = sys.implementation.name == "micropython"
if _micropython:
    import vfs


class Port:
    """A partition's block device for one boot; once `live` is False nothing passes."""

    def __init__(self, flash):
        self.flash = flash
        self.block_size = flash.block_size
        self.blocks = flash.blocks
        self.live = True

    def readblocks(self, block, buf, offset=0):
        """Read; see flash.Flash."""
        return self.flash.readblocks(block, buf, offset) if self.live else -5

    def writeblocks(self, block, buf, offset=None):
        """Program; see flash.Flash."""
        return self.flash.writeblocks(block, buf, offset) if self.live else -5

    def ioctl(self, op, arg):
        """Answer the file system's requests; see flash.Flash."""
        if not self.live and op == 6:
            return -5
        return self.flash.ioctl(op, arg) if op in (4, 5, 6) else 0


class _HostVfs:
    """What the firmware uses of the module vfs, on CPython."""

    def __init__(self):
        self.mounted = {}

    class VfsLfs2:
        """A LittleFS on a block device."""

        def __init__(self, port, readsize=32, progsize=32, lookahead=32, mtime=True):
            self.storage = Storage(port, readsize, progsize, lookahead)
            self.storage.mount()

        @staticmethod
        def mkfs(port, readsize=32, progsize=32, lookahead=32):
            """Make an empty file system."""
            Storage(port, readsize, progsize, lookahead).format()

    def mount(self, fs, path):
        """Mount `fs` at `path`."""
        if path in self.mounted:
            raise OSError(1)
        self.mounted[path] = fs.storage

    def umount(self, path):
        """Take the mount at `path` away."""
        if path not in self.mounted:
            raise OSError(22)
        self.mounted.pop(path).unmount()


class DataPartition:
    """The chip behind partition `data` of `world`. `flash` is the chip itself; formatted, with settings."""

    def __init__(self, world, blocks=64):
        self.world = world
        self.flash = Flash(blocks)
        self.flash.on_cut = world.power_off
        self._port = None
        self._opened = []
        Storage(self.flash, SIZE, SIZE).format()

    def provision(self, name, text):
        """Put a file there, as a technician does."""
        storage = Storage(self.flash, SIZE, SIZE)
        storage.mount().write_whole(name, text)
        storage.unmount()

    def install(self):
        """Show the partition to the firmware that is about to boot; its modules are not imported yet."""
        self.bury()
        self.flash.power_on()
        self._port = Port(self.flash)
        self.world.partitions["data"] = self._port
        if not _micropython:
            sys.modules["vfs"] = _HostVfs()
        import shaker.files

        plain = shaker.files.Files
        opened = self._opened

        class Files(plain):
            """Files that remembers what it opened: no finaliser may find a file of a dead mount open."""

            def open(self, name, mode):
                """Open file `name`."""
                file = plain.open(self, name, mode)
                if self.root == MOUNT:
                    opened.append(file)
                    if len(opened) > 4:
                        opened.pop(0)
                return file

        def choose(root):
            if root == MOUNT and not _micropython:
                mounted = sys.modules["vfs"].mounted
                if MOUNT in mounted:
                    return mounted[MOUNT].files
            return Files(root)

        shaker.files.Files = choose

    def bury(self):
        """After a power cut or reset: nothing of the old mount may reach the chip any more."""
        if self._port is None:
            return
        self._port.live = False
        self._port = None
        if _micropython:
            for file in self._opened:
                try:
                    file.close()
                except OSError:
                    pass
            self._opened.clear()
            try:
                vfs.umount(MOUNT)
            except OSError:
                pass  # the firmware had not mounted it yet
