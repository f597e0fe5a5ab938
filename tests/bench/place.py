"""The judge's own parts on this machine's GPU, in one process: for what one judgement is too coarse to show."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from problems.load import ROOT
from problems.spec import Case
from sandbox.checker.control import Control
from sandbox.checker.device import Device
from sandbox.checker.emulation import TARGETS
from sandbox.checker.gpu_timing import judge
from sandbox.checker.guest import Guest
from sandbox.checker.machine import gpu_machine
from sandbox.checker.outcome import Progress, Request
from sandbox.checker.pool import Pool
from sandbox.checker.task import Task, open_task
from sandbox.defences import Defences
from sandbox.isolation import choose
from sandbox.runner import Mode
from sandbox.verdict import Measured, Passed

KERNELS = ROOT.parent / "seed_kernels"
DEADLINE_S = 300.0


class Place:
    """One GPU, a pool of guests, a guest for empty calls."""

    def __init__(self) -> None:
        self.machine, chip = gpu_machine()
        sandbox = choose(gpu=True)
        self.pool, self._controls = (Pool(sandbox, {"device": TARGETS}) for _ in range(2))
        self.device = Device(self.machine.chip, chip)
        self.device.control = Control(self._controls)
        self.device.connect(self.pool)

    def close(self) -> None:
        """End every guest."""
        self.pool.close()
        self._controls.close()

    def task(self, problem: str, cases: Sequence[Case]) -> Task:
        """The problem with these cases alone, all ranked, and no hidden ones: times are what is asked for here."""
        opened = open_task(problem, ROOT, "cuda", Defences(hidden_cases=False))
        ranked = opened.problem.board_timing.model_copy(update={"ranked_by": "geomean"})
        cut = {"tests": (), "benchmarks": tuple(cases), "board_timing": ranked}
        return Task(opened.problem.model_copy(update=cut), opened.reference, "cuda", ROOT, opened.defences)

    def timed(self, task: Task, source: str, guest: Guest) -> tuple[list[Measured], list[str]]:
        """Times of all the task's cases, and the flags; an `AssertionError` where the candidate does not pass."""
        progress = Progress()
        verdict = judge(task, Request(source, Mode.BENCHMARK, DEADLINE_S), guest, self.device, progress).verdict
        assert isinstance(verdict, Passed), verdict
        return [timing for timing in verdict.timings if isinstance(timing, Measured)], progress.flags


@contextmanager
def place() -> Iterator[Place]:
    """A place, closed at the end."""
    opened = Place()
    try:
        yield opened
    finally:
        opened.close()


def seed_source(name: str) -> str:
    """A seed kernel's text: ``pmpp/vectoradd/flat``."""
    return (KERNELS / name / "submission.py").read_text()


def leave(out: Path | None, found: dict[str, object]) -> None:
    """Write what was found as JSON, where a file is named."""
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(found, indent=1) + "\n")
