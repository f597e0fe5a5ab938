"""How near a candidate comes to the least time that any kernel can take, and to its chip's roofline."""

from __future__ import annotations

from typing import NamedTuple

from evals.compare import fixed_over, ranked_timings
from evals.score import Comparison, NotComparable, Standing
from problems import chip, work
from problems.bounds import least_cold
from problems.ranking import ranked_us
from problems.spec import Problem, ProblemError
from sandbox.verdict import Estimated, Judgement, Measured

BASELINE = "least time of any kernel (arithmetic, HBM, cache, links)"


class RooflinePoint(NamedTuple):
    """One case on a roofline: operations per HBM byte, and operations a second reached."""

    label: str
    intensity: float
    flops_per_s: float
    us: float
    bound_us: float


def of_bound(problem: Problem, judgement: Judgement) -> Standing:
    """Bound over time, each ranked as the board ranks: 1 would be a kernel that none can beat."""
    timings = ranked_timings(problem, judgement)
    if len(timings) < len(problem.ranked()):
        return NotComparable(baseline=BASELINE, reason="no time on the ranked cases")
    try:
        bounds = [least_cold(problem, timing.case, chip(timing.chip)).us for timing in timings]
    except ProblemError as error:
        return NotComparable(baseline=BASELINE, reason=str(error))
    least_us, ours_us = (ranked_us(problem.board_timing, times) for times in (bounds, [t.us for t in timings]))
    if not least_us or not ours_us:
        return NotComparable(baseline=BASELINE, reason="no time on the ranked cases")
    return Comparison(
        baseline=BASELINE,
        ratio=least_us / ours_us,
        interval=fixed_over(problem, least_us, timings),
        n=1,
        time_kind=timings[0].kind,
        chip=timings[0].chip,
        machine=judgement.machine,
    )


def roofline_points(problem: Problem, timings: tuple[Measured | Estimated, ...]) -> tuple[RooflinePoint, ...]:
    """Each time as a point of its chip's roofline; `ProblemError` for a chip whose data sheet is not known."""
    return tuple(_point(problem, timing) for timing in timings)


def _point(problem: Problem, timing: Measured | Estimated) -> RooflinePoint:
    needed, where = work(problem, timing.case), chip(timing.chip)
    flops = sum(needed.flops.values())
    return RooflinePoint(
        label=timing.case.label(),
        intensity=flops / needed.bytes,
        flops_per_s=flops / (timing.us * 1e-6),
        us=timing.us,
        bound_us=where.roofline_us(needed.flops, needed.bytes),
    )
