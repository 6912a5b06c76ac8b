"""`shakerctl verify`: is the program in a running shaker the known one? Asked with a fresh nonce.

A program frozen into the MicroPython image has no files to hash: it answers for the build of its image, which
is compared with the image's file (`--frozen`).
"""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

from shakerctl import appimage, line
from shakerctl.release import Release
from shakerctl.trouble import Trouble
from shakerctl.voice import Voice


def _ask(port: str, nonce: str) -> dict[str, Any]:
    with line.client(port) as link:
        hello = line.request(link, port, "hello")
        answer = line.request(link, port, "verify", 60.0, nonce=nonce)
    return {"device": hello["id"], "version": answer["ver"], "nonce": nonce, "sha256": answer["sha256"]}


def _tell(result: dict[str, Any], expected: str, same: str, other: str, voice: Voice) -> int:
    ok = result["sha256"] == expected
    result = {"ok": ok, **result}
    if ok:
        voice.result(result, same)
        return 0
    if voice.as_json:
        voice.result(result, "")
    raise Trouble(other)


def verify(port: str, release: Release, voice: Voice) -> int:
    """Compare what the shaker answers with what it would with the files of `release`."""
    nonce = secrets.token_hex(16)
    result = _ask(port, nonce)
    version = result["version"]
    result.update(expected_version=release.version, manifest_sha256=release.hash)
    return _tell(
        result,
        release.digest(nonce),
        f"The shaker runs {release.version} ({release.slot}), unaltered.",
        f"The program in the shaker (it says {version}) is not this release ({release.version}, "
        f"{release.slot}): deploy it, or name the release it should be with --image; one that is frozen into "
        "its MicroPython image is verified with --frozen.",
        voice,
    )


def verify_frozen(port: str, image: Path, voice: Voice) -> int:
    """Compare what the shaker answers with what it would with the build in file `image` frozen in."""
    elf = appimage.elf_sha256(image)
    nonce = secrets.token_hex(16)
    result = _ask(port, nonce)
    version = result["version"]
    result.update(elf_sha256=elf.hex())
    return _tell(
        result,
        appimage.digest(elf, nonce),
        f"The shaker runs {version}, frozen into its image, which is the build in {image}.",
        f"The program in the shaker (it says {version}) is not frozen into the build in {image}: flash that, "
        "or name the image it should be; one that was deployed is verified without --frozen.",
        voice,
    )
