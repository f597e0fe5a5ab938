"""How a known error ends a command that was asked for JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import typer

from kernelwright.console import fail, say_json
from kernelwright.status import families, kind_of, status_of


@contextmanager
def told(as_json: bool, failed: Callable[[str, str], dict[str, Any]]) -> Iterator[None]:
    """With `as_json`, a known error becomes the one object that `failed` makes of its kind and message."""
    try:
        yield
    except families() as error:
        if not as_json:
            raise
        say_json(failed(kind_of(error), str(error)))
        fail(str(error))
        raise typer.Exit(status_of(error)) from error
