"""`make check` refuses what it should: each of its own steps, on a small repository made for it."""

import importlib.util
import json
import shutil
import subprocess

import pytest

import interpreter

SCRIPT = interpreter.ROOT / "tools" / "check.py"


@pytest.fixture
def check(tmp_path, monkeypatch):
    """tools/check.py, looking at a repository of its own."""
    spec = importlib.util.spec_from_file_location("check_script", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    shutil.copytree(
        interpreter.FIRMWARE, tmp_path / "firmware", ignore=shutil.ignore_patterns("docs", "*.md")
    )
    (tmp_path / "firmware/CHANGELOG.md").write_text("# Changes\n\n## 1.0.0\n\nx\n\n## 0.9.0\n")
    (tmp_path / "firmware/shaker/version.py").write_text('"""V."""\n\nVERSION = "1.0.0"\n')
    (tmp_path / "tools").mkdir()
    names = json.loads((interpreter.ROOT / "tools/budget.json").read_text())
    (tmp_path / "tools/budget.json").write_text(json.dumps(dict.fromkeys(names, 20000)))
    (tmp_path / "Makefile").write_text("test: x\n\ncheck:\n")
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "BUDGET", tmp_path / "tools/budget.json")
    git(tmp_path, "init", "-q")
    commit(tmp_path)
    return module


def git(folder, *words):
    who = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


def commit(folder):
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "x")


def budget(check, **entries):
    changed = {name.replace("__", "/") + ".py": n for name, n in entries.items()}
    check.BUDGET.write_text(json.dumps(json.loads(check.BUDGET.read_text()) | changed))


def test_a_tree_in_order_passes(check):
    assert [step() for step in (check.compiled, check.tree, check.version, check.documents)] == [""] * 4


def test_a_module_above_its_budget_fails(check):
    size = check.sizes()["shaker/ticks.py"]
    budget(check, shaker__ticks=size)
    assert check.compiled() == ""
    budget(check, shaker__ticks=size - 1)
    assert check.compiled() == f"shaker/ticks.py: {size} bytes, budget {size - 1}"


def test_a_budget_only_goes_down(check):
    budget(check, shaker__ticks=900)
    commit(check.ROOT)
    budget(check, shaker__ticks=800)
    commit(check.ROOT)
    budget(check, shaker__ticks=850)
    assert "budget 850 was 800 before" in check.compiled()
    commit(check.ROOT)  # committing it does not help
    assert "budget 850 was 800 before" in check.compiled()
    budget(check, shaker__ticks=800)
    assert check.compiled() == ""


def test_a_module_without_a_budget_fails(check):
    budget = json.loads(check.BUDGET.read_text())
    del budget["shaker/round.py"]
    check.BUDGET.write_text(json.dumps(budget))
    assert check.compiled() == "shaker/round.py: has no budget"
    check.BUDGET.write_text(json.dumps(budget | {"shaker/round.py": 30000}))
    assert "budget 30000 was 20000 before" in check.compiled()


def test_entering_a_module_takes_its_size_and_never_raises_an_entry(check):
    size = check.sizes()["shaker/ticks.py"]
    check.lower(["shaker/ticks.py"])
    assert json.loads(check.BUDGET.read_text())["shaker/ticks.py"] == size
    budget(check, shaker__ticks=10)
    check.lower(["shaker/ticks.py"])
    assert json.loads(check.BUDGET.read_text())["shaker/ticks.py"] == 10
    with pytest.raises(SystemExit, match=r"shaker/no\.py: no such firmware file"):
        check.lower(["shaker/no.py"])


def test_a_budget_for_no_file_and_a_firmware_too_large_fail(check, monkeypatch):
    budget(check, shaker__gone=5)
    assert "no such file" in check.compiled()
    monkeypatch.setattr(check, "TOTAL_BYTES", 100)
    assert "limit 100" in check.compiled()


def test_a_file_that_does_not_compile_fails(check):
    (check.ROOT / "firmware/shaker/ticks.py").write_text("def f(:\n")
    assert "shaker/ticks.py" in check.compiled()


@pytest.mark.parametrize(
    "words", ["see /ho" + "me/x/y", "in /ro" + "ot/.cache", "https://py" + "pi.org/simple"]
)
def test_paths_of_one_machine_and_registries_fail(check, words):
    (check.ROOT / "firmware/new.md").write_text(f"a\n{words}\n")
    assert check.tree().startswith("firmware/new.md:2: a ")


def test_the_path_of_this_clone_fails(check):
    (check.ROOT / "firmware/new.md").write_text(f"{check.ROOT}/firmware\n")
    assert "firmware/new.md:1: a path" in check.tree()


def test_a_folder_that_does_not_belong_at_the_top_fails(check):
    (check.ROOT / "src").mkdir()
    (check.ROOT / "src/x.py").write_text("")
    assert check.tree().startswith("src/x.py: only board, firmware")


def test_a_version_without_its_changelog_fails(check):
    (check.ROOT / "firmware/shaker/version.py").write_text('VERSION = "1.0.1"\n')
    assert "CHANGELOG" in check.version()


def test_a_dead_link_and_a_target_that_is_none_fail(check):
    (check.ROOT / "firmware/README.md").write_text(
        "[a](gone.md) [b](CHANGELOG.md#changes)\n\nmake fly\n`make test X=1`\n"
    )
    assert check.documents().splitlines() == [
        "firmware/README.md: link to gone.md, which is not there",
        "firmware/README.md: names `make fly`, which is no target",
    ]
