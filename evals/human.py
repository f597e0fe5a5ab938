"""The distance to published times. They compare with a board time of ours on the same chip, and with nothing else."""

from __future__ import annotations

from evals.compare import ranked_timings
from evals.score import Comparison, HumanDistance, NotComparable, Standing
from problems import chip
from problems.spec import Baseline, Problem, ProblemError
from sandbox.verdict import Judgement, Passed, board_score_us

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
    timings = ranked_timings(problem, judgement)
    if not timings:
        return NotComparable(baseline=name, reason="no time of ours on that case")
    if judgement.time_kind != "measured":
        return NotComparable(baseline=name, reason=f"ours is an estimate for {timings[0].chip}, theirs was measured")
    if not same_chip(timings[0].chip, baseline.chip):
        return NotComparable(baseline=name, reason=f"ours ran on {timings[0].chip}, theirs on {baseline.chip}")
    ours = _our_time(problem, judgement, baseline)
    if ours is None:
        return NotComparable(baseline=name, reason="no board time of ours on that case: judge it in leaderboard mode")
    return Comparison(
        baseline=name,
        ratio=baseline.time_us / ours,
        interval=None,
        n=1,
        time_kind="measured",
        chip=timings[0].chip,
        machine=judgement.machine,
        note=f"theirs: {baseline.metric}; ours: timed as that board does, on another machine",
    )


def _our_time(problem: Problem, judgement: Judgement, baseline: Baseline) -> float | None:
    """Our board time on the baseline's case in microseconds, or the board's score; None where we have neither."""
    if baseline.case is None:
        return board_score_us(problem, judgement)
    taken = judgement.verdict.board_us if isinstance(judgement.verdict, Passed) else ()
    return next((time.us for time in taken if time.case.params == baseline.case), None)


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
