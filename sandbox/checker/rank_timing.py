"""Timing a candidate on several GPUs: the slowest rank between two meetings of all, every output checked."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

from problems.bounds import least_cold
from problems.chips import CHIPS
from problems.spec import Case
from sandbox import clock
from sandbox.checker.board_time import WALL_S, asked, enough
from sandbox.checker.cases import worst
from sandbox.checker.guest import Forgery
from sandbox.checker.outcome import Progress, Refuted
from sandbox.checker.ranks import RankBench
from sandbox.checker.task import Task
from sandbox.checker.trial import HEAD_START, Trial
from sandbox.checker.world import World
from sandbox.runner import Mode
from sandbox.verdict import BoardTime, CaseCheck, Measured

WARM_UP = 3
FEWEST, MOST = 10, 200
BUDGET_S = {Mode.BENCHMARK: 6.0, Mode.LEADERBOARD: 15.0, Mode.PROFILE: 6.0}
"""Wall time for the samples of one case, checks included."""
CALL_S = 600.0
"""For all the empty calls of one judging."""
CLOCK = (
    "host clock in each rank, from a barrier with every device idle until its own device is idle, the slowest rank "
    "counts; 256 MiB written before; wall_us is the checker's host clock round the call on all ranks, empty_us the "
    "same round an empty call in guests without a candidate"
)


def time_cases(
    task: Task,
    cases: Sequence[Case],
    mode: Mode,
    world: World,
    start: Callable[[], World],
    chip: str,
    progress: Progress,
) -> list[Measured]:
    """A time for each case; `start` makes the guests for the empty calls that are paired with the candidate's."""
    control = start()
    try:
        control.await_ready()
        for rank in control.ranks:
            rank.allow(CALL_S)
        return [_time(task, case, BUDGET_S[mode], world, control, chip, progress) for case in cases]
    finally:
        control.close()


def _time(
    task: Task, case: Case, budget_s: float, world: World, control: World, chip: str, progress: Progress
) -> Measured:
    progress.case = case
    bench = RankBench(task, case, "benchmark", world)
    samples = Samples(task, case, progress)
    try:
        ranks = control.group(len(bench.ranks))
        control.each(lambda rank: rank.share(bench.buffers(rank.number)), ranks)
        for _ in range(WARM_UP):
            samples.checked(bench.run())
        end_s = time.monotonic() + budget_s
        while not samples.enough(end_s):
            samples.add(bench.run(timed=True))
            begun = time.perf_counter_ns()
            control.each(lambda rank: rank.empty(bench.trees[rank.number], 0, HEAD_START), ranks)
            samples.empty_us.append((time.perf_counter_ns() - begun) / 1e3)
    finally:
        bench.close()
    progress.checks.append(worst(samples.checks))
    progress.case = None
    return samples.measured(chip, progress)


def board_times(task: Task, cases: Sequence[Case], world: World, chip: str, progress: Progress) -> list[BoardTime]:
    """Every ranked case timed as the board does: the first rank's host clock between two barriers."""
    timing, found = task.problem.board_timing, []
    for case in cases:
        progress.case = case
        bench, samples = RankBench(task, case, "benchmark", world), Samples(task, case, progress)
        try:
            until_s = time.monotonic() + WALL_S
            while not enough(samples.slowest_us) and (len(samples.slowest_us) < 3 or time.monotonic() < until_s):
                samples.add(bench.run(timed=True, board=asked(timing)))
        finally:
            bench.close()
        progress.checks.append(worst(samples.checks))
        how = f"as {timing.evaluator}: host clock of rank 0 between barriers, inputs cloned inside, flushed before"
        found.append(BoardTime(case=case, chip=chip, how=how, samples_us=tuple(samples.slowest_us)))
    progress.case = None
    return found


class Samples:
    """The timed calls of one case."""

    def __init__(self, task: Task, case: Case, progress: Progress) -> None:
        self._task, self._case, self._progress = task, case, progress
        self.checks: list[CaseCheck] = []
        self.slowest_us: list[float] = []
        self.wall_us: list[float] = []
        self.empty_us: list[float] = []

    def checked(self, trial: Trial) -> None:
        """A call that is only checked; `Refuted` where it is wrong."""
        self._progress.seeds.append(trial.check.seed)
        self.checks.append(trial.check)
        if not trial.check.passed:
            self._progress.checks.append(trial.check)
            raise Refuted(f"{self._case.label()}, call {len(self.checks)}: {trial.reason}")

    def add(self, trial: Trial) -> None:
        """A call that is checked and timed; `Forgery` where a rank's clock says what cannot be."""
        self.checked(trial)
        claimed_us, wall_us = trial.returned.event_us, trial.returned.wall_us
        if claimed_us is None or not math.isfinite(claimed_us) or not 0 < claimed_us <= wall_us:
            raise Forgery(f"a call claims {claimed_us} us; by the judge's clock it took {wall_us:.1f} us in all")
        self.slowest_us.append(claimed_us)
        self.wall_us.append(wall_us)

    def enough(self, end_s: float) -> bool:
        """Whether to stop: settled, or the calls or the time have run out."""
        count = len(self.slowest_us)
        if count < FEWEST:
            return False
        late = count >= MOST or time.monotonic() > end_s
        return late or clock.settled(self.slowest_us, self.wall_us, self.empty_us, 0.0)

    def measured(self, chip: str, progress: Progress) -> Measured:
        """The case's time, both clocks held against each other; a flag where they disagree."""
        clocks = clock.compare_clocks(self.slowest_us, self.wall_us, self.empty_us, 0.0)
        found = Measured(
            case=self._case,
            chip=chip,
            clock=CLOCK,
            samples_us=tuple(self.slowest_us),
            wall_us=tuple(self.wall_us),
            warmup_calls=WARM_UP,
            empty_us=tuple(self.empty_us),
            agreement=clocks.agreement,
            bound_us=clocks.bound_us if math.isfinite(clocks.bound_us) else None,
        )
        if (on := CHIPS.get(chip)) is not None:
            least = least_cold(self._task.problem, self._case, on, self._task.root)
            if found.us < least.us:
                label, limit = self._case.label(), least.limit
                progress.flags.append(
                    f"{label}: {found.us:.2f} us is below {chip}'s bound of {least.us:.2f} us ({limit})"
                )
        if clocks.agreement != "agree":
            told = f"{clocks.event.median:.2f}"
            progress.flags.append(f"{self._case.label()}: ranks say {told} us; the clocks are: {clocks.agreement}")
        sure = clock.interval(found.decided_us)
        return found.model_copy(update={"interval_us": (sure.low, sure.high)})
