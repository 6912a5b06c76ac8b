"""Many rounds in one life under a capped heap, on a real MicroPython interpreter."""

import pytest

import play
import whole

BUILD = play.ROOT / "build"

# The fakes hold 466 KB of it: chip, line, clerk. That leaves the firmware, cross-compiled as a table has it,
# 354 KB in words of 64 bits, 177 KB in an ESP32's: about what that has free without WiFi.
HEAP = "820k"
EVENTS_A_ROUND = 8


def figures(lines):
    return {word.split()[0]: int(word.split()[1]) for word in lines[-1].split(", ")}


@pytest.mark.parametrize(
    "rounds", [pytest.param(300, id="300"), pytest.param(20000, id="20000", marks=pytest.mark.long)]
)
def test_memory_is_flat_and_every_number_right(rounds, tmp_path):
    lines = whole.run("MicroPython", "longrun", rounds, heap=HEAP, program=whole.released(tmp_path))
    BUILD.mkdir(exist_ok=True)
    (BUILD / f"longrun-{rounds}.txt").write_text("\n".join(lines) + "\n")
    found = figures(lines)
    assert found["rounds"] == rounds
    assert found["events"] == EVENTS_A_ROUND * rounds + 2  # boot and link
    assert found["segments"] >= EVENTS_A_ROUND * rounds // 264  # 256, and what the tail brings along
    assert found["grown"] <= 512


def test_a_leak_is_found_out(tmp_path):
    program = whole.mutant(
        tmp_path,
        "shaker/session.py",
        "        self.verifying = False\n        argument",
        "        _ALL.append(number)\n        self.verifying = False\n        argument",
    )
    path = program / "shaker/session.py"
    assert "_ALL.append" in path.read_text()
    whole.restage(program, "shaker/session.py", path.read_text() + "\n\n_ALL = []\n")
    with pytest.raises(whole.Wrong, match="memory is not flat"):
        whole.run("MicroPython", "longrun", 300, heap="1200k", program=program)
