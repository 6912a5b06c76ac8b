"""Is the program the one that was released? Asked before any other application module is imported.

Owns manifest.json's meaning (SPEC 10): {"version": text, "files": {path: SHA-256 in hex}}, paths relative to
the program's folder. A Python file the manifest does not name is as wrong as a changed one: an import could
find it first.
Two layouts: everything in one folder, or a slot `/fw-…` with all but boot.py and main.py, which its manifest
calls `../boot.py` and `../main.py`. Those two are also right when another slot's manifest says so: a
deployment replaces them one by one, and may be interrupted in between. Nothing else outside the slot is ever
imported: main.py sees to that.
Must import nothing that is itself to be checked, and must never raise for what it finds on the file system.
A program frozen into the MicroPython image is in the folder `.frozen`, where no file can be imported from:
then the image itself is what vouches for it. What lies in `/` does not matter to it.
"""

import binascii
import hashlib
import json
import os

from micropython import const

MANIFEST = "manifest.json"
_CHUNK = const(512)
_DEPTH = const(4)
_SLOT = const("fw-")
_FROZEN = const(".frozen")
_SCRIPTS = ("../boot.py", "../main.py", "../boot")  # no folder `boot`: main.py would import it


def _names(folder):
    try:
        return os.listdir(folder)
    except OSError:
        return ()  # no folder


def _walk(root, folder, depth, found):
    """Add to `found` the paths of all .py and .mpy files below `folder` ("" or "name/")."""
    for name in _names(root + "/" + folder):
        path = folder + name
        if path.startswith(_SLOT):
            continue  # a slot beside the program: nothing can be imported from it by its name
        if name.endswith(".py") or name.endswith(".mpy"):
            found.append(path)
        elif depth:
            _walk(root, path + "/", depth - 1, found)


def _is_slot(root):
    return root.split("/")[-1].startswith(_SLOT)


def program_files(root):
    """Return the paths, relative to folder `root`, of all program files in it, sorted."""
    found = []
    if root != _FROZEN:  # a folder of that name would be no part of it
        _walk(root, "", _DEPTH, found)
    if _is_slot(root):
        names = _names(root + "/..")
        for path in _SCRIPTS:
            if path[3:] in names:
                found.append(path)
    found.sort()
    return found


def _sha256(files, path, buf):
    """Return the SHA-256 of file `path` in hex, or None when it cannot be read."""
    total = hashlib.sha256()
    view = memoryview(buf)
    try:
        with files.open(path, "rb") as file:
            n = file.readinto(buf)
            while n:
                total.update(view[:n])
                n = file.readinto(buf)
    except OSError:
        return None
    return binascii.hexlify(total.digest()).decode()


def _manifest(files, path=MANIFEST):
    """Return {path: hex} from a manifest, or None when it is missing or nonsense."""
    try:
        with files.open(path, "rb") as file:
            hashes = json.loads(file.read())["files"]
    except (OSError, ValueError, TypeError, KeyError, IndexError):
        return None
    return hashes if isinstance(hashes, dict) else None


def check(files):
    """Return None if the program in `files` (files.Files) is what its manifest says.

    Otherwise the path of the first file, in sorted order, that is altered, missing or not in the manifest;
    "manifest.json" when that is missing or nonsense.
    """
    if files.root == _FROZEN:
        return None
    found = program_files(files.root)
    hashes = _manifest(files)
    if hashes is None:
        return MANIFEST
    buf = bytearray(_CHUNK)
    for path in sorted(set(found) | set(hashes)):
        if path not in hashes or path not in found:
            return path
        digest = _sha256(files, path, buf)
        if digest != hashes[path] and not _of_other_slot(files, path, digest):
            return path
    return None


def _of_other_slot(files, path, digest):
    """Tell whether `digest` is that of boot.py or main.py in any slot's manifest."""
    name = path.split("/")[-1]
    top = "../" if _is_slot(files.root) else ""
    if path != top + name or "../" + name not in _SCRIPTS or digest is None:
        return False
    for slot in _names(files.root + "/" + top):
        if slot.startswith(_SLOT):
            hashes = _manifest(files, top + slot + "/" + MANIFEST)
            if hashes and hashes.get("../" + name) == digest:
                return True
    return False
