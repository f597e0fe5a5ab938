"""Hidden cases of the NVFP4 matrix-vector product: other sizes, batches, both nibbles, poisoned padding."""

import random

from problems.spec import Case

FILLS = ("published", "every", "odd", "cancelling", "padding", "ones")
SHAPES = ((7168, 16384, 1), (4096, 7168, 8), (7168, 2048, 4), (2432, 4608, 2))
"""(m, k, l) of published cases, near which the full-size cases lie."""


def fits(params):
    """As in every published case: m is a multiple of 128, k of 256. l is free."""
    m, k = params["m"], params["k"]
    return m >= 128 and m % 128 == 0 and k >= 256 and k % 256 == 0 and params["l"] >= 1


def hidden(rng: random.Random, size: str) -> tuple[Case, ...]:
    """Four shapes, the first with the published values, one with values in both nibbles, one with poisoned padding."""
    near = _small if size == "small" else _full
    fills = ["published", rng.choice(("every", "odd")), "padding", rng.choice(("cancelling", "ones"))]
    return tuple(Case(params=near(rng), fill=fill) for fill in fills)


def _small(rng):
    return {"m": 128 * rng.randrange(1, 4), "k": 256 * rng.randrange(3, 6), "l": rng.randrange(1, 4)}


def _full(rng):
    m, k, batch = rng.choice(SHAPES)
    return {"m": m - 128 * rng.randrange(1, 8), "k": k - 256 * rng.randrange(0, 6), "l": rng.randrange(1, batch + 2)}
