"""What is put on a board: the files of one version, laid out as a slot.

/boot.py, /main.py, /current (the name of the slot in force) and /fw-<8 hex of the manifest's SHA-256>/ with
shaker/*.mpy and manifest.json. The manifest names the two scripts `../boot.py` and `../main.py`, so they are
checked at each start and answered for in `verify`, as everything else.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

from shakerctl import image, manifest
from shakerctl.trouble import Trouble

FIRMWARE = image.ROOT / "firmware"
SLOT = "fw-"


class Release:
    """`files`: {path within the slot: content}, the manifest included; `slot`: the folder's name."""

    def __init__(self, files: dict[str, bytes], version: str):
        self.version = version
        named = {("../" + path if path in image.SCRIPTS else path): data for path, data in files.items()}
        self.manifest = manifest.build(named, version)
        self.hash = hashlib.sha256(self.manifest).hexdigest()
        self.slot = SLOT + self.hash[:8]
        self.files = {**named, manifest.NAME: self.manifest}

    @property
    def inside(self) -> dict[str, bytes]:
        """Return the files that lie in the slot's folder, manifest last: without it a slot is not whole."""
        paths = sorted(path for path in self.files if not path.startswith("../") and path != manifest.NAME)
        return {path: self.files[path] for path in [*paths, manifest.NAME]}

    @property
    def scripts(self) -> dict[str, bytes]:
        """Return {name at the top: content} of boot.py and main.py."""
        return {path[3:]: data for path, data in sorted(self.files.items()) if path.startswith("../")}

    def digest(self, nonce: str) -> str:
        """Return what a shaker that runs this release answers to `verify`."""
        return manifest.digest(self.files, nonce)


def is_slot(name: str) -> bool:
    """Return whether a folder of this name in `/` is one of ours: a technician may have fw-notes there."""
    return re.fullmatch(SLOT + "[0-9a-f]{8}", name) is not None


def load(folder: Path | None = None) -> Release:
    """Return the release in `folder` (made by `make image`: build/image), or one compiled from this tree."""
    if folder is None:
        try:
            return Release(image.release_files(FIRMWARE), image.firmware_version(FIRMWARE))
        except image.ImageError as error:
            raise Trouble(f"The firmware does not compile: {error}") from None
    files = folder / "files"
    try:
        version = json.loads((files / manifest.NAME).read_text("utf-8"))["version"]
        found = {
            p.relative_to(files).as_posix(): p.read_bytes() for p in sorted(files.rglob("*")) if p.is_file()
        }
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise Trouble(
            f"{folder} holds no release: make one with `make image`, or leave --image out."
        ) from None
    made = found.pop(manifest.NAME)
    if manifest.build(found, version) != made:
        raise Trouble(f"{folder} does not match its own manifest: make it anew with `make image`.")
    return Release(found, version)
