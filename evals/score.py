"""What an evaluation says. A ratio is never a bare float: it names its baseline, chip, kind of time, interval and n."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Annotated, Literal

from pydantic import Field

from dataset.attempt import Judged, Unusable
from problems.ranking import geomean
from problems.spec import Frozen
from sandbox.verdict import Machine

TimeKind = Literal["measured", "estimated"]


class Interval(Frozen):
    """A two-sided interval at `confidence` (a fraction), and the method that gave it."""

    low: float
    high: float
    confidence: float
    method: str


class Comparison(Frozen):
    """Baseline time over candidate time, on one chip and with one kind of time: above 1 the candidate is faster."""

    kind: Literal["comparison"] = "comparison"
    baseline: str
    """What stands in the numerator, with its harness where that is not ours."""
    ratio: float
    interval: Interval | None
    """None where there is nothing to resample: a single estimate has no samples."""
    n: int
    """Candidates behind the ratio."""
    time_kind: TimeKind
    chip: str
    machine: Machine | None = None
    note: str = ""


class NotComparable(Frozen):
    """No ratio, and why: another chip, another kind of time, or nothing to compare with."""

    kind: Literal["not_comparable"] = "not_comparable"
    baseline: str
    reason: str


Standing = Annotated[Comparison | NotComparable, Field(discriminator="kind")]


class Faulted(Frozen):
    """The place of work failed; the sample is held against nobody and counts in no figure."""

    kind: Literal["faulted"] = "faulted"
    reason: str


class Sample(Frozen):
    """One play of an agent on a problem: the best that one run found, or one submission file."""

    agent: str
    problem: str
    what: str
    """Run id, or the file's name."""
    attempts: int
    outcome: Annotated[Judged | Unusable | Faulted, Field(discriminator="kind")]


class HumanDistance(Frozen):
    """How far from one published time: baseline time over ours."""

    who: str
    baseline_kind: str
    chip: str
    time_us: float
    metric: str
    source: str
    case: str
    """The case's spec, or ``all ranked cases``."""
    standing: Standing


class Score(Frozen):
    """One agent on one problem."""

    agent: str
    problem: str
    n: int
    """Samples judged, machine faults left out."""
    correct: int
    ready: int
    """Samples that both our rule and the board's own check accept."""
    faults: int
    correct_at: dict[int, float]
    """Unbiased estimate of the chance that at least one of k samples is right, for each k up to n."""
    correct_at_1_interval: Interval | None
    best: str
    """The best sample's name; empty where none is right."""
    best_us: float | None
    time_kind: Literal["measured", "estimated", "none"]
    chip: str
    over_seed: Standing
    over_reference: Standing
    of_bound: Standing
    """The least time that any kernel can take, over the best sample's."""
    humans: tuple[HumanDistance, ...]


class Overall(Frozen):
    """One agent over all problems that it played: the product decides, so a problem it failed makes it 0."""

    agent: str
    baseline: str
    speedup: float
    """Geometric mean over the problems of `Score.over_reference`; 0 where any has no right sample."""
    n: int
    """Problems."""
    failed: int
    """Problems without a right sample."""
    left_out: tuple[str, ...]
    """Problems where the baseline has no comparable time, or the machine failed throughout; they count nowhere."""


def overall(agent: str, scores: Sequence[Score]) -> Overall | None:
    """`agent` over the library calls of `scores`' problems; None where none can be compared."""
    ratios: dict[str, float] = {}
    baseline = ""
    own = [score for score in scores if score.agent == agent]
    for score in own:
        if score.n and not score.correct:
            ratios[score.problem] = 0.0
        elif isinstance(score.over_reference, Comparison):
            ratios[score.problem], baseline = score.over_reference.ratio, score.over_reference.baseline
    if not baseline:
        return None
    return Overall(
        agent=agent,
        baseline=baseline,
        speedup=geomean(list(ratios.values())),
        n=len(ratios),
        failed=sum(ratio == 0.0 for ratio in ratios.values()),
        left_out=tuple(score.problem for score in own if score.problem not in ratios),
    )


def correct_at_k(n: int, correct: int, k: int) -> float:
    """Chance that at least one of `k` draws without replacement from `n` samples is right: 1 - C(n-c, k) / C(n, k).

    Unbiased for the chance over fresh samples (Chen et al. 2021, arXiv:2107.03374, section 2.1).
    """
    if not 0 <= correct <= n or not 1 <= k <= n:
        raise ValueError(f"correct@{k} needs 0 <= correct <= n and 1 <= k <= n, got correct={correct}, n={n}")
    return 1.0 - math.comb(n - correct, k) / math.comb(n, k)


def wilson(n: int, correct: int, confidence: float = 0.95) -> Interval:
    """Wilson's score interval for a share of `n` >= 1."""
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    share, spread = correct / n, z * z / n
    centre = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * math.sqrt(share * (1 - share) / n + spread / (4 * n))
    return Interval(low=max(0.0, centre - half), high=min(1.0, centre + half), confidence=confidence, method="Wilson")
