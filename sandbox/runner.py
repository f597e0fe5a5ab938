"""A runner: a place where candidates are judged, behind one protocol."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Protocol

from problems.spec import Problem
from sandbox.candidate import Candidate
from sandbox.verdict import Judgement, Machine

DEADLINE_S = 120.0


class RunnerError(Exception):
    """The place of work failed, not the candidate: no GPU, a lost checker, a full disk.

    Never shown to a model as its fault, never counted against a candidate; the caller may retry.
    """


class Unsupported(RunnerError):
    """This runner cannot judge this file at all, here: a HIP source on a CPU, a case larger than the memory."""


class Mode(StrEnum):
    """How much is done. Each mode does what the one before it does, and more."""

    TEST = "test"
    BENCHMARK = "benchmark"
    LEADERBOARD = "leaderboard"
    PROFILE = "profile"


class Runner(Protocol):
    """One place of work. Methods raise `RunnerError` for the place's faults; a bad candidate is a verdict."""

    def machine(self) -> Machine:
        """What this runner judges on."""

    def judge(
        self,
        problem: Problem,
        candidate: Candidate,
        mode: Mode = Mode.BENCHMARK,
        deadline_s: float = DEADLINE_S,
        following: Candidate | None = None,
    ) -> Judgement:
        """Judge one candidate; at `deadline_s` seconds its whole process group is killed.

        `following`: the candidate that is judged next on this problem, if that is known. A runner may get ready for
        it meanwhile; it need not be judged after all.
        """

    def close(self) -> None:
        """Stop every process this runner started."""


class FakeRunner:
    """Answers from a function. Product code: it drives tests, docs and dry runs, and its machine says ``fake``."""

    def __init__(self, answer: Callable[[Problem, Candidate], Judgement], machine: Machine) -> None:
        self._answer, self._machine = answer, machine

    def machine(self) -> Machine:
        """The machine given; its kind must be ``fake``."""
        return self._machine

    def judge(
        self,
        problem: Problem,
        candidate: Candidate,
        mode: Mode = Mode.BENCHMARK,
        deadline_s: float = DEADLINE_S,
        following: Candidate | None = None,
    ) -> Judgement:
        """The function's answer."""
        return self._answer(problem, candidate)

    def close(self) -> None:
        """Nothing to stop."""
