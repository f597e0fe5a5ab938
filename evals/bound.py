"""How near a candidate comes to the roofline: the least time that its arithmetic and its HBM traffic allow."""

from __future__ import annotations

import math
from statistics import fmean
from typing import NamedTuple

from evals.compare import ranked_timings
from evals.score import Comparison, NotComparable, Standing
from problems import chip, work
from problems.spec import Problem, ProblemError
from sandbox.verdict import Estimated, Judgement, Measured

BASELINE = "roofline bound (peak arithmetic, HBM bandwidth)"


class RooflinePoint(NamedTuple):
    """One case on a roofline: operations per HBM byte, and operations a second reached."""

    label: str
    intensity: float
    flops_per_s: float
    us: float
    bound_us: float


def of_bound(problem: Problem, judgement: Judgement) -> Standing:
    """Bound over time, geometric mean of the ranked cases: 1 would be a kernel at the roofline."""
    try:
        points = roofline_points(problem, ranked_timings(problem, judgement))
    except ProblemError as error:
        return NotComparable(baseline=BASELINE, reason=str(error))
    if not points:
        return NotComparable(baseline=BASELINE, reason="no time on the ranked cases")
    timing = ranked_timings(problem, judgement)[0]
    return Comparison(
        baseline=BASELINE,
        ratio=math.exp(fmean(math.log(point.bound_us / point.us) for point in points)),
        interval=None,
        n=1,
        time_kind=timing.kind,
        chip=timing.chip,
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
