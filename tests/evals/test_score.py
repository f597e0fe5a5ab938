from __future__ import annotations

import itertools
import random

import pytest

from evals.score import correct_at_k, wilson


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
