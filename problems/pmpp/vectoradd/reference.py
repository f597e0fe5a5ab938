"""Vector addition: inputs as the board makes them, the float64 result, and the board's own answer."""

import torch


def make_inputs(params, fill, generator, device):
    """(a, b, out), each float16 [size, size], row-major; `out` is uninitialised. `generator` lives on `device`.

    On the meta device, with no generator, the same shapes and strides without memory.
    """
    shape = (params["size"], params["size"])
    a, b = _FILLS[fill](shape, generator, device)
    return a, b, torch.empty(shape, dtype=torch.float16, device=device)


def exact(data):
    """a + b and |a| + |b|, float64 [size, size]: 2 x 2 GiB at 16384."""
    a, b, _ = data
    a, b = a.double(), b.double()
    result = a + b
    return result, a.abs_().add_(b.abs_())


def board_expected(data):
    """The board's answer: torch's fp16 sum."""
    a, b, _ = data
    return a + b


def _published(shape, generator, device):
    a = torch.randn(shape, dtype=torch.float16, device=device, generator=generator)
    b = torch.randn(shape, dtype=torch.float16, device=device, generator=generator)
    return a, b


def _spikes(shape, generator, device):
    """Small values, and one in 64 of about 2^13."""
    a, b = _published(shape, generator, device)
    large = torch.randint(0, 64, shape, device=device, generator=generator) == 0
    return torch.where(large, a * 2**13, a * 2**-6).clamp(-32000, 32000), b * 2**-6


def _cancelling(shape, generator, device):
    """b within two fp16 steps of -a: what is left is exact only if both were read in full."""
    a, _ = _published(shape, generator, device)
    steps = torch.randint(-2, 3, shape, device=device, generator=generator).to(torch.float16)
    return a, -a * (1 + steps * 2**-10)


def _wide(shape, generator, device):
    """Every exponent up to 2^14, subnormals and both zeros too: no sum overflows, as 2 x 32752 is fp16's largest."""
    draw = [torch.randint(0, 30 << 10, shape, device=device, generator=generator) for _ in range(2)]
    sign = [torch.randint(0, 2, shape, device=device, generator=generator) for _ in range(2)]
    a, b = ((bits - (negative << 15)).to(torch.int16) for bits, negative in zip(draw, sign, strict=True))
    return a.view(torch.float16), b.view(torch.float16)


_FILLS = {"published": _published, "spikes": _spikes, "cancelling": _cancelling, "wide": _wide}
