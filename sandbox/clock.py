"""What samples of a time can say: a median with its interval, when to stop, and whether two clocks agree.

Pure arithmetic on microseconds. Intervals come from order statistics: no distribution is assumed, and an outlier in
either tail moves nothing.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal

CONFIDENCE = 0.95
NARROW, NARROW_US = 0.005, 0.1
"""Sampling stops once the median's interval has a half width below either: a share of the median, or microseconds."""
APART = 0.03
"""The share of a time by which two clocks may differ and still agree."""
FLOOR_US = 400.0
"""What the checker's clock cannot see: its switch to one context may cost this much more than to another, for a whole
judgement. H200: in 2 of 20 judgements of one honest kernel, calls cost 177 and 242 us more than their empty ones."""
GAP_US = 2.0
"""From one kernel's end to the next one's start in a burst, beyond what an empty kernel's cost already holds."""
LATE_US = 15.0
"""What a device may work on after the last event without that being counted."""
BLIND = 0.25
"""The largest share of a time that may lie where the checker's clock is blind, for the two clocks to say anything."""
SURE = 0.99
"""Confidence of the interval by which two clocks are held against each other: it decides for or against a candidate."""

Agreement = Literal["agree", "disagree", "unresolved", "not compared"]


@dataclass(frozen=True, slots=True)
class Interval:
    """A median, and where the true one lies with the confidence asked for."""

    median: float
    low: float
    high: float
    n: int

    @property
    def half_width(self) -> float:
        """Half of the interval's length; infinite where too few samples give none."""
        return (self.high - self.low) / 2


def interval(samples: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """The median of `samples` with its distribution-free interval; unbounded where `samples` are too few for one."""
    ordered = sorted(samples)
    count = len(ordered)
    rank = _rank(count, confidence)
    if rank == 0:
        return Interval(statistics.median(ordered), -math.inf, math.inf, count)
    return Interval(statistics.median(ordered), ordered[rank - 1], ordered[count - rank], count)


@lru_cache(maxsize=4096)
def _rank(count: int, confidence: float) -> int:
    """The largest r such that the r-th smallest and r-th largest enclose the median so often; 0 where none does.

    They miss it when fewer than r of `count` samples fall on one side: twice the lower tail of Binomial(count, 1/2).
    """
    ways, tail, rank = 1, 0, 0
    most = Fraction(1 - confidence) / 2 * 2**count
    for below in range(count // 2):
        tail += ways
        if tail > most:
            break
        rank, ways = below + 1, ways * (count - below) // (below + 1)
    return rank


def narrow(samples: Sequence[float]) -> bool:
    """Whether the median is known to `NARROW` of itself or `NARROW_US`, whichever is wider."""
    found = interval(samples)
    return found.half_width <= max(NARROW * abs(found.median), NARROW_US)


def spread(medians: Sequence[float]) -> float:
    """How far medians of the same thing lie apart: the range as a share of their median."""
    return (max(medians) - min(medians)) / statistics.median(medians)


def with_late_work(event_us: Sequence[float], late_us: Sequence[float], usual_us: Sequence[float]) -> Sequence[float]:
    """`event_us`, or the moments at which the whole device was done where that is surely later by `LATE_US`.

    `late_us`: of the same calls, how long a host waited for its device after the last event; `usual_us`: of empty ones.
    A host takes tens of microseconds to find out that there is nothing to wait for, and more by chance, so no single
    call says anything: the sums' median must lie above the events' by more than a wait for nothing can explain.
    """
    if not usual_us:
        return event_us
    done = [event + late for event, late in zip(event_us, late_us, strict=True)]
    usual = interval(usual_us)
    if interval(done).low <= interval(event_us).median + usual.high + LATE_US:
        return event_us
    return [event + max(late - usual.median, 0.0) for event, late in zip(event_us, late_us, strict=True)]


@dataclass(frozen=True, slots=True)
class Clocks:
    """A guest's device events held against the checker's clock less a paired empty call."""

    agreement: Agreement
    event: Interval
    """The guest's claim."""
    trusted: Interval
    """The checker's clock, less the paired empty call, at confidence `SURE`."""
    bound_us: float
    """No call took longer, whatever the guest says or skips, at confidence `SURE`."""


def compare_clocks(
    event_us: Sequence[float], wall_us: Sequence[float], empty_us: Sequence[float], hidden_us: float
) -> Clocks:
    """Hold the two clocks of the same calls against each other.

    `hidden_us` is work that a dishonest guest could hide: what an empty call does and a real one might leave out (the
    head start). The clocks disagree where the checker surely saw more than was claimed; they agree where it saw the
    claim, no more and no less, and what is out of its sight is a small part; else the matter is unresolved.
    """
    claimed = interval(event_us)
    seen = interval([wall - empty for wall, empty in zip(wall_us, empty_us, strict=True)], SURE)
    slack_us = APART * claimed.median + FLOOR_US
    bound_us = seen.high + max(hidden_us, 0.0)
    if seen.low > claimed.median + slack_us:
        return Clocks("disagree", claimed, seen, bound_us)
    seen_whole = claimed.median - slack_us <= seen.low and seen.high <= claimed.median + slack_us
    agree = seen_whole and resolvable(claimed.median, hidden_us)
    return Clocks("agree" if agree else "unresolved", claimed, seen, bound_us)


def compare_bursts(event_us: Sequence[float], burst_us: Sequence[float], calls: int) -> Clocks:
    """Hold a guest's events against the checker's clock over bursts: `burst_us` a call, of `calls` calls each.

    Only understatement is looked for. A burst's inputs come from the cache where they fit, so it may take less.
    """
    claimed = interval(event_us)
    seen = Interval(statistics.median(burst_us), min(burst_us), max(burst_us), len(burst_us))
    scatter_us = FLOOR_US / calls + GAP_US
    slack_us = APART * claimed.median + scatter_us
    bound_us = seen.high + scatter_us
    if seen.low > claimed.median + slack_us:
        return Clocks("disagree", claimed, seen, bound_us)
    agree = seen.high <= claimed.median + slack_us and scatter_us <= BLIND * claimed.median
    return Clocks("agree" if agree else "unresolved", claimed, seen, bound_us)


def calls_to_resolve(event_us: float) -> int:
    """How many calls a burst needs for its scatter to be half of what may stay out of sight."""
    return math.ceil(2 * FLOOR_US / (BLIND * max(event_us, GAP_US)))


def resolvable(event_us: float, hidden_us: float) -> bool:
    """Whether the checker's clock sees enough of a call of `event_us` for more samples to settle anything."""
    return FLOOR_US + hidden_us <= BLIND * event_us


def settled(event_us: Sequence[float], wall_us: Sequence[float], empty_us: Sequence[float], hidden_us: float) -> bool:
    """Whether enough was sampled: the median is narrow, and the clocks are told apart where they ever can be."""
    if not narrow(event_us):
        return False
    if not resolvable(statistics.median(event_us), hidden_us):
        return True
    return compare_clocks(event_us, wall_us, empty_us, hidden_us).agreement != "unresolved"
