"""Hidden cases of the group of NVFP4 products: ragged row counts, groups of every size, poisoned padding."""

import random

from problems.spec import Case

FILLS = ("published", "wide", "ones")
SHAPES = ((8, 4096, 7168), (8, 7168, 2048), (2, 3072, 4096), (2, 4096, 1536))
"""(groups, n, k) of published benchmarks, near which the full-size cases lie."""


def fits(params):
    """One m, n and k for each of g groups: m a multiple of 4, n of 128, k of 256."""
    sizes = [params[key] for key in ("m", "n", "k")]
    if not all(isinstance(side, tuple) and len(side) == params["g"] for side in sizes):
        return False
    steps = zip(sizes, (4, 128, 256), strict=True)
    return params["g"] >= 1 and all(value >= step and value % step == 0 for side, step in steps for value in side)


def hidden(rng: random.Random, size: str) -> tuple[Case, ...]:
    """Three groups, the first with the published values; every m is ragged."""
    fills = ("published", "wide", "ones")
    return tuple(Case(params=_small(rng) if size == "small" else _full(rng), fill=fill) for fill in fills)


def _small(rng):
    return _grouped(rng, rng.randrange(2, 5), lambda: 128 * rng.randrange(1, 3), lambda: 256 * rng.randrange(1, 3), 36)


def _full(rng):
    groups, n, k = rng.choice(SHAPES)
    return _grouped(
        rng,
        groups + rng.randrange(0, 2),
        lambda: n - 128 * rng.randrange(0, 4),
        lambda: k - 256 * rng.randrange(0, 3),
        80,
    )


def _grouped(rng, groups, n, k, most):
    sides = {"m": lambda: 4 * rng.randrange(2, most) + 4, "n": n, "k": k}
    return {key: tuple(side() for _ in range(groups)) for key, side in sides.items()} | {"g": groups}
