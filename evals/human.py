"""The distance to published times. Their harness and chip are named; another chip is not comparable."""

from __future__ import annotations

from evals.compare import ranked_timings
from evals.score import Comparison, HumanDistance, NotComparable, Standing
from problems import chip
from problems.spec import Baseline, Problem, ProblemError
from sandbox.verdict import Judgement, score_us

ALL_CASES = "all ranked cases"


def distances(problem: Problem, judgement: Judgement) -> tuple[HumanDistance, ...]:
    """Every published time of the problem beside this judgement, fastest first within each chip and case."""
    rows = [_distance(problem, judgement, baseline) for baseline in problem.baselines]
    return tuple(sorted(rows, key=lambda row: (row.chip, row.case, row.time_us)))


def _distance(problem: Problem, judgement: Judgement, baseline: Baseline) -> HumanDistance:
    return HumanDistance(
        who=baseline.who,
        baseline_kind=baseline.kind,
        chip=baseline.chip,
        time_us=baseline.time_us,
        metric=baseline.metric,
        source=baseline.source,
        case=_case_name(baseline),
        standing=_standing(problem, judgement, baseline),
    )


def _standing(problem: Problem, judgement: Judgement, baseline: Baseline) -> Standing:
    name = f"{baseline.who} on {baseline.chip}"
    ours = _our_time(problem, judgement, baseline)
    timings = ranked_timings(problem, judgement)
    if ours is None or not timings:
        return NotComparable(baseline=name, reason="no time of ours on that case")
    if judgement.time_kind != "measured":
        return NotComparable(baseline=name, reason=f"ours is an estimate for {timings[0].chip}, theirs was measured")
    if not same_chip(timings[0].chip, baseline.chip):
        return NotComparable(baseline=name, reason=f"ours ran on {timings[0].chip}, theirs on {baseline.chip}")
    return Comparison(
        baseline=name,
        ratio=baseline.time_us / ours,
        interval=None,
        n=1,
        time_kind="measured",
        chip=timings[0].chip,
        machine=judgement.machine,
        note=f"theirs: {baseline.metric}; ours: Kernelwright's judge. Two harnesses and two machines",
    )


def _our_time(problem: Problem, judgement: Judgement, baseline: Baseline) -> float | None:
    """Our time on the baseline's case in microseconds, or the board's score; None where we have neither."""
    if baseline.case is None:
        return score_us(problem, judgement)
    for timing in ranked_timings(problem, judgement):
        if timing.case.params == baseline.case:
            return timing.us
    return None


def same_chip(ours: str, theirs: str) -> bool:
    """Whether two names mean one chip: ``MI300`` is the MI300X of the boards."""
    try:
        return chip(ours).name == chip(theirs).name
    except ProblemError:
        return ours.strip().casefold() == theirs.strip().casefold()


def _case_name(baseline: Baseline) -> str:
    if baseline.case is None:
        return ALL_CASES
    return "; ".join(f"{name}: {value}" for name, value in baseline.case.items())
