"""Vector sum: inputs as the board makes them, the float64 result, and the board's own answer."""

import torch


def make_inputs(params, fill, generator, device):
    """(x, out): x float32 [size], out float32 [1], uninitialised. `generator` lives on `device`.

    On the meta device, with no generator, the same shapes and strides without memory.
    """
    x = _FILLS[fill](params["size"], generator, device)
    return x, torch.empty((1,), dtype=torch.float32, device=device)


def exact(data):
    """The sum of x and of |x|, float64, without a dimension."""
    x = data[0].double()
    return x.sum(), x.abs_().sum()


def board_expected(data):
    """The board's answer: the float64 sum, rounded to fp32."""
    return data[0].double().sum().float()


def _published(size, generator, device):
    """One offset and one scale a case. The board draws each from a seed of its own; here all come from one."""
    offset, scale = (torch.rand((1,), device=device, generator=generator) for _ in range(2))
    return _normal(size, generator, device) * (scale * 9.9 + 0.1) + (offset * 200 - 100)


def _tail(size, generator, device):
    """The last 17 elements weigh more than all others: whoever drops the tail is far off."""
    x = _normal(size, generator, device) * 2**-6
    x[-17:] += 1000.0
    return x


def _cancelling(size, generator, device):
    """The second half takes back the first, but for one element in 32."""
    x = _normal(size, generator, device)
    half = size // 2
    kept = torch.randint(0, 32, (half,), device=device, generator=generator) > 0
    x[size - half :] = torch.where(kept, -x[:half], x[size - half :])
    return x


def _spikes(size, generator, device):
    """One element in 256 about 4000 times larger than the others."""
    x = _normal(size, generator, device)
    large = torch.randint(0, 256, (size,), device=device, generator=generator) == 0
    return torch.where(large, x * 2**12, x)


def _ones(size, generator, device):
    """The sum is the size: a lost or doubled element is a whole number off."""
    return torch.ones((size,), dtype=torch.float32, device=device)


def _normal(size, generator, device):
    return torch.randn((size,), dtype=torch.float32, device=device, generator=generator)


_FILLS = {"published": _published, "tail": _tail, "cancelling": _cancelling, "spikes": _spikes, "ones": _ones}
