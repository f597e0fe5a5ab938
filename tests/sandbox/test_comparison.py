"""Comparisons by interleaved pairs: how often they find what is not there, and miss what is."""

import math

import numpy as np
import pytest

from sandbox.comparison import FEWEST, PAIRS, difference, log_ratios, overall

pytestmark = pytest.mark.slow


def calls(count: int, draw: np.random.Generator, jitter: float = 0.02, outliers: float = 0.05) -> np.ndarray:
    """Times of a 100 us kernel: jitter, now and then a call that is late by up to its own length, a drift of 3 %."""
    late = np.where(draw.random(count) < outliers, draw.random(count), 0.0)
    return 100 * (1 + draw.normal(0, jitter, count) + late)


def compared(slower: float, draw: np.random.Generator, count: int = PAIRS, jitter: float = 0.02) -> str:
    drift = 1 + 0.03 * np.sin(np.linspace(0, 3, count))
    first, second = calls(count, draw, jitter) * drift, calls(count, draw, jitter) * drift * (1 + slower)
    return difference(log_ratios(first.tolist(), second.tolist())).outcome


@pytest.mark.parametrize("jitter", [0.002, 0.02, 0.1])
def test_a_kernel_is_seldom_unlike_itself(jitter: float) -> None:
    draw = np.random.default_rng(11)
    outcomes = [compared(0.0, draw, jitter=jitter) for _ in range(1000)]
    assert sum(outcome != "no significant difference" for outcome in outcomes) <= 60, "6 % of 1000"


@pytest.mark.parametrize(("slower", "outcome"), [(0.02, "slower"), (-0.02, "faster")])
def test_two_percent_are_found(slower: float, outcome: str) -> None:
    draw = np.random.default_rng(12)
    found = [compared(slower, draw) for _ in range(500)]
    assert found.count(outcome) >= 0.9 * len(found)
    assert set(found) <= {outcome, "no significant difference"}


def test_a_difference_of_places_is_no_difference() -> None:
    draw = np.random.default_rng(13)
    found = [compared(0.002, draw, jitter=0.001) for _ in range(200)]
    assert found.count("no significant difference") >= 190


def test_the_interval_covers_the_ratio() -> None:
    draw = np.random.default_rng(14)
    hits = 0
    for _ in range(1000):
        first, second = calls(PAIRS, draw), calls(PAIRS, draw) / 1.05
        found = difference(log_ratios(first.tolist(), second.tolist()))
        assert found.low <= found.ratio <= found.high
        hits += found.low <= 1.05 <= found.high
    assert hits >= 935


def test_what_it_calls_detectable_it_detects() -> None:
    draw = np.random.default_rng(15)
    reaches = [
        difference(log_ratios(calls(PAIRS, draw).tolist(), calls(PAIRS, draw).tolist())).detectable for _ in range(50)
    ]
    reach = float(np.median(reaches))
    assert 0.005 < reach < 0.03
    assert [compared(reach, draw) for _ in range(300)].count("slower") >= 0.85 * 300


def test_exact_values() -> None:
    """Six equal ratios: the interval is the point itself; signs and direction as documented."""
    found = difference([math.log(2)] * 6)
    assert (found.outcome, found.pairs) == ("faster", 6) and found.ratio == found.low == found.high == pytest.approx(2)
    assert difference([-0.1, -0.11, -0.12, -0.1, -0.11, -0.12, -0.1]).outcome == "slower"
    assert difference([0.1, -0.1] * 4).outcome == "no significant difference"


def test_too_few_pairs_are_refused() -> None:
    with pytest.raises(ValueError, match="5 pairs are too few"):
        difference([0.1] * (FEWEST - 1))


def test_cases_weigh_the_same() -> None:
    """One case 10 % faster, one 10 % slower: nothing overall; a pair with no time is left out."""
    draw = np.random.default_rng(16)
    quick = [0.1 + value for value in draw.normal(0, 0.005, 40)]
    slow = [-0.1 + value for value in draw.normal(0, 0.005, 38)]
    assert overall([quick, slow]).outcome == "no significant difference" and overall([quick, slow]).pairs == 38
    assert overall([quick, quick]).outcome == "faster"
    assert log_ratios([2.0, 1.0], [1.0, -3.0]) == [math.log(2)]
