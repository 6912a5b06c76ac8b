"""Makes tools/sim/table.webp, the picture of the running table in the README: a round in payout.

Run by `make picture`; needs Debian's chromium.
"""

from __future__ import annotations

import base64
import pathlib
import shutil
import sys
import tempfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROOT = pathlib.Path(__file__).resolve().parents[2]
PICTURE = pathlib.Path(__file__).with_name("table.webp")
MOST_BYTES = 200_000
SEED = "5"

sys.path[:0] = [str(ROOT / "host_tests")]


_ENCODE = """async png => {
    const image = new Image();
    image.src = "data:image/png;base64," + png;
    await image.decode();
    const {width, height} = image;
    const canvas = Object.assign(document.createElement("canvas"), {width, height});
    canvas.getContext("2d").drawImage(image, 0, 0);
    return canvas.toDataURL("image/webp", 0.92).split(",")[1];
}"""


def _webp(browser: Browser, png: bytes) -> bytes:
    """Return `png` as WebP, which the browser itself can write."""
    page = browser.new_page()
    return base64.b64decode(page.evaluate(_ENCODE, base64.b64encode(png).decode()))


def main() -> int:
    """Play to payout and take the picture."""
    from playwright.sync_api import sync_playwright

    from simrun import SimRun

    chromium = shutil.which("chromium")
    if chromium is None:
        print("This needs chromium: apt-get install chromium", file=sys.stderr)
        return 1
    with (
        tempfile.TemporaryDirectory() as folder,
        SimRun(folder, "--seed", SEED) as sim,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1440, "height": 745}, color_scheme="light", locale="en-GB")
        page.emulate_media(reduced_motion="reduce")
        page.goto(sim.url)

        def phase(name: str) -> None:
            page.wait_for_selector(f"body[data-phase={name}]")

        def move(*things: str) -> None:
            for thing in things:
                page.click(f"[data-move={thing}]")

        def hold(key: str, until: str) -> None:
            page.hover(f"[data-press={key}]")
            page.mouse.down()
            phase(until)
            page.mouse.up()

        phase("IDLE")
        page.click("#openDrawer")
        page.click("#force input[value=flat]")
        page.click("#closeDrawer")
        move("cover", "latch_a", "latch_b")
        phase("COVERED")
        hold("start", "BETTING")
        hold("bell", "CLOSED")
        page.wait_for_selector("[data-chip=cover_lock]:not(.on)")
        move("latch_a", "latch_b", "cover")
        phase("PAYOUT")
        page.click("#announce")
        page.wait_for_selector(".cell.lit")
        page.wait_for_selector("[data-chip=cover_bar].on")
        page.wait_for_selector("#events li[data-ev=result]")
        page.evaluate("document.activeElement.blur()")
        page.mouse.move(0, 0)
        data = _webp(browser, page.screenshot())
        browser.close()
    if len(data) > MOST_BYTES:
        print(f"The picture has {len(data)} bytes, at most {MOST_BYTES} are wanted", file=sys.stderr)
        return 1
    PICTURE.write_bytes(data)
    print(f"{PICTURE.relative_to(ROOT)}: {len(data)} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
