"""Hidden cases of the MXFP4 product: few rows, odd row counts, blocks far apart, values on the quantiser's edges."""

import random

from problems.spec import Case

FILLS = ("published", "wide", "rounding", "zero-blocks", "ones")
SHAPES = ((4, 2880, 512), (16, 2112, 7168), (32, 4096, 512), (64, 7168, 2048), (256, 3072, 1536))
"""(m, n, k) of published cases, near which the full-size cases lie."""


def fits(params):
    """m is free; n is a multiple of 16 and k of 64, as the weight shuffle needs."""
    return params["m"] >= 1 and all(
        params[key] >= step and params[key] % step == 0 for key, step in (("n", 16), ("k", 64))
    )


def hidden(rng: random.Random, size: str) -> tuple[Case, ...]:
    """Four shapes off the tile: the published values, blocks of zeros, two other fills, one of these with few rows."""
    near = _small if size == "small" else _full
    shapes = [near(rng), near(rng), near(rng), near(rng) | {"m": rng.randrange(1, 4)}]
    fills = ["published", "zero-blocks", *rng.sample(("wide", "rounding", "ones"), 2)]
    return tuple(Case(params=shape, fill=fill) for shape, fill in zip(shapes, fills, strict=True))


def _small(rng):
    return {"m": rng.randrange(5, 80), "n": 16 * rng.randrange(5, 14), "k": 64 * rng.randrange(1, 9)}


def _full(rng):
    m, n, k = rng.choice(SHAPES)
    return {
        "m": m + rng.randrange(1, 32),
        "n": n - 16 * rng.randrange(1, 16),
        "k": max(64, k - 64 * rng.randrange(0, 5)),
    }
