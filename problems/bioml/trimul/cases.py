"""Hidden cases of the triangle update: lengths off the tile, real masks, sparse masks, heavy tails."""

import random

from problems.spec import Case

FILLS = ("published", "sparse", "offset")


def fits(params):
    """Any length and batch; dim a multiple of 64; hiddendim 128, as in every published case."""
    sizes = params["seqlen"] >= 1 and params["bs"] >= 1 and params["dim"] >= 64 and params["dim"] % 64 == 0
    return sizes and params["hiddendim"] == 128 and params["distribution"] in ("normal", "cauchy")


def hidden(rng: random.Random, size: str) -> tuple[Case, ...]:
    """Odd lengths: without a mask, with one, with few ones left, with an offset under the first LayerNorm."""
    low, high = (9, 24) if size == "small" else (65, 400)
    rows = [("published", True, "normal"), ("published", False, "cauchy"), ("sparse", False, "normal")]
    rows.append(("offset", rng.random() < 0.5, "normal"))
    dims = (128,) if size == "small" else (128, 256, 384, 768)
    return tuple(
        Case(
            params={
                "seqlen": rng.randrange(low, high) | 1,
                "bs": rng.randrange(1, 3),
                "dim": rng.choice(dims),
                "hiddendim": 128,
                "nomask": nomask,
                "distribution": distribution,
            },
            fill=fill,
        )
        for fill, nomask, distribution in rows
    )
