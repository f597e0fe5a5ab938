"""Hidden cases of the histogram: odd sizes, every contention, and bytes at the ends of their range."""

import random

from problems.spec import Case

FILLS = ("published", "one", "ends", "runs")


def fits(params):
    """Any positive size; contention is a percentage."""
    return params["size"] >= 1 and 0 <= params["contention"] <= 100


def hidden(rng: random.Random, size: str) -> tuple[Case, ...]:
    """Odd sizes: published values at a contention drawn by lot, two other fills, and one with a few elements."""
    low, high = (1000, 8000) if size == "small" else (100_000, 12_000_000)
    sizes = [rng.randrange(low, high) | 1 for _ in range(3)] + [rng.randrange(1, 64) | 1]
    fills = ["published", *rng.sample(FILLS[1:], 2), "published"]
    return tuple(
        Case(params={"size": n, "contention": rng.randrange(0, 101)}, fill=fill)
        for n, fill in zip(sizes, fills, strict=True)
    )
