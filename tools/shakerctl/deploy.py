"""Puts a release on a board, so that at every moment the board would start the old version or the new one.

Order: everything into a folder of its own, each file's SHA-256 compared on the board; then boot.py and
main.py, where they differ, each by a rename; then /current by a rename; then older slots but one go; then a
restart, and the new version must say that it runs. A file that is already right is not copied again, so a
deployment that was interrupted goes on where it stopped.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from shakerctl.release import Release, is_slot
from shakerctl.trouble import Trouble
from shakerctl.usb import Usb
from shakerctl.voice import Voice

BLOCK_BYTES = 4096
CHUNK_BYTES = 1024
START_S = 60.0
FROZEN = ".frozen"

# Everything the board is asked to do, in functions, so that one round trip does one thing.
HELPERS = """
import os, hashlib, binascii
def _names(p):
    try: return sorted(os.listdir(p))
    except OSError: return []
def _is(p, kind):
    try: return os.stat(p)[0] & 0xF000 == kind
    except OSError: return False
def _hash(p):
    h = hashlib.sha256(); b = bytearray(512); v = memoryview(b)
    try:
        with open(p, "rb") as f:
            while True:
                n = f.readinto(b)
                if not n: return binascii.hexlify(h.digest()).decode()
                h.update(v[:n])
    except OSError: return ""
def _text(p):
    try:
        with open(p) as f: return f.read()
    except OSError: return ""
def _folder(p):
    try: os.mkdir(p)
    except OSError as e:
        if e.args[0] != 17: raise
def _drop(p):
    try: n = os.listdir(p)
    except OSError: n = None
    try: d = os.stat(p)[0] & 0x4000
    except OSError: return
    if d:
        for x in n: _drop(p + "/" + x)
        os.rmdir(p)
    else: os.remove(p)
def _program():
    import sys
    slot = _text("/current").strip()
    sys.path.insert(0, ".frozen")
    if slot: sys.path.insert(0, "/" + slot)
    try: import shaker
    except ImportError: return ""
    return shaker.__path__[:-7] or "."
def _free():
    s = os.statvfs("/"); return s[0] * s[3]
"""


@dataclass
class Disk:
    """The board's file system, one operation at a time; `usb.before_each` sees each of them first."""

    usb: Usb

    def __post_init__(self) -> None:
        self.usb.exec(HELPERS)

    def _do(self, what: str, code: str) -> None:
        self.usb.before_each(what)
        self.usb.exec(code)

    def program(self) -> str:
        """Return the folder of the program, as main.py does, and let its modules be imported from now on.

        FROZEN for one that is frozen into the MicroPython image.
        """
        folder = self.usb.eval("_program()")
        if not folder:
            raise Trouble("There is no firmware on the board: `shakerctl deploy` it first.")
        return folder

    def names(self, folder: str) -> list[str]:
        """Return the names in a folder, none when there is no such folder."""
        return self.usb.eval(f"_names({folder!r})")

    def sha256(self, path: str) -> str:
        """Return a file's SHA-256 in hex, '' when there is none."""
        return self.usb.eval(f"_hash({path!r})")

    def different(self, folder: str, files: dict[str, bytes]) -> list[str]:
        """Return those of `files` that are not on the board, in `folder`, with the same SHA-256."""
        have = self.usb.eval(f"[_hash({folder + '/'!r} + p) for p in {list(files)!r}]")
        return [
            path
            for path, found in zip(files, have, strict=True)
            if found != hashlib.sha256(files[path]).hexdigest()
        ]

    def text(self, path: str) -> str:
        """Return a short file's text, '' when there is none."""
        return self.usb.eval(f"_text({path!r})")

    def slots(self) -> list[str]:
        """Return the names of the slots, sorted."""
        names = [name for name in self.names("/") if is_slot(name)]
        return self.usb.eval(f"[n for n in {names!r} if _is('/' + n, 0x4000)]")

    def in_the_way(self, files: list[str], folders: list[str]) -> str:
        """Return the first path where a folder lies and a file must, or the other way round; '' for none."""
        found = self.usb.eval(
            f"[p for p in {folders!r} if _is(p, 0x8000)] + [p for p in {files!r} if _is(p, 0x4000)]"
        )
        return found[0] if found else ""

    def free(self) -> int:
        """Return the bytes that are free."""
        return self.usb.eval("_free()")

    def folder(self, path: str) -> None:
        """Make a folder, if there is none."""
        self._do(f"mkdir {path}", f"_folder({path!r})")

    def drop(self, path: str) -> None:
        """Remove a file, or a folder with everything in it."""
        self._do(f"remove {path}", f"_drop({path!r})")

    def rename(self, old: str, new: str) -> None:
        """Rename; a file of the new name is replaced in the same step."""
        self._do(f"rename {new}", f"os.rename({old!r}, {new!r})")

    def write(self, path: str, data: bytes, done: Any = None) -> None:
        """Write a file and compare it on the board. Trouble when it is not what was sent."""
        self._do(f"open {path}", f"f=open({path!r},'wb')")
        for at in range(0, len(data), CHUNK_BYTES):
            part = data[at : at + CHUNK_BYTES]
            self._do(f"write {path}", f"f.write({part!r})")
            if done:
                done(len(part))
        self._do(f"close {path}", "f.close()")
        self.usb.before_each(f"compare {path}")
        if self.sha256(path) != hashlib.sha256(data).hexdigest():
            raise Trouble(
                f"{path} is not what was sent: run it again; if it stays so, the board's flash is worn out."
            )


def deploy(
    usb: Usb, release: Release, voice: Voice, also: Callable[[], object] = lambda: None
) -> dict[str, Any]:
    """Put `release` on a board that is ours (usb.take()); it restarts. Returns what was done.

    also: called when the release is in place, before the restart.
    """
    disk = Disk(usb)
    before = disk.text("/current").strip()
    slot = "/" + release.slot
    _refuse_strangers(disk, release)
    removed: list[str] = []
    try:
        copied = _copy(disk, release, before, voice, removed)
        _switch(disk, release, before)
        _tidy(disk, release.slot, before, removed)
    finally:
        if removed:
            voice.say(f"Removed from the board: {', '.join(removed)}.")
    also()
    said = _start(usb, release)
    return {
        "board": usb.ident,
        "version": release.version,
        "slot": slot,
        "manifest_sha256": release.hash,
        "before": before,
        "copied": copied,
        "removed": removed,
        "started": said,
    }


def _refuse_strangers(disk: Disk, release: Release) -> None:
    """Refuse a board on which something of another kind has one of our names."""
    slot = "/" + release.slot
    inside = [f"{slot}/{path}" for path in release.inside]
    tops = [f"/{name}{end}" for name in (*release.scripts, "current") for end in ("", ".new")]
    folders = sorted({path.rpartition("/")[0] for path in inside})
    path = disk.in_the_way(tops + inside, folders)
    if path:
        kind, need = ("file", "folder") if path in folders else ("folder", "file")
        raise Trouble(
            f"{path} on the board is a {kind}, where the firmware has a {need}: remove it "
            f"(`mpremote rm -r :{path}`) and run it again."
        )


def _copy(disk: Disk, release: Release, before: str, voice: Voice, removed: list[str]) -> list[str]:
    """Bring the slot into being, whole and compared. What had to go is added to `removed`."""
    slot = "/" + release.slot
    files = release.inside
    missing = {path: files[path] for path in disk.different(slot, files)}
    # Files that should not be there would be found by the integrity check.
    for folder in ("", "/shaker"):
        known = {path.split("/")[-1] for path in files if path.count("/") == folder.count("/")} | {"shaker"}
        for name in disk.names(slot + folder):
            if name not in known:
                disk.drop(f"{slot}{folder}/{name}")
                removed.append(f"{release.slot}{folder}/{name}")
    if not missing:
        return []
    _make_room(disk, release, before, missing, removed)
    if disk.names(slot) and release.slot != before:
        disk.drop(f"{slot}/manifest.json")  # until it is whole again
        missing["manifest.json"] = release.manifest
    disk.folder(slot)
    for folder in sorted({path.rpartition("/")[0] for path in files} - {""}):
        disk.folder(f"{slot}/{folder}")
    ordered = [path for path in files if path in missing]
    with voice.progress(f"Copying {len(missing)} files", sum(map(len, missing.values()))) as done:
        for path in ordered:
            disk.write(f"{slot}/{path}", missing[path], done)
    return ordered


def _make_room(
    disk: Disk, release: Release, before: str, missing: dict[str, bytes], removed: list[str]
) -> None:
    need = sum(-(-len(data) // BLOCK_BYTES) * BLOCK_BYTES for data in missing.values()) + 8 * BLOCK_BYTES
    for name in disk.slots():
        if name not in (before, release.slot) and disk.free() < need:
            disk.drop("/" + name)
            removed.append(name)
    have = disk.free()
    if have < need:
        raise Trouble(
            f"No space: it needs {need // 1024} KiB and {have // 1024} are free. Remove files of "
            "yours from the board (`mpremote fs ls :`); the old version is untouched."
        )


def _switch(disk: Disk, release: Release, before: str) -> None:
    """Let the next start be the new version's. Each rename by itself leaves a board that starts."""
    changed = disk.different("", release.scripts)
    for name in changed:
        disk.write(f"/{name}.new", release.scripts[name])
    if before != release.slot:
        disk.write("/current.new", (release.slot + "\n").encode())
    for name in changed:
        disk.rename(f"/{name}.new", f"/{name}")
    if before != release.slot:
        disk.rename("/current.new", "/current")


def _tidy(disk: Disk, slot: str, before: str, removed: list[str]) -> None:
    """Remove slots but the one in force and the one before it, and what interrupted deployments left."""
    slots = [name for name in disk.slots() if name != slot]
    keep = before if before in slots else slots[0] if slots else ""
    left = {"boot.py.new", "main.py.new", "current.new"}.intersection(disk.names("/"))
    for name in [*sorted(left), *slots]:
        if name != keep:
            disk.drop("/" + name)
            removed.append(name)


def _start(usb: Usb, release: Release) -> str:
    """Restart and wait until the new version says that it runs."""
    good = f"shaker: running from /{release.slot}".encode()
    bad = (b"program-altered:", b"Traceback", b"bench:")
    usb.restart()
    said = usb.after_restart(START_S, lambda said: good in said or any(word in said for word in bad))
    if good in said:
        return good.decode()
    if usb.came_back and not any(word in said for word in bad) and not usb.free():
        return "running; its port was away while it started"
    text = " ".join(said.decode("utf-8", "replace").split())[-120:]
    if b"program-altered" in said:
        raise Trouble(f"The board refuses what was copied ({text}): deploy again.")
    if not said:
        raise Trouble(
            "The board says nothing after its restart: press its reset button (EN) and deploy again."
        )
    raise Trouble(
        f"The new version does not start ({text}): deploy again; if it stays so, deploy an older release."
    )
