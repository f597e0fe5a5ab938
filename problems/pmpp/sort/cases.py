"""Hidden cases of the sort: sizes off every tile, unordered, repeated and extreme values."""

import random

from problems.spec import Case

FILLS = ("published", "normal", "few", "codes", "descending")


def fits(params):
    """Any positive size is allowed."""
    return params["size"] >= 1


def hidden(rng: random.Random, size: str) -> tuple[Case, ...]:
    """Odd sizes: published values, two other fills, and one with a few elements."""
    low, high = (1000, 4000) if size == "small" else (100_000, 3_000_000)
    sizes = [rng.randrange(low, high) | 1 for _ in range(3)] + [rng.randrange(1, 64) | 1]
    fills = ["published", *rng.sample(FILLS[1:], 2), "codes"]
    return tuple(Case(params={"size": n}, fill=fill) for n, fill in zip(sizes, fills, strict=True))
