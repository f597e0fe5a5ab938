"""Hidden cases of the MXFP4 mixture: odd token counts, heavy routed experts, popular ones, blocks far apart."""

import random

from problems.spec import Case

FILLS = ("published", "weighted", "skewed", "wide", "rounding")
STEP = 256
"""dhidden and dexpert are multiples of this, so that no layout needs padding; bs is free."""


def fits(params):
    """Widths are whole steps; a token takes at most every routed expert; there is a shared one."""
    widths = all(params[key] >= STEP and params[key] % STEP == 0 for key in ("dhidden", "dexpert"))
    experts = 1 <= params["nexpertspertoken"] <= params["nroutedexperts"] and params["nsharedexperts"] >= 1
    return widths and experts and params["bs"] >= 1


def hidden(rng: random.Random, size: str) -> tuple[Case, ...]:
    """Four cases: published values, heavy routed experts, two more fills; one has a single token."""
    near = _small if size == "small" else _full
    shapes = [near(rng), near(rng), near(rng), near(rng) | {"bs": 1}]
    fills = ["published", "weighted", *rng.sample(FILLS[2:], 2)]
    return tuple(Case(params=shape, fill=fill) for shape, fill in zip(shapes, fills, strict=True))


def _small(rng):
    routed = rng.randrange(3, 6)
    return {
        "dhidden": STEP * rng.randrange(1, 3),
        "dexpert": STEP,
        "nroutedexperts": routed,
        "nexpertspertoken": rng.randrange(2, routed),
        "nsharedexperts": 1,
        "bs": rng.randrange(3, 20),
    }


def _full(rng):
    routed = rng.choice((8, 16, 32, 64))
    return {
        "dhidden": 7168 - STEP * rng.randrange(0, 4),
        "dexpert": STEP * rng.randrange(1, 5),
        "nroutedexperts": routed,
        "nexpertspertoken": rng.randrange(4, 9),
        "nsharedexperts": 1,
        "bs": rng.randrange(5, 400),
    }
