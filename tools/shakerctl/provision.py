"""`shakerctl provision`: settings, key and authorisation of one table, put where its shaker adopts them.

Everything is checked here first, by the firmware's own rules and, what the device cannot do, against Macau's
calendar (A8). The shaker itself decides: it takes `settings.new` in at a restart in IDLE, whole or not.
That file is whole, so what is not named is read from the board first and stays as it is; only what comes
from `--settings FILE` is taken for whole. Key and authorisation stay in either case: the shaker keeps them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from typing import Any

from shakerctl import line, workdays
from shakerctl.deploy import HELPERS, Disk
from shakerctl.firmware import settings
from shakerctl.trouble import Trouble, Usage
from shakerctl.usb import RUNNING, Usb

START_S = 60.0


def today() -> date:
    """Return the date here."""
    return datetime.now().astimezone().date()


def key_is_free(path: Path) -> None:
    """Refuse a place for a new key where something is."""
    if path.exists() or path.is_symlink():
        raise Usage(f"{path} exists: a key is never overwritten. Use --key-file {path}, or another name.")


def keep_key(path: Path, key: str) -> None:
    """Keep a new key in a file only its owner may read."""
    key_is_free(path)
    made = False
    try:
        path.touch(0o600, exist_ok=False)
        made = True
        path.write_text(key + "\n", "ascii")
    except OSError as error:
        if made:
            path.unlink(missing_ok=True)
        raise Usage(
            f"{path} cannot be written ({error.strerror}): choose another place for the key."
        ) from None


def read_json(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file."""
    try:
        thing = json.loads(path.read_text("utf-8"), object_pairs_hook=_once)
    except RecursionError:
        raise Usage(f"{path} is nested too deep: mend it and run it again.") from None
    except OSError as error:
        raise Usage(f"{path} cannot be read ({error.strerror}).") from None
    except ValueError as error:
        raise Usage(f"{path} is no JSON ({error}): mend it and run it again.") from None
    if not isinstance(thing, dict):
        raise Usage(f"{path} must hold one JSON object of settings.")
    return thing


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise Usage(f"Setting {name} is refused: given twice. Nothing was changed.")
        found[name] = value
    return found


def scalar(name: str, text: str) -> Any:
    """Return the value of NAME=VALUE, as the field's default says: text, true or false, or a whole number."""
    if isinstance(getattr(settings.Settings(), name, None), str):
        return text
    words = {"true": True, "false": False, "null": None}
    if text in words:
        return words[text]
    # More digits than any setting has stay text, which is refused as such.
    return int(text) if re.fullmatch("-?[0-9]{1,9}", text) else text


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
        found[name] = scalar(name, value)
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


def _data(usb: Usb, slot: str) -> str:
    """Return the folder where the firmware in `slot` has its settings."""
    usb.exec(f"import sys\nsys.path.insert(0, {'/' + slot!r})\nfrom shaker.board import mount_data")
    # Once only: a partition cannot be mounted twice.
    folder = usb.exec("_at = globals().get('_at') or mount_data()[0]\nprint(_at)").split()[-1]
    if folder == "/no-data":
        raise Trouble("The data partition cannot be read: keep the board for examination, and use another.")
    return folder


# The board reads its file itself, by its own rules, so that the key never comes here.
_IN_FORCE = """
from shaker import settings as _s
def _now(p):
    t = _text(p)
    try: s = _s.parse(t) if t else _s.Settings()
    except _s.SettingsError as e: return str(e)
    return {n: dict(v) if isinstance(v, dict) else v for n, v in s.public().items()}
"""


def in_force(usb: Usb, slot: str, whole: bool) -> dict[str, Any]:
    """Return the settings in force on the board, without the key.

    Trouble where they are damaged; but {} when a `whole` file takes their place.
    """
    folder = _data(usb, slot)
    usb.exec(HELPERS + _IN_FORCE)
    found = usb.eval(f"_now({folder + '/' + settings.IN_FORCE!r})")
    if not isinstance(found, str):
        return found
    if not whole:
        raise Trouble(
            f"The settings in force on the board are damaged ({found}): give all of them with --settings."
        )
    usb.voice.say(f"  the settings in force are damaged ({found}): all are replaced, the key too")
    return {}


def changes(before: dict[str, Any], after: dict[str, Any]) -> dict[str, list[Any]]:
    """Return {setting: [now, then]} of what `after` changes, in which what is missing is the default."""
    default = settings.Settings().public()
    found = {**default, **after}
    if found["authorisation"] is None:
        found["authorisation"] = before.get("authorisation")  # as the shaker does
    changed = [name for name in default if name not in before or before[name] != found[name]]
    return {name: [before.get(name), found[name]] for name in changed}


def tell(changed: dict[str, list[Any]], key: bool, say: Callable[[str], object]) -> None:
    """Say what changes, before it does."""
    for name, (now, then) in changed.items():
        say(f"  {name}: {json.dumps(now)} becomes {json.dumps(then)}")
    if key:
        say("  key: a new one")
    if not changed and not key:
        say("  nothing changes: the settings are in force already")


def put(usb: Usb, slot: str, text: str, ready: Callable[[], object] = lambda: None) -> None:
    """Put checked settings where the firmware in `slot` takes them in at its next start.

    ready: called when they are on the board, before they count.
    """
    folder = _data(usb, slot)
    disk = Disk(usb)
    disk.write(f"{folder}/settings.tmp", text.encode())
    ready()
    disk.rename(f"{folder}/settings.tmp", f"{folder}/{settings.INCOMING}")


def put_whole(usb: Usb, slot: str, found: dict[str, Any]) -> None:
    """As put(), for `found` from a whole file; says what it changes."""
    _put_told(usb, slot, in_force(usb, slot, True), found)


def _put_told(
    usb: Usb,
    slot: str,
    before: dict[str, Any],
    found: dict[str, Any],
    ready: Callable[[], object] = lambda: None,
) -> dict[str, list[Any]]:
    """Check `found`, say what it changes, and put it; return the changes."""
    text = check(found, today())
    changed = changes(before, found)
    tell(changed, "key" in found, usb.voice.say)
    put(usb, slot, text, ready)
    return changed


def provision(
    usb: Usb, found: dict[str, Any], whole: bool, ready: Callable[[], object] = lambda: None
) -> dict[str, Any]:
    """Put settings on a board that is ours (usb.take()); it restarts and takes them in.

    whole: what `found` does not name becomes the default; else it stays as it is. ready: see put().
    """
    slot = Disk(usb).text("/current").strip()
    if not slot:
        raise Trouble("There is no firmware on the board: `shakerctl deploy` it first.")
    before = in_force(usb, slot, whole)
    if not whole:
        kept = {name: value for name, value in before.items() if name != "authorisation"}
        found = {**kept, **found}
    changed = _put_told(usb, slot, before, found, ready)
    usb.restart()
    said = usb.after_restart(START_S, lambda said: RUNNING in said)
    if RUNNING not in said:
        raise Trouble(
            "The shaker does not start: press its reset button (EN); if that does not help, deploy again."
        )
    return {"board": usb.ident, "fields": sorted(found), "changes": changed, "started": True}


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
