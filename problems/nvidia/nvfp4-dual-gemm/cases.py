"""Hidden cases of the gated pair of NVFP4 products: other multiples of the tile, every value, gates that shut."""

import random

from problems.spec import Case

FILLS = ("published", "wide", "cancelling", "shut")
SHAPES = ((256, 4096, 7168), (512, 4096, 7168), (256, 3072, 4096), (512, 3072, 7168))
"""(m, n, k) of published benchmarks, near which the full-size cases lie."""


def fits(params):
    """Whole tiles, as in every published case and as the board promises: m and n of 128, k of 256. l is free."""
    return (
        all(params[key] >= 128 and params[key] % 128 == 0 for key in ("m", "n"))
        and params["k"] >= 256
        and params["k"] % 256 == 0
        and params["l"] >= 1
    )


def hidden(rng: random.Random, size: str) -> tuple[Case, ...]:
    """Three shapes: the published values, shut gates, and one other fill with a batch."""
    near = _small if size == "small" else _full
    shapes = [near(rng), near(rng), near(rng) | {"l": rng.randrange(2, 4)}]
    fills = ["published", "shut", rng.choice(("wide", "cancelling"))]
    return tuple(Case(params=shape, fill=fill) for shape, fill in zip(shapes, fills, strict=True))


def _small(rng):
    return {"m": 128, "n": 128 * rng.randrange(1, 3), "k": 256 * rng.randrange(2, 4), "l": 1}


def _full(rng):
    m, n, k = rng.choice(SHAPES)
    return {
        "m": m + 128 * rng.randrange(0, 3),
        "n": n - 128 * rng.randrange(1, 4),
        "k": k - 256 * rng.randrange(0, 4),
        "l": 1,
    }
