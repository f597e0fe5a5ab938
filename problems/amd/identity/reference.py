"""Copy: inputs as the board makes them, the float64 result, and the board's own answer."""

import torch


def make_inputs(params, fill, generator, device):
    """(x, out), each float16 [size]; `out` is uninitialised. `generator` lives on `device`.

    On the meta device, with no generator, the same shapes and strides without memory.
    """
    shape = (params["size"],)
    x = _FILLS[fill](shape, generator, device)
    return x, torch.empty(shape, dtype=torch.float16, device=device)


def exact(data):
    """x and |x|, float64 [size]."""
    x = data[0].double()
    return x, x.abs()


def board_expected(data):
    """The board's answer: the input."""
    return data[0].clone()


def _published(shape, generator, device):
    return torch.rand(shape, dtype=torch.float16, device=device, generator=generator)


def _codes(shape, generator, device):
    """Every finite fp16 number equally often, subnormals and both zeros too."""
    code = torch.randint(0, 31 << 10, shape, device=device, generator=generator)
    sign = torch.randint(0, 2, shape, device=device, generator=generator)
    return (code - (sign << 15)).to(torch.int16).view(torch.float16)


_FILLS = {"published": _published, "codes": _codes}
