"""`make docs`: writes the pages that follow from the firmware, so that none of them can go stale.

    .venv/bin/python tools/docs.py           write what is out of date
    .venv/bin/python tools/docs.py --check   write nothing; exit 1 with a line for each stale page

What is on a page, and where it comes from: docpages.py.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    for folder in ("tools", "host_tests", "host_tests/shims", "firmware"):
        if str(ROOT / folder) not in sys.path:
            sys.path.insert(0, str(ROOT / folder))
    import docpages

    parser = argparse.ArgumentParser(description="write the pages that follow from the firmware")
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a page is out of date")
    check = parser.parse_args(argv).check
    docs = docpages.DOCS
    try:
        made = docpages.pages()
    except docpages.DocsError as error:
        print(error, file=sys.stderr)
        return 1
    bad = docpages.quotes((docs / "INTERLOCK.md").read_text("utf-8"), (docs / "SPEC.md").read_text("utf-8"))
    for path, text in made.items():
        if path.exists() and path.read_text("utf-8") == text:
            continue
        shown = path.relative_to(ROOT)
        if check:
            bad.append(f"{shown} is out of date: run 'make docs'")
        else:
            path.write_text(text, "utf-8")
            print(f"wrote {shown}")
    for line in bad:
        print(line, file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
