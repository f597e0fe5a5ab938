"""Hidden cases of the mixture of experts: odd token counts, few and many experts, popular ones, peaked choices."""

import random

from problems.spec import Case

FILLS = ("published", "skewed", "peaked", "spikes", "cancelling")
STEP = 64
"""dhidden and dexpert are multiples of this; tokens are not."""


def fits(params):
    """Widths are whole steps; a token takes at most every routed expert; there is a shared one."""
    widths = all(params[key] >= STEP and params[key] % STEP == 0 for key in ("dhidden", "dexpert"))
    experts = 1 <= params["nexpertspertoken"] <= params["nroutedexperts"] and params["nsharedexperts"] >= 1
    return widths and experts and params["bs"] >= 1 and params["seqlen"] >= 1


def hidden(rng: random.Random, size: str) -> tuple[Case, ...]:
    """Four cases, the first with the published values; one has a single token."""
    near = _small if size == "small" else _full
    shapes = [near(rng), near(rng), near(rng), near(rng) | {"bs": 1, "seqlen": 1}]
    fills = ["published", *rng.sample(FILLS[1:], 3)]
    return tuple(Case(params=shape, fill=fill) for shape, fill in zip(shapes, fills, strict=True))


def _small(rng):
    routed = rng.randrange(3, 9)
    return {
        "dhidden": STEP * rng.randrange(1, 4),
        "dexpert": STEP * rng.randrange(1, 3),
        "nroutedexperts": routed,
        "nsharedexperts": rng.randrange(1, 3),
        "nexpertspertoken": rng.randrange(1, routed),
        "bs": rng.randrange(1, 3),
        "seqlen": rng.randrange(5, 40),
    }


def _full(rng):
    routed = rng.choice((4, 8, 11, 16, 32))
    return {
        "dhidden": 7168 - STEP * rng.randrange(0, 8),
        "dexpert": 2048 - STEP * rng.randrange(0, 8),
        "nroutedexperts": routed,
        "nsharedexperts": 1,
        "nexpertspertoken": rng.randrange(2, min(routed, 6) + 1),
        "bs": rng.randrange(1, 3),
        "seqlen": rng.randrange(100, 2000),
    }
