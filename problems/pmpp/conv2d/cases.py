"""Hidden cases of the convolution: odd images, odd and tiny kernels, channels off the tile."""

import random

from problems.spec import Case

FILLS = ("published", "spikes", "ramp")


def fits(params):
    """The kernel lies inside the image; everything is positive."""
    return min(params.values()) >= 1 and params["kernelsize"] <= params["size"]


def hidden(rng: random.Random, size: str) -> tuple[Case, ...]:
    """One of each fill, off the tile; the last with the kernel as large as the image."""
    pick = _small if size == "small" else _full
    shapes = [pick(rng) for _ in FILLS]
    shapes[2]["kernelsize"] = shapes[2]["size"] = rng.randrange(3, 9)
    return tuple(Case(params=shape, fill=fill) for shape, fill in zip(shapes, FILLS, strict=True))


def _small(rng):
    odd = rng.randrange(9, 17) | 1
    return {
        "size": odd,
        "kernelsize": rng.randrange(1, 6),
        "channels": rng.randrange(3, 17),
        "batch": rng.randrange(1, 3),
    }


def _full(rng):
    odd = rng.randrange(61, 190) | 1
    return {
        "size": odd,
        "kernelsize": rng.randrange(1, 18),
        "channels": rng.randrange(17, 100),
        "batch": rng.randrange(1, 4),
    }
