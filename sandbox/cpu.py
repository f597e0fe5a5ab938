"""The CPU runner: interprets small cases, compiles for AMD chips, estimates the published ones; needs no GPU."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from problems.chips import chip as chip_named
from problems.load import ROOT
from problems.spec import Problem
from sandbox import hip_cache
from sandbox.audit import Audited
from sandbox.candidate import Candidate, language_of
from sandbox.checker.client import Client
from sandbox.defences import ALL_UP, Defences
from sandbox.harness import harness_sha256
from sandbox.runner import DEADLINE_S, Mode, RunnerError
from sandbox.screen import advised, refuse
from sandbox.verdict import Judgement, Machine


class CpuRunner:
    """Judges by emulation, and estimates times on `chip` from the code compiled for it.

    `isolation` names a sandbox (``bubblewrap``, ``namespaces``, ``process``) instead of the strongest that works here;
    `root` is the folder of problems; `defences` are all up but where the red team takes one down. With `racecheck` HIP
    kernels run slower, and accesses that nothing orders end them: see docs/decisions/hip-emulation.md. Nothing is
    started before the first judgement.
    """

    def __init__(
        self,
        chip: str = "MI300X",
        isolation: str | None = None,
        root: Path = ROOT,
        defences: Defences = ALL_UP,
        racecheck: bool = False,
    ) -> None:
        self._racecheck = racecheck
        self._chip, self._root, self._defences = chip, root, defences
        self._isolation = isolation if defences.sandbox else "process"
        self._client: Client | None = None

    def machine(self) -> Machine:
        """This machine; `chip` is the one whose code is compiled and estimated. `RunnerError` without torch."""
        target = chip_named(self._chip)
        return Machine(
            kind="cpu-emulation",
            chip=target.name,
            arch=target.arch,
            driver="none",
            runtime="none",
            torch=_version("torch"),
            triton=_version("triton"),
            python=platform.python_version(),
            harness=harness_sha256(),
        )

    def judge(
        self,
        problem: Problem,
        candidate: Candidate,
        mode: Mode = Mode.BENCHMARK,
        deadline_s: float = DEADLINE_S,
        following: Candidate | None = None,
    ) -> Judgement:
        """Judge one candidate; see `sandbox.checker.emulation` for what is done. Raises `RunnerError`."""
        refused = refuse(problem, candidate, self.machine(), self._defences)
        if refused is None and language_of(candidate.source) == "hip":
            hip_cache.prepare()
        return refused or advised(self._checker().judge(problem, candidate, mode, deadline_s), candidate)

    def audit(self, problem: Problem) -> Audited:
        """Screen a problem on a small case; see `sandbox.checker.screening`. Raises `RunnerError`."""
        return self._checker().audit(problem)

    def close(self) -> None:
        """Stop the checker and its guests."""
        if self._client is not None:
            self._client.close()

    def _checker(self) -> Client:
        if self._client is None:
            arguments = ["cpu", "--chip", self._chip, "--machine", self.machine().model_dump_json()]
            arguments += ["--isolation", self._isolation] if self._isolation else []
            arguments += ["--racecheck"] if self._racecheck else []
            self._client = Client(arguments, self._root, self._defences)
        return self._client


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError as error:
        raise RunnerError(f"{package} is not installed: pip install {package}") from error
