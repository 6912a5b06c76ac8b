"""`shakerctl verify`: is the program in a running shaker the known one? Asked with a fresh nonce."""

from __future__ import annotations

import secrets

from shakerctl import line
from shakerctl.release import Release
from shakerctl.trouble import Trouble
from shakerctl.voice import Voice


def verify(port: str, release: Release, voice: Voice) -> int:
    """Compare what the shaker answers with what `release` would."""
    nonce = secrets.token_hex(16)
    with line.client(port) as link:
        hello = line.request(link, port, "hello")
        answer = line.request(link, port, "verify", 60.0, nonce=nonce)
    same = answer["sha256"] == release.digest(nonce)
    result = {
        "ok": same,
        "device": hello["id"],
        "version": answer["ver"],
        "expected_version": release.version,
        "manifest_sha256": release.hash,
        "nonce": nonce,
        "sha256": answer["sha256"],
    }
    if not same:
        if voice.as_json:
            voice.result(result, "")
        raise Trouble(
            f"The program in the shaker (it says {answer['ver']}) is not this release ({release.version}, "
            f"{release.slot}): deploy it, or name the release it should be with --image."
        )
    voice.result(result, f"The shaker runs {release.version} ({release.slot}), unaltered.")
    return 0
