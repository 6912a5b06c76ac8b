"""One flat folder of the mounted file system, and the safe way to replace a small file in it.

Owns how files are reached; knows nothing of what is in them. Must never format, and never leave a half
written file under its final name. Every failure is an OSError. Sizes in bytes.
"""

import os

from micropython import const

_EIO = const(5)
_CHUNK = const(128)


class Files:
    """The folder `root` (an absolute path without a slash at its end)."""

    def __init__(self, root):
        self.root = root

    def open(self, name, mode):
        """Open file `name`; modes as of the built-in open, "r" and "w" being text."""
        return open(self.root + "/" + name, mode)

    def listdir(self):
        """Return a list of all names in the folder, in no particular order."""
        return os.listdir(self.root)

    def rename(self, old, new):
        """Give file `old` the name `new`; a file of that name is replaced in the same step."""
        os.rename(self.root + "/" + old, self.root + "/" + new)

    def remove(self, name):
        """Delete file `name`."""
        os.remove(self.root + "/" + name)

    def size(self, name):
        """Return the size of file `name`, or -1 when there is none."""
        try:
            return os.stat(self.root + "/" + name)[6]
        except OSError:
            return -1

    def write_whole(self, name, data):
        """Replace file `name` by `data` (bytes or ASCII str): after a power cut it is the old or the new one.

        Written under another name, read back, compared and renamed (PITFALLS 15). Raises OSError, also
        when what was read back differs; the old file is then untouched.
        """
        if isinstance(data, str):
            data = data.encode()
        other = name + ".tmp"
        try:
            with self.open(other, "wb") as f:
                f.write(data)
                f.flush()
            self._compare(other, data)
        except OSError:
            self._discard(other)
            raise
        self.rename(other, name)

    def _compare(self, name, data):
        view = memoryview(data)
        at = 0
        with self.open(name, "rb") as f:
            while True:
                part = f.read(_CHUNK)
                if part != view[at : at + _CHUNK]:
                    raise OSError(_EIO)
                if not part:
                    return
                at += len(part)

    def _discard(self, name):
        try:
            self.remove(name)
        except OSError:
            pass  # it was never made, or the file system is read-only: the next attempt overwrites it
