"""Hidden cases of the block-scaled fp8 product: sizes off the tile, every fp8 code, scales far apart."""

import random

from problems.spec import Case

FILLS = ("published", "wide", "spikes", "cancelling", "scales", "ones")
SHAPES = ((1536, 7168), (3072, 1536), (576, 7168), (7168, 256), (7168, 2048), (512, 7168), (4096, 512))
"""(n, k) of published benchmarks, near which the full-size cases lie."""
BLOCK = 128
"""Elements of k, and columns of n, that share a scale."""


def fits(params):
    """k is whole blocks; m and n are free."""
    return params["m"] >= 1 and params["n"] >= 1 and params["k"] >= BLOCK and params["k"] % BLOCK == 0


def hidden(rng: random.Random, size: str) -> tuple[Case, ...]:
    """Four shapes off the tile, the first with the published values; one has few rows, one few columns."""
    near = _small if size == "small" else _full
    shapes = [near(rng), near(rng), near(rng) | {"m": rng.randrange(1, 17)}, near(rng) | {"n": rng.randrange(1, 128)}]
    fills = ["published", *rng.sample(FILLS[1:], 3)]
    return tuple(Case(params=shape, fill=fill) for shape, fill in zip(shapes, fills, strict=True))


def _small(rng):
    return {"m": rng.randrange(17, 140), "n": rng.randrange(130, 200), "k": BLOCK * rng.randrange(1, 5)}


def _full(rng):
    n, k = rng.choice(SHAPES)
    m = rng.choice((128, 512, 1024, 1024, 6144))
    return {
        "m": m - rng.randrange(1, 64),
        "n": n - rng.randrange(1, 128),
        "k": max(BLOCK, k - BLOCK * rng.randrange(0, 4)),
    }
