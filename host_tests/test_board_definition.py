"""board/FPC_SHAKER as far as it can be checked without the ESP-IDF: partitions, manifest, names, budget."""

import csv
import inspect
import io
import json
import re
from pathlib import Path

from journal_bench import wear
from virtualboard import STOCK_BLOCKS

ROOT = Path(__file__).resolve().parent.parent
BOARD = ROOT / "board" / "FPC_SHAKER"
FLASH = 4 * 1024 * 1024
SECTOR = 0x1000
APP_ALIGNMENT = 0x10000  # the cache maps flash in pages of 64 KiB
TABLE_END = 0x9000  # the partition table itself lies at 0x8000
BROWNOUT_V = {"0": 2.43, "5": 2.70, "6": 2.77, "7": 2.80}  # ESP-IDF's Kconfig for the ESP32, each +/- 0.05
FLASH_V = 2.7  # the least of the module's flash


def partitions():
    """Return {name: (type, subtype, offset, size)} in the file's order."""
    lines = [x for x in (BOARD / "partitions.csv").read_text().splitlines() if x and not x.startswith("#")]
    rows = csv.reader(io.StringIO("\n".join(lines)), skipinitialspace=True)
    return {name: (kind, sub, int(at, 0), int(size, 0)) for name, kind, sub, at, size, *_ in rows}


def manifest():
    """Run manifest.py in the port's language; return (modules frozen, packages required)."""
    frozen, required = [], []
    places = {"$(BOARD_DIR)": str(BOARD), "$(PORT_DIR)": "PORT"}

    def path(text):
        for name, place in places.items():
            text = text.replace(name, place)
        return Path(text)

    def package(name, base_path="."):
        base = path(base_path)
        frozen.extend(
            str(p.relative_to(base.resolve())) for p in sorted((base / name).resolve().rglob("*.py"))
        )

    def module(name, base_path="."):
        assert (path(base_path) / name).exists()
        frozen.append(name)

    language = {"package": package, "module": module, "require": required.append, "freeze": required.append}
    exec((BOARD / "manifest.py").read_text(), language)
    return frozen, required


def test_partitions_fill_the_flash_without_overlap():
    end = TABLE_END
    for name, (_, _, offset, size) in partitions().items():
        assert offset == end, f"{name} leaves a hole or overlaps"
        assert offset % SECTOR == 0 and size % SECTOR == 0 and size > 0, name
        end = offset + size
    assert end == FLASH


def test_the_application_lies_on_a_page_and_has_room():
    kind, sub, offset, size = partitions()["factory"]
    assert (kind, sub) == ("app", "factory")
    assert offset % APP_ALIGNMENT == 0
    assert size >= 0x180000  # what the port gives its images for OTA on 4 MiB, which have the radio, too


def test_the_partitions_have_the_types_they_are_looked_up_by():
    table = partitions()
    assert table["vfs"][:2] == ("data", "fat")
    assert table["data"][0] == "data"
    assert table["nvs"][:2] == ("data", "nvs") and table["phy_init"][:2] == ("data", "phy")
    assert 'label="data"' in (ROOT / "firmware/shaker/board.py").read_text()


def test_the_journal_has_room_for_its_capacity():
    # SPEC section 7: 1000 events of 64 bytes, held twice over while a segment is dropped.
    assert partitions()["data"][3] >= 8 * 1000 * 64


def test_the_journals_partition_is_the_one_whose_life_is_stated():
    assert partitions()["data"][3] == inspect.signature(wear).parameters["partition_bytes"].default


def test_a_deployment_has_the_room_that_it_is_tested_with():
    assert partitions()["vfs"][3] >= STOCK_BLOCKS * SECTOR


def test_the_manifest_freezes_every_module_and_nothing_else():
    frozen, required = manifest()
    firmware = ROOT / "firmware"
    wanted = [str(p.relative_to(firmware)) for p in sorted((firmware / "shaker").rglob("*.py"))]
    assert sorted(frozen) == sorted([*wanted, "boot.py", "main.py"])
    assert required == ["$(PORT_DIR)/modules", "neopixel"]


def test_everything_the_firmware_imports_is_frozen_or_built_in():
    frozen, required = manifest()
    built_in = {
        "machine", "esp32", "micropython", "os", "sys", "time", "struct", "json", "io", "gc",
        "binascii", "hashlib", "vfs", "errno", "array", "collections",
    }  # fmt: skip
    own = {"shaker", "boot", "main", *required}
    for name in frozen:
        text = (ROOT / "firmware" / name).read_text()
        for found in re.findall(r"^\s*(?:from|import) ([a-z_0-9]+)", text, re.MULTILINE):
            assert found in built_in | own, f"{name} imports {found}"


def test_board_json_is_what_the_port_reads():
    board = json.loads((BOARD / "board.json").read_text())
    assert board["mcu"] == "esp32" and board["deploy_options"] == {"flash_offset": "0x1000"}
    for name in board["deploy"]:
        assert (BOARD / name).exists()
    assert set(board) >= {
        "deploy",
        "docs",
        "features",
        "images",
        "mcu",
        "product",
        "thumbnail",
        "url",
        "vendor",
    }


def test_the_cmake_file_names_files_that_are_there():
    text = (BOARD / "mpconfigboard.cmake").read_text()
    names = re.findall(r"\$\{MICROPY_BOARD_DIR\}/([\w.]+)", text)
    assert sorted(set(names)) == ["manifest.py", "partitions.csv", "sdkconfig.board"]
    assert all((BOARD / name).exists() for name in names)
    assert "set(IDF_TARGET esp32)" in text


def test_the_ports_pin_file_is_the_one_table():
    assert (BOARD / "pins.csv").resolve() == ROOT / "board" / "pins.csv"


def test_the_configuration_fits_the_module():
    lines = (BOARD / "sdkconfig.board").read_text().splitlines()
    settings = dict(x.split("=", 1) for x in lines if x and not x.startswith("#"))
    assert settings["CONFIG_ESPTOOLPY_FLASHSIZE_4MB"] == "y"
    assert settings["CONFIG_ESP_TASK_WDT_PANIC"] == "y"  # a hang ends in a reset
    assert settings["CONFIG_ESP_BROWNOUT_DET"] == "y"
    levels = [name[-1] for name in settings if name.startswith("CONFIG_ESP_BROWNOUT_DET_LVL_SEL_")]
    assert [BROWNOUT_V[level] - 0.05 >= FLASH_V for level in levels] == [True]
    assert settings["CONFIG_BT_ENABLED"] == "n"
    assert all(re.fullmatch(r"CONFIG_[A-Z0-9_]+", name) for name in settings)
    header = (BOARD / "mpconfigboard.h").read_text()
    for name in ("MICROPY_HW_BOARD_NAME", "MICROPY_HW_MCU_NAME"):
        assert re.search(rf"^#define {name} ", header, re.MULTILINE)
    for name in ("NETWORK_WLAN", "BLUETOOTH", "ESPNOW"):
        assert f"#define MICROPY_PY_{name} (0)\n" in header


def test_deploy_says_what_an_erase_destroys():
    text = (BOARD / "deploy.md").read_text()
    assert "{deploy_options[flash_offset]}" in text and "destroys the journal" in text
    assert "BOARD_DIR=" in text


def test_the_power_budget_adds_up():
    text = (ROOT / "board/README.md").read_text()
    board = (ROOT / "firmware/shaker/board.py").read_text()
    lamp = [int(x) for x in re.search(r"^_LAMP = \((\d+), (\d+), (\d+)\)", board, re.MULTILINE).groups()]
    assert f"({lamp[0]}, {lamp[1]}, {lamp[2]}) of 255" in text
    each = 20 * sum(lamp) / 255 / 1000
    layout = 39 * (each + 0.001)
    assert f"= {layout:.2f} A |" in text
    lamps = round(4 * layout, 2)
    assert f"4 layouts: {lamps} A" in text
    five = (2.4 + lamps) * 5 / 12 / 0.9
    assert f"= {five:.2f} A" in text
    resting = five + 0.05 + 1.0 + 0.5
    shaking = lamps * 5 / 12 / 0.9 + 0.05 + 1.5 + 1.0 + 0.5
    assert f"{resting:.1f} A; with the agitator and\nwithout servos {shaking:.1f} A" in text
    assert max(resting, shaking) < 5
