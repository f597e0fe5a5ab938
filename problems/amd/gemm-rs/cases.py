"""Hidden cases of the product with reduce-scatter: sizes off the tile, with and without bias, ranks that differ."""

import random

from problems.spec import Case

FILLS = ("published", "normal", "ranks", "cancelling", "spikes")
SHAPES = ((64, 7168, 18432), (512, 4096, 12288), (2048, 2880, 2880), (4096, 4096, 4096), (8192, 4096, 14336))
"""(m, n, k) of published benchmarks, near which the full-size cases lie."""
WORLD = 8
"""Ranks of the board."""


def fits(params):
    """2, 4 or 8 ranks; m and k are shared out evenly, n is free."""
    world = params["world_size"]
    return world in (2, 4, 8) and params["n"] >= 1 and all(params[d] >= world and params[d] % world == 0 for d in "mk")


def hidden(rng: random.Random, size: str) -> tuple[Case, ...]:
    """Three shapes off the tile, the first with the published values; a bias in two of them."""
    near = _small if size == "small" else _full
    fills = ["published", *rng.sample(FILLS[1:], 2)]
    biased = rng.sample([True, True, False], 3)
    return tuple(
        Case(params=near(rng) | {"has_bias": bias}, fill=fill) for fill, bias in zip(fills, biased, strict=True)
    )


def _small(rng):
    world = rng.choice((2, 4))
    sizes = {"m": world * rng.randrange(3, 20), "n": rng.randrange(17, 100), "k": world * rng.randrange(9, 70)}
    return {"world_size": world, **sizes}


def _full(rng):
    m, n, k = rng.choice(SHAPES)
    m, k = m - WORLD * rng.randrange(1, 7), k - WORLD * rng.randrange(64)
    return {"world_size": WORLD, "m": m, "n": n - rng.randrange(1, 128), "k": k}
