"""Hidden cases of mixed-precision MLA decoding: lengths off the tile, and caches in which each part decides."""

import random

from problems.spec import Case

FILLS = ("published", "coarse", "rope", "ends", "high", "low")
SHAPES = ((4, 1024), (4, 8192), (32, 1024), (32, 8192), (64, 1024), (256, 1024))
"""(batchsize, kvseqlen) of published benchmarks, near which the full-size cases lie."""


def fits(params):
    """One query a sequence, as the board has it; batch and length are free."""
    return params["batchsize"] >= 1 and params["qseqlen"] == 1 and params["kvseqlen"] >= 1


def hidden(rng: random.Random, size: str) -> tuple[Case, ...]:
    """Five shapes off the tile: the published values, rounded ones, the rope part, both ends, scores far from zero."""
    near = _small if size == "small" else _full
    fills = ("published", "coarse", "rope", "ends", rng.choice(("high", "low")))
    return tuple(Case(params=near(rng), fill=fill) for fill in fills)


def _small(rng):
    return {"batchsize": rng.randrange(1, 4), "qseqlen": 1, "kvseqlen": rng.randrange(33, 200)}


def _full(rng):
    batch, length = rng.choice(SHAPES)
    return {"batchsize": batch + rng.randrange(-2, 3), "qseqlen": 1, "kvseqlen": length - rng.randrange(1, 128)}
