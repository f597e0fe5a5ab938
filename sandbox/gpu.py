"""The GPU runner: the candidate on the first GPU that torch sees, every timed output checked."""

from __future__ import annotations

from pathlib import Path

from problems.load import ROOT
from problems.spec import Problem
from sandbox.candidate import Candidate
from sandbox.checker.client import Client
from sandbox.defences import ALL_UP, Defences
from sandbox.runner import DEADLINE_S, Mode
from sandbox.screen import advised, refuse
from sandbox.verdict import Judgement, Machine


class GpuRunner:
    """Judges on one GPU, one candidate at a time over all processes. Nothing is started before it is asked."""

    def __init__(
        self,
        isolation: str | None = None,
        root: Path = ROOT,
        defences: Defences = ALL_UP,
    ) -> None:
        kind = isolation if defences.sandbox else "process"
        self._client = Client(["gpu", *(["--isolation", kind] if kind else [])], root, defences)
        self._defences = defences

    def machine(self) -> Machine:
        """The GPU and its software; `RunnerError` where torch sees no GPU."""
        return self._client.machine()

    def judge(
        self, problem: Problem, candidate: Candidate, mode: Mode = Mode.BENCHMARK, deadline_s: float = DEADLINE_S
    ) -> Judgement:
        """Judge one candidate; see `sandbox.checker.gpu_timing` for what is done. Raises `RunnerError`."""
        refused = refuse(problem, candidate, self.machine(), self._defences)
        return refused or advised(self._client.judge(problem, candidate, mode, deadline_s), candidate)

    def close(self) -> None:
        """Stop the checker and its guests."""
        self._client.close()
