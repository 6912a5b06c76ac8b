"""What a firmware consists of: its manifest, and the digest a device must answer to `verify`.

The counterpart of firmware/shaker/integrity.py; both are specified in PROTOCOL (`verify`) and SPEC 10.
A firmware is a dict {path: bytes}, paths relative to the folder it is deployed to, with `/`.
"""

import hashlib
import json
from collections.abc import Mapping

NAME = "manifest.json"


def build(files: Mapping[str, bytes], version: str) -> bytes:
    """Return manifest.json for `files` (without itself): the same bytes for the same content."""
    hashes = {path: hashlib.sha256(files[path]).hexdigest() for path in sorted(files) if path != NAME}
    return (json.dumps({"version": version, "files": hashes}, indent=1) + "\n").encode()


def digest(files: Mapping[str, bytes], nonce: str) -> str:
    """Return what `verify` with `nonce` answers on a device that holds exactly `files`."""
    total = hashlib.sha256(nonce.encode("ascii"))
    for path in sorted(path for path in files if path.endswith((".py", ".mpy"))):
        total.update(path.encode("ascii") + b"\0" + files[path])
    return total.hexdigest()
