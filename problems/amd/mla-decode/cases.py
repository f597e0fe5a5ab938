"""Hidden cases of MLA decoding with its projections: lengths off the tile, a rope part and cache ends that decide."""

import random

from problems.spec import Case

FILLS = ("published", "rope", "ends")
MOST = 8192
"""Rows of a cache, one of which the call itself fills."""


def fits(params):
    """Widths a multiple of 64, and room for one row more."""
    widths = all(params[key] >= 64 and params[key] % 64 == 0 for key in ("dim", "dq"))
    return widths and params["batchsize"] >= 1 and 1 <= params["prefill"] < MOST


def hidden(rng: random.Random, size: str) -> tuple[Case, ...]:
    """Three cases off the tile, one with each kind of values."""
    near = _small if size == "small" else _full
    return tuple(Case(params=near(rng), fill=fill) for fill in FILLS)


def _small(rng):
    widths = {"dim": 64 * rng.randrange(1, 4), "dq": 64 * rng.randrange(1, 3)}
    return {"batchsize": rng.randrange(1, 3), **widths, "prefill": rng.randrange(33, 400)}


def _full(rng):
    length = rng.choice((128, 512, 1024, 2048, 4096)) + rng.randrange(1, 64)
    return {"batchsize": rng.randrange(16, 128), "dim": 7168, "dq": 1536, "prefill": length}
