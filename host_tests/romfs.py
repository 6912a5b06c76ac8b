"""Modules that run from where they lie, as frozen ones do: what stands for them on the unix port."""

from mpremote.romfs import VfsRomWriter


def romfs_image(files: dict[str, bytes]) -> bytes:
    """Return a ROMFS image of `files`, by mpremote's own writer."""
    tree: dict = {}
    for path, data in files.items():
        *folders, name = path.split("/")
        place = tree
        for folder in folders:
            place = place.setdefault(folder, {})
        place[name] = data
    writer = VfsRomWriter()

    def write(place):
        for name in sorted(place):
            if isinstance(place[name], dict):
                writer.opendir(name)
                write(place[name])
                writer.closedir()
            else:
                writer.mkfile(name, place[name])

    write(tree)
    return bytes(writer.finalise())
