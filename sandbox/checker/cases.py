"""Runs a candidate over cases in its guest, up to the first wrong answer."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from problems.load import hidden_cases
from problems.spec import Case
from sandbox.checker.guest import FAULTS, Died, Guest, Late
from sandbox.checker.memory import HostMemory
from sandbox.checker.outcome import Progress, Refuted, Request, verdict_of, wrong
from sandbox.checker.task import Task
from sandbox.checker.trial import Bench, Share, Trial
from sandbox.verdict import CaseCheck, Role, Verdict


def judge_cases(request: Request, progress: Progress, guest: Guest, run: Callable[[], None]) -> Verdict | None:
    """Load the candidate and `run` its cases; the verdict that ended it early, or None where all are right."""
    try:
        guest.load(request.source, request.deadline_s, request.stock)
        progress.loaded = True
        run()
    except FAULTS as fault:
        progress.ended = isinstance(fault, Died | Late)
        return verdict_of(fault, progress, request.deadline_s)
    except Refuted as refuted:
        return wrong(progress, str(refuted))
    return None


def drawn(task: Task, size: Literal["small", "full"]) -> tuple[Case, ...]:
    """Hidden cases, drawn from the operating system's randomness: call it once the candidate is loaded."""
    if not task.defences.hidden_cases:
        return ()
    rng = random.SystemRandom() if task.defences.late_seeds else random.Random(0)
    return hidden_cases(task.problem, rng, size, task.root)


def check(
    task: Task,
    guest: Guest,
    cases: Iterable[tuple[Role, Case]],
    progress: Progress,
    share: Share = HostMemory,
    settle: Callable[[], None] = lambda: None,
) -> None:
    """Two calls on each case, the cases in an order drawn by lot. `Refuted` at the first wrong one.

    The second call of a case is on the first one's buffers and data, but for an element or two. `settle` runs last
    before each call. Where all are right, the checks are in the order of `cases`.
    """
    found: dict[int, CaseCheck] = {}
    order = list(enumerate(cases))
    random.SystemRandom().shuffle(order)
    for index, (role, case) in order:
        progress.case = case
        bench = Bench(task, case, role, guest, share)
        try:
            trials = [bench.run(before=settle)]
            if trials[0].check.passed:
                trials.append(bench.run(before=settle, perturbed=True))
        finally:
            bench.close()
        found[index] = worst([trial.check for trial in trials])
        if not found[index].passed:
            progress.checks += found.values()
            progress.seeds += [check.seed for check in found.values()]
            raise Refuted(f"{case.label()}: {_said(trials)}")
    ordered = [found[index] for index in sorted(found)]
    progress.checks += ordered
    progress.seeds += [check.seed for check in ordered]
    progress.case = None


def worst(checks: Sequence[CaseCheck]) -> CaseCheck:
    """The check nearest its allowance, or the wrong one; the board accepts where it accepts every call."""
    chosen = max(checks, key=lambda check: (not check.passed, check.error.worst_ratio))
    boards = [check.board_accepts for check in checks if check.board_accepts is not None]
    return chosen.model_copy(update={"board_accepts": all(boards) if boards else None})


def _said(trials: Sequence[Trial]) -> str:
    again = "; the first call on this case was right, the second had an element or two changed"
    return trials[-1].reason + (again if len(trials) > 1 else "")
