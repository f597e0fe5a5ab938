"""Hidden cases of dispatch and combine with secret gains: odd sizes, uneven ranks, crowded experts, large values."""

import random

from problems.spec import Case

FILLS = ("published", "uneven", "crowded", "spikes")
SIZES = ((8, 2, 6144), (64, 6, 2048), (128, 4, 2880), (128, 8, 4096), (256, 8, 7168))
"""(num_experts, experts_per_token, hidden_dim) of published benchmarks."""
WORLD = 8
"""Ranks of the board."""


def fits(params):
    """2, 4 or 8 ranks with as many experts each; a token has room for its experts, a rank for a token."""
    world, experts, chosen = (params[name] for name in ("world_size", "num_experts", "experts_per_token"))
    shared_out = world in (2, 4, 8) and experts >= world and experts % world == 0
    return shared_out and 1 <= chosen <= experts and params["hidden_dim"] >= 1 and params["max_num_tokens"] >= 2


def hidden(rng: random.Random, size: str) -> tuple[Case, ...]:
    """Three cases, the first with the published values."""
    near = _small if size == "small" else _full
    fills = ["published", *rng.sample(FILLS[1:], 2)]
    return tuple(Case(params=near(rng), fill=fill) for fill in fills)


def _small(rng):
    world = rng.choice((2, 4))
    sizes = {"hidden_dim": rng.randrange(17, 200), "max_num_tokens": rng.randrange(3, 20)}
    return {"num_experts": world * rng.randrange(2, 9), "experts_per_token": rng.randrange(1, 5), **sizes} | {
        "world_size": world
    }


def _full(rng):
    experts, chosen, hidden_dim = rng.choice(SIZES)
    sizes = {"hidden_dim": hidden_dim - rng.randrange(1, 64), "max_num_tokens": rng.randrange(2, 300)}
    return {"num_experts": experts, "experts_per_token": chosen, **sizes, "world_size": WORLD}
