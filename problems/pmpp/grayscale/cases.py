"""Hidden cases of the grey image: odd sizes, signed values, channels far apart."""

import random

from problems.spec import Case

FILLS = ("published", "signed", "spread")


def fits(params):
    """Any positive size is allowed."""
    return params["size"] >= 1


def hidden(rng: random.Random, size: str) -> tuple[Case, ...]:
    """Odd sizes with each fill, and an image of a few pixels."""
    low, high = (40, 100) if size == "small" else (500, 5000)
    sizes = [rng.randrange(low, high) | 1 for _ in FILLS] + [rng.randrange(1, 16) | 1]
    return tuple(Case(params={"size": n}, fill=fill) for n, fill in zip(sizes, (*FILLS, "signed"), strict=True))
