"""`shakerctl provision`: settings, key and authorisation of one table, put where its shaker adopts them.

Everything is checked here first, by the firmware's own rules and, what the device cannot do, against Macau's
calendar (A8). The shaker itself decides: it takes `settings.new` in at a restart in IDLE, whole or not.
"""

from __future__ import annotations

import json
import secrets
from datetime import date, datetime
from pathlib import Path
from typing import Any

from shakerctl import line, workdays
from shakerctl.deploy import Disk
from shakerctl.firmware import settings
from shakerctl.trouble import Trouble, Usage
from shakerctl.usb import RUNNING, Usb

START_S = 60.0


def today() -> date:
    """Return the date here."""
    return datetime.now().astimezone().date()


def new_key(path: Path) -> str:
    """Make a key, keep it in a file only its owner may read, and return it as hex."""
    key = secrets.token_hex(32)
    try:
        path.touch(0o600, exist_ok=False)
        path.write_text(key + "\n", "ascii")
    except FileExistsError:
        raise Usage(
            f"{path} exists: a key is never overwritten. Use --key-file {path}, or another name."
        ) from None
    except OSError as error:
        raise Usage(
            f"{path} cannot be written ({error.strerror}): choose another place for the key."
        ) from None
    return key


def read_json(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file."""
    try:
        thing = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise Usage(f"{path} cannot be read ({error.strerror}).") from None
    except ValueError as error:
        raise Usage(f"{path} is no JSON ({error}): mend it and run it again.") from None
    if not isinstance(thing, dict):
        raise Usage(f"{path} must hold one JSON object of settings.")
    return thing


def scalar(text: str) -> Any:
    """Return the value of NAME=VALUE: a whole number, true, false or text."""
    words = {"true": True, "false": False, "null": None}
    if text in words:
        return words[text]
    return int(text) if text.lstrip("-").isdigit() else text


def fields(
    file: Path | None,
    pairs: list[str],
    key: str | None,
    authorisation: dict[str, Any] | None,
) -> dict[str, Any]:
    """Put the settings together: the file, then NAME=VALUE, then key and authorisation."""
    found = read_json(file) if file else {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise Usage(f"{pair!r} is not NAME=VALUE.")
        found[name] = scalar(value)
    if key is not None:
        found["key"] = key
    if authorisation is not None:
        found["authorisation"] = authorisation
    return found


def check(found: dict[str, Any], day: date) -> str:
    """Return the text for the device. Trouble, with the field, for what it or Article 8 would refuse."""
    try:
        text = json.dumps(found, separators=(",", ":"))
        settings.parse(text)
    except settings.SettingsError as error:
        raise Trouble(
            f"Setting {error.field or '(file)'} is refused: {error.reason}. Nothing was changed."
        ) from None
    record = found.get("authorisation")
    if record is not None:
        try:
            workdays.check(record, day)
        except workdays.RecordError as error:
            raise Trouble(f"Article 8, {error}. Nothing was changed.") from None
    return text


def put(usb: Usb, slot: str, text: str) -> None:
    """Put checked settings where the firmware in `slot` takes them in at its next start."""
    disk = Disk(usb)
    usb.exec(f"import sys\nsys.path.insert(0, {'/' + slot!r})\nfrom shaker.board import mount_data")
    folder = usb.exec("print(mount_data()[0])").split()[-1]
    if folder == "/no-data":
        raise Trouble("The data partition cannot be read: keep the board for examination, and use another.")
    disk.write(f"{folder}/settings.tmp", text.encode())
    disk.rename(f"{folder}/settings.tmp", f"{folder}/settings.new")


def provision(usb: Usb, text: str) -> dict[str, Any]:
    """Put checked settings on a board that is ours (usb.take()); it restarts and takes them in."""
    slot = Disk(usb).text("/current").strip()
    if not slot:
        raise Trouble("There is no firmware on the board: `shakerctl deploy` it first.")
    put(usb, slot, text)
    usb.restart()
    said = usb.after_restart(START_S, lambda said: RUNNING in said)
    if RUNNING not in said:
        raise Trouble(
            "The shaker does not start: press its reset button (EN); if that does not help, deploy again."
        )
    return {"board": usb.ident, "fields": sorted(json.loads(text)), "started": True}


def confirm(port: str, found: dict[str, Any], key: bytes | None) -> dict[str, Any]:
    """Ask the running shaker over its UART whether it adopted what was provisioned."""
    with line.client(port, key) as link:
        hello = line.request(link, port, "hello")
        have = line.request(link, port, "settings")
        for name, value in found.items():
            if name != "key" and have.get(name) != value:
                raise Trouble(
                    f"The shaker did not take {name}: it does so at a restart in IDLE, and changed options "
                    "need a newer authorisation (its `settings` event names the field it refused)."
                )
        if key is not None:
            line.request(link, port, "ack", seq=0)  # changes nothing, and needs the right key
    return {"table": hello["table"], "authorised": hello["auth"]}
