from __future__ import annotations

import math
import random

import pytest

from evals.bound import of_bound
from evals.compare import over
from evals.human import ALL_CASES, distances, same_chip
from evals.score import Comparison, NotComparable
from problems.bounds import least_cold
from problems.chips import chip
from problems.spec import Baseline
from sandbox.verdict import BoardTime, Judgement, Passed
from tests.agent.places import passed, wrong
from tests.evals.recorded_run import H200, MI300X, PROBLEM, measured


def test_a_ratio_names_its_kind_chip_and_interval() -> None:
    found = over(PROBLEM, "seed kernel", measured(120.0), [measured(60.0)])
    assert isinstance(found, Comparison)
    assert found.ratio == pytest.approx(2.0)
    assert (found.time_kind, found.chip, found.n, found.machine) == ("measured", "H200", 1, H200)
    assert found.interval is not None
    assert found.interval.low <= 2.0 <= found.interval.high
    assert found.interval.low < found.interval.high


def test_the_interval_grows_with_the_spread_and_is_the_same_each_time() -> None:
    quiet, loud = (over(PROBLEM, "s", measured(120.0), [measured(60.0, spread_us=us)]) for us in (0.1, 10.0))
    again = over(PROBLEM, "s", measured(120.0), [measured(60.0, spread_us=10.0)])
    assert isinstance(quiet, Comparison)
    assert isinstance(loud, Comparison)
    assert quiet.interval
    assert loud.interval
    assert loud.interval.high - loud.interval.low > 10 * (quiet.interval.high - quiet.interval.low)
    assert again == loud


def test_an_interval_over_candidates_needs_enough_of_them() -> None:
    two = over(PROBLEM, "s", passed(PROBLEM, 120.0), [passed(PROBLEM, us) for us in (60.0, 30.0)])
    assert isinstance(two, Comparison)
    assert two.ratio == pytest.approx((2.0 * 4.0) ** 0.5)
    assert (two.n, two.interval) == (2, None)
    six = over(PROBLEM, "s", passed(PROBLEM, 120.0), [passed(PROBLEM, us) for us in (60.0, 30.0) * 3])
    assert isinstance(six, Comparison)
    assert six.interval is not None
    assert 2.0 <= six.interval.low < six.ratio < six.interval.high <= 4.0
    assert six.interval.method == "percentile bootstrap over candidates"


@pytest.mark.slow
def test_the_interval_covers_as_often_as_it_says() -> None:
    generator, covered, plays = random.Random(3), 0, 200
    for _ in range(plays):
        drawn = [passed(PROBLEM, 60.0 * math.exp(generator.gauss(0.0, 0.2))) for _ in range(20)]
        found = over(PROBLEM, "s", passed(PROBLEM, 120.0), drawn)
        assert isinstance(found, Comparison)
        assert found.interval is not None
        covered += found.interval.low <= 2.0 <= found.interval.high
    assert covered / plays == pytest.approx(0.95, abs=0.05)


def test_a_single_estimate_has_no_interval() -> None:
    found = over(PROBLEM, "s", passed(PROBLEM, 120.0), [passed(PROBLEM, 60.0)])
    assert isinstance(found, Comparison)
    assert (found.time_kind, found.interval) == ("estimated", None)


@pytest.mark.parametrize(
    ("baseline", "candidates", "reason"),
    [
        (measured(120.0), [], "no accepted candidate"),
        (wrong(PROBLEM), [measured(60.0)], "the baseline has no time"),
        (measured(120.0), [wrong(PROBLEM)], "no time on every ranked case"),
        (passed(PROBLEM, 120.0), [measured(60.0, MI300X)], "measured and the other estimated"),
        (measured(120.0), [measured(60.0, MI300X)], "the chips differ: H200 and MI300X"),
    ],
)
def test_what_is_not_of_one_kind_is_not_compared(baseline, candidates, reason) -> None:  # type: ignore[no-untyped-def]
    found = over(PROBLEM, "s", baseline, candidates)
    assert isinstance(found, NotComparable)
    assert reason in found.reason


def test_fraction_of_the_bound() -> None:
    found = of_bound(PROBLEM, measured(100.0, MI300X))
    assert isinstance(found, Comparison)
    bounds = [least_cold(PROBLEM, case, chip("MI300X")).us for case in PROBLEM.ranked()]
    product = 1.0
    for bound in bounds:
        product *= bound / 100.0
    assert found.ratio == pytest.approx(product ** (1 / len(bounds)))


def test_a_measured_fraction_of_the_bound_has_an_interval() -> None:
    found = of_bound(PROBLEM, measured(100.0))
    assert isinstance(found, Comparison) and found.interval is not None
    assert found.interval.low < found.ratio < found.interval.high


def test_an_unknown_chip_has_no_bound() -> None:
    found = of_bound(PROBLEM, measured(100.0, MI300X.model_copy(update={"chip": "MI250X"})))
    assert isinstance(found, NotComparable)
    assert "MI250X" in found.reason


def on_the_board(judgement: Judgement) -> Judgement:
    """The same with board times of 200 us, where its trusted times are others."""
    verdict = judgement.verdict
    assert isinstance(verdict, Passed)
    times = tuple(
        BoardTime(case=case, chip="MI300X", how="h", samples_us=(150.0, 250.0)) for case in PROBLEM.benchmarks
    )
    return judgement.model_copy(update={"verdict": verdict.model_copy(update={"board_us": times})})


def test_distance_to_people_only_on_their_chip_and_only_measured() -> None:
    case = dict(PROBLEM.benchmarks[0].params)
    baselines = (
        Baseline(who="a", kind="human", chip="MI300", time_us=50.0, metric="host clock", source="s"),
        Baseline(who="b", kind="human", chip="H200", time_us=50.0, metric="host clock", source="s", case=case),
    )
    problem = PROBLEM.model_copy(update={"baselines": baselines})
    [without] = {row.standing.reason for row in distances(problem, measured(100.0, MI300X))[1:]}
    assert "judge it in leaderboard mode" in without, "a trusted time is not a board's"
    on_b, on_a = distances(problem, on_the_board(measured(100.0, MI300X)))
    assert isinstance(on_a.standing, Comparison)
    assert (on_a.who, on_a.case, on_a.standing.ratio) == ("a", ALL_CASES, pytest.approx(0.25))
    assert "host clock" in on_a.standing.note
    assert isinstance(on_b.standing, NotComparable)
    assert on_b.standing.reason == "ours ran on MI300X, theirs on H200"
    for row in distances(problem, passed(PROBLEM, 100.0)):
        assert isinstance(row.standing, NotComparable)
        assert "estimate for MI300X" in row.standing.reason


def test_chips_by_another_name() -> None:
    assert same_chip("MI300X", "MI300")
    assert not same_chip("MI300X", "MI355X")
    assert same_chip("A100", "a100")
