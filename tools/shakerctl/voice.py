"""How shakerctl speaks: words for people, JSON for programs, progress bars where work is long.

With `--json` the one result on standard output is JSON and everything else goes to standard error.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

from shakerctl.trouble import Trouble


def hush() -> None:
    """Nobody can read standard output any more: what is left in its buffer goes nowhere, without a word."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def _output() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        hush()
        raise Trouble(f"The output cannot be written ({error.strerror}).") from None


class Voice:
    """Speaks on the console. `as_json`: results as JSON; `assume_yes`: no question is asked."""

    def __init__(self, as_json: bool = False, assume_yes: bool = False):
        self.as_json = as_json
        self.assume_yes = assume_yes
        self._console = Console(stderr=as_json, highlight=False, markup=False, soft_wrap=True)

    def say(self, text: str) -> None:
        """Say one line."""
        with _output():
            self._console.print(text)

    def result(self, thing: dict[str, Any], text: str) -> None:
        """Give the result: `thing` to programs, `text` to people."""
        if self.as_json:
            with _output():
                print(json.dumps(thing), flush=True)
        else:
            self.say(text)

    def ask(self, question: str) -> str:
        """Return the answer to a question, without spaces around it. Trouble when nobody is there."""
        with _output():
            self._console.print(question, end=" ")
            self._console.file.flush()
        answer = sys.stdin.readline()
        if not answer:
            raise Trouble("Nobody answered (standard input ended): run it in a terminal, or give --yes.")
        return answer.strip()

    def confirm(self, question: str) -> bool:
        """Ask for yes or no."""
        if self.assume_yes:
            self.say(f"{question} yes (--yes)")
            return True
        while True:
            answer = self.ask(f"{question} [y/n]").lower()
            if answer in ("y", "yes", "n", "no"):
                return answer[0] == "y"

    @contextmanager
    def progress(self, what: str, total: int) -> Iterator[Callable[[int], None]]:
        """Show a bar on a terminal; yields a function to call with how much more is done."""
        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
        hidden = not self._console.is_terminal
        with Progress(*columns, console=self._console, transient=True, disable=hidden) as bar:
            task = bar.add_task(what, total=total)
            yield lambda done: bar.advance(task, done)
