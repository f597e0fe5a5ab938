"""The statistics of times: coverage of the interval, when sampling stops, what two clocks say together."""

import math
import random
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox import clock
from sandbox.clock import (
    CONFIDENCE,
    FLOOR_US,
    Agreement,
    compare_clocks,
    interval,
    narrow,
    settled,
    spread,
    with_late_work,
)
from sandbox.timing import Measured

HEAD_US = 100.0


@pytest.mark.parametrize(("count", "ranks"), [(5, None), (6, (1, 6)), (10, (2, 9)), (20, (6, 15)), (100, (40, 61))])
def test_interval_by_order_statistics(count: int, ranks: tuple[int, int] | None) -> None:
    """Ranks as in the usual tables of the sign test at 95 %."""
    samples = [float(number) for number in range(1, count + 1)]
    random.Random(1).shuffle(samples)
    found = interval(samples)
    assert found.median == statistics.median(samples) and found.n == count
    assert (found.low, found.high) == (ranks or (-math.inf, math.inf))


@pytest.mark.parametrize("count", [10, 31, 100])
@pytest.mark.parametrize("shape", ["normal", "exponential", "two humps"])
def test_interval_covers_the_median(count: int, shape: str) -> None:
    draw = np.random.default_rng(7)
    humps = np.where(draw.random((2000, count)) < 0.5, 0.0, 3.0)
    values, true = {
        "normal": (draw.normal(size=(2000, count)), 0.0),
        "exponential": (draw.exponential(size=(2000, count)), math.log(2)),
        "two humps": (humps + draw.normal(size=(2000, count)), 1.5),
    }[shape]
    hits = sum(found.low <= true <= found.high for found in map(interval, values.tolist()))
    assert hits / 2000 >= CONFIDENCE - 0.012


@given(st.lists(st.floats(0.1, 1e6), min_size=6, max_size=60))
def test_interval_encloses_its_median(samples: list[float]) -> None:
    found = interval(samples)
    assert found.low <= found.median <= found.high


def test_large_counts_have_an_interval_too() -> None:
    found = interval([float(number) for number in range(4000)])
    assert 1935 <= found.low <= 1940 and 2059 <= found.high <= 2064


def test_an_outlier_moves_nothing() -> None:
    steady = [100.0 + 0.01 * number for number in range(40)]
    assert interval([*steady[:-1], 1e6]).high == interval(steady).high
    assert narrow([*steady[:-1], 1e6])


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        ([100.0] * 5, False),
        ([100.0] * 6, True),
        ([2.0, 2.1] * 20, True),
        ([2.0, 2.25] * 20, False),
        ([100.0, 104.0] * 20, False),
        ([1000.0, 1004.0] * 20, True),
    ],
)
def test_when_a_median_is_narrow(samples: list[float], expected: bool) -> None:
    assert narrow(samples) is expected


def test_spread_is_the_range_over_the_median() -> None:
    assert spread([99.0, 100.0, 101.0]) == pytest.approx(0.02)


def sampled(
    true_us: float, claimed_us: float, count: int = 60, skipped_us: float = 0.0, seed: int = 3
) -> tuple[list[float], list[float], list[float]]:
    """Events, walls and empties as on a GPU that two contexts share: 300 us a handshake, give or take 25."""
    draw = np.random.default_rng(seed)

    def handshakes() -> np.ndarray:
        late = np.where(draw.random(count) < 0.05, draw.exponential(400, count), 0.0)
        return 300 + draw.normal(0, 25, count) + late

    events = claimed_us * draw.normal(1, 0.005, count)
    walls = handshakes() + true_us * draw.normal(1, 0.005, count) - skipped_us
    return events.tolist(), walls.tolist(), handshakes().tolist()


@pytest.mark.parametrize(
    ("true_us", "claimed_us", "agreement"),
    [
        (5000.0, 5000.0, "agree"),
        (2500.0, 2500.0, "agree"),
        (1000.0, 500.0, "disagree"),
        (600.0, 5.0, "disagree"),
        (28.0, 28.0, "unresolved"),
        (200.0, 5.0, "unresolved"),
        (1000.0, 1500.0, "unresolved"),
    ],
)
def test_two_clocks(true_us: float, claimed_us: float, agreement: Agreement) -> None:
    found = compare_clocks(*sampled(true_us, claimed_us), hidden_us=HEAD_US)
    assert found.agreement == agreement
    assert found.bound_us >= true_us
    assert found.event.median == pytest.approx(claimed_us, rel=0.01)


def test_a_guest_that_skips_its_head_start_stays_within_the_bound() -> None:
    found = compare_clocks(*sampled(4000.0, 3900.0, skipped_us=100.0), hidden_us=HEAD_US)
    assert found.agreement == "agree", "it hides what nobody can see"
    assert found.bound_us >= 4000.0


def test_honest_kernels_are_seldom_accused_and_lies_seldom_pass() -> None:
    for true_us in (5.0, 50.0, 500.0, 5000.0):
        trials = [compare_clocks(*sampled(true_us, true_us, seed=seed), hidden_us=HEAD_US) for seed in range(200)]
        assert sum(found.agreement == "disagree" for found in trials) == 0
        assert sum(found.bound_us < true_us for found in trials) == 0
        lies = [compare_clocks(*sampled(2 * true_us, true_us, seed=seed), hidden_us=HEAD_US) for seed in range(200)]
        assert sum(found.agreement == "agree" for found in lies) == 0


def test_more_samples_tell_the_clocks_apart() -> None:
    few, many = sampled(4000.0, 4000.0, count=8), sampled(4000.0, 4000.0, count=60)
    assert not settled(*few, HEAD_US) and settled(*many, HEAD_US)


def test_a_short_kernel_is_not_sampled_for_ever() -> None:
    events, walls, empties = sampled(28.0, 28.0, count=60)
    assert compare_clocks(events, walls, empties, HEAD_US).agreement == "unresolved"
    assert settled(events, walls, empties, HEAD_US) and FLOOR_US > 0


def waits(count: int, seed: int) -> list[float]:
    """How long a busy host takes to find out that its device has nothing to do: now 5 us, now 20, at times 200."""
    draw = np.random.default_rng(seed)
    slow = np.where(draw.random(count) < 0.5, 17.0, 0.0) + np.where(draw.random(count) < 0.05, 200.0, 0.0)
    return list(5 + draw.exponential(2.0, count) + slow)


def test_a_busy_host_is_no_late_work() -> None:
    """Its waits once doubled the median of a 26 us kernel: on some hosts every second one is 17 us longer."""
    events = list(26 + np.random.default_rng(1).normal(0, 0.3, 20))
    for seed in range(200):
        assert with_late_work(events, waits(20, seed), waits(10, seed + 1000)) == events
    assert with_late_work(events, waits(20, 3), []) == events, "nothing to hold them against"


@pytest.mark.parametrize("share", [0.8, 1.0])
def test_work_left_on_another_stream_counts_however_seldom_it_is_not(share: float) -> None:
    """100 us in all, 95 of them after the last event in four calls of five."""
    draw = np.random.default_rng(2)
    hidden = np.where(draw.random(40) < share, 95.0, 0.0)
    found = with_late_work(list(100 - hidden), list(hidden + waits(40, 5)), waits(40, 6))
    assert 90 < interval(found).median < 110
    assert interval(list(100 - hidden)).median < 10


def test_a_record_from_before_the_second_clock_is_read() -> None:
    """Fields that older journals lack have defaults that say so."""
    old = '{"kind":"measured","case":{"params":{"size":1}},"chip":"H200","clock":"event","samples_us":[5,6,9],'
    read = Measured.model_validate_json(old + '"wall_us":[9,9,12],"warmup_calls":1}')
    assert (read.us, read.agreement, read.interval_us, read.bound_us, read.checker_us) == (
        *(6.0, "not compared", None, None, ()),
    )


@pytest.mark.parametrize(
    ("event_us", "burst_us", "calls", "agreement"),
    [
        (100.0, 104.0, 64, "agree"),
        (100.0, 60.0, 64, "agree"),  # its inputs may lie in the cache
        (50.0, 104.0, 64, "disagree"),
        (50.0, 104.0, 4, "unresolved"),  # too few calls: the handshake alone may scatter as much
        (5.0, 9.0, 64, "unresolved"),
    ],
)
def test_bursts_hold_short_kernels_to_their_events(
    event_us: float, burst_us: float, calls: int, agreement: str
) -> None:
    found = clock.compare_bursts([event_us] * 10, [burst_us - 1, burst_us, burst_us + 1], calls)
    assert found.agreement == agreement
    assert found.bound_us >= burst_us + 1


@pytest.mark.parametrize("event_us", [20.0, 80.0, 300.0])
def test_a_burst_of_the_calls_asked_for_resolves(event_us: float) -> None:
    calls = clock.calls_to_resolve(event_us)
    assert clock.compare_bursts([event_us] * 10, [event_us] * 3, calls).agreement == "agree"
