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
from shakerctl.deploy import Disk
from shakerctl.firmware import settings
from shakerctl.trouble import Trouble, Usage
from shakerctl.usb import RUNNING, Usb

START_S = 60.0
_FILE_MOST = 1 << 20  # characters of a JSON file


def today() -> date:
    """Return the date here."""
    return datetime.now().astimezone().date()


def key_is_free(path: Path) -> None:
    """Refuse a place for a new key where something is, or nothing can be."""
    if path.exists() or path.is_symlink():
        raise Usage(f"{path} exists: a key is never overwritten. Use --key-file {path}, or another name.")
    if not path.parent.is_dir():
        raise Usage(f"{path} cannot be written: there is no folder {path.parent}.")


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
        with path.open(encoding="utf-8") as file:
            thing = json.loads(file.read(_FILE_MOST), object_pairs_hook=_once)
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
    for i, pair in enumerate(pairs):
        name, equals, value = pair.partition("=")
        if not equals:
            raise Usage(f"{pair!r} is not NAME=VALUE.")
        if name in [other.partition("=")[0] for other in pairs[:i]]:
            raise Usage(f"Setting {name} is refused: given twice. Nothing was changed.")
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
        reason = error.reason.partition(" at character")[0]  # of that text, which nobody has seen
        reason = reason.replace("without backslash", "without quotes and backslashes")
        if "" in found:
            raise Trouble("A setting without a name is refused. Nothing was changed.") from None
        raise Trouble(
            f"Setting {error.field or '(file)'} is refused: {reason}. Nothing was changed."
        ) from None
    record = found.get("authorisation")
    if record is not None:
        try:
            workdays.check(record, day)
        except workdays.RecordError as error:
            raise Trouble(f"Article 8, {error}. Nothing was changed.") from None
    return text


# The board reads its file itself, by its own rules, so that the key never comes here; and tries by its own
# rules what would become of a new one, with nothing written. A partition cannot be mounted twice.
_ON_BOARD = """
import io
from shaker import names as _n, settings as _s
from shaker.board import mount_data
from shaker.files import Files as _F
from shaker.journal import Journal
from shaker.state import State
_at = globals().get('_at') or mount_data()
class _Try(_F):
    def __init__(self, text):
        _F.__init__(self, _at[0])
        self.text = text
    def listdir(self): return _F.listdir(self) + [_s.INCOMING]
    def size(self, name): return len(self.text) if name == _s.INCOMING else _F.size(self, name)
    def open(self, name, mode):
        return io.BytesIO(self.text) if name == _s.INCOMING else _F.open(self, name, mode)
    def rename(self, old, new): pass
    def remove(self, name): pass
    def write_whole(self, name, data): pass
def _now():
    waits = _F.size(_F(_at[0]), _s.INCOMING) >= 0
    t = _text(_at[0] + '/' + _s.IN_FORCE)
    try: s = _s.parse(t) if t else _s.Settings()
    except _s.SettingsError as e: return (str(e), waits)
    return ({n: dict(v) if isinstance(v, dict) else v for n, v in s.public().items()}, waits)
def _judge(text):
    j = Journal(_F(_at[0]), _at[1])
    j.open()
    s = State()
    if j.newest: s.load(j.newest)
    a = _s.adopt(_Try(text), True, j.options_word, j.options_auth)
    return (_n.PHASES[s.phase], a.problem)
"""


class Place:
    """Where the settings of a board lie, by the firmware on it."""

    def __init__(self, usb: Usb):
        self.usb = usb
        self.voice = usb.voice
        self._disk = Disk(usb)
        self._disk.program()
        usb.exec(_ON_BOARD)
        self.folder = usb.eval("_at[0]")
        if self.folder == "/no-data":
            raise Trouble(
                "The data partition cannot be read: keep the board for examination, and use another."
            )

    def in_force(self, whole: bool) -> dict[str, Any]:
        """Return the settings in force, without the key; {} where a `whole` file replaces damaged ones.

        Trouble where only a part would be replaced of what is damaged, or not yet in force.
        """
        found, waits = self.usb.eval("_now()")
        if waits and not whole:
            raise Trouble(
                "Settings given before still wait on the board: clear its fault and restart it in IDLE, so "
                "that it takes them in; or replace them all with --settings."
            )
        if waits:
            self.voice.say("  settings given before, which the shaker has not taken in yet, are replaced")
        if isinstance(found, str):
            if not whole:
                raise Trouble(
                    f"The settings in force on the board are damaged ({found}): give all of them with "
                    "--settings."
                )
            self.voice.say(f"  the settings in force are damaged ({found}): all are replaced, the key too")
            return {}
        strange = sorted(set(found) - set(settings.Settings().public()))
        if strange:
            raise Trouble(
                f"The board's firmware is newer than this tool, which does not know {', '.join(strange)}: "
                "use the tools of its release."
            )
        return found

    def put(
        self, before: dict[str, Any], found: dict[str, Any], ready: Callable[[], object] = lambda: None
    ) -> dict[str, Any]:
        """Check `found`, say what it changes, and put it where the firmware takes it in at a restart in IDLE.

        before: see in_force(). ready: called when it is on the board, before it counts.
        Returns {"changes": see changes(), "waits": the phase that must end first, or None}.
        """
        text = check(found, today())
        for name in found:
            if before and name != "key" and name not in before:
                raise Trouble(
                    f"The board's firmware is older than this tool, and has no setting {name}: deploy first. "
                    "Nothing was changed."
                )
        phase, problem = self.usb.eval(f"_judge({text.encode()!r})")
        if problem is not None:
            raise Trouble(f"The shaker would refuse this ({problem}). Nothing was changed.")
        waits = phase if before and phase != "IDLE" else None
        changed = changes(before, found)
        tell(changed, found, self.voice.say)
        self._disk.write(f"{self.folder}/settings.tmp", text.encode())
        ready()
        self._disk.rename(f"{self.folder}/settings.tmp", f"{self.folder}/{settings.INCOMING}")
        return {"changes": changed, "waits": waits}


def changes(before: dict[str, Any], after: dict[str, Any]) -> dict[str, list[Any]]:
    """Return {setting: [now, then]} of what `after` changes, in which what is missing is the default."""
    default = settings.Settings().public()
    found = {**default, **after}
    if found["authorisation"] is None:
        found["authorisation"] = before.get("authorisation")  # as the shaker does
    known = before or dict.fromkeys(default)
    return {name: [now, found[name]] for name, now in known.items() if now != found[name]}


def tell(changed: dict[str, list[Any]], found: dict[str, Any], say: Callable[[str], object]) -> None:
    """Say what changes, before it does."""
    for name, (now, then) in changed.items():
        say(f"  {name}: {json.dumps(now)} becomes {json.dumps(then)}")
    if "key" in found:
        say("  key: a new one" if found["key"] else "  key: taken away, so nobody can command the shaker")
    elif not changed:
        say("  nothing changes: the settings are in force already")


def when(waits: str | None, changed: bool = True) -> str:
    """Return the sentence that says when the settings take effect; `waits`: see Place.put()."""
    if not changed:
        return "The settings on the board are what they were."
    if waits is None:
        return "Settings are on the board; the shaker takes them in at this start."
    return f"Settings are on the board and wait: the shaker is in {waits}; a restart in IDLE takes them in."


def put_whole(usb: Usb, found: dict[str, Any]) -> None:
    """Put `found`, from a whole file, beside firmware that was just deployed."""
    try:
        place = Place(usb)
        usb.voice.say(when(place.put(place.in_force(True), found)["waits"]))
    except Trouble as trouble:
        raise Trouble(f"The firmware is in place, its settings are not. {trouble}") from None


def provision(
    usb: Usb, found: dict[str, Any], whole: bool, ready: Callable[[], object] = lambda: None
) -> dict[str, Any]:
    """Put settings on a board that is ours (usb.take()); it restarts and, in IDLE, takes them in.

    whole: what `found` does not name becomes the default; else it stays as it is. ready: see Place.put().
    """
    place = Place(usb)
    before = place.in_force(whole)
    if not whole:
        kept = {name: value for name, value in before.items() if name != "authorisation"}
        found = {**kept, **found}
    done = place.put(before, found, ready)
    usb.restart()
    said = usb.after_restart(START_S, lambda said: RUNNING in said)
    if RUNNING not in said:
        raise Trouble(
            "The shaker does not start: press its reset button (EN); if that does not help, deploy again."
        )
    return {"board": usb.ident, "fields": sorted(found), **done, "started": True}


def reachable(uart: str) -> None:
    """Trouble unless the port `uart` can be opened: better before anything is changed."""
    with line.client(uart, option="--uart"):
        pass


def confirm(uart: str, found: dict[str, Any], key: bytes | None) -> dict[str, Any]:
    """Ask the running shaker over its UART whether it adopted what was provisioned."""
    try:
        return _confirm(uart, found, key)
    except Trouble as trouble:
        raise Trouble(f"The settings are on the board; asking the shaker failed. {trouble}") from None


def _confirm(uart: str, found: dict[str, Any], key: bytes | None) -> dict[str, Any]:
    with line.client(uart, key, option="--uart") as link:
        hello = line.request(link, uart, "hello")
        have = line.request(link, uart, "settings")
        for name, value in found.items():
            if name != "key" and have.get(name) != value:
                raise Trouble(f"It did not take {name}: its `settings` event names the field it refused.")
        if key is not None:
            line.request(link, uart, "ack", seq=0)  # changes nothing, and needs the right key
    return {"table": hello["table"], "authorised": hello["auth"]}
