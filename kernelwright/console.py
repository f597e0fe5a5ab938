"""The terminal: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import math
from functools import cache
from typing import Any

from rich.console import Console
from rich.markup import escape as _escape
from rich.table import Table

from evals.visible import visible

__all__ = ["escape", "fail", "note", "result_console", "say", "say_json", "side_console", "table"]

PIPE_COLUMNS = 300


@cache
def result_console() -> Console:
    """Where results go."""
    return _console(stderr=False)


@cache
def side_console() -> Console:
    """Where progress, notes and errors go, so that results can be piped."""
    return _console(stderr=True)


def say(text: str = "", style: str | None = None) -> None:
    """One result line, as it is: no markup is read in it."""
    result_console().print(visible(text), style=style, markup=False, emoji=False)


def note(text: str, style: str | None = None) -> None:
    """One line beside the results."""
    side_console().print(visible(text), style=style, markup=False, emoji=False)


def fail(text: str) -> None:
    """What went wrong and how to cure it, on standard error."""
    side_console().print(f"error: {visible(text)}", style="red", markup=False, emoji=False)


def say_json(value: dict[str, Any]) -> None:
    """One JSON object on standard output, never wrapped or coloured, in ASCII: no text in it can move a terminal.

    JSON has no infinities: they are written as the strings ``"inf"``, ``"-inf"`` and ``"nan"``.
    """
    print(json.dumps(_spelled(value), allow_nan=False, indent=2))


def _spelled(value: Any) -> Any:
    match value:
        case float() if not math.isfinite(value):
            return str(value)
        case dict():
            return {key: _spelled(item) for key, item in value.items()}
        case list() | tuple():
            return [_spelled(item) for item in value]
        case _:
            return value


def escape(text: str) -> str:
    """Text for a table's cell: no markup is read in it, and it cannot move the terminal."""
    return _escape(visible(text))


def table(title: str, *columns: str) -> Table:
    """A table that a terminal and a pipe both show whole."""
    made = Table(title=title or None, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for column in columns:
        made.add_column(column, overflow="fold")
    return made


def _console(stderr: bool) -> Console:
    console = Console(stderr=stderr, highlight=False, soft_wrap=True)
    if not console.is_terminal:
        # Rich takes a pipe for a terminal of 80 columns and folds table cells to fit: a reader's grep would miss them.
        console.width = PIPE_COLUMNS
    return console
