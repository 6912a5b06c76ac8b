"""`shakerctl send`: one command to a shaker, signed where PROTOCOL says so, and its reply."""

from __future__ import annotations

import json
import time
from typing import Any

from shakerctl import line, protocol
from shakerctl.trouble import Usage
from shakerctl.voice import Voice

NUMBERS = ("n", "from", "seq", "at")


def _whole(word: str) -> int:
    """Return the number in plain digits that `word` is: int() takes ٣, " 1" and 1_0 too."""
    if not (word.isascii() and word.isdigit()):
        raise ValueError
    return int(word)


def argument(cmd: str, word: str | None) -> dict[str, Any]:
    """Return the argument of `cmd` from a word of the command line. `time` without one means now."""
    if cmd not in protocol.COMMANDS:
        raise Usage(f"There is no command {cmd!r}; there are {', '.join(sorted(protocol.COMMANDS))}.")
    name = protocol.ARGUMENTS.get(cmd)
    if cmd == "time" and word is None:
        return {"at": int(time.time())}
    if name is None:
        if word is not None:
            raise Usage(f"{cmd} takes no argument.")
        return {}
    if word is None:
        raise Usage(f"{cmd} needs its argument: {name}.")
    try:
        if name == "dice":
            value: Any = [_whole(die) for die in word.split(",")]
            if len(value) != 3 or not all(1 <= die <= 6 for die in value):
                raise ValueError
        elif name in NUMBERS:
            value = _whole(word)
            if name == "n" and not 1 <= value <= 10:
                raise ValueError
        else:
            value = word
            if not word.isascii() or not word.isprintable() or '"' in word or "\\" in word:
                raise ValueError  # no line can carry it, and the shaker would not answer
    except ValueError:
        example = {
            "dice": "three numbers 1 to 6, as 1,4,6",
            "n": "a whole number 1 to 10",
            "nonce": "a nonce of letters and digits",
        }.get(name, "a whole number")
        raise Usage(f"{cmd} needs {example}, not {word!r}.") from None
    return {name + "_" if name == "from" else name: value}


def send(port: str, key: bytes | None, cmd: str, word: str | None, voice: Voice) -> int:
    """Send one command and show its reply."""
    args = argument(cmd, word)
    if cmd in protocol.SIGNED and key is None:
        raise Usage(f"{cmd} must be signed: give the table's key with --key-file.")
    with line.client(port, key) as link:
        reply = line.request(link, port, cmd, **args)
    voice.result({"cmd": cmd, "ok": reply}, json.dumps(reply, indent=1) if reply else f"{cmd}: done")
    return 0
