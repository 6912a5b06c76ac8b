"""Which build a MicroPython image is, by the file that was flashed: the counterpart of shaker/image.py.

Source: ESP-IDF, App Image Format and esp_app_desc_t. An application begins with 0xE9; its description, at 32,
with a magic word; in it, at 0xB0, the SHA-256 of the ELF file it was made of.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from shakerctl.trouble import Usage

_MAGIC = 0xE9
_DESCRIPTION = 32
_DESCRIPTION_MAGIC = bytes.fromhex("3254cdab")  # 0xABCD5432
_ELF_SHA256 = 0xB0
_PLACES = (0, 0x10000 - 0x1000)  # of the application: in micropython.bin; in firmware.bin, flashed at 0x1000


def elf_sha256(path: Path) -> bytes:
    """Return the 32 bytes that tell the build in micropython.bin or firmware.bin; else Usage."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise Usage(f"--frozen: {path} cannot be read ({error.strerror}).") from None
    for at in _PLACES:
        words = data[at + _DESCRIPTION : at + _DESCRIPTION + 4]
        if data[at : at + 1] == bytes([_MAGIC]) and words == _DESCRIPTION_MAGIC:
            found = data[at + _ELF_SHA256 : at + _ELF_SHA256 + 32]
            if len(found) == 32:
                return found
    raise Usage(
        f"--frozen: {path} is no ESP32 image: give the firmware.bin or micropython.bin that was flashed."
    )


def digest(elf: bytes, nonce: str) -> str:
    """Return what a shaker with that build frozen in answers to `verify`."""
    return hashlib.sha256(nonce.encode("ascii") + b"image\0" + elf).hexdigest()
