"""Judging on a GPU: published tests and hidden cases, then every benchmark case timed on fresh inputs."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable

import torch

from problems.load import work
from problems.spec import Case
from sandbox import clock
from sandbox.checker import board_time, burst
from sandbox.checker.cases import check, drawn, judge_cases, worst
from sandbox.checker.control import copied
from sandbox.checker.device import Device
from sandbox.checker.guest import Forgery, Guest, Returned
from sandbox.checker.layout import lay_out
from sandbox.checker.memory import HostMemory
from sandbox.checker.outcome import Outcome, Progress, Refuted, Request
from sandbox.checker.reader import reader
from sandbox.checker.task import Task
from sandbox.checker.trial import Bench, Trial
from sandbox.runner import Mode
from sandbox.verdict import BoardTime, CaseCheck, Measured, Passed, Role

WARM_UP = 3
LONGEST_HEAD_START = 16_000_000
"""About 8 ms at 2 GHz: who has not launched by then waits for the device, and no head start hides it."""
FEWEST, MOST = 10, 200
BUDGET_S = {Mode.BENCHMARK: 4.0, Mode.LEADERBOARD: 10.0, Mode.PROFILE: 4.0}
"""Wall time for the samples of one case, checks included."""
STAGED = "inputs and outputs are staged through the host: no cuda-bindings here, or a guest cannot map device memory"
LEAST_US = 0.05
"""What is left, at the least, of a call's events once those round an empty kernel are taken away."""
CLOCK = (
    "device events in the guest, one call each, less those round an empty kernel, L2 flushed before; wall_us is the "
    "checker's host clock round the call, empty_us the same round an empty call in a guest without a candidate"
)


def judge(task: Task, request: Request, guest: Guest, device: Device, progress: Progress) -> Outcome:
    """Judge one candidate in a device guest."""
    share = device.share or HostMemory
    if share is HostMemory:
        progress.flags.append(STAGED)
    if request.mode is not Mode.TEST and task.defences.clock_agreement:
        device.calm(lay_out(task.shapes(task.problem.benchmarks[0]), task.problem.writable).tree)
    timings: dict[int, Measured] = {}
    board: list[BoardTime] = []
    recorded: list[bytes] = []

    def run() -> None:
        tests: list[tuple[Role, Case]] = [("test", case) for case in task.problem.tests]
        hidden: list[tuple[Role, Case]] = [("hidden", case) for case in drawn(task, "full")]
        device.welcome()
        check(task, guest, tests + hidden, progress, share, device.settle)
        device.hush()
        if request.mode is not Mode.TEST:
            for index in _order(len(task.problem.benchmarks), request.mode):
                timings[index] = _time(task, task.problem.benchmarks[index], request.mode, guest, device, progress)
        if request.mode is Mode.LEADERBOARD:
            if task.defences.clock_agreement:
                timings.update({at: burst.settle(task, timings[at], guest, device, progress) for at in timings})
            board.extend(board_time.take(task, guest, device, progress))
        for measured in timings.values():
            progress.flags += flags(task, measured, device)
        recorded.append(guest.kernels())

    verdict = judge_cases(request, progress, guest, run)
    torch.cuda.empty_cache()
    if verdict is None:
        ordered = tuple(timings[index] for index in sorted(timings))
        verdict = Passed(cases=tuple(progress.checks), timings=ordered, board_us=tuple(board))
    # Which kernels ran says which of a candidate's paths did: one chip's path is not another's.
    reading = reader().read(recorded)
    progress.flags += reading.flags
    return Outcome(verdict, reading.records)


def _order(count: int, mode: Mode) -> list[int]:
    """Leaderboard mode shuffles the cases, so that a place in the sequence tells a candidate nothing."""
    order = torch.randperm(count).tolist() if mode is Mode.LEADERBOARD else list(range(count))
    return [int(index) for index in order]


def _time(task: Task, case: Case, mode: Mode, guest: Guest, device: Device, progress: Progress) -> Measured:
    progress.case = case
    torch.cuda.empty_cache()
    bench = Bench(task, case, "benchmark", guest, device.share or HostMemory)
    if mode is not Mode.LEADERBOARD:
        bench.board_calls = WARM_UP
    calls = Calls(task, case, device.calm_after)
    try:
        empty = device.prepare_empty(bench) if task.defences.clock_agreement else None
        for number in range(WARM_UP):
            # What the first call launches is noted; a timed one's launches are not watched.
            trial = bench.run(timed=number > 0, before=device.flush)
            calls.add(trial, progress)
            rehearse(bench, trial)
            if empty is not None:
                empty(0, bench.head_start)
        end_s = time.monotonic() + BUDGET_S[mode]
        while not calls.enough(end_s):
            calls.time(bench.run(timed=True, before=device.flush), progress)
            if mode is Mode.LEADERBOARD or calls.unpaired:
                calls.pair(device, empty, bench.head_start)
    finally:
        bench.close()
    progress.checks.append(worst(calls.checks))
    progress.case = None
    progress.flags += calls.disturbed()
    return calls.measured(device.chip_name)


def rehearse(bench: Bench, trial: Trial) -> None:
    """A longer head start where this one was over before all was launched.

    That is the guest's word. A lie hides more of a call from the judge's clock, up to `LONGEST_HEAD_START`, so that the
    clocks stay unresolved and `bound_us` grows; in leaderboard mode bursts, which have no head start, settle it.
    """
    if trial.returned.exposed:
        bench.head_start = min(4 * bench.head_start, LONGEST_HEAD_START)


def flags(task: Task, measured: Measured, device: Device) -> list[str]:
    """What a reader should know of one case's time."""
    found = []
    label = measured.case.label()
    if measured.agreement == "disagree":
        claimed = clock.interval(measured.samples_us).median
        found.append(f"{label}: its events say {claimed:.2f} us, the judge's clock {measured.us:.2f} us, which decides")
    if measured.agreement == "unresolved":
        found.append(f"{label}: too short for the judge's clock, which says only: below {measured.bound_us:.0f} us")
    if device.chip is not None:
        least = work(task.problem, measured.case)
        bound_us = device.chip.roofline_us(least.flops, least.bytes)
        if measured.us < bound_us:
            found.append(f"{label}: {measured.us:.2f} us is below {device.chip.name}'s bound of {bound_us:.2f} us")
    return found


class Calls:
    """The calls of one benchmark case: every output checked, every sample kept."""

    def __init__(self, task: Task, case: Case, calm: Callable[[int], float] = lambda _: math.inf) -> None:
        """`calm`: of a head start, what an empty call took before the candidate came. Beside it one may take
        `clock.FLOOR_US` longer, and no more is believed: who keeps the device or the host busy during empty calls would
        make its own seem short."""
        self._task, self._case, self._calm = task, case, calm
        self._most_us = math.inf
        self._told_us: list[float] = []
        self.checks: list[CaseCheck] = []
        self.samples_us: list[float] = []
        self.wall_us: list[float] = []
        self.empty_us: list[float] = []
        self._head_start_us: list[float] = []
        self._pair_us: list[float] = []
        self._late_us: list[float] = []
        self._usual_late_us: list[float] = []
        self._exposed = 0
        self._copied = 0

    def add(self, trial: Trial, progress: Progress, believed: bool = False) -> None:
        """A call that is checked and not timed; `Refuted` where it is wrong, unless it is `believed` unseen."""
        progress.seeds.append(trial.check.seed)
        if believed:
            return
        self.checks.append(trial.check)
        if not trial.check.passed:
            progress.checks.append(trial.check)
            raise Refuted(f"{self._case.label()}, call {len(self.checks)}: {trial.reason}")

    def time(self, trial: Trial, progress: Progress) -> None:
        """A call that is checked and timed; `Forgery` where its own clock says what cannot be."""
        self.add(trial, progress, believed=not self._task.defences.every_timed_output)
        event_us, wall_us = trial.returned.event_us, trial.returned.wall_us
        if event_us is None or not math.isfinite(event_us) or not 0 < event_us <= wall_us:
            raise Forgery(f"a call claims {event_us} us; by the judge's clock it took {wall_us:.1f} us in all")
        if not 0 <= trial.returned.late_us <= wall_us:
            raise Forgery(f"waited {trial.returned.late_us} us in a call of {wall_us:.1f} us by the judge's clock")
        self.samples_us.append(event_us)
        self._late_us.append(trial.returned.late_us)
        self.wall_us.append(wall_us)
        self._exposed += trial.returned.exposed
        self._copied = copied(trial.returned.tree)

    @property
    def unpaired(self) -> bool:
        """Whether another empty call says anything: where one call is too short for the checker's clock, few will do
        to know what an event pair costs."""
        return len(self.empty_us) < FEWEST or clock.resolvable(statistics.median(self.samples_us), self._hidden_us)

    def pair(self, device: Device, empty: Callable[[int, int], Returned] | None, head_start: int) -> None:
        """The empty call that belongs to the last one, after the same flush and the same head start."""
        if empty is None:
            return
        device.flush()
        returned = empty(self._copied, head_start)
        self._most_us = self._calm(head_start) + clock.FLOOR_US
        self._told_us.append(returned.wall_us)
        self.empty_us.append(min(returned.wall_us, self._most_us))
        self._head_start_us.append(returned.event_us or 0.0)
        self._pair_us.append(returned.pair_us or 0.0)
        self._usual_late_us.append(returned.late_us)

    def disturbed(self) -> list[str]:
        """Flags: the candidate kept the device or the host busy during empty calls; its launches are in its time."""
        label, found = self._case.label(), list[str]()
        if 2 * self._exposed > len(self.samples_us):
            found.append(
                f"{label}: launches for longer than any head start, or waits for its device: that is in its time"
            )
        took_us = statistics.median(self._told_us) if self._told_us else 0.0
        if took_us <= self._most_us:
            return found
        return [
            *found,
            f"{label}: empty calls took {took_us:.0f} us beside the candidate, "
            f"{self._most_us - clock.FLOOR_US:.0f} us before it: {self._most_us:.0f} us are believed",
        ]

    @property
    def _hidden_us(self) -> float:
        """A guest that skips its head start has this much of the judge's clock to itself."""
        return clock.interval(self._head_start_us).median

    @property
    def _paired_us(self) -> list[float]:
        """The calls that an empty one was made beside: the first ones."""
        return self.wall_us[: len(self.empty_us)]

    @property
    def _empty_pair_us(self) -> float:
        return statistics.median(self._pair_us) if self._pair_us else 0.0

    def _kernel_us(self) -> tuple[float, ...]:
        """The events less those of a kernel that does nothing: starting, ending and two time stamps are in both."""
        done_us = clock.with_late_work(self.samples_us, self._late_us, self._usual_late_us)
        return tuple(max(us - self._empty_pair_us, LEAST_US) for us in done_us)

    def enough(self, end_s: float) -> bool:
        """Whether to stop: the median is narrow and the clocks told apart, or the calls or the time have run out."""
        count = len(self.samples_us)
        if count < FEWEST:
            return False
        if count >= MOST or time.monotonic() > end_s:
            return True
        if not self.empty_us:
            return clock.narrow(self.samples_us)
        return clock.settled(self._kernel_us(), self._paired_us, self.empty_us, self._hidden_us)

    def measured(self, chip: str) -> Measured:
        """The case's time, with both clocks held against each other."""
        found = Measured(
            case=self._case,
            chip=chip,
            clock=CLOCK,
            samples_us=self._kernel_us(),
            wall_us=tuple(self.wall_us),
            warmup_calls=WARM_UP,
            empty_us=tuple(self.empty_us),
            pair_us=self._empty_pair_us,
        )
        if self.empty_us:
            clocks = clock.compare_clocks(self._kernel_us(), self._paired_us, self.empty_us, self._hidden_us)
            bound_us = clocks.bound_us if math.isfinite(clocks.bound_us) else None
            found = found.model_copy(update={"agreement": clocks.agreement, "bound_us": bound_us})
        sure = clock.interval(found.decided_us)
        return found.model_copy(update={"interval_us": (sure.low, sure.high)})
