"""Which MicroPython image runs: a program frozen into it has no files that could be hashed.

Reads flash, and nothing else; integrity of the image itself is the bootloader's, which compares it with the
hash at its end at every start. Source: ESP-IDF, esp_app_desc_t and App Image Format.
"""

from esp32 import Partition
from micropython import const

_AT = const(0xB0)  # in the application's partition: app_elf_sha256 of its description


def elf_sha256():
    """Return the SHA-256 (32 bytes) of the ELF file the running image was made of: no two builds share it.

    32 zeros where the flash cannot be read.
    """
    found = bytearray(32)
    try:
        # The stub knows labels alone.
        Partition(Partition.RUNNING).readblocks(0, found, _AT)  # pyright: ignore[reportArgumentType]
    except OSError:
        pass
    return found
