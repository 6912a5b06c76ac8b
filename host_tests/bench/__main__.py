"""`make bench`: python host_tests/bench. Sets the path and leaves the rest to measure.py."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PATH = ("tools", "host_tests/shims", "host_tests/fakes", "firmware", "host_tests", "host_tests/bench")


def main():
    """Run the bench; returns its exit code."""
    sys.path[:0] = [str(ROOT / folder) for folder in PATH]
    import measure

    return measure.main()


if __name__ == "__main__":
    sys.exit(main())
