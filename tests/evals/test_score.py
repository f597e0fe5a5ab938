from __future__ import annotations

import itertools
import random

import pytest

from evals.score import Comparison, NotComparable, Score, correct_at_k, overall, wilson
from tests.evals.evaluation import EVALUATION


@pytest.mark.parametrize(("n", "correct", "k"), [(4, 1, 2), (5, 2, 3), (6, 0, 3), (6, 6, 1), (5, 3, 4), (3, 1, 3)])
def test_correct_at_k_is_the_share_of_draws_with_a_right_sample(n: int, correct: int, k: int) -> None:
    samples = [True] * correct + [False] * (n - correct)
    draws = list(itertools.combinations(samples, k))
    assert correct_at_k(n, correct, k) == pytest.approx(sum(map(any, draws)) / len(draws))


def test_correct_at_k_is_unbiased() -> None:
    generator, chance, k, n = random.Random(1), 0.3, 3, 8
    plays = [sum(generator.random() < chance for _ in range(n)) for _ in range(20_000)]
    mean = sum(correct_at_k(n, correct, k) for correct in plays) / len(plays)
    assert mean == pytest.approx(1 - (1 - chance) ** k, abs=0.01)


@pytest.mark.parametrize(("n", "correct", "k"), [(3, 4, 1), (3, 1, 4), (3, 1, 0), (3, -1, 1)])
def test_correct_at_k_refuses_what_cannot_be(n: int, correct: int, k: int) -> None:
    with pytest.raises(ValueError, match="correct@"):
        correct_at_k(n, correct, k)


def test_wilson_interval() -> None:
    # Newcombe 1998, Statistics in Medicine 17, table I, method 3: 15 of 148 gives 0.0624 to 0.1605.
    interval = wilson(148, 15)
    assert (interval.low, interval.high) == (pytest.approx(0.0624, abs=5e-5), pytest.approx(0.1605, abs=5e-5))
    assert wilson(5, 0).low == 0.0
    assert wilson(5, 5).high == 1.0


def test_a_problem_failed_makes_the_whole_nothing() -> None:
    """2 times the library call on one problem, 4.5 on another, not compared on a fourth, wrong on a third."""
    score = EVALUATION.scores[0].model_copy(update={"agent": "a", "n": 2, "correct": 1})
    none = NotComparable(baseline="library call (torch)", reason="none here")

    def on(problem: str, ratio: float | None, correct: int = 1) -> Score:
        ran = Comparison(
            baseline=none.baseline, ratio=ratio or 1, interval=None, n=1, time_kind="measured", chip="H200"
        )
        return score.model_copy(
            update={"problem": problem, "correct": correct, "over_reference": none if ratio is None else ran}
        )

    good = [on("p/1", 2.0), on("p/2", 4.5), on("p/4", None)]
    whole = overall("a", good)
    assert whole is not None
    assert (whole.n, whole.failed, whole.left_out) == (2, 0, ("p/4",))
    assert whole.speedup == pytest.approx(3.0)
    failed = overall("a", [*good, on("p/3", None, correct=0)])
    assert failed is not None
    assert (failed.n, failed.failed, failed.speedup) == (3, 1, 0.0)
    assert overall("b", good) is None
