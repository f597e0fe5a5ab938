"""Hidden cases of vector addition: odd sizes, and values a fast but wrong kernel gets wrong."""

import random

from problems.spec import Case

FILLS = ("published", "spikes", "cancelling", "wide")


def fits(params):
    """Any positive size is allowed."""
    return params["size"] >= 1


def hidden(rng: random.Random, size: str) -> tuple[Case, ...]:
    """Three odd sizes, off every alignment: one with the published values, one a few elements wide."""
    low, high = (131, 200) if size == "small" else (1100, 9000)
    sizes = [rng.randrange(low, high) | 1, rng.randrange(low, high) | 1, rng.randrange(1, 32) | 1]
    fills = ["published", *rng.sample(FILLS[1:], 2)]
    return tuple(Case(params={"size": length}, fill=fill) for length, fill in zip(sizes, fills, strict=True))
