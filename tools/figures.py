"""`make figures`: enters what the benchmark measured (build/bench.json) into the README's block of figures.

The file: {"on": "interpreter and machine", "figures": [{"what": …, "value": …, "limit": …}, …]}, all text or
numbers. Invents nothing: without the file, or with another form of it, the README stays as it is.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import readme as readme_blocks

ROOT = Path(__file__).resolve().parents[1]
BEGIN = "<!-- figures: entered by `make figures` -->"
END = "<!-- end of figures -->"


def block(measured: dict[str, object]) -> str:
    """Return the text between the marks. Raises KeyError or TypeError for another form."""
    rows = measured["figures"]
    if not isinstance(rows, list) or not rows:
        raise TypeError("no figures")
    out = [f"Measured on {measured['on']}.", "", "| figure | measured | limit |", "|---|---|---|"]
    out += [f"| {row['what']} | {row['value']} | {row['limit']} |" for row in rows]
    return "\n".join(out)


def enter(readme: str, measured: dict[str, object]) -> str:
    """Return the README's text with the figures in it. Raises ValueError where it has no block for them."""
    return readme_blocks.enter(readme, BEGIN, END, block(measured))


def main(root: Path = ROOT) -> int:
    """Enter build/bench.json into README.md; return the exit status."""
    readme = root / "README.md"
    try:
        text = enter(readme.read_text("utf-8"), json.loads((root / "build/bench.json").read_text("utf-8")))
    except OSError as error:
        print(f"{Path(error.filename).name}: {error.strerror}; `make bench` writes it", file=sys.stderr)
        return 1
    except (ValueError, KeyError, TypeError) as error:
        print(f"build/bench.json or README.md has another form: {error}", file=sys.stderr)
        return 1
    readme.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
