"""The fake chip: programming clears bits, power goes when told to, and it can be ill in many ways."""

import pytest

import flash as chips
from flash import Flash
from power import PowerCut


def test_programming_only_clears_bits_and_erasing_sets_them():
    chip = Flash(4, 4096)
    chip.writeblocks(1, b"\x0f\xff", 8)
    chip.writeblocks(1, b"\xf3\x55", 8)
    buf = bytearray(3)
    chip.readblocks(1, buf, 8)
    assert buf == b"\x03\x55\xff"
    assert chip.overwrites == 1
    chip.ioctl(6, 1)
    chip.readblocks(1, buf, 8)
    assert buf == b"\xff\xff\xff"
    assert (chip.programs, chip.erases, chip.operations) == (2, 1, 3)
    assert chip.block_programs == [0, 2, 0, 0] and chip.block_erases == [0, 1, 0, 0]


def test_without_an_offset_a_write_erases_first():
    chip = Flash(2, 512)
    chip.writeblocks(0, bytes(512), 0)
    chip.writeblocks(0, b"\xa5" * 1024)
    assert bytes(chip.data) == b"\xa5" * 1024


def test_geometry():
    chip = Flash(7, 256)
    assert chip.ioctl(4, 0) == 7 and chip.ioctl(5, 0) == 256 and chip.ioctl(3, 0) == 0


@pytest.mark.parametrize(
    ("how", "left"), [(chips.TORN, b"\0\0\xff\xff"), (chips.BEFORE, b"\xff" * 4), (chips.AFTER, bytes(4))]
)
def test_a_cut_program(how, left):
    chip = Flash(2)
    chip.cut_at(2, how)
    chip.ioctl(6, 1)
    with pytest.raises(PowerCut):
        chip.writeblocks(0, bytes(4), 0)
    assert chip.data[:4] == left
    for use in (
        lambda: chip.readblocks(0, bytearray(1), 0),
        lambda: chip.ioctl(6, 0),
        lambda: chip.writeblocks(0, b"", 0),
    ):
        with pytest.raises(PowerCut):
            use()
    chip.power_on()
    assert not chip.armed
    chip.writeblocks(0, bytes(4), 0)


def test_a_cut_erase_is_half_done():
    chip = Flash(1, 8)
    chip.writeblocks(0, bytes(8), 0)
    chip.cut_at(1)
    with pytest.raises(PowerCut):
        chip.ioctl(6, 0)
    assert chip.data == b"\xff\xff\xff\xff\0\0\0\0"


def test_switching_off_disarms_a_pending_cut():
    chip = Flash(1)
    chip.cut_at(1)
    chip.power_off()
    chip.power_on()
    chip.writeblocks(0, b"\0", 0)


def test_a_power_cut_is_no_exception_a_program_could_swallow():
    assert not issubclass(PowerCut, Exception)


def test_erases_stall():
    chip = Flash(4)
    stalls = []
    chip.on_stall = stalls.append
    chip.long_stall_every = 3
    for block in range(4):
        chip.ioctl(6, block)
    assert stalls == [80, 80, 2000, 80]


def test_illness():
    chip = Flash(1)
    chip.flip(0, 5, 3)
    assert chip.data[5] == 0xF7
    chip.read_only = True
    with pytest.raises(OSError):
        chip.ioctl(6, 0)
    chip.readblocks(0, bytearray(4), 0)
    chip.read_only = False
    chip.failing = True
    with pytest.raises(OSError):
        chip.readblocks(0, bytearray(4), 0)
    chip.failing = False
    chip.fail_at(2)
    chip.writeblocks(0, b"\0", 0)
    with pytest.raises(OSError):
        chip.writeblocks(0, b"\0", 1)
    chip.writeblocks(0, b"\0", 1)
    assert chip.programs == 2


def test_trace():
    chip = Flash(2, 512)
    chip.trace = []
    chip.ioctl(6, 1)
    chip.writeblocks(1, b"abc", 7)
    assert chip.trace == [("erase", 1, 0, 512), ("program", 1, 7, 3)]
