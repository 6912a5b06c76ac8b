"""The board module, boot.py and the fakes: board_suite.py on CPython and on a real MicroPython."""

import ast
import functools
import re
from pathlib import Path

import pytest

import board_suite
import interpreter
from shaker import pins

ROOT = Path(__file__).resolve().parent.parent
SUITE = Path(board_suite.__file__)
MP_ONLY = sorted(re.findall(r"^def (mp_check_\w+)", SUITE.read_text(), re.MULTILINE))


@functools.cache
def transcript():
    """Return what one run of the whole suite under MicroPython prints."""
    return interpreter.run("import board_suite; board_suite.main()", cwd=ROOT)


@functools.cache
def on_micropython():
    """Return {check: its line and what follows} of one run of the whole suite under MicroPython."""
    told = transcript()
    lines = re.split(r"^(?=(?:ok|bad) (?:mp_)?check_)", told, flags=re.MULTILINE)
    said = {line.split()[1]: line.rstrip() for line in lines if line.startswith(("ok ", "bad "))}
    return {name: line.split("\n")[0] if line.startswith("ok ") else line for name, line in said.items()}


@pytest.mark.parametrize("name", board_suite.CHECKS)
def test_on_both_interpreters(name, monkeypatch):
    monkeypatch.chdir(ROOT)
    result = getattr(board_suite, name)()
    assert on_micropython()[name] == f"ok {name} {result}"


@pytest.mark.parametrize("name", MP_ONLY)
def test_on_micropython(name):
    assert on_micropython()[name].startswith(f"ok {name} None")


def test_a_blank_partition_is_said_to_be_formatted_and_a_broken_one_is_not():
    told = transcript()
    assert told.count("blank, making its file system") == 1
    assert told.count("cannot be mounted, left as it is") == 1


def test_boot_imports_sys_and_machine_alone_opens_nothing_and_comes_before_everything():
    tree = ast.parse((ROOT / "firmware/boot.py").read_text())
    imports = [n for n in ast.walk(tree) if isinstance(n, ast.Import | ast.ImportFrom)]
    assert [a.name for n in imports for a in n.names] == ["sys", "machine"]
    calls = [ast.unparse(n.func) for n in ast.walk(tree) if isinstance(n, ast.Call)]
    assert set(calls) == {"Pin", "safe"}
    assert ast.unparse(tree.body[-1]) == "safe()"


def test_boot_holds_the_outputs_of_the_table_as_literals():
    tree = ast.parse((ROOT / "firmware/boot.py").read_text())
    lists = [n for n in ast.walk(tree) if isinstance(n, ast.List)]
    assert [ast.literal_eval(n) for n in lists] == [[".frozen"], list(pins.OUTPUTS)]


def test_only_the_board_module_and_boot_touch_the_hardware():
    for path in (ROOT / "firmware").rglob("*.py"):
        if path.name in ("board.py", "boot.py", "image.py"):  # the last only reads
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            found = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                found = [node.module]
            assert not {"machine", "esp32", "neopixel"} & set(found), path


def test_no_interrupt_and_no_timer_in_the_firmware():
    for path in (ROOT / "firmware").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute):
                assert node.attr not in ("irq", "Timer", "schedule"), path
