"""Judging on a GPU: published tests and hidden cases, then every benchmark case timed on fresh inputs."""

from __future__ import annotations

import math
import statistics
import time
from functools import cached_property

import torch

from problems.chips import Chip
from problems.load import work
from problems.spec import Case
from sandbox.checker import vmm
from sandbox.checker.cases import check, drawn, judge_cases
from sandbox.checker.guest import Forgery, Guest
from sandbox.checker.kernels import read, records
from sandbox.checker.memory import HostMemory
from sandbox.checker.outcome import Outcome, Progress, Refuted, Request
from sandbox.checker.pool import Pool
from sandbox.checker.task import Task
from sandbox.checker.trial import Bench, Share, Trial
from sandbox.runner import Mode
from sandbox.verdict import CaseCheck, Measured, Passed, Role

WARM_UP = 3
FEWEST, MOST = 10, 100
BUDGET_S = {Mode.BENCHMARK: 4.0, Mode.LEADERBOARD: 10.0, Mode.PROFILE: 4.0}
"""Wall time for the samples of one case, checks included."""
STEADY = 1e-3
"""Relative standard error at which sampling stops."""
FLUSH_BYTES = 512 << 20
"""Twice the largest last-level cache of the chips we know (MI300X: 256 MiB)."""
STAGED = "inputs and outputs are staged through the host: no cuda-bindings here, or a guest cannot map device memory"
CLOCK = "device events in the guest, one call each, L2 flushed before; wall_us is the checker's host clock"


class Device:
    """The GPU as the checker uses it."""

    def __init__(self, chip_name: str, chip: Chip | None) -> None:
        self.chip_name, self.chip = chip_name, chip
        self.share: Share | None = None
        """How buffers are shared; None until `connect`."""

    def connect(self, pool: Pool) -> None:
        """Find out, once, how buffers are shared: device memory where a guest can map it, else staged by the host."""
        if self.share is not None:
            return
        self.share = HostMemory
        if vmm.available():
            memory = vmm.DeviceMemory(1)
            if pool.holds("device", lambda guest: guest.share([memory])):
                self.share = vmm.DeviceMemory
            memory.close()

    @cached_property
    def _sweep(self) -> torch.Tensor:
        return torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda")

    def settle(self) -> None:
        """Wait until everything written is in memory."""
        torch.cuda.synchronize()

    def flush(self) -> None:
        """Evict the inputs just written from the caches: they came from this process's own context."""
        self._sweep.fill_(1)
        torch.cuda.synchronize()


def judge(task: Task, request: Request, guest: Guest, device: Device, progress: Progress) -> Outcome:
    """Judge one candidate in a device guest."""
    share = device.share or HostMemory
    if share is HostMemory:
        progress.flags.append(STAGED)
    timings: dict[int, Measured] = {}
    recorded: list[bytes] = []

    def run() -> None:
        tests: list[tuple[Role, Case]] = [("test", case) for case in task.problem.tests]
        hidden: list[tuple[Role, Case]] = [("hidden", case) for case in drawn(task, "full")]
        check(task, guest, tests + hidden, progress, share, device.settle)
        if request.mode is not Mode.TEST:
            for index in _order(len(task.problem.benchmarks), request.mode):
                timings[index] = _time(task, task.problem.benchmarks[index], request.mode, guest, device, progress)
        recorded.append(guest.kernels())

    verdict = judge_cases(request, progress, guest, run)
    torch.cuda.empty_cache()
    if verdict is None:
        ordered = tuple(timings[index] for index in sorted(timings))
        verdict = Passed(cases=tuple(progress.checks), timings=ordered)
    # Which kernels ran says which of a candidate's paths did: one chip's path is not another's.
    return Outcome(verdict, records(read(recorded[0], progress.flags)) if recorded else ())


def _order(count: int, mode: Mode) -> list[int]:
    """Leaderboard mode shuffles the cases, so that a place in the sequence tells a candidate nothing."""
    order = torch.randperm(count).tolist() if mode is Mode.LEADERBOARD else list(range(count))
    return [int(index) for index in order]


def _time(task: Task, case: Case, mode: Mode, guest: Guest, device: Device, progress: Progress) -> Measured:
    progress.case = case
    torch.cuda.empty_cache()
    bench = Bench(task, case, "benchmark", guest, device.share or HostMemory)
    calls = _Calls(case)
    try:
        for _ in range(WARM_UP):
            calls.add(bench.run(before=device.settle), progress)
        end_s = time.monotonic() + BUDGET_S[mode]
        while not _enough(calls.samples_us, end_s):
            calls.time(bench.run(timed=True, before=device.flush), progress)
    finally:
        bench.close()
    progress.checks.append(calls.worst())
    progress.case = None
    measured = Measured(
        case=case,
        chip=device.chip_name,
        clock=CLOCK,
        samples_us=tuple(calls.samples_us),
        wall_us=tuple(calls.wall_us),
        warmup_calls=WARM_UP,
    )
    _flag_bound(task, measured, device, progress)
    return measured


def _enough(samples_us: list[float], end_s: float) -> bool:
    count = len(samples_us)
    if count < FEWEST:
        return False
    error = statistics.stdev(samples_us) / math.sqrt(count) / statistics.fmean(samples_us)
    return count >= MOST or error < STEADY or time.monotonic() > end_s


def _flag_bound(task: Task, measured: Measured, device: Device, progress: Progress) -> None:
    if device.chip is None:
        return
    least = work(task.problem, measured.case)
    bound_us = device.chip.roofline_us(least.flops, least.bytes)
    if measured.us < bound_us:
        progress.flags.append(
            f"{measured.case.spec()}: {measured.us:.2f} us is below {device.chip.name}'s bound of {bound_us:.2f} us"
        )


class _Calls:
    """The calls of one benchmark case: all checked, the worst kept."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._checks: list[CaseCheck] = []
        self.samples_us: list[float] = []
        self.wall_us: list[float] = []

    def add(self, trial: Trial, progress: Progress) -> None:
        """A call that is checked and not timed; `Refuted` where it is wrong."""
        progress.seeds.append(trial.check.seed)
        self._checks.append(trial.check)
        if not trial.check.passed:
            progress.checks.append(trial.check)
            raise Refuted(f"{self._case.label()}, call {len(self._checks)}: {trial.reason}")

    def time(self, trial: Trial, progress: Progress) -> None:
        """A call that is checked and timed; `Forgery` where its own clock says what cannot be."""
        self.add(trial, progress)
        event_us, wall_us = trial.returned.event_us, trial.returned.wall_us
        if event_us is None or not math.isfinite(event_us) or not 0 < event_us <= wall_us:
            raise Forgery(f"a call claims {event_us} us; by the judge's clock it took {wall_us:.1f} us in all")
        self.samples_us.append(event_us)
        self.wall_us.append(wall_us)

    def worst(self) -> CaseCheck:
        """The check nearest its allowance; the board accepts the case where it accepts every call."""
        worst = max(self._checks, key=lambda check: check.error.worst_ratio)
        boards = [check.board_accepts for check in self._checks if check.board_accepts is not None]
        return worst.model_copy(update={"board_accepts": all(boards) if boards else None})
