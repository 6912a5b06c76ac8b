"""`shakerctl flash`: writes a MicroPython image to an ESP32 with esptool, which verifies what it wrote."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from shakerctl.trouble import Trouble, Usage, port_trouble, unplugged
from shakerctl.voice import Voice

OFFSET = "0x1000"  # where an ESP32's boot ROM looks for its second stage
CHIPS = {
    0: "ESP32",
    2: "ESP32-S2",
    5: "ESP32-C3",
    9: "ESP32-S3",
    12: "ESP32-C2",
    13: "ESP32-C6",
    16: "ESP32-H2",
}
_MAGIC = 0xE9
_CHIP_AT = 12
_LEAST_BYTES = 100_000


def check_image(path: Path) -> None:
    """Refuse a file that is no MicroPython image for an ESP32."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise Usage(
            f"{path} cannot be read ({error.strerror}): give MicroPython's ESP32_GENERIC .bin."
        ) from None
    if len(data) < _LEAST_BYTES or data[0] != _MAGIC:
        raise Trouble(
            f"{path} is no image for an ESP32: take the .bin (not .app-bin, .uf2 or .elf) of ESP32_GENERIC."
        )
    chip = int.from_bytes(data[_CHIP_AT : _CHIP_AT + 2], "little")
    if chip != 0:
        raise Trouble(
            f"{path} is for an {CHIPS.get(chip, 'unknown chip')}: the shaker needs that of ESP32_GENERIC."
        )


def explain(port: str, said: str) -> Trouble:
    """Return what esptool's words mean, in one line."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    last = lines[-1] if lines else "it said nothing"
    low = said.lower()
    if "this chip is" in low or "wrong chip" in low or "wrong --chip" in low:
        return Trouble(f"Wrong chip on {port}: the shaker needs a plain ESP32 (esptool: {last[:100]}).")
    if "no serial data received" in low or "failed to connect" in low or "invalid head of packet" in low:
        return Trouble(
            f"The board on {port} is silent: hold BOOT button while it starts or EN is pressed, check the "
            "cable carries data, and run it again."
        )
    if (
        "could not open" in low
        or "port is busy" in low
        or "doesn't exist" in low
        or "permission denied" in low
    ):
        return port_trouble(port, OSError(last))
    if "lost connection" in low or "device disconnected" in low or "input/output error" in low:
        return unplugged(port)
    return Trouble(f"esptool gave up ({last[:120]}): run it again; at a lower --baud if it stays so.")


def _esptool(words: list[str], line: Callable[[str], None]) -> tuple[int, str]:
    """Run esptool; return its exit code and all it said."""
    command = [sys.executable, "-m", "esptool", *words]
    said = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        for text in process.stdout or ():
            said.append(text)
            line(text.rstrip())
    return process.returncode, "".join(said)


def flash(
    port: str,
    image: Path,
    baud: int,
    erase: bool,
    voice: Voice,
    run: Callable[[list[str], Callable[[str], None]], tuple[int, str]] = _esptool,
) -> int:
    """Write `image`, when somebody agrees; with `erase` everything else on the flash goes first."""
    check_image(image)
    if not Path(port).exists():
        raise port_trouble(port)
    # Whether a shaker runs cannot be asked: on many boards opening the port already resets it.
    voice.say("The board stops at once and starts anew: a shaker must have no round open.")
    goes = "MicroPython is overwritten, and firmware, journal, settings and key go for ever."
    keeps = (
        "MicroPython and the partition table are overwritten; firmware, journal, settings and key stay where "
        "the new table has the same partitions."
    )
    if not voice.confirm(f"{goes if erase else keeps} Go on?"):
        raise Trouble("Nothing was done.")
    words = ["--chip", "esp32", "--port", port, "--baud", str(baud), "--connect-attempts", "3"]
    words += ["write-flash", *(["--erase-all"] if erase else []), OFFSET, str(image)]
    code, said = run(words, voice.say)
    if code:
        raise explain(port, said)
    voice.result(
        {"ok": True, "port": port, "image": str(image)},
        "MicroPython is on the board, verified. Next: deploy.",
    )
    return 0
