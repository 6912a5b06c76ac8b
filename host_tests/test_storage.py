"""The file system over the chip: the very same programs and erases on both interpreters, cuts included."""

import pytest

import storage_ops
from flash import Flash
from interpreter import run
from power import PowerCut
from storage import Storage


@pytest.mark.parametrize(("size", "cuts"), [(32, 20), (256, 20)])
def test_both_interpreters_do_the_same_to_the_chip(size, cuts):
    code = f"import storage_ops\nprint('\\n'.join(storage_ops.seen({size}, {size}, 600)))"
    here = storage_ops.seen(size, size, 600)
    there = run(code, heap_bytes=32_000_000).splitlines()
    assert here.count("cut") >= cuts
    assert there == here


def test_what_is_closed_survives_power_and_what_is_not_flushed_does_not():
    storage = Storage(Flash())
    storage.format()
    files = storage.mount()
    with files.open("a", "wb") as f:
        f.write(b"safe")
    f = files.open("b", "wb")
    f.write(b"never flushed")
    storage.chip.power_off()
    with pytest.raises(PowerCut):
        f.close()
    storage.chip.power_on()
    files = storage.mount()
    assert files.size("a") == 4
    assert files.size("b") == 0


def test_a_dead_mounts_file_never_reaches_the_chip():
    storage = Storage(Flash())
    storage.format()
    old = storage.mount().open("a", "wb")
    old.write(b"late")
    storage.mount()
    operations = storage.chip.operations
    with pytest.raises(OSError):
        old.close()
    assert storage.chip.operations == operations


def test_a_blank_or_foreign_chip_is_not_mounted_nor_changed():
    chip = Flash()
    with pytest.raises(OSError):
        Storage(chip).mount()
    chip.data[:] = b"\x5a" * len(chip.data)
    with pytest.raises(OSError):
        Storage(chip).mount()
    assert chip.operations == 0


def test_filling_up():
    storage = Storage(Flash())
    storage.format()
    files = storage.mount()
    assert storage.fill() > 150_000
    with pytest.raises(OSError) as caught, files.open("more", "wb") as f:
        f.write(bytes(9000))
    assert caught.value.args[0] == 28


class World:
    """As much of a World as a data partition needs."""

    def __init__(self):
        self.partitions = {}
        self.off = None

    def alive(self):
        """Raise when the power is off."""
        if self.off:
            raise self.off()

    def power_off(self):
        """Cut the power."""
        self.off = PowerCut


def test_in_a_world_the_chip_is_its_data_partition():
    world = World()
    storage = Storage(world)
    storage.provision("settings.json", '{"layouts":2}')
    storage.mount()
    import sys

    partition = world.partitions["data"]
    assert partition.ioctl(4, 0) == 64
    fake = sys.modules["vfs"]
    files = sys.modules["shaker.files"]
    try:
        fake.mount(fake.VfsLfs2(partition, readsize=256, progsize=256, mtime=False), "/data")
        data = files.Files("/data")
        assert data.listdir() == ["settings.json"]
        with data.open("settings.json", "r") as f:
            assert f.read() == '{"layouts":2}'
        data.write_whole("a", b"123")
        data.rename("a", "b")
        assert data.size("b") == 3 and data.size("a") == -1
        data.remove("b")
        storage.chip.cut_at(1)
        with pytest.raises(PowerCut):
            data.write_whole("a", b"123")
        assert world.off is PowerCut
    finally:
        del sys.modules["vfs"]
        files.os = __import__("os")
        del files.open
