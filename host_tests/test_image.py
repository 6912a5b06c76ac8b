"""Release artefacts: the same bytes from any folder, and what is in them is the firmware."""

import hashlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time

import littlefs
import pytest

import interpreter
import simrun
from shaker.files import Files
from shaker.integrity import check
from shakerctl import image, manifest


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    out = tmp_path_factory.mktemp("image")
    return out, image.build(interpreter.FIRMWARE, out)


def everything(folder):
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_built_twice_from_two_folders_the_bytes_are_the_same(built, tmp_path):
    other = tmp_path / "another place" / "firmware"
    shutil.copytree(interpreter.FIRMWARE, other)
    for path in other.rglob("*"):
        os.utime(path, (1, 1))
    image.build(other, tmp_path / "out")
    assert everything(tmp_path / "out") == everything(built[0])


def test_the_hashes_are_those_of_the_files(built):
    out, hashes = built
    found = everything(out)
    lines = [line.split("  ") for line in found.pop("SHA256SUMS").decode().splitlines()]
    listed = {path: value for value, path in lines}
    assert listed == hashes == {path: hashlib.sha256(data).hexdigest() for path, data in found.items()}


def test_every_firmware_file_is_in_it_and_passes_its_own_check(built):
    out, _ = built
    assert check(Files(str(out / "files"))) is None
    names = {path.removeprefix("files/") for path in everything(out) if path.startswith("files/")}
    expected = {
        name if name in image.SCRIPTS else name.replace(".py", ".mpy")
        for name in image.sources(interpreter.FIRMWARE)
    }
    assert names == expected | {manifest.NAME}


def test_the_package_names_files_that_are_there(built):
    out, _ = built
    package = json.loads((out / "package.json").read_text())
    assert package["version"] == image.firmware_version(interpreter.FIRMWARE)
    assert {path: (out / url).read_bytes() for path, url in package["urls"]} == everything(out / "files")


def test_the_file_system_holds_the_same_files(built):
    out, _ = built
    data = (out / "littlefs.img").read_bytes()
    assert len(data) == image.STOCK_VFS_BYTES
    context = littlefs.UserContext(buffer=bytearray(data))
    disk = littlefs.LittleFS(context, block_size=4096, block_count=len(data) // 4096)
    found = {}
    for folder, _, names in disk.walk("/"):
        for name in names:
            path = f"{folder.strip('/')}/{name}".lstrip("/")
            with disk.open(path, "rb") as file:
                found[path] = file.read()
    assert found == everything(out / "files")


MOUNT = """
import sys, vfs
out = sys.stdin.read()
class Chip:
    def __init__(self, data):
        self.data = data
    def readblocks(self, block, buf, offset=0):
        at = block * 4096 + offset
        buf[:] = self.data[at : at + len(buf)]
    def writeblocks(self, block, buf, offset=0):
        raise OSError(30)
    def ioctl(self, op, arg):
        return {4: len(self.data) // 4096, 5: 4096}.get(op, 0)
with open(out + "/littlefs.img", "rb") as file:
    vfs.mount(vfs.VfsLfs2(Chip(file.read())), "/flash")
sys.path[:] = ["/flash"]
from shaker import integrity, rules
from shaker.files import Files
print(integrity.check(Files("/flash")), rules.__file__, sorted(rules.winning((1, 1, 1)).items()))
"""


def test_a_real_micropython_runs_from_the_image(built):
    said = interpreter.run(MOUNT, str(built[0]), path=(), heap_bytes=16_000_000)
    assert said.startswith("None /flash/shaker/rules.mpy [('colour3', 7)")


def test_a_firmware_that_does_not_compile_is_named(tmp_path):
    shutil.copytree(interpreter.FIRMWARE, tmp_path / "firmware")
    (tmp_path / "firmware/shaker/rules.py").write_text("match x:\n  case 1: pass\n")
    with pytest.raises(image.ImageError, match=r"shaker/rules\.py"):
        image.build(tmp_path / "firmware", tmp_path / "out")


SIZES = ((1000, "4096"), (4 * 4096, "cannot take the firmware"), (2**42, "--size 4398046511104: the flash"))


@pytest.mark.parametrize(("size", "words"), SIZES)
def test_a_file_system_that_cannot_be_says_why(size, words):
    with pytest.raises(image.ImageError, match=words):
        image.littlefs_image({"main.py": b"x" * 20000}, size)


def test_the_command_says_what_is_wrong_in_one_line(tmp_path):
    words = [sys.executable, "-m", "shakerctl.image", "--out", str(tmp_path / "out"), "--size", "5"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1 and "--size 5: " in done.stderr


def previous(tmp_path):
    """Return a folder of releases with one in it."""
    folder = tmp_path / "releases"
    (folder / "out" / "files").mkdir(parents=True)
    (folder / "out" / "files" / "main.py").write_text("the last one")
    names = ("files/main.py", "littlefs.img", "package.json")
    (folder / "out" / "SHA256SUMS").write_text("".join(f"{'0' * 64}  {name}\n" for name in names))
    return folder


def command(folder):
    return [sys.executable, "-m", "shakerctl.image", "--out", str(folder / "out")]


def test_a_full_disk_leaves_the_previous_release(tmp_path):
    folder = previous(tmp_path)
    before = everything(folder)
    done = subprocess.run(
        command(folder),
        preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_FSIZE, (400_000, 400_000)
        ),  # littlefs.img fails
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1 and "too large" in done.stderr
    assert everything(folder) == before and os.listdir(folder) == ["out"]


def test_a_release_that_cannot_be_swapped_in_leaves_the_previous_one(tmp_path, monkeypatch):
    folder = previous(tmp_path)
    before = everything(folder)
    rename = image.Path.rename

    def fail(path, to):
        if path.name == "new":
            raise PermissionError(13, "Permission denied")
        return rename(path, to)

    monkeypatch.setattr(image.Path, "rename", fail)
    with pytest.raises(PermissionError):
        image.build(interpreter.FIRMWARE, folder / "out")
    assert everything(folder) == before and os.listdir(folder) == ["out"]


def test_a_release_replaces_the_previous_one_also_through_a_link_but_never_a_file(built, tmp_path):
    folder = previous(tmp_path)
    (tmp_path / "link").symlink_to(folder / "out")
    image.build(interpreter.FIRMWARE, tmp_path / "link")
    assert everything(folder / "out") == everything(built[0])
    assert (tmp_path / "link").is_symlink() and os.listdir(folder) == ["out"]
    assert (folder / "out").stat().st_mode == (folder / "out" / "files").stat().st_mode
    (tmp_path / "file").write_text("mine")
    with pytest.raises(NotADirectoryError):
        image.build(interpreter.FIRMWARE, tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("path", ["notes.txt", "files/notes.txt", "files/shaker/notes/", "SHA256SUMS"])
def test_a_folder_with_anything_else_in_it_is_refused_and_named(tmp_path, path):
    out = previous(tmp_path) / "out"
    if path.endswith("/"):
        (out / path).mkdir(parents=True)
    else:
        (out / path).write_text("mine")  # also a list of other files
    before = everything(out)
    first = "files/shaker" if path.startswith("files/shaker") else path
    with pytest.raises(image.ImageError, match=f"out/{first} is no part of a release"):
        image.build(interpreter.FIRMWARE, out)
    assert everything(out) == before


def test_a_reader_that_goes_takes_no_word(tmp_path):
    words = command(previous(tmp_path))
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as making:
        making.stdout.close()
        assert (making.stderr.read(), making.wait(60)) == ("", 0)


def test_ctrl_c_is_one_line(tmp_path):
    folder = previous(tmp_path)
    before = everything(folder)
    with subprocess.Popen(command(folder), stderr=subprocess.PIPE, text=True) as running:
        end = time.monotonic() + 60
        while not simrun.children(running.pid):  # until it compiles
            assert running.poll() is None and time.monotonic() < end
        running.send_signal(signal.SIGINT)
        said = running.communicate(timeout=60)[1]
    assert running.returncode == 130 and said == "make image: interrupted.\n"
    assert everything(folder) == before and os.listdir(folder) == ["out"]
