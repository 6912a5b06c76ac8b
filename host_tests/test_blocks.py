"""No exception jumps through LittleFS: durable records outlive a write that fails and the collector."""

import pytest

import blocks_suite
from interpreter import run

CHECKS = sorted(name for name in vars(blocks_suite) if name.startswith("check_"))
ONLY_THERE = sorted(name for name in vars(blocks_suite) if name.startswith("mp_check_"))


@pytest.mark.parametrize("name", CHECKS)
def test_here(name):
    getattr(blocks_suite, name)()


def test_under_the_real_interpreter():
    said = run("import blocks_suite\nblocks_suite.main()").splitlines()
    said.remove("data partition: blank, making its file system")
    assert said == ["ok " + name for name in CHECKS + ONLY_THERE]


def losses(guarded, more):
    """Return (how many failures were tried, what went wrong) under the real interpreter."""
    code = (
        f"import blocks_suite\nn, wrong = blocks_suite.losses({guarded}, {more})\nprint(n, *wrong, sep='\\n')"
    )
    tried, *wrong = run(code, heap_bytes=4_000_000).splitlines()
    return int(tried), wrong


@pytest.mark.parametrize("more", [0, 2])
def test_what_is_durable_outlives_a_failure_at_any_operation_and_the_collector(more):
    tried, wrong = losses(True, more)
    assert tried > 25
    assert wrong == []


@pytest.mark.parametrize("more", [0, 2])
def test_without_blocks_the_collector_takes_durable_records(more):
    assert losses(False, more)[1]
