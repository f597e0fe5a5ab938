"""Sort: inputs as the board makes them, the sorted values, and the board's own answer."""

import math

import torch

BASES = 100_000
"""The published seeds are the base of their values and lie below this. Far above, fp32 would swallow the noise."""


def make_inputs(params, fill, generator, device):
    """(x, out), each float32 [size]; `out` is uninitialised. `generator` lives on `device`.

    On the meta device, with no generator, the same shapes and strides without memory.
    """
    x = _FILLS[fill](params["size"], generator, device)
    return x, torch.empty((params["size"],), dtype=torch.float32, device=device)


def exact(data):
    """x in ascending order and its magnitudes, float64 [size]."""
    result = data[0].sort().values.double()
    return result, result.abs()


def board_expected(data):
    """The board's answer: torch's sort."""
    return data[0].sort().values


def _published(size, generator, device):
    """Rows of floor(sqrt(size)) elements, row i N(0, 1) + base + i.

    The board seeds its generator anew, with base + i, for every row; here one generator draws all rows.
    """
    width = max(1, math.isqrt(size))
    rows = -(-size // width)
    base = torch.randint(0, BASES, (1, 1), device=device, generator=generator)
    noise = torch.randn((rows, width), dtype=torch.float32, device=device, generator=generator)
    rise = base + torch.arange(rows, device=device).unsqueeze(1)
    return (noise + rise.to(torch.float32)).flatten()[:size].clone()


def _normal(size, generator, device):
    """N(0, 1): no order at all."""
    return torch.randn((size,), dtype=torch.float32, device=device, generator=generator)


def _few(size, generator, device):
    """Seven values, most elements equal to many others."""
    return torch.randint(-3, 4, (size,), device=device, generator=generator).to(torch.float32)


def _codes(size, generator, device):
    """Every finite fp32 number equally often: both signs, subnormals, the largest."""
    code = torch.randint(0, 255 << 23, (size,), device=device, generator=generator)
    sign = torch.randint(0, 2, (size,), device=device, generator=generator)
    return (code - (sign << 31)).to(torch.int32).view(torch.float32)


def _descending(size, generator, device):
    """Sorted the wrong way round."""
    return _normal(size, generator, device).sort(descending=True).values


_FILLS = {"published": _published, "normal": _normal, "few": _few, "codes": _codes, "descending": _descending}
