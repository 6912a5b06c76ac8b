"""`shakerctl verify`: is the program in a running shaker the known one? Asked with a fresh nonce.

A program frozen into the MicroPython image has no files to hash and answers for its version alone: the tool
then expects that answer (`--frozen`), and no other, and leaves the image itself to esptool's verify-flash.
"""

from __future__ import annotations

import secrets

from shakerctl import line, manifest
from shakerctl.release import Release
from shakerctl.trouble import Trouble
from shakerctl.voice import Voice


def verify(port: str, release: Release, frozen: bool, voice: Voice) -> int:
    """Compare what the shaker answers with what `release` would, as files or `frozen`."""
    nonce = secrets.token_hex(16)
    with line.client(port) as link:
        hello = line.request(link, port, "hello")
        answer = line.request(link, port, "verify", 60.0, nonce=nonce)
    expected = manifest.digest({}, nonce, release.version) if frozen else release.digest(nonce)
    same = answer["sha256"] == expected
    result = {
        "ok": same,
        "device": hello["id"],
        "version": answer["ver"],
        "expected_version": release.version,
        "manifest_sha256": "frozen" if frozen else release.hash,
        "nonce": nonce,
        "sha256": answer["sha256"],
    }
    if not same:
        if voice.as_json:
            voice.result(result, "")
        is_frozen = answer["sha256"] == manifest.digest({}, nonce, answer["ver"])
        raise Trouble(_difference(answer["ver"], is_frozen, release, frozen))
    if frozen:
        text = f"The shaker runs {release.version}, frozen into its image (which esptool can verify)."
    else:
        text = f"The shaker runs {release.version} ({release.slot}), unaltered."
    voice.result(result, text)
    return 0


def _difference(version: str, is_frozen: bool, release: Release, frozen: bool) -> str:
    """Return what is wrong and what to do, when the shaker says it is `version`."""
    if is_frozen and not frozen:
        return f"The program in the shaker ({version}) is frozen into its image: verify it with --frozen."
    if frozen and not is_frozen:
        return f"The program in the shaker (it says {version}) is not frozen: leave --frozen out."
    if frozen:
        return (
            f"The program in the shaker ({version}) is not this release ({release.version}): flash its "
            "image, or name the release it should be with --image."
        )
    return (
        f"The program in the shaker (it says {version}) is not this release ({release.version}, "
        f"{release.slot}): deploy it, or name the release it should be with --image."
    )
