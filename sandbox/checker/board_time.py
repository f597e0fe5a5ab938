"""Times taken the way a problem's board takes them, so that published numbers have something to be held against.

A board times in the submission's own process and believes it. So does this: it is for comparing with boards, and
nothing is decided by it. What differs from the board's evaluator is said in each time's `how`.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Sequence

from problems.spec import BoardTiming, Case
from sandbox.checker.cases import worst
from sandbox.checker.device import Device
from sandbox.checker.guest import Forgery, Guest
from sandbox.checker.memory import HostMemory
from sandbox.checker.outcome import Progress, Refuted
from sandbox.checker.task import Task
from sandbox.checker.trial import Bench
from sandbox.verdict import BoardTime, CaseCheck

FEWEST, MOST = 3, 100
STEADY = 1e-3
"""Relative standard error of the mean at which a board stops."""
KERNEL_S = 30.0
"""Total of the samples at which a board stops."""
WALL_S = 20.0
"""A board goes on to 120 s of wall time a case; no case of ours needs more than this for `MOST` samples."""
UNLIKE = "several calls a sample: no board time is taken for this problem"


def take(task: Task, guest: Guest, device: Device, progress: Progress) -> tuple[BoardTime, ...]:
    """Every ranked case, fresh inputs for each sample, every output checked; empty, with a flag, where it cannot be."""
    timing = task.problem.board_timing
    if timing.calls_per_sample != 1:
        progress.flags.append(UNLIKE)
        return ()
    return tuple(_case(task, case, guest, device, progress) for case in task.problem.ranked())


def _case(task: Task, case: Case, guest: Guest, device: Device, progress: Progress) -> BoardTime:
    timing, samples_us, checks = task.problem.board_timing, list[float](), list[CaseCheck]()
    progress.case = case
    bench = Bench(task, case, "benchmark", guest, device.share or HostMemory)
    try:
        until_s = time.monotonic() + WALL_S
        while not enough(samples_us) and (len(samples_us) < FEWEST or time.monotonic() < until_s):
            trial = bench.run(before=device.settle, board=asked(timing))
            progress.seeds.append(trial.check.seed)
            checks.append(trial.check)
            if not trial.check.passed:
                progress.checks.append(trial.check)
                raise Refuted(f"{case.label()}, timed as on the board: {trial.reason}")
            samples_us.append(_believable(trial.returned.event_us, trial.returned.wall_us))
    finally:
        bench.close()
    progress.checks.append(worst(checks))
    progress.case = None
    return BoardTime(case=case, chip=device.chip_name, how=_how(timing), samples_us=tuple(samples_us))


def enough(samples_us: Sequence[float]) -> bool:
    """When a board stops: steady to `STEADY`, `MOST` samples, or `KERNEL_S` of them; never before `FEWEST`."""
    count = len(samples_us)
    if count < FEWEST:
        return False
    mean = statistics.fmean(samples_us)
    error = statistics.stdev(samples_us) / math.sqrt(count)
    return count >= MOST or error < STEADY * mean or mean * count > KERNEL_S * 1e6


def asked(timing: BoardTiming) -> dict[str, str | bool]:
    """What the guest is told."""
    return {"clock": timing.clock, "flush": timing.flush_l2, "clone": timing.clone_inside}


def _believable(event_us: float | None, wall_us: float) -> float:
    if event_us is None or not math.isfinite(event_us) or not 0 < event_us <= wall_us:
        raise Forgery(f"a call claims {event_us} us; by the judge's clock it took {wall_us:.1f} us in all")
    return event_us


def _how(timing: BoardTiming) -> str:
    clock = {"host": "host clock, device idle before and after", "event": "device events"}[timing.clock]
    flush = "256 MiB written before" if timing.flush_l2 else "no flush"
    clone = ", inputs cloned inside" if timing.clone_inside else ""
    return f"as {timing.evaluator}: {clock}, {flush}{clone}; mean; inputs come from another process"
