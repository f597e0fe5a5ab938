"""Hidden cases of the fp16 matrix product: sizes off the tile, signed and badly scaled values."""

import random

from problems.spec import Case

FILLS = ("published", "normal", "spikes", "cancelling", "ones")
SHAPES = ((1024, 1024, 1024), (2048, 2048, 2048), (1024, 1536, 1024), (2048, 3072, 2048), (4096, 5120, 4096))
"""(m, n, k) of published benchmarks, near which the full-size cases lie."""


def fits(params):
    """Rows of 16 bytes and more, as in every published case: n and k are multiples of 8. m is free."""
    return params["m"] >= 1 and all(params[key] >= 8 and params[key] % 8 == 0 for key in ("n", "k"))


def hidden(rng: random.Random, size: str) -> tuple[Case, ...]:
    """Four shapes off the tile, the first with the published values; one has few rows, one few columns."""
    near = _small if size == "small" else _full
    shapes = [near(rng), near(rng), near(rng) | {"m": rng.randrange(1, 17)}, near(rng) | {"n": 8 * rng.randrange(1, 5)}]
    fills = ["published", *rng.sample(FILLS[1:], 3)]
    return tuple(Case(params=shape, fill=fill) for shape, fill in zip(shapes, fills, strict=True))


def _small(rng):
    return {"m": rng.randrange(17, 160), "n": 8 * rng.randrange(3, 20), "k": 8 * rng.randrange(3, 40)}


def _full(rng):
    m, n, k = rng.choice(SHAPES)
    return {"m": m - rng.randrange(1, 128), "n": n - 8 * rng.randrange(1, 16), "k": k - 8 * rng.randrange(1, 16)}
