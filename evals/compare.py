"""Ratios between judgements: bootstrap over raw samples, and a refusal wherever two times are not of one kind."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

import numpy as np
import numpy.typing as npt

from evals.score import Comparison, Interval, NotComparable, Standing
from problems.ranking import ranked_us
from problems.spec import Case, Problem
from sandbox.verdict import Estimated, Judgement, Measured, Passed, Timing, Untimed

RESAMPLES = 1000
CONFIDENCE = 0.95
FEWEST_CANDIDATES = 5
"""Resampling fewer says next to nothing: of two candidates the interval would be the two themselves."""
Log = npt.NDArray[np.float64]


def ranked_timings(problem: Problem, judgement: Judgement) -> tuple[Measured | Estimated, ...]:
    """The times of the cases that the board ranks by, in its order; empty where there are none."""
    if not isinstance(judgement.verdict, Passed):
        return ()
    ranked = {_key(case) for case in problem.ranked()}
    timings = [timing for timing in judgement.verdict.timings if _key(timing.case) in ranked]
    return tuple(timing for timing in timings if not isinstance(timing, Untimed))


def over(
    problem: Problem, baseline: str, theirs: Judgement, candidates: Sequence[Judgement], seed: int = 0
) -> Standing:
    """How much faster the accepted `candidates` are than `theirs`: the geometric mean over candidates and ranked cases.

    The interval is a percentile bootstrap: over the raw samples of measured times, and over the candidates from
    `FEWEST_CANDIDATES` on. Fewer estimates give none.
    """
    reason = _obstacle(problem, theirs, candidates)
    if reason:
        return NotComparable(baseline=baseline, reason=reason)
    before = ranked_timings(problem, theirs)
    after = [ranked_timings(problem, candidate) for candidate in candidates]
    first = before[0]
    return Comparison(
        baseline=baseline,
        ratio=math.exp(fmean(_mean_log(before) - _mean_log(timings) for timings in after)),
        interval=_bootstrap(before, after, np.random.default_rng(seed)),
        n=len(after),
        time_kind=first.kind,
        chip=first.chip,
        machine=candidates[0].machine,
    )


def fixed_over(
    problem: Problem, fixed_us: float, timings: Sequence[Measured | Estimated], seed: int = 0
) -> Interval | None:
    """The interval of `fixed_us` over the board's score of `timings`, resampled; None where they are estimates."""
    if not all(isinstance(timing, Measured) for timing in timings):
        return None
    random = np.random.default_rng(seed)
    drawn = np.exp(np.stack([_resampled_case(timing, random) for timing in timings]))
    scores = [ranked_us(problem.board_timing, times.tolist()) for times in drawn.T]
    low, high = np.quantile([fixed_us / us for us in scores if us], [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return _interval(low, high, "raw samples")


def _interval(low: float, high: float, what: str) -> Interval:
    return Interval(low=float(low), high=float(high), confidence=CONFIDENCE, method=f"percentile bootstrap over {what}")


def _obstacle(problem: Problem, theirs: Judgement, candidates: Sequence[Judgement]) -> str:
    """Why no ratio can be given, or an empty string."""
    if not candidates:
        return "no accepted candidate"
    before = ranked_timings(problem, theirs)
    if not before or len(before) != len(problem.ranked()):
        return f"the baseline has no time ({theirs.verdict.kind})"
    for candidate in candidates:
        after = ranked_timings(problem, candidate)
        if len(after) != len(before):
            return "the candidate has no time on every ranked case"
        kinds, chips = {t.kind for t in (*before, *after)}, {t.chip for t in (*before, *after)}
        if len(kinds) > 1:
            return "one time is measured and the other estimated"
        if len(chips) > 1:
            return f"the chips differ: {' and '.join(sorted(chips))}"
    return ""


def _bootstrap(
    before: Sequence[Measured | Estimated],
    after: Sequence[Sequence[Measured | Estimated]],
    random: np.random.Generator,
) -> Interval | None:
    measured = isinstance(before[0], Measured)
    spread = len(after) >= FEWEST_CANDIDATES
    if not measured and not spread:
        return None
    base = _resampled(before, random)
    each = np.stack([_resampled(timings, random) for timings in after])
    if spread:
        picks = random.integers(0, len(after), size=(len(after), RESAMPLES))
        each = np.take_along_axis(each, picks, axis=0)
    low, high = np.exp(np.quantile(base - each.mean(axis=0), [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]))
    what = " and ".join((["raw samples"] if measured else []) + (["candidates"] if spread else []))
    return _interval(low, high, what)


def _resampled(timings: Sequence[Measured | Estimated], random: np.random.Generator) -> Log:
    """Mean log time over the cases, once for each resample; an estimate stands still."""
    logs: Log = np.stack([_resampled_case(timing, random) for timing in timings]).mean(axis=0)
    return logs


def _resampled_case(timing: Measured | Estimated, random: np.random.Generator) -> Log:
    if isinstance(timing, Estimated):
        return np.full(RESAMPLES, math.log(timing.us))
    samples = np.asarray(timing.decided_us)
    medians: Log = np.median(random.choice(samples, size=(RESAMPLES, len(samples))), axis=1)
    return np.log(medians)


def _mean_log(timings: Sequence[Timing]) -> float:
    return fmean(math.log(timing.us) for timing in timings if not isinstance(timing, Untimed))


def _key(case: Case) -> str:
    return case.label()
