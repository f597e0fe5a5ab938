"""Which Kernelwright this is: the checkout's commit, or the installed version."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def commit(root: Path = ROOT) -> str:
    """The commit that `root` has checked out, 40 hex digits; where it is no checkout, the distribution's version."""
    git = root / ".git"
    try:
        head = (git / "HEAD").read_text().strip()
        return _resolved(git, head.removeprefix("ref: ")) if head.startswith("ref: ") else head
    except OSError:
        return _installed()


def _resolved(git: Path, ref: str) -> str:
    if (git / ref).is_file():
        return (git / ref).read_text().strip()
    for line in (git / "packed-refs").read_text().splitlines():
        sha, _, name = line.partition(" ")
        if name == ref:
            return sha
    raise FileNotFoundError(ref)


def _installed() -> str:
    try:
        return importlib.metadata.version("kernelwright")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"
