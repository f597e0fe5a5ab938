"""One figure from the times of the cases, as the boards make it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean
from typing import assert_never

from problems.spec import BoardTiming


def ranked_us(timing: BoardTiming, times_us: Sequence[float | None]) -> float | None:
    """The board's score in microseconds, lower is better, from one time for each benchmark case in their order.

    None where any case has no time, ranked or not: a kernel that fails one has no score.
    """
    times = [us for us in times_us if us is not None]
    if not times or len(times) < len(times_us):
        return None
    match timing.ranked_by:
        case "last":
            return times[-1]
        case "mean":
            return fmean(times)
        case "geomean":
            return geomean(times)
        case "weighted":
            return sum(weight * us for weight, us in zip(timing.weights, times, strict=True))
        case other:
            assert_never(other)


def geomean(values: Sequence[float]) -> float:
    """The geometric mean of at least one value; 0 where any is 0, as a failed kernel's speed-up is."""
    return 0.0 if 0.0 in values else math.exp(fmean(math.log(value) for value in values))
