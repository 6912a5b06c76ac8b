"""`make sim`: the firmware on a live virtual table. See --help."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import pathlib
import signal
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [
    str(ROOT / folder)
    for folder in ("tools", "firmware", "host_tests", "host_tests/shims", "host_tests/fakes")
]

PORT = 8059
KEY = bytes(range(32)).hex()


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="make sim ARGS=…", description="The firmware on a live virtual table."
    )
    parser.add_argument(
        "--port", type=int, default=PORT, help=f"of the page, 0: any free one (default {PORT})"
    )
    parser.add_argument("--lever", action="store_true", help="the lever build")
    parser.add_argument("--layouts", type=int, default=1, help="betting layouts, 1-4 (default 1)")
    parser.add_argument("--settings", type=pathlib.Path, metavar="FILE", help="a settings.json of your own")
    parser.add_argument("--seed", type=int, help="the dice and the line's noise fall the same each time")
    parser.add_argument(
        "--no-browser", action="store_true", help="accepted for scripts; a browser is never opened anyway"
    )
    return parser.parse_args(argv)


def _settings(arguments: argparse.Namespace) -> dict[str, object]:
    """Return the settings to provision. Raises SystemExit with what is wrong."""
    from shaker import settings as checks

    chosen: dict[str, object] = {"table": "virtual", "key": KEY}
    if arguments.settings is not None:
        try:
            text = arguments.settings.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "is not UTF-8 text"
            raise SystemExit(f"{arguments.settings}: {why}") from None
    else:
        text = json.dumps(chosen)
    try:
        checks.parse(text)
        chosen = json.loads(text)
        if arguments.lever:
            chosen["actuation"] = "lever"
        if arguments.layouts != 1:
            chosen["layouts"] = arguments.layouts
        checks.parse(json.dumps(chosen))
    except checks.SettingsError as error:
        raise SystemExit(f"{arguments.settings or 'settings'}: {error}") from None
    return chosen


async def _serve(port: int, settings: dict[str, object], seed: int | None) -> None:
    from aiohttp import log, web

    from sim.machine import MachineError
    from sim.server import Sim, Unparsed, make_app

    log.server_logger.addFilter(Unparsed())
    sim = Sim(settings, seed)
    runner = web.AppRunner(make_app(sim), access_log=None, shutdown_timeout=1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", port)
        try:
            await site.start()
        except OverflowError:
            raise SystemExit(f"--port {port}: must be 0 to 65535") from None
        except OSError as error:
            why = os.strerror(error.errno or 0)
            raise SystemExit(f"Port {port} of 127.0.0.1: {why}; choose another, or --port 0") from None
        sim.port = runner.addresses[0][1]
        try:
            await sim.start()
        except MachineError as error:
            raise SystemExit(str(error)) from None
        print(f"Page  http://127.0.0.1:{sim.port}/")
        print(f"UART  {sim.uart.pty.name}")
        print(f"Key   {settings.get('key', 'none: nothing can be signed')}")
        print("Ctrl-C ends the table.", flush=True)
        done = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, done.set)
        await done.wait()
    finally:
        await runner.cleanup()
        await sim.stop()


def main(argv: list[str] | None = None) -> int:
    """Run a table until Ctrl-C."""
    arguments = _arguments(argv)
    settings = _settings(arguments)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(arguments.port, settings, arguments.seed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
