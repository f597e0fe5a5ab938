"""The judge's own content, as a hash: two judgements with the same one were made by the same rules."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from problems.sources import PACKAGE, shared

ROOT = Path(__file__).parent


@cache
def harness_sha256() -> str:
    """sha256, in hex, over the sources of this package."""
    return _digest(sorted(ROOT.rglob("*.py")), ROOT)


def judge_sha256(problem_folder: Path) -> str:
    """sha256, in hex, over the judge's sources and those of one problem, with what its reference imports."""
    files = sorted(path for path in problem_folder.iterdir() if path.suffix in {".py", ".toml"})
    parts = (harness_sha256(), _digest(files, problem_folder), _digest(list(shared(problem_folder)), PACKAGE))
    return hashlib.sha256("".join(parts).encode()).hexdigest()


def _digest(files: list[Path], root: Path) -> str:
    digest = hashlib.sha256()
    for path in files:
        data = path.read_bytes()
        digest.update(f"{path.relative_to(root).as_posix()} {len(data)}\n".encode() + data)
    return digest.hexdigest()
