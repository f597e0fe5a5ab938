"""Hidden cases of the sum: sizes off every tile, and values that show a lost element."""

import random

from problems.spec import Case

FILLS = ("published", "tail", "cancelling", "spikes", "ones")


def fits(params):
    """Any positive size is allowed."""
    return params["size"] >= 1


def hidden(rng: random.Random, size: str) -> tuple[Case, ...]:
    """Odd sizes: published values, a heavy tail, one fill drawn by lot, and one with a few elements."""
    low, high = (1000, 8000) if size == "small" else (100_000, 8_000_000)
    sizes = [rng.randrange(low, high) | 1 for _ in range(3)] + [rng.randrange(1, 64) | 1]
    fills = ["published", "tail", rng.choice(FILLS[2:]), rng.choice(FILLS)]
    return tuple(Case(params={"size": n}, fill=fill) for n, fill in zip(sizes, fills, strict=True))
