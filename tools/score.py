"""`make score`: enters what mutation testing found (build/mutants.json) into the README.

The file is host_tests/mutants.py's. Invents nothing: without the file, with another form of it, or where a
module's text is no longer the one that was tried, the README stays as it is.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import readme as readme_blocks

ROOT = Path(__file__).resolve().parents[1]
BEGIN = "<!-- mutants: entered by `make score` -->"
END = "<!-- end of mutants -->"


def percent(part: int, whole: int) -> str:
    """Return a share as text."""
    return f"{100 * part / whole:.1f} %"


def block(found: dict[str, Any]) -> str:
    """Return the text between the marks. Raises KeyError, TypeError or ZeroDivisionError for another form."""
    rows = found["modules"]
    tried = sum(row["tried"] for row in rows)
    killed = sum(row["killed"] for row in rows)
    explained = sum(row["explained"] for row in rows)
    out = [
        f"Mutation testing: of {tried} small mistakes put into the modules below, one at a time, their unit "
        f"tests notice {killed} ({percent(killed, tried)}); of the other {tried - killed}, {explained} are "
        "explained one by one in [MUTANTS](host_tests/MUTANTS.md).",
        "",
        "| module | mutants | killed | survived | score | SHA-256 of the text |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        cells = (
            row["module"],
            row["tried"],
            row["killed"],
            row["tried"] - row["killed"],
            percent(row["killed"], row["tried"]),
            f"`{row['sha256'][:8]}…`",
        )
        out.append("| " + " | ".join(str(cell) for cell in cells) + " |")
    return "\n".join(out)


def enter(readme: str, found: dict[str, Any]) -> str:
    """Return the README's text with the score in it. Raises ValueError where it has no block for it."""
    return readme_blocks.enter(readme, BEGIN, END, block(found))


def stale(found: dict[str, Any], root: Path) -> list[str]:
    """Return the modules whose text is another one now. Raises as block() does, and OSError."""
    rows = found["modules"]
    texts = {row["module"]: (root / f"firmware/shaker/{row['module']}.py").read_bytes() for row in rows}
    return [
        row["module"] for row in rows if hashlib.sha256(texts[row["module"]]).hexdigest() != row["sha256"]
    ]


def main(root: Path = ROOT) -> int:
    """Enter build/mutants.json into README.md; return the exit status."""
    readme = root / "README.md"
    try:
        found = json.loads((root / "build/mutants.json").read_text("utf-8"))
        text = enter(readme.read_text("utf-8"), found)
        older = stale(found, root)
    except OSError as error:
        print(f"{Path(error.filename).name}: {error.strerror}; `make mutants` writes it", file=sys.stderr)
        return 1
    except (ValueError, KeyError, TypeError, ZeroDivisionError) as error:
        print(f"build/mutants.json or README.md has another form: {error}", file=sys.stderr)
        return 1
    if older:
        names = " ".join(older)
        print(f'build/mutants.json is of an older text: make mutants ARGS="{names}"', file=sys.stderr)
        return 1
    readme.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
