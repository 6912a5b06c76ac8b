"""The command line of shakerctl: what a technician runs, from an empty ESP32 to a shaker in service.

Exit code 0: done. 1: it did not work, one line says what to do. 2: the call itself is wrong.
Start reading at main(); each command is a module of its name.
"""

from __future__ import annotations

import argparse
import secrets
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from shakerctl.trouble import Trouble, Usage

if TYPE_CHECKING:
    from shakerctl.voice import Voice

OK, FAILED, USAGE = 0, 1, 2


def _usb_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", required=True, help="the board's USB port, as /dev/ttyUSB0")
    parser.add_argument("--yes", action="store_true", help="answer every question with yes")
    parser.add_argument("--json", action="store_true", help="the result as JSON on standard output")


def _seconds(word: str) -> float:
    """Return a positive time."""
    seconds = float(word)
    if not 0 < seconds < float("inf"):
        raise ValueError
    return seconds


_seconds.__name__ = "time in seconds"  # what argparse calls it


def _baud(word: str) -> int:
    """Return a speed that an ESP32 and its adapter can have."""
    if not (word.isascii() and word.isdigit() and 9600 <= int(word) <= 2_000_000):
        raise ValueError
    return int(word)


_baud.__name__ = "speed (9600 to 2000000)"


def _uart_options(parser: argparse.ArgumentParser, key: bool = True) -> None:
    parser.add_argument("--port", required=True, help="the port of the adapter on the shaker's UART 2")
    if key:
        parser.add_argument("--key-file", type=Path, metavar="FILE", help="the table's key: 64 hex digits")


def _release_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--image", type=Path, metavar="DIR", help="a release of `make image`; default: this tree"
    )


def parser() -> argparse.ArgumentParser:
    """Return the whole command line."""
    top = argparse.ArgumentParser(
        prog="shakerctl", description="Puts shakers into service and looks after them."
    )
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)

    def command(name: str, does: str, act: Callable[[argparse.Namespace], int]) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=does, description=does[:1].upper() + does[1:] + ".")
        sub.set_defaults(act=act)
        return sub

    sub = command("flash", "write a MicroPython image to an ESP32", _flash)
    _usb_options(sub)
    sub.add_argument(
        "--image", type=Path, required=True, metavar="BIN", help="MicroPython's ESP32_GENERIC .bin"
    )
    sub.add_argument("--baud", type=_baud, default=460800, help="speed of the transfer (default %(default)s)")
    sub.add_argument(
        "--erase", action="store_true", help="erase everything first: journal, settings and key too"
    )

    sub = command("deploy", "copy the firmware, compare it on the board, then switch to it", _deploy)
    _usb_options(sub)
    _release_option(sub)
    sub.add_argument("--settings", type=Path, metavar="FILE", help="all settings, as with provision")

    sub = command("provision", "give a table its settings, key and authorisation", _provision)
    _usb_options(sub)
    sub.add_argument(
        "--settings",
        type=Path,
        metavar="FILE",
        help="all settings, as a JSON object (SPEC 8): what it leaves out becomes the default",
    )
    sub.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="one setting; may be repeated; without --settings all others stay as they are",
    )
    sub.add_argument("--key-file", type=Path, metavar="FILE", help="the table's key: 64 hex digits")
    sub.add_argument("--new-key", type=Path, metavar="FILE", help="make a key and keep it in FILE")
    sub.add_argument(
        "--authorisation", type=Path, metavar="FILE", help="JSON with ref, requested, granted, adopted"
    )
    sub.add_argument("--uart", metavar="PORT", help="ask the shaker afterwards whether it took them")

    sub = command("verify", "compare the program in a running shaker with a known release", _verify)
    _uart_options(sub, key=False)
    _release_option(sub)
    sub.add_argument(
        "--frozen",
        type=Path,
        metavar="FILE",
        help="the program is frozen into a MicroPython image: the firmware.bin or micropython.bin flashed",
    )
    sub.add_argument("--json", action="store_true", help="the result as JSON on standard output")

    sub = command("bench-test", "prove at the bench that a board is wired right", _bench_test)
    _usb_options(sub)
    sub.add_argument(
        "--loopback", action="store_true", help="a jig on the board (target_wiring) moves everything"
    )
    sub.add_argument(
        "--patience", type=_seconds, default=60.0, metavar="S", help="wait so long for a person's move"
    )
    sub.add_argument(
        "--report", type=Path, default=Path("bench"), metavar="DIR", help="where the report goes"
    )

    sub = command("monitor", "show live what a shaker sees, does and reports", _monitor)
    _uart_options(sub, key=False)
    sub.add_argument("--seconds", type=_seconds, help="end after so long (default: at Ctrl-C)")
    sub.add_argument("--plain", action="store_true", help="lines instead of a screen")
    sub.add_argument("--json", action="store_true", help="JSON lines instead of a screen")

    sub = command("events", "take events into a file, acknowledging what is safe there", _events)
    _uart_options(sub)
    sub.add_argument("--out", type=Path, required=True, metavar="FILE", help="goes on where the file ends")
    sub.add_argument("--format", choices=("jsonl", "csv"), default="jsonl", help="default %(default)s")
    sub.add_argument("--follow", action="store_true", help="go on until Ctrl-C")
    sub.add_argument("--json", action="store_true", help="the result as JSON on standard output")

    sub = command("send", "send one command, signed where it must be, and show the reply", _send)
    _uart_options(sub)
    sub.add_argument("--json", action="store_true", help="the reply as JSON on standard output")
    sub.add_argument("cmd", help="status, rounds, result, paid, clear … (PROTOCOL.md)")
    sub.add_argument("argument", nargs="?", help="its argument: a number, a nonce, or dice as 1,4,6")
    return top


def _voice(args: argparse.Namespace) -> Voice:
    # Imported only now: Ctrl-C at any time after the first moment is main()'s.
    from shakerctl.voice import Voice

    return Voice(args.json, getattr(args, "yes", False))


def _flash(args: argparse.Namespace) -> int:
    from shakerctl.flash import flash

    return flash(args.port, args.image, args.baud, args.erase, _voice(args))


def _deploy(args: argparse.Namespace) -> int:
    from shakerctl import provision, release
    from shakerctl.deploy import deploy
    from shakerctl.usb import Usb

    voice = _voice(args)
    found = provision.read_json(args.settings) if args.settings else None
    if found is not None:
        provision.check(found, provision.today())
    this = release.load(args.image)
    with Usb(args.port, voice) as usb:
        usb.take()
        done = deploy(usb, this, voice, lambda: found is None or provision.put_whole(usb, found))
    copied = f"{len(done['copied'])} files copied" if done["copied"] else "nothing to copy"
    voice.result(
        done, f"{this.version} runs from {done['slot']} ({copied}, every SHA-256 compared on the board)."
    )
    return OK


def _provision(args: argparse.Namespace) -> int:
    from shakerctl import provision
    from shakerctl.line import key_of
    from shakerctl.usb import Usb

    voice = _voice(args)
    if args.key_file and args.new_key:
        raise Usage("Either --key-file or --new-key, not both.")
    record = provision.read_json(args.authorisation) if args.authorisation else None
    known = key_of(args.key_file)
    found = provision.fields(args.settings, args.set, known.hex() if known else None, record)
    if not found and not args.settings and not args.new_key:
        raise Usage("Nothing to provision: give --settings, --set, --key-file, --new-key or --authorisation.")
    provision.check(found, provision.today())
    if args.uart:
        provision.reachable(args.uart)
    new = args.new_key
    if new:
        provision.key_is_free(new)
        found["key"] = secrets.token_hex(32)
    with Usb(args.port, voice) as usb:
        usb.take()
        done = provision.provision(
            usb, found, bool(args.settings), lambda: new and provision.keep_key(new, found["key"])
        )
    if args.uart and not done["waits"]:
        key = bytes.fromhex(found["key"]) if found.get("key") else None
        done.update(provision.confirm(args.uart, found, key))
        text = f"The shaker took its settings; authorised: {'yes' if done['authorised'] else 'no'}."
    else:
        text = provision.when(done["waits"], bool(done["changes"]) or "key" in found)
    voice.result(done, text)
    return OK


def _verify(args: argparse.Namespace) -> int:
    from shakerctl import release
    from shakerctl.verify import verify, verify_frozen

    if args.frozen:
        if args.image:
            raise Usage("--image is a release of files, --frozen an image: give one of them.")
        return verify_frozen(args.port, args.frozen, _voice(args))
    return verify(args.port, release.load(args.image), _voice(args))


def _bench_test(args: argparse.Namespace) -> int:
    from shakerctl.benchtest import bench_test, check_folder
    from shakerctl.usb import Usb

    voice = _voice(args)
    check_folder(args.report)
    with Usb(args.port, voice) as usb:
        usb.take()
        code = bench_test(usb, voice, args.loopback, args.patience, args.report)
        usb.restart()
    return code


def _monitor(args: argparse.Namespace) -> int:
    from shakerctl.monitor import monitor

    return monitor(args.port, args.seconds, args.plain, args.json)


def _events(args: argparse.Namespace) -> int:
    from shakerctl.events import export
    from shakerctl.line import key_of

    voice = _voice(args)
    return export(args.port, key_of(args.key_file), args.out, args.format == "csv", args.follow, voice)


def _send(args: argparse.Namespace) -> int:
    from shakerctl.line import key_of
    from shakerctl.send import send

    return send(args.port, key_of(args.key_file), args.cmd, args.argument, _voice(args))


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """Return the command line's words. Leaves with exit code 2 where they are wrong."""
    top = parser()
    args, rest = top.parse_known_args(argv)
    if args.command == "send" and args.argument is None and len(rest) == 1 and rest[0][:1] != "-":
        args.argument = rest.pop()  # argparse gives up an optional argument at the first option after `cmd`
    if rest:
        top.error(f"unrecognized arguments: {' '.join(rest)}")
    return args


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code."""
    args = argparse.Namespace(command="")  # until it is known
    try:
        args = arguments(argv)
        return args.act(args)
    except Trouble as trouble:
        print(f"shakerctl {args.command}: {trouble}", file=sys.stderr)
        return USAGE if isinstance(trouble, Usage) else FAILED
    except KeyboardInterrupt:
        name = f"shakerctl {args.command}".strip()
        print(f"{name}: interrupted; run the same command again to go on.", file=sys.stderr)
        return FAILED


if __name__ == "__main__":
    sys.exit(main())
