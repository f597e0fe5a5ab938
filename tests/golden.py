"""The golden files: ``python -m tests.golden`` writes them all anew, ``tests/test_golden.py`` compares them.

A room adds its own in ``tests/<room>/goldens.py``, as ``GOLDENS``: pairs of a path and the function
that makes its text. A changed golden file is a change of behaviour: read its diff before you commit it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from pathlib import Path

Golden = tuple[Path, Callable[[], str]]


def goldens() -> Iterator[Golden]:
    """Every golden file of every room."""
    for path in sorted(Path(__file__).parent.glob("*/goldens.py")):
        yield from importlib.import_module(f"tests.{path.parent.name}.goldens").GOLDENS


def regenerate() -> None:
    """Write every golden file anew, and say which changed."""
    for path, make in goldens():
        before = path.read_text() if path.exists() else None
        after = make()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(after)
        print(f"{'same   ' if before == after else 'changed'} {path.relative_to(Path(__file__).parents[1])}")


if __name__ == "__main__":
    regenerate()
