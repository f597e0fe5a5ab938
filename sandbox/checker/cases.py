"""Runs a candidate over cases in its guest, up to the first wrong answer."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Literal

from problems.load import hidden_cases
from problems.spec import Case
from sandbox.checker.guest import FAULTS, Guest
from sandbox.checker.memory import HostMemory
from sandbox.checker.outcome import Progress, Refuted, Request, verdict_of, wrong
from sandbox.checker.task import Task
from sandbox.checker.trial import Bench, Share
from sandbox.verdict import Role, Verdict


def judge_cases(request: Request, progress: Progress, guest: Guest, run: Callable[[], None]) -> Verdict | None:
    """Load the candidate and `run` its cases; the verdict that ended it early, or None where all are right."""
    try:
        guest.load(request.source, request.deadline_s)
        progress.loaded = True
        run()
    except FAULTS as fault:
        return verdict_of(fault, progress, request.deadline_s)
    except Refuted as refuted:
        return wrong(progress, str(refuted))
    return None


def drawn(task: Task, size: Literal["small", "full"]) -> tuple[Case, ...]:
    """Hidden cases, drawn from the operating system's randomness: call it once the candidate is loaded."""
    return hidden_cases(task.problem, random.SystemRandom(), size, task.root)


def check(
    task: Task,
    guest: Guest,
    cases: Iterable[tuple[Role, Case]],
    progress: Progress,
    share: Share = HostMemory,
    settle: Callable[[], None] = lambda: None,
) -> None:
    """One call on each case. `Refuted` at the first wrong one; `settle` runs last before each call."""
    for role, case in cases:
        progress.case = case
        bench = Bench(task, case, role, guest, share)
        try:
            trial = bench.run(before=settle)
        finally:
            bench.close()
        progress.seeds.append(trial.check.seed)
        progress.checks.append(trial.check)
        if not trial.check.passed:
            raise Refuted(f"{case.label()}: {trial.reason}")
    progress.case = None
