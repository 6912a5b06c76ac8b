"""Replacing a small file: whole or not at all, whatever happens (PITFALLS 15, 16)."""

import pytest

import flash as chips
from flash import Flash
from power import PowerCut
from shaker.files import Files
from storage import Storage

OLD = b"o" * 700
NEW = b"n" * 900


@pytest.fixture
def storage():
    """Return a formatted, mounted storage with a file `s` that holds OLD."""
    storage = Storage(Flash())
    storage.format()
    storage.mount().write_whole("s", OLD)
    return storage


def content(files, name):
    """Return the whole of a file."""
    with files.open(name, "rb") as f:
        return f.read()


def test_on_a_host_folder(tmp_path):
    files = Files(str(tmp_path))
    files.write_whole("a", "text")
    files.write_whole("a", b"again")
    assert files.listdir() == ["a"]
    assert files.size("a") == 5 and files.size("b") == -1
    files.rename("a", "b")
    assert content(files, "b") == b"again"
    files.remove("b")
    assert files.listdir() == []
    with pytest.raises(OSError):
        files.open("b", "rb")


def test_a_cut_anywhere_leaves_the_old_or_the_new_one(storage):
    kept = bytes(storage.chip.data)
    operations = storage.chip.operations
    storage.files.write_whole("s", NEW)
    operations = storage.chip.operations - operations
    assert operations >= 3
    outcomes = []
    for n in range(1, operations + 1):
        for how in (chips.TORN, chips.BEFORE, chips.AFTER):
            storage.chip.data[:] = kept
            files = storage.mount()
            storage.chip.cut_at(n, how)
            with pytest.raises(PowerCut):
                files.write_whole("s", NEW)
            storage.chip.power_on()
            files = storage.mount()
            outcomes.append(content(files, "s"))
            files.write_whole("s", NEW)
            assert content(files, "s") == NEW
    assert set(outcomes) == {OLD, NEW}


def test_what_reads_back_differently_is_not_adopted(storage, monkeypatch):
    files = storage.files
    plain = files.open

    def damaged(name, mode):
        if mode == "rb":
            return plain("s", mode)
        return plain(name, mode)

    monkeypatch.setattr(files, "open", damaged)
    with pytest.raises(OSError):
        files.write_whole("s", NEW)
    monkeypatch.undo()
    assert content(files, "s") == OLD
    assert files.listdir() == ["s"]


def test_a_longer_or_shorter_file_is_not_taken_for_the_same(storage):
    files = storage.files
    for data in (b"", b"x", OLD[:-1], OLD + b"o", b"y" * 128, b"y" * 129):
        files.write_whole("s", data)
        assert content(files, "s") == data
    files.write_whole("long", b"ab")
    with pytest.raises(OSError):
        files._compare("long", b"abc")
    with pytest.raises(OSError):
        files._compare("long", b"a")


def test_a_full_file_system_keeps_the_old_one(storage):
    storage.fill()
    with pytest.raises(OSError):
        storage.files.write_whole("s", b"z" * 20000)
    assert content(storage.files, "s") == OLD
    assert "s.tmp" not in storage.files.listdir()


def test_a_read_only_chip_keeps_the_old_one(storage):
    storage.chip.read_only = True
    with pytest.raises(OSError):
        storage.files.write_whole("s", NEW)
    assert content(storage.files, "s") == OLD
