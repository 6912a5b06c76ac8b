"""`make check`: every step in one line, the tool's own words only where it fails.

`tools/check.py --budget MODULE …` enters modules into the byte budget at their present size, or lowers
them to it; nothing ever raises an entry.
"""

import json
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import references
from shakerctl import image

ROOT = Path(__file__).resolve().parents[1]
BUDGET = ROOT / "tools" / "budget.json"
GENERATED = {"shaker/pins.py", "shaker/version.py"}  # the board and the changelog say what is in them
TOTAL_BYTES = 64 * 1024  # SPEC 12
TOP_LEVEL = {"firmware", "host_tests", "board", "tools"}
# In pieces, so that this file does not find itself.
_FOREIGN_PATHS = re.compile(r"(?<![\w.*-])/(?:" + "|".join(("work", "root", "home", "Users", "farm")) + ")/")
_REGISTRIES = re.compile(r"[:@]//[\w.-]*(?:" + "|".join(("py" + "pi", "npm" + "js", "deb" + "ian")) + ")")


def tool(*words):
    """Return a step that runs an installed tool: '' or what it said when it failed."""

    def step():
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
        return (done.stdout + done.stderr).strip() or "failed" if done.returncode else ""

    return step


def module_tool(*words):
    """Return a step that runs `python -m …` of this environment."""
    return tool(sys.executable, "-m", *words)


def tracked():
    """Return the paths of all files git knows or would take."""
    words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in sorted(set(done.stdout.split("\0"))) if name and (ROOT / name).is_file()]


def sizes():
    """Return {firmware file: bytes when cross-compiled}; image.ImageError when one does not compile."""
    with tempfile.TemporaryDirectory() as folder:
        return {name: len(data) for name, data in image.compile_all(ROOT / "firmware", Path(folder)).items()}


def earlier_budgets():
    """Yield every version of the budget that was ever committed."""
    name = BUDGET.relative_to(ROOT).as_posix()
    log = subprocess.run(["git", "log", "--format=%H", "--", name], cwd=ROOT, capture_output=True, text=True)
    for commit in log.stdout.split():
        shown = subprocess.run(["git", "show", f"{commit}:{name}"], cwd=ROOT, capture_output=True, text=True)
        if shown.returncode == 0:
            yield json.loads(shown.stdout)


def compiled():
    """Cross-compile every firmware file and hold the sizes against the budget."""
    try:
        have = sizes()
    except image.ImageError as error:
        return str(error)
    budget = json.loads(BUDGET.read_text())
    wrong = [
        f"{name}: {have[name]} bytes, budget {most}"
        for name, most in budget.items()
        if have.get(name, 0) > most
    ]
    wrong += [f"{name}: in {BUDGET.name}, but there is no such file" for name in budget if name not in have]
    wrong += [f"{name}: has no budget" for name in have if name not in budget and name not in GENERATED]
    for old in earlier_budgets():
        wrong += [
            f"{name}: budget {budget[name]} was {most} before; it may only go down"
            for name, most in old.items()
            if budget.get(name, 0) > most
        ]
    total = sum(have.values())
    if total > TOTAL_BYTES:
        wrong.append(f"firmware: {total} bytes cross-compiled, limit {TOTAL_BYTES}")
    return "\n".join(sorted(set(wrong)))


def tree():
    """No path of one machine, no registry's host, nothing at the top level that does not belong there."""
    wrong = []
    for name in tracked():
        top = name.split("/")[0]
        if "/" in name and top not in TOP_LEVEL and not top.startswith("."):
            wrong.append(f"{name}: only {', '.join(sorted(TOP_LEVEL))} at the top level")
        data = (ROOT / name).read_bytes()
        if b"\0" in data:
            continue
        for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
            if _FOREIGN_PATHS.search(line) or str(ROOT) in line:
                wrong.append(f"{name}:{number}: a path of one machine")
            if _REGISTRIES.search(line):
                wrong.append(f"{name}:{number}: a registry's host")
    return "\n".join(wrong)


def version():
    """The version is the changelog's newest."""
    newest = re.search(r"^## (\S+)", (ROOT / "firmware/CHANGELOG.md").read_text("utf-8"), re.M)
    if newest and newest[1] == image.firmware_version(ROOT / "firmware"):
        return ""
    return "firmware/CHANGELOG.md's newest entry is not the version of firmware/shaker/version.py"


def documents():
    """What documents name exists, and those that follow from the firmware are current."""
    wrong = references.wrong(ROOT, [name for name in tracked() if name.endswith(".md")])
    if (ROOT / "tools/docs.py").exists():
        wrong.append(tool(sys.executable, "tools/docs.py", "--check")())
    return "\n".join(filter(None, wrong))


def steps():
    """Return (name, step) in the order they are reported."""
    yield "format", module_tool("ruff", "format", "--check", "--quiet", "--output-format=concise")
    yield "lint", module_tool("ruff", "check", "--quiet", "--output-format=concise")
    yield "types of the firmware", module_tool("basedpyright", "-p", "firmware")
    yield "types of host code", module_tool("basedpyright")
    yield "cross-compilation and byte budget", compiled
    if (ROOT / "board/generate.py").exists():
        yield "pin table and what is made from it", tool(sys.executable, "board/generate.py", "--check")
    yield "tree", tree
    yield "version", version
    yield "documents", documents


def lower(names):
    """Enter `names` into the budget at their present size, or lower them to it."""
    have = sizes()
    budget = json.loads(BUDGET.read_text())
    for name in names:
        if name not in have:
            raise SystemExit(f"{name}: no such firmware file; there are {', '.join(sorted(have))}")
        budget[name] = min(budget.get(name, have[name]), have[name])
    BUDGET.write_text(json.dumps(budget, indent=2, sort_keys=True) + "\n")


def main():
    """Run every step; exit 1 when one failed."""
    failed = 0
    with ThreadPoolExecutor(2) as pool:
        running = [(name, pool.submit(step)) for name, step in steps()]
        for name, result in running:
            said = result.result()
            failed += bool(said)
            print(f"{'FAIL' if said else 'ok':<5}{name}", flush=True)
            if said:
                print(said, flush=True)
    if failed:
        raise SystemExit(f"{failed} of {len(running)} steps failed")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--budget"]:
        lower(sys.argv[2:])
    else:
        main()
