"""The host's question whether the program is the known one (`verify`, SPEC 10), answered a little at a time.

Owns what is hashed and in which order; must never hold up a scan. integrity.py asks the same at each start.
"""

import binascii
import hashlib

from micropython import const

from shaker.integrity import program_files

_CHUNK = const(512)
_STEP_CHUNKS = const(8)  # 4 KiB: about 3 ms on an ESP32


class Verifier:
    """Answers `verify`, a little at a time: SHA-256 over nonce and program, for a host that knows the build.

    Hashed are the nonce as sent (ASCII), then for each program file in sorted order its path, a NUL and its
    content. A frozen program, which has no files, answers with nonce, "image", NUL and image.elf_sha256().
    """

    def __init__(self, files):
        self._files = files
        self._total = None
        self._paths = []
        self._file = None
        self._buf = bytearray(_CHUNK)

    def start(self, nonce):
        """Begin anew with `nonce` (ASCII text)."""
        self._close()
        self._total = hashlib.sha256(nonce.encode())
        self._paths = program_files(self._files.root)
        if not self._paths:
            from shaker.image import elf_sha256

            self._total.update(b"image\0" + elf_sha256())

    def step(self):
        """Hash up to 4 KiB; return None until all is done, then once the digest in hex.

        Raises OSError when a file can no longer be read: there is no digest then.
        """
        total = self._total
        if total is None:
            return None
        view = memoryview(self._buf)
        for _ in range(_STEP_CHUNKS):
            file = self._file
            if file is not None:
                n = file.readinto(self._buf)
                total.update(view[:n])
                if not n:
                    self._close()
            elif self._paths:
                path = self._paths.pop(0)
                self._file = self._files.open(path, "rb")
                total.update(path.encode() + b"\0")
            else:
                self._total = None
                return binascii.hexlify(total.digest()).decode()
        return None

    def _close(self):
        if self._file is not None:
            self._file.close()
            self._file = None
