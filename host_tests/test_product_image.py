"""The board definition's own image, with the firmware frozen in, from an empty flash into service.

The virtual board says the name of mpconfigboard.h, has the port's own boot.py in its new file system, and
runs boot.py, main.py and `shaker` as frozen ones are run: before any file of the same name.
"""

import json
import re

import pytest

import interpreter
import world
from conftest import in_service, on_board, shakerctl, slot_of, to_bench
from romfs import romfs_image
from shaker.version import VERSION
from shakerctl import benchtest, image, manifest, release
from virtualboard import DATA_BLOCKS, STOCK_BLOCKS, VirtualBoard

HEADER = (interpreter.ROOT / "board/FPC_SHAKER/mpconfigboard.h").read_text()
NAMES = [
    re.search(rf'^#define MICROPY_HW_{n}_NAME "(.*?)"', HEADER, re.MULTILINE)[1] for n in ("BOARD", "MCU")
]
RATE = 4


@pytest.fixture(scope="session")
def frozen(tmp_path_factory, releases):
    """What is frozen: a release without its manifest."""
    path = tmp_path_factory.mktemp("frozen") / "frozen.rom"
    files = release.load(releases["one"]).files
    path.write_bytes(romfs_image({n.removeprefix("../"): x for n, x in files.items() if n != manifest.NAME}))
    return path


@pytest.fixture
def product(tmp_path, frozen):
    """A board whose flash was blank but for the image."""
    with VirtualBoard(tmp_path / "board", frozen=frozen, machine=" with ".join(NAMES), rate=RATE) as board:
        board.wait(in_service)
        yield board


def test_it_runs_on_a_board_that_never_ran(product):
    product.expect(b"shaker: running from .frozen\n")
    to_bench(product)
    assert on_board(product, "import os\nprint(os.listdir('/'))").count("boot.py") == 1, "the port's own"


def test_it_is_provisioned_tested_and_verified(product, releases, tmp_path):
    to_bench(product)
    done = shakerctl(
        "bench-test", "--port", product.usb, "--loopback", "--report", tmp_path / "report", "--json"
    )
    report = json.loads(done.out)
    assert (done.code, report["passed"]) == (0, True), done
    assert (report["firmware"], report["manifest_sha256"]) == (f"{VERSION} (.frozen)", "frozen")
    assert {check["part"] for check in report["checks"]} == set(benchtest.PARTS)
    product.expect(b"shaker: running from .frozen\n", 2)

    product.wait(in_service)
    to_bench(product)
    words = ["--set", "table=T5", "--new-key", tmp_path / "key", "--uart", product.uart, "--json"]
    done = shakerctl("provision", "--port", product.usb, *words)
    assert done.code == 0 and json.loads(done.out)["table"] == "T5", done
    product.wait(in_service)
    flashed, newer = tmp_path / "firmware.bin", tmp_path / "newer.bin"
    flashed.write_bytes(world.app_image(world.ELF_SHA256))
    newer.write_bytes(world.app_image(bytes(32)))
    known = shakerctl("verify", "--port", product.uart, "--frozen", flashed, "--json")
    told = json.loads(known.out)
    assert (known.code, told["ok"], told["version"]) == (0, True, VERSION), known
    assert told["elf_sha256"] == world.ELF_SHA256.hex()
    other = shakerctl("verify", "--port", product.uart, "--frozen", newer)
    assert other.code == 1 and f"(it says {VERSION}) is not frozen into the build in {newer}" in other.err
    files = shakerctl("verify", "--port", product.uart, "--image", releases["one"])
    assert files.code == 1 and "frozen into its MicroPython image is verified with --frozen" in files.err
    both = shakerctl("verify", "--port", product.uart, "--image", releases["one"], "--frozen", flashed)
    assert both.code == 2 and "give one of them" in both.err


def test_a_plain_copy_as_of_make_image_is_provisioned_too(tmp_path, releases):
    names = (releases["one"] / "files").rglob("*.*")
    files = {p.relative_to(releases["one"] / "files").as_posix(): p.read_bytes() for p in names}
    disk = image.littlefs_image(files, STOCK_BLOCKS * image.BLOCK_BYTES)
    flash = tmp_path / "flash.bin"
    flash.write_bytes(disk + b"\xff" * DATA_BLOCKS * image.BLOCK_BYTES)
    with VirtualBoard(tmp_path / "board", image=flash) as board:
        board.wait(in_service)
        to_bench(board)
        done = shakerctl("provision", "--port", board.usb, "--set", "table=T6")
        assert done.code == 0, done
        board.expect(b"shaker: running from .\n", 2)


def test_no_file_stands_in_for_what_is_frozen(product):
    to_bench(product)
    stray = "import os\nfor n in ('/shaker', '/lib', '/.frozen'): os.mkdir(n)\n"
    for path in ("boot.py", "main.py", "shaker/__init__.py", "lib/json.py", "x.py", ".frozen/x.py"):
        stray += f"with open('/{path}', 'w') as f: f.write('print(\"the file {path}\")')\n"
    stray += "with open('/current', 'w') as f: f.write('fw-00000000')"  # a slot that is not there
    on_board(product, stray)
    product.order(restart=1)
    product.expect(b"shaker: running from .frozen\n", 2)
    product.wait(in_service)
    assert product.heard(b"the file") == 0


def test_a_release_can_be_deployed_over_it(product, releases, tmp_path):
    to_bench(product)
    done = shakerctl("deploy", "--port", product.usb, "--image", releases["two"])
    assert done.code == 0, done
    product.expect(f"running from /{slot_of(releases['two'])}\n".encode())
    product.wait(in_service)
    assert shakerctl("verify", "--port", product.uart, "--image", releases["two"]).code == 0
    flashed = tmp_path / "firmware.bin"
    flashed.write_bytes(world.app_image(world.ELF_SHA256))
    frozen = shakerctl("verify", "--port", product.uart, "--frozen", flashed)
    assert frozen.code == 1 and "was deployed is verified without --frozen" in frozen.err
