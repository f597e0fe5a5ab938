from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from evals.axes import linear, logarithmic

POSITIVE = st.floats(min_value=1e-6, max_value=1e18)


@given(st.lists(POSITIVE, max_size=20))
def test_a_logarithmic_axis_encloses_its_values_and_has_ticks(values: list[float]) -> None:
    axis = logarithmic(values, 250.0, 10.0)
    assert axis.low < axis.high
    assert len(axis.ticks) >= 1
    assert all(axis.low * 0.99 <= value <= axis.high * 1.01 for value in values)
    assert all(10.0 <= axis.at(value) <= 250.0 for value in (*values, *axis.ticks))


@given(st.lists(st.integers(min_value=0, max_value=10**6), max_size=20))
def test_a_linear_axis_has_a_few_round_ticks(values: list[int]) -> None:
    axis = linear(values, 0.0, 700.0)
    assert 1 < len(axis.ticks) <= 8
    assert all(tick == round(tick) for tick in axis.ticks)


def test_what_has_no_logarithm_is_left_out() -> None:
    axis = logarithmic([0.0, -1.0, math.inf, math.nan, 3.0], 0.0, 100.0)
    assert (axis.low, axis.high) == (2.0, 5.0)
