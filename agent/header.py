"""The ``#!POPCORN`` lines that tell GPU MODE which board a file is for."""

from __future__ import annotations

import re

from problems.spec import Problem

_LINE = re.compile(r"^[ \t]*#!POPCORN[ \t]+(?:leaderboard|gpus?)\b[^\n]*\n?", re.MULTILINE)
_RUNNERS = {"MI300X": "MI300"}
"""Where GPU MODE's name for a runner is not the chip's own. Source: gpu-mode/kernelbot, enum of GitHub runners."""


def header(problem: Problem) -> str:
    """The two header lines of a submission to the problem's board."""
    gpus = " ".join(_RUNNERS.get(chip, chip) for chip in problem.chips)
    return f"#!POPCORN leaderboard {problem.board}\n#!POPCORN gpus {gpus}\n"


def with_header(source: str, problem: Problem) -> str:
    """The source with the right headers at its head; unchanged where its leaderboard line is right already."""
    head = re.match(r"(?:[ \t]*#[^\n]*(?:\n|$)|[ \t]*\n)*", source)
    lines = [line.split() for line in _LINE.findall(head[0])] if head else []
    boards = [line[2] for line in lines if line[1] == "leaderboard" and len(line) == 3]
    if boards == [problem.board] and any(line[1] in {"gpu", "gpus"} and len(line) > 2 for line in lines):
        return source
    return header(problem) + _LINE.sub("", source)
