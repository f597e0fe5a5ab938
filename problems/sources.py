"""The files that decide a problem's verdicts: its own, and what these import from this package."""

from __future__ import annotations

import ast
from pathlib import Path

PACKAGE = Path(__file__).parent
JUDGED_BY = ("problem.toml", "cases.py", "reference.py")
"""The files of a problem's folder that do; a problem's content hash is over these and `shared`."""
TYPES = PACKAGE / "spec.py"
"""Left out of `shared`: every case file imports it, and it computes nothing."""


def shared(folder: Path) -> tuple[Path, ...]:
    """Files of this package, outside `folder`, that its ``cases.py`` and ``reference.py`` import, directly or not."""
    found: set[Path] = set()
    left = [folder / file for file in JUDGED_BY if file.endswith(".py")]
    while left:
        new = _imported(left.pop()) - found - {TYPES}
        found |= new
        left += new
    return tuple(sorted(found))


def _imported(path: Path) -> set[Path]:
    modules: set[str] = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            # What is imported from a package may be a module of it.
            modules |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    files = (
        PACKAGE.joinpath(*name.split(".")[1:]).with_suffix(".py") for name in modules if name.startswith("problems.")
    )
    return {file for file in files if file.is_file()}
