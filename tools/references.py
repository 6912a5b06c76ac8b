"""What the documents name must exist: links and their anchors, files, functions, tests, `make` targets.

Owns the ways a document may name such a thing, all in backticks or as a link:

    [text](path#heading)     a file beside the document, and a heading of it
    `round.py`               a file of the repository: by its path, or from one of FOLDERS
    `round.py: Round.judge`  a function, class or method in it; so are tests named
    `make check`             a target of the Makefile
    `.venv/bin/python …`     never `python …`, which has nothing of what our programs need
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

# Where a file is looked for that is named without its whole path, after the document's own folder.
FOLDERS = (
    ".", "firmware", "firmware/shaker", "firmware/docs", "host_tests", "host_tests/fakes",
    "host_tests/scenarios", "board", "board/FPC_SHAKER", "tools", "tools/shakerctl", "tools/sim",
)  # fmt: skip
# The given text names targets that are still to come.
GIVEN = {"firmware/docs/SPEC.md"}
# Files that exist on a device or are made: no part of the repository.
ELSEWHERE = {"settings.json", "settings.new", "settings.bad", "manifest.json", "tail.log"}
_FILE = re.compile(r"`([\w./-]+\.(?:py|md|scn|csv|json|toml|txt|svg|js|html|css|png|cmake))(?:: ([\w.]+))?`")
_LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)")
_PYTHON = re.compile(r"(?:^|`)python3? +[-\w/.]+", re.M)
_TARGET = re.compile(r"(?:^|`)make ([a-z][a-z-]*)", re.M)


def slug(heading: str) -> str:
    """Return the anchor that a heading gets."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def anchors(text: str) -> set[str]:
    """Return the anchors of all headings in a document."""
    return {slug(line) for line in re.findall(r"^#+ (.*)$", text, re.M)}


@cache
def definitions(path: Path, _changed: int) -> frozenset[str]:
    """Return what a Python file defines: `function`, `Class` and `Class.method`."""
    found = set()

    def walk(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
                found.add(prefix + node.name)
                if isinstance(node, ast.ClassDef):
                    walk(node.body, prefix + node.name + ".")
            elif isinstance(node, ast.Assign):
                found.update(prefix + target.id for target in node.targets if isinstance(target, ast.Name))
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                found.add(prefix + node.target.id)

    walk(ast.parse(path.read_text("utf-8")).body, "")
    return frozenset(found)


def find(root: Path, document: str, name: str) -> Path | None:
    """Return the file that a document of this path means by `name`, or None."""
    for folder in ((root / document).parent, *(root / folder for folder in FOLDERS)):
        if (folder / name).is_file():
            return folder / name
    return None


def targets(root: Path) -> set[str]:
    """Return the targets of the Makefile."""
    return set(re.findall(r"^([a-z-]+):", (root / "Makefile").read_text("utf-8"), re.M))


def _links(root: Path, name: str, text: str) -> Iterable[str]:
    for link, anchor in _LINK.findall(text):
        if ":" in link:
            continue
        path = (root / name).parent / link if link else root / name
        if not path.exists():
            yield f"{name}: link to {link}, which is not there"
        elif anchor and path.suffix == ".md" and anchor not in anchors(path.read_text("utf-8")):
            yield f"{name}: link to {link}#{anchor}, which is no heading there"


def _files(root: Path, name: str, text: str) -> Iterable[str]:
    for file, what in _FILE.findall(text):
        if file in ELSEWHERE or file.startswith("build/"):
            continue
        path = find(root, name, file)
        if path is None:
            yield f"{name}: names `{file}`, which is not there"
        elif what and (path.suffix != ".py" or what not in definitions(path, path.stat().st_mtime_ns)):
            yield f"{name}: names `{file}: {what}`, which is not there"


def wrong(root: Path, documents: Iterable[str]) -> list[str]:
    """Return one line for each thing named in `documents` (paths from `root`) that does not exist."""
    have = targets(root)
    found = []
    for name in documents:
        text = (root / name).read_text("utf-8")
        found += _links(root, name, text)
        found += _files(root, name, text)
        found += [
            f"{name}: names `make {target}`, which is no target"
            for target in _TARGET.findall(text)
            if target not in have and name not in GIVEN
        ]
        found += [
            f"{name}: names `{command.lstrip('`')}`: write .venv/bin/python"
            for command in _PYTHON.findall(text)
        ]
    return found
