"""The GPU runner: the candidate on the first GPU that torch sees, every timed output checked."""

from __future__ import annotations

from pathlib import Path

from problems.load import ROOT
from problems.spec import Problem
from sandbox.audit import Audited
from sandbox.candidate import Candidate
from sandbox.checker.client import Client
from sandbox.comparison import FEWEST, PAIRS, Compared
from sandbox.defences import ALL_UP, Defences
from sandbox.runner import DEADLINE_S, Mode
from sandbox.screen import advised, refuse
from sandbox.verdict import Judgement, Machine


class GpuRunner:
    """Judges on one GPU or several, one candidate at a time over all processes; starts nothing before it is asked."""

    def __init__(
        self,
        isolation: str | None = None,
        root: Path = ROOT,
        defences: Defences = ALL_UP,
        gpus: int = 1,
    ) -> None:
        """`gpus`: how many a problem takes; it is judged on fewer where there are fewer, and says so."""
        kind = isolation if defences.sandbox else "process"
        self._client = Client(["gpu", *(["--isolation", kind] if kind else [])], root, defences, gpus)
        self._defences = defences

    def machine(self) -> Machine:
        """The GPU and its software; `RunnerError` where torch sees no GPU."""
        return self._client.machine()

    def judge(
        self,
        problem: Problem,
        candidate: Candidate,
        mode: Mode = Mode.BENCHMARK,
        deadline_s: float = DEADLINE_S,
        following: Candidate | None = None,
    ) -> Judgement:
        """Judge one candidate; see `sandbox.checker.gpu_timing` for what is done. Raises `RunnerError`.

        Meanwhile `following` is compiled on the cores alone; see `sandbox.checker.ahead`.
        """
        refused = refuse(problem, candidate, self.machine(), self._defences)
        if following is not None and refuse(problem, following, self.machine(), self._defences):
            following = None
        return refused or advised(self._client.judge(problem, candidate, mode, deadline_s, following), candidate)

    def compare(
        self,
        problem: Problem,
        first: Candidate,
        second: Candidate,
        pairs: int = PAIRS,
        deadline_s: float = DEADLINE_S,
    ) -> Compared:
        """Time two candidates against each other by interleaved pairs, both alive; see `sandbox.checker.contest`.

        `deadline_s` is each candidate's own time. Raises `RunnerError`, and `ValueError` for too few pairs.
        """
        if pairs < FEWEST:
            raise ValueError(f"{pairs} pairs are too few to compare by; take {FEWEST} or more")
        refused = [refuse(problem, candidate, self.machine(), self._defences) for candidate in (first, second)]
        if any(refused):
            judged = [
                said or self.judge(problem, one, Mode.TEST, deadline_s)
                for said, one in zip(refused, (first, second), strict=True)
            ]
            return Compared(first=judged[0], second=judged[1])
        found = self._client.compare(problem, first, second, pairs, deadline_s)
        both = {"first": advised(found.first, first), "second": advised(found.second, second)}
        return found.model_copy(update=both)

    def audit(self, problem: Problem) -> Audited:
        """Screen a problem, one from elsewhere in its published sizes; see `sandbox.checker.screening`."""
        return self._client.audit(problem)

    def close(self) -> None:
        """Stop the checker and its guests."""
        self._client.close()
