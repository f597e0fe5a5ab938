"""Hidden cases of the gathered product: sizes off the tile, with and without bias, ranks that differ."""

import random

from problems.spec import Case

FILLS = ("published", "normal", "ranks", "cancelling", "spikes")
SHAPES = ((64, 18432, 7168), (512, 12288, 4096), (2048, 2880, 2880), (4096, 4096, 4096), (8192, 14336, 4096))
"""(m, n, k) of published benchmarks, near which the full-size cases lie."""
WORLD = 8
"""Ranks of the board."""


def fits(params):
    """2, 4 or 8 ranks; m and n are shared out evenly, k is free."""
    world = params["world_size"]
    return world in (2, 4, 8) and params["k"] >= 1 and all(params[d] >= world and params[d] % world == 0 for d in "mn")


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
    sizes = {"m": world * rng.randrange(3, 20), "n": world * rng.randrange(5, 40), "k": rng.randrange(17, 200)}
    return {"world_size": world, **sizes}


def _full(rng):
    m, n, k = rng.choice(SHAPES)
    m, n = m - WORLD * rng.randrange(1, 7), n - WORLD * rng.randrange(1, 16)
    return {"world_size": WORLD, "m": m, "n": n, "k": k - rng.randrange(128)}
