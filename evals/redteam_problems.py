"""A copy of the problems with one benchmark case each, so that timing a whole corpus on a GPU takes minutes."""

from __future__ import annotations

import contextlib
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from problems.load import ROOT
from problems.spec import ProblemError

_BENCHMARKS = re.compile(r"^benchmarks = \[\n(.*?)^\]\n", re.MULTILINE | re.DOTALL)


@contextlib.contextmanager
def one_benchmark_each(names: set[str], root: Path = ROOT) -> Iterator[Path]:
    """A folder of these problems, each with the middle one of its benchmark cases alone."""
    with tempfile.TemporaryDirectory(prefix="kernelwright-redteam-") as folder:
        for name in names:
            shutil.copytree(root / name, Path(folder) / name, ignore=shutil.ignore_patterns("__pycache__"))
            _shorten(Path(folder) / name / "problem.toml")
        yield Path(folder)


def _shorten(path: Path) -> None:
    text = path.read_text()
    found = _BENCHMARKS.search(text)
    if found is None:
        raise ProblemError(f"{path}: benchmarks are not one case a line")
    rows = found[1].splitlines()
    middle = rows[len(rows) // 2]
    # Published times name cases that are gone now, and nothing here compares with them.
    text = text.replace(found[0], f"benchmarks = [\n{middle}\n]\n")
    path.write_text(re.sub(r"^baselines = \[\n.*?^\]\n", "baselines = []\n", text, flags=re.MULTILINE | re.DOTALL))
