"""Hidden cases of the copy: odd sizes, and every finite fp16 number."""

import random

from problems.spec import Case

FILLS = ("published", "codes")


def fits(params):
    """Any positive size is allowed."""
    return params["size"] >= 1


def hidden(rng: random.Random, size: str) -> tuple[Case, ...]:
    """A few elements, an odd size with the published values, and a larger one with every fp16 number."""
    low, high = (1000, 6000) if size == "small" else (66_000, 3_000_000)
    sizes = [rng.randrange(low, high) | 1, rng.randrange(low, high) | 1, rng.randrange(1, 32) | 1]
    return tuple(Case(params={"size": n}, fill=fill) for n, fill in zip(sizes, (*FILLS, "codes"), strict=True))
