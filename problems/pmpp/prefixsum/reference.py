"""Prefix sum: inputs as the board makes them, the float64 result, and the board's own answer."""

import torch


def make_inputs(params, fill, generator, device):
    """(x, out), each float32 [size]; `out` is uninitialised. `generator` lives on `device`.

    On the meta device, with no generator, the same shapes and strides without memory.
    """
    shape = (params["size"],)
    x = _FILLS[fill](shape, generator, device)
    return x, torch.empty(shape, dtype=torch.float32, device=device)


def exact(data):
    """The inclusive scan of x, and the largest magnitude of a partial sum or element so far, float64 [size].

    An fp32 scan errs by a step of the partial sums it holds. The sum of magnitudes grows far faster than these do.
    """
    x = data[0].double()
    scan = torch.cumsum(x, 0)
    return scan, torch.cummax(torch.maximum(scan.abs(), x.abs_()), 0).values


def board_expected(data):
    """The board's answer: a scan in float64, left in float64."""
    return torch.cumsum(data[0].double(), 0)


def _published(shape, generator, device):
    return torch.randn(shape, dtype=torch.float32, device=device, generator=generator)


def _ones(shape, generator, device):
    """Element i of the scan is i + 1: exact in fp32 up to 2^24."""
    return torch.ones(shape, dtype=torch.float32, device=device)


def _spikes(shape, generator, device):
    """One element in 512 is about 2^10."""
    x = _published(shape, generator, device)
    large = torch.randint(0, 512, shape, device=device, generator=generator) == 0
    return torch.where(large, x * 2**10, x)


def _positive(shape, generator, device):
    """Uniform in [0, 1): the scan never turns back."""
    return torch.rand(shape, dtype=torch.float32, device=device, generator=generator)


_FILLS = {"published": _published, "ones": _ones, "spikes": _spikes, "positive": _positive}
