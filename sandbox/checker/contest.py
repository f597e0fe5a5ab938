"""Two candidates on one GPU, each in a guest of its own, both alive: judged, then timed in turns on the same inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from problems.spec import Case
from sandbox import comparison
from sandbox.checker.cases import check, drawn, judge_cases, worst
from sandbox.checker.device import Device
from sandbox.checker.draws import Draws
from sandbox.checker.gpu_timing import WARM_UP, Calls, flags, rehearse
from sandbox.checker.guest import FAULTS, Died, Guest, Late
from sandbox.checker.memory import HostMemory
from sandbox.checker.outcome import Outcome, Progress, Refuted, Request, verdict_of, wrong
from sandbox.checker.task import Task
from sandbox.checker.trial import Bench
from sandbox.comparison import CaseDifference, Difference
from sandbox.verdict import Measured, Passed, Role


@dataclass(slots=True)
class Side:
    """One of the two."""

    request: Request
    guest: Guest
    progress: Progress
    outcome: Outcome | None = None
    """Set once it is decided."""


@dataclass(frozen=True, slots=True)
class Contest:
    """What came of it; no cases where one of the two was refused."""

    outcomes: tuple[Outcome, Outcome]
    cases: tuple[CaseDifference, ...] = ()
    overall: Difference | None = None


def hold(task: Task, first: Side, second: Side, device: Device, pairs: int) -> Contest:
    """Judge both, then time every ranked case by `pairs` interleaved pairs."""
    sides = (first, second)
    timed: list[tuple[Measured, Measured]] = []
    _admit(task, sides, device)
    for case in task.problem.ranked():
        if not any(side.outcome for side in sides):
            timed += _duel(task, case, sides, device, pairs)
    torch.cuda.empty_cache()
    outcomes = (_outcome(first, [both[0] for both in timed]), _outcome(second, [both[1] for both in timed]))
    if first.outcome or second.outcome:
        return Contest(outcomes)
    found = [_case(*both) for both in timed]
    ratios = [comparison.log_ratios(case.first_us, case.second_us) for case in found]
    return Contest(outcomes, tuple(found), comparison.overall(ratios))


def _case(first: Measured, second: Measured) -> CaseDifference:
    """One case's difference. By one clock: where either's events are not believed, the checker's clock times both."""
    both = first.samples_us, second.samples_us
    if "disagree" in (first.agreement, second.agreement):
        both = first.checker_us, second.checker_us
    found = comparison.difference(comparison.log_ratios(*both))
    return CaseDifference(case=first.case, first_us=both[0], second_us=both[1], difference=found)


def _admit(task: Task, sides: tuple[Side, Side], device: Device) -> None:
    """Load the candidates and hold each against every test and hidden case."""
    tests: list[tuple[Role, Case]] = [("test", case) for case in task.problem.tests]
    share = device.share or HostMemory
    for side in sides:

        def run(side: Side = side) -> None:
            hidden: list[tuple[Role, Case]] = [("hidden", case) for case in drawn(task, "full")]
            check(task, side.guest, tests + hidden, side.progress, share, device.settle)

        verdict = judge_cases(side.request, side.progress, side.guest, run)
        side.outcome = Outcome(verdict) if verdict else None


def _duel(
    task: Task, case: Case, sides: tuple[Side, Side], device: Device, pairs: int
) -> list[tuple[Measured, Measured]]:
    """One case's times, as one pair; none where one of the two fell."""
    torch.cuda.empty_cache()
    benches: list[Bench] = []
    try:
        benches += [Bench(task, case, "benchmark", side.guest, device.share or HostMemory) for side in sides]
        turns = Turns(task, case, sides, benches, device)
        turns.run(pairs)
    finally:
        for bench in benches:
            bench.close()
    if any(side.outcome for side in sides):
        return []
    found = [calls.measured(device.chip_name) for calls in turns.calls]
    for side, calls, measured in zip(sides, turns.calls, found, strict=True):
        side.progress.checks.append(worst(calls.checks))
        side.progress.flags += flags(task, measured, device)
    return [(found[0], found[1])]


class Turns:
    """Two candidates called in turns on one case."""

    def __init__(
        self, task: Task, case: Case, sides: tuple[Side, Side], benches: Sequence[Bench], device: Device
    ) -> None:
        self._sides, self._benches, self._device = sides, benches, device
        self._draws, self._case = Draws(task, case), case
        self.calls = [Calls(task, case), Calls(task, case)]
        self._empty = device.prepare_empty(benches[0]) if task.defences.clock_agreement else None

    def run(self, pairs: int) -> None:
        """Warm both up, then `pairs` pairs: first-second, second-first and so on, so that a drift falls on both alike.

        Each pair is on inputs of its own. Ends where one of the two falls.
        """
        for turn in range(-WARM_UP, pairs):
            data = self._draws.fresh()
            for number in (0, 1) if turn % 2 == 0 else (1, 0):
                if not self._call(number, data, timed=turn >= 0):
                    return
            head_start = max(bench.head_start for bench in self._benches)
            for bench, calls in zip(self._benches, self.calls, strict=True):
                bench.head_start = head_start
                if turn >= 0:
                    calls.pair(self._device, self._empty, head_start)

    def _call(self, number: int, data: tuple[tuple[Any, ...], int], timed: bool) -> bool:
        side, bench, calls = self._sides[number], self._benches[number], self.calls[number]
        side.progress.case = self._case
        try:
            if timed:
                calls.time(bench.run(timed=True, before=self._device.flush, given=data), side.progress)
            else:
                trial = bench.run(timed=True, before=self._device.flush, given=data)
                calls.add(trial, side.progress)
                rehearse(bench, trial)
        except FAULTS as fault:
            side.progress.ended = isinstance(fault, Died | Late)
            side.outcome = Outcome(verdict_of(fault, side.progress, side.request.deadline_s))
        except Refuted as refuted:
            side.outcome = Outcome(wrong(side.progress, str(refuted)))
        side.progress.case = None
        return side.outcome is None


def _outcome(side: Side, timings: Sequence[Measured]) -> Outcome:
    passed = Passed(cases=tuple(side.progress.checks), timings=tuple(timings))
    return side.outcome or Outcome(passed)
