"""Who is played: a strategy of the agent, or a directory of submission files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from dataset.attempt import RecordError
from problems.spec import Problem, ProblemError
from sandbox.candidate import Candidate

_BOARD = re.compile(r"^[ \t]*#!POPCORN[ \t]+leaderboard[ \t]+(\S+)", re.MULTILINE)
REFERENCES = Path(__file__).parent / "references"


@dataclass(frozen=True, slots=True)
class Strategy:
    """A strategy of the agent, played as a run of its own for each sample."""

    name: Literal["search", "refine"]


@dataclass(frozen=True, slots=True)
class Directory:
    """Submission files, each played once on the problem that its leaderboard line or its folder names."""

    name: str
    path: Path

    def files(self, problem: Problem) -> list[Path]:
        """The files meant for `problem`, sorted. `RecordError` where one cannot be read."""
        found = sorted(path for path in self.path.rglob("*.py") if path.is_file())
        return [path for path in found if self._is_for(path, problem)]

    def _is_for(self, path: Path, problem: Problem) -> bool:
        named = board_of(read_source(path))
        folder = path.parent.relative_to(self.path).as_posix()
        return named in (problem.board, problem.name, *problem.aliases) if named else folder == problem.name


Player = Strategy | Directory


def player(text: str) -> Player:
    """``search``, ``refine`` or ``dir:PATH``; `ProblemError` for anything else."""
    match text:
        case "search" | "refine":
            return Strategy(text)
        case _ if text.startswith("dir:"):
            return _directory(text)
        case _:
            raise ProblemError(f"unknown agent {text!r}; give search, refine or dir:PATH")


def _directory(text: str) -> Directory:
    path = Path(text.removeprefix("dir:"))
    if not path.is_dir():
        raise ProblemError(f"--agents {text}: there is no directory {path}; give one that holds submission files")
    return Directory(text, path)


def board_of(source: str) -> str | None:
    """The board that a submission's leaderboard line names; None without one."""
    found = _BOARD.search(source)
    return found.group(1) if found else None


def read_source(path: Path) -> str:
    """A submission file's text; `RecordError` where it cannot be read as UTF-8."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RecordError(f"cannot read {path}: {error}; remove it from the directory, or save it as UTF-8") from error


def reference(problem: Problem, root: Path = REFERENCES) -> Candidate | None:
    """The problem's plain library call as a submission; None where the problem has none."""
    path = root / f"{problem.name}.py.txt"
    return Candidate(source=read_source(path), language="torch") if path.is_file() else None
