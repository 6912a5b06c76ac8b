"""The manifest check and `verify`: the same judgement and the same digest on device and host."""

import json

import esp32
import pytest

import interpreter
import world
from shaker.files import Files
from shaker.integrity import check
from shaker.verifier import Verifier
from shakerctl import appimage, image, manifest
from shakerctl.trouble import Usage

PROGRAM = {
    "boot.py": b"import machine\n",
    "main.py": b"from shaker import app\n",
    "shaker/app.mpy": bytes(range(256)) * 40,  # more than one step of the verifier
    "shaker/empty.mpy": b"",
    "shaker/round.mpy": b"M\x06\x00",
}
NONCE = "00112233445566778899aabbccddeeff"


def deploy(folder, files=PROGRAM, version="1.0.0"):
    for path, data in {**files, manifest.NAME: manifest.build(files, version)}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    return Files(str(folder))


def answer(verifier, nonce):
    """The digest, and how many steps it took."""
    verifier.start(nonce)
    for steps in range(1, 1000):
        digest = verifier.step()
        if digest is not None:
            return digest, steps
    raise AssertionError("the verifier never ends")


def test_what_was_released_passes(tmp_path):
    assert check(deploy(tmp_path)) is None


@pytest.mark.parametrize("path", PROGRAM)
def test_each_file_altered_or_missing_is_named(tmp_path, path):
    files = deploy(tmp_path)
    for data in (PROGRAM[path] + b"x", b"y" + PROGRAM[path][1:]):
        (tmp_path / path).write_bytes(data)
        assert check(files) == path
    (tmp_path / path).unlink()
    assert check(files) == path


@pytest.mark.parametrize(
    "path", ["round.mpy", "shaker/round.py", "shaker/round/__init__.py", "lib/x.mpy", "a/b/c/x.py"]
)
def test_a_python_file_too_many_is_named(tmp_path, path):
    files = deploy(tmp_path)
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / path).write_bytes(b"")
    assert check(files) == path


def test_a_folder_that_main_would_import_as_boot_is_named(tmp_path):
    program = {path.replace("shaker", "fw-00000000/shaker"): data for path, data in PROGRAM.items()}
    for path, data in program.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(data)
    slot = {path if "/" in path else "../" + path: data for path, data in PROGRAM.items()}
    (tmp_path / "fw-00000000" / manifest.NAME).write_bytes(manifest.build(slot, "1.0.0"))
    files = Files(str(tmp_path / "fw-00000000"))
    assert check(files) is None
    (tmp_path / "boot").mkdir()
    assert check(files) == "../boot"


def test_the_first_of_several_is_named(tmp_path):
    files = deploy(tmp_path)
    (tmp_path / "shaker/round.mpy").unlink()
    (tmp_path / "main.py").write_bytes(b"")
    assert check(files) == "main.py"


def test_data_beside_the_program_does_not_matter(tmp_path):
    files = deploy(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data/00000001.log").write_bytes(b"x")
    (tmp_path / "settings.json").write_bytes(b"{")
    assert check(files) is None


@pytest.mark.parametrize(
    "words", [b"", b"{", b"7", b"null", b"[]", b"{}", b'{"files":7}', b'{"files":["main.py"]}', b"\xff\xfe"]
)
def test_a_nonsensical_manifest_is_named(tmp_path, words):
    files = deploy(tmp_path)
    (tmp_path / manifest.NAME).write_bytes(words)
    assert check(files) == manifest.NAME


def test_hashes_that_are_no_hashes_are_an_altered_file(tmp_path):
    files = deploy(tmp_path)
    for value in (None, 7, "", [], "G" * 64):
        (tmp_path / manifest.NAME).write_text(json.dumps({"files": dict.fromkeys(PROGRAM, value)}))
        assert check(files) == "boot.py"
    (tmp_path / manifest.NAME).write_text('{"files": {"a.py": null}}')
    assert check(files) == "a.py"


def test_a_missing_manifest_is_named(tmp_path):
    files = deploy(tmp_path)
    (tmp_path / manifest.NAME).unlink()
    assert check(files) == manifest.NAME
    assert check(Files(str(tmp_path / "nowhere"))) == manifest.NAME


@pytest.fixture
def around(tmp_path, monkeypatch):
    """A root with files that a frozen program has nothing to do with, one in a folder of its own name."""
    (tmp_path / ".frozen").mkdir()
    for path in ("boot.py", "stray.py", ".frozen/stray.py", ".frozen/" + manifest.NAME):
        (tmp_path / path).write_bytes(b"{")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_to_a_frozen_program_no_file_matters(around):
    assert check(Files(".frozen")) is None


def test_the_manifest_is_the_same_bytes_in_any_order():
    backwards = dict(reversed(PROGRAM.items()))
    assert manifest.build(backwards, "1.0.0") == manifest.build(PROGRAM, "1.0.0")
    whole = json.loads(manifest.build({**PROGRAM, manifest.NAME: b"old"}, "1.2.3"))
    assert whole["version"] == "1.2.3" and sorted(whole["files"]) == sorted(PROGRAM)


def test_the_host_knows_the_digest(tmp_path):
    verifier = Verifier(deploy(tmp_path))
    for nonce in (NONCE, "", "another"):
        digest, steps = answer(verifier, nonce)
        assert digest == manifest.digest(PROGRAM, nonce)
        assert steps >= sum(map(len, PROGRAM.values())) // 4096
    assert verifier.step() is None  # given once


def test_the_digest_tells_every_difference(tmp_path):
    verifier = Verifier(deploy(tmp_path))
    seen = {answer(verifier, NONCE)[0], answer(verifier, NONCE[1:])[0]}
    (tmp_path / "main.py").write_bytes(b"# changed\n")
    seen.add(answer(verifier, NONCE)[0])
    (tmp_path / "main.py").unlink()
    seen.add(answer(verifier, NONCE)[0])
    (tmp_path / "shaker/extra.py").write_bytes(b"")
    seen.add(answer(verifier, NONCE)[0])
    assert len(seen) == 5


def test_a_new_start_forgets_the_one_before(tmp_path):
    verifier = Verifier(deploy(tmp_path))
    verifier.start("x")
    verifier.step()
    assert answer(verifier, NONCE)[0] == manifest.digest(PROGRAM, NONCE)


class Failing(Files):
    """A folder in which one file can be neither opened nor, once open, read."""

    def __init__(self, root, path, how):
        super().__init__(root)
        self.path, self.how = path, how

    def open(self, name, mode):
        if name != self.path:
            return super().open(name, mode)
        if self.how == "open":
            raise OSError(5)
        return self

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self.close()

    def readinto(self, buf):
        raise OSError(5)

    def close(self):
        pass


@pytest.mark.parametrize("how", ["open", "read"])
def test_a_file_that_cannot_be_read_is_altered_and_has_no_digest(tmp_path, how):
    deploy(tmp_path)
    files = Failing(str(tmp_path), "shaker/app.mpy", how)
    assert check(files) == "shaker/app.mpy"
    verifier = Verifier(files)
    with pytest.raises(OSError):
        answer(verifier, NONCE)
    files.path = None  # it can be read again
    assert answer(verifier, NONCE)[0] == manifest.digest(PROGRAM, NONCE)


def test_a_frozen_program_answers_with_the_build_of_its_image(around, monkeypatch):
    chip = world.World()
    chip.install()
    verifier = Verifier(Files(".frozen"))
    assert answer(verifier, NONCE)[0] == appimage.digest(world.ELF_SHA256, NONCE)
    other = bytes(range(32))
    chip.app = world.app_image(other)
    assert answer(verifier, NONCE)[0] == appimage.digest(other, NONCE)
    assert answer(verifier, NONCE[1:])[0] == appimage.digest(other, NONCE[1:])

    def unreadable(*_):
        raise OSError(5)

    monkeypatch.setattr(esp32.Partition, "readblocks", unreadable)
    assert answer(verifier, NONCE)[0] == appimage.digest(bytes(32), NONCE), "and not by a restart"


def test_the_build_is_found_in_both_files_that_are_flashed(tmp_path):
    path = tmp_path / "image.bin"
    app = bytes(world.app_image(world.ELF_SHA256))
    boot_loader = b"\xe9" + bytes(0xEFFF)
    for data in (app, boot_loader + app):
        path.write_bytes(data)
        assert appimage.elf_sha256(path) == world.ELF_SHA256
    for data in (
        b"",
        b"#!",
        boot_loader,
        app[:207],
        b"\0" + app[1:],
        app[:32] + b"\0" + app[33:],
        bytes(9) + app,
    ):
        path.write_bytes(data)
        with pytest.raises(Usage, match=r"image\.bin is no ESP32 image"):
            appimage.elf_sha256(path)
    with pytest.raises(Usage, match="cannot be read"):
        appimage.elf_sha256(tmp_path)


def test_the_application_lies_where_the_image_says():
    board = interpreter.ROOT / "board/FPC_SHAKER"
    begins = int(json.loads((board / "board.json").read_text())["deploy_options"]["flash_offset"], 16)
    (row,) = [
        line for line in (board / "partitions.csv").read_text().splitlines() if line.startswith("factory")
    ]
    assert appimage._PLACES[1] == int(row.split(",")[3], 16) - begins


ON_MICROPYTHON = """
import sys
import world
world.World().install()
from shaker.files import Files
from shaker.integrity import check
from shaker.verifier import Verifier
for folder in sys.stdin.read().split():
    files = Files(folder)
    print(check(files))
    verifier = Verifier(files)
    verifier.start("00112233445566778899aabbccddeeff")
    digest = None
    while digest is None:
        digest = verifier.step()
    print(digest)
"""


def test_micropython_agrees(around):
    world.World().install()
    folders = [around / name for name in ("good", "altered", "extra", "nonsense", ".frozen")]
    for folder in folders[:-1]:
        folder.mkdir()
        deploy(folder)
    (folders[1] / "shaker/app.mpy").write_bytes(b"")
    (folders[2] / "shaker/round.py").write_bytes(b"")
    (folders[3] / manifest.NAME).write_bytes(b'{"files":7}')
    here = []
    names = [folder.name for folder in folders]
    for name in names:
        files = Files(name)
        here += [str(check(files)), answer(Verifier(files), NONCE)[0]]
    said = interpreter.run(ON_MICROPYTHON, "\n".join(names), cwd=around).splitlines()
    assert said == here
    assert said[0] == "None" and said[1] == manifest.digest(PROGRAM, NONCE)


BOOT = """
import sys
sys.path[:] = ["", ".frozen", "/lib"]
before = sys.path[:]
with open(sys.stdin.read()) as f: text = f.read()
try:
    exec(text, {"__name__": "__main__"})
except AttributeError:
    pass  # the real built-in module of this port has no Pin
print(sys.path == before)
"""


def test_boot_imports_the_built_in_machine_whatever_lies_beside_it(tmp_path):
    (tmp_path / "machine.py").write_text("print('the file')")
    boot = str(interpreter.FIRMWARE / "boot.py")
    assert interpreter.run(BOOT, boot, path=(), cwd=tmp_path) == "True\n"


MAIN = """
import sys
class Boot:
    path = ["", ".frozen", "/lib"]
sys.path[:] = Boot.path
sys.modules["boot"] = Boot
with open(sys.stdin.read()) as f: text = f.read()
place = {"__name__": "__main__"}
exec(text.split("\\ntry:\\n    main()")[0], place)  # without its last lines, which would run the firmware
folder = place["program_folder"]()
from shaker import integrity
from shaker.files import Files
print(folder, integrity.check(Files(folder)), sys.path)
"""


def test_a_file_in_the_folder_of_a_plain_copy_is_named_and_not_imported(tmp_path):
    """The one layout in which files of any name lie where the program is found."""
    main = str(interpreter.FIRMWARE / "main.py")
    deploy(tmp_path, image.release_files(interpreter.FIRMWARE))
    assert interpreter.run(MAIN, main, path=(), cwd=tmp_path) == ". None ['.frozen']\n"
    for name in ("binascii", "hashlib", "io", "json", "os", "struct", "time"):
        (tmp_path / (name + ".py")).write_text("print('the file')")
    assert interpreter.run(MAIN, main, path=(), cwd=tmp_path) == ". binascii.py ['.frozen']\n"


def test_a_frozen_package_is_known_by_its_path():
    """What program_folder() goes by, of a package that is frozen into this interpreter."""
    assert (
        interpreter.run("import asyncio\nprint(asyncio.__path__)", path=(".frozen",)) == ".frozen/asyncio\n"
    )


def test_a_plain_copy_is_found_where_the_port_looks(tmp_path):
    main = str(interpreter.FIRMWARE / "main.py")
    deploy(tmp_path / "lib", image.release_files(interpreter.FIRMWARE))
    said = interpreter.run(MAIN.replace('"/lib"', '"lib"'), main, path=(), cwd=tmp_path)
    assert said == "lib None ['.frozen']\n"
