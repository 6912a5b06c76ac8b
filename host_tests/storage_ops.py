"""A fixed muddle of file operations with power cuts, and what the chip saw of it: compares interpreters."""

import binascii

import flash as chips
from flash import Flash
from power import PowerCut
from storage import Storage

NAMES = ("tail.log", "00000001.log", "00000002.log", "a", "b", "settings.json")
HOWS = (chips.TORN, chips.BEFORE, chips.AFTER)


def seen(read_size, prog_size, steps, blocks=64):
    """Carry out `steps` operations; return lines: each program and erase, each error, sums of the chip."""
    chip = Flash(blocks)
    chip.trace = trace = []
    storage = Storage(chip, read_size, prog_size)
    storage.format()
    files = storage.mount()
    number = 12345
    for step in range(steps):
        number = (number * 1103515245 + 12345) & 0x7FFFFFFF
        what = (number >> 8) % 20
        name = NAMES[(number >> 16) % 6]
        size = (number >> 4) % 3000
        data = bytes([step & 255])
        try:
            if what < 6:
                with files.open(name, "ab") as f:
                    f.write(data * 64)
            elif what < 11:
                if files.size("tail.log") < 0:
                    with files.open("tail.log", "wb") as f:
                        f.write(b"x" * 64)
                with files.open("tail.log", "r+b") as f:
                    f.write(data * 128)
            elif what < 13:
                with files.open(name, "wb") as f:
                    f.write(data * size)
            elif what == 13:
                files.remove(name)
            elif what == 14:
                files.rename(name, NAMES[size % 6])
            elif what == 15:
                files.write_whole("settings.json", "x" * (size % 900))
            elif what == 16:
                files = storage.mount()
            elif what == 17:
                with files.open(name, "rb") as f:
                    trace.append(binascii.crc32(f.read()))
            elif what == 18:
                chip.cut_at(1 + size % 6, HOWS[size % 3])
            else:
                trace.append(sorted(files.listdir()))
        except OSError as e:
            trace.append(("error", e.args[0]))
        except PowerCut:
            trace.append("cut")
            chip.power_on()
            files = storage.mount()
        if step % 50 == 0:
            trace.append(binascii.crc32(chip.data))
    return [str(line) for line in trace]
