"""Two candidates timed in turns on the same inputs: which is faster, by how much, and what could have been seen.

Pairs cancel what drifts (clocks, temperature), ranks shrug off outliers: the Hodges-Lehmann estimate of the paired log
ratios, with the interval of Wilcoxon's signed-rank test. The number of pairs is fixed before the first one is taken,
since looking at the outcome and going on until it pleases would find differences where there are none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations_with_replacement
from statistics import NormalDist, fmean, median
from typing import Literal, Protocol, runtime_checkable

from pydantic import Field

from problems.spec import Case, Frozen, Problem
from sandbox.candidate import Candidate
from sandbox.runner import DEADLINE_S
from sandbox.verdict import Judgement

PAIRS = 80
"""Enough to find a true 2 % in nine of ten comparisons where single calls scatter by 2 % and some are far out."""
FEWEST = 6
"""With fewer pairs no outcome at all would be significant at 5 %."""
ALPHA = 0.05
POWER = 0.9
SAME = 0.005
"""Differences below this share are none: two processes' memory lies in different places, whatever runs on it. On an
H200, 8 of 100 comparisons of a kernel with itself found one process's copy surely slower by more than 0.3 %."""

Outcome = Literal["faster", "slower", "no significant difference"]


class Difference(Frozen):
    """The second candidate's speed against the first's."""

    outcome: Outcome
    """Of the second: ``faster`` or ``slower`` than the first."""
    ratio: float
    """The first's time over the second's: above 1 the second is faster."""
    low: float
    high: float
    """Where the true ratio lies, with confidence 1 - `ALPHA`."""
    detectable: float
    """The least true difference, as a share, that this many pairs of this scatter find nine times in ten."""
    pairs: int


class CaseDifference(Frozen):
    """One ranked case."""

    case: Case
    first_us: tuple[float, ...]
    second_us: tuple[float, ...]
    """Times of the calls that were paired, in the order they were taken."""
    difference: Difference


class Compared(Frozen):
    """Two candidates, judged and timed against each other."""

    first: Judgement
    second: Judgement
    cases: tuple[CaseDifference, ...] = ()
    overall: Difference | None = Field(default=None)
    """Over the geometric mean of the ranked cases; None where one of them was not accepted."""


@runtime_checkable
class Comparer(Protocol):
    """A place of work that can time two candidates against each other."""

    def compare(
        self, problem: Problem, first: Candidate, second: Candidate, pairs: int = PAIRS, deadline_s: float = DEADLINE_S
    ) -> Compared:
        """Judge both and time them in turns; raises `RunnerError`."""


def difference(log_ratios: Sequence[float]) -> Difference:
    """What paired ``log(first / second)`` say. `ValueError` below `FEWEST` pairs."""
    if len(log_ratios) < FEWEST:
        raise ValueError(f"{len(log_ratios)} pairs are too few to compare by; take {FEWEST} or more")
    middle, low, high = _hodges_lehmann(log_ratios)
    edge = math.log1p(SAME)
    outcome: Outcome = "no significant difference"
    if low > edge:
        outcome = "faster"
    elif high < -edge:
        outcome = "slower"
    normal = NormalDist()
    reach = 1 + normal.inv_cdf(POWER) / normal.inv_cdf(1 - ALPHA / 2)
    return Difference(
        outcome=outcome,
        ratio=math.exp(middle),
        low=math.exp(low),
        high=math.exp(high),
        detectable=math.expm1((high - low) / 2 * reach + edge),
        pairs=len(log_ratios),
    )


def log_ratios(first_us: Sequence[float], second_us: Sequence[float]) -> list[float]:
    """``log(first / second)`` of each pair; a pair that the checker's clock puts at nothing or less says nothing."""
    pairs = zip(first_us, second_us, strict=True)
    return [math.log(first / second) for first, second in pairs if first > 0 and second > 0]


def overall(cases: Sequence[Sequence[float]]) -> Difference:
    """All cases together, each weighing the same: the i-th pairs of all cases make one log ratio of geometric means."""
    count = min(len(ratios) for ratios in cases)
    return difference([fmean(ratios[turn] for ratios in cases) for turn in range(count)])


def _hodges_lehmann(values: Sequence[float]) -> tuple[float, float, float]:
    """Median of the Walsh averages, and the two between which the signed-rank test rejects no shift."""
    count = len(values)
    walsh = sorted((one + other) / 2 for one, other in combinations_with_replacement(values, 2))
    mean = count * (count + 1) / 4
    sigma = math.sqrt(count * (count + 1) * (2 * count + 1) / 24)
    # The normal approximation with its continuity correction; from six pairs on it is on the safe side.
    rank = max(math.floor(mean - NormalDist().inv_cdf(1 - ALPHA / 2) * sigma - 0.5), 0)
    return median(walsh), walsh[rank], walsh[-1 - rank]
