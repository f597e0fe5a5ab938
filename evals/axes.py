"""Axes of a drawing: from data to pixels, with ticks a reader can name. Pure arithmetic; the templates draw."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

_STEPS = (1.0, 2.0, 5.0, 10.0)


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis: data from `low` to `high` onto pixels from `start` to `end`, linear or logarithmic."""

    low: float
    high: float
    start: float
    end: float
    log: bool
    ticks: tuple[float, ...]

    def at(self, value: float) -> float:
        """The pixel of `value`, kept inside the axis."""
        low, high, here = (math.log10(v) if self.log else v for v in (self.low, self.high, value))
        share = (here - low) / (high - low)
        return round(self.start + min(1.0, max(0.0, share)) * (self.end - self.start), 1)


def linear(values: Iterable[float], start: float, end: float) -> Axis:
    """From 0 to just past the largest value, about five round ticks."""
    high = max([*values, 1.0])
    rough = high / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in _STEPS if factor * power >= rough)
    step = max(step, 1.0)
    return Axis(0.0, high, start, end, False, tuple(step * i for i in range(int(high // step) + 1)))


def logarithmic(values: Iterable[float], start: float, end: float) -> Axis:
    """Round numbers (1, 2 or 5 times a power of ten) that enclose the positive `values`; the powers alone past two."""
    positive = [value for value in values if value > 0 and math.isfinite(value)] or [1.0]
    low, high = _round_down(min(positive)), _round_up(max(positive))
    if low == high:
        low, high = low / 2, high * 2
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    factors = (1.0, 2.0, 5.0) if last - first <= 2 else (1.0,)
    marks = (factor * 10.0**power for power in range(first, last + 1) for factor in factors)
    return Axis(low, high, start, end, True, tuple(mark for mark in marks if low * 0.999 <= mark <= high * 1.001))


def _round_down(value: float) -> float:
    power = 10.0 ** math.floor(math.log10(value))
    return max(factor * power for factor in (1.0, 2.0, 5.0) if factor * power <= value * 1.0001)


def _round_up(value: float) -> float:
    power = 10.0 ** math.floor(math.log10(value))
    return min(factor * power for factor in _STEPS if factor * power >= value * 0.9999)
