"""2D convolution: inputs as the board makes them, the float64 result, and the board's own answer."""

import torch
from torch.nn.functional import conv2d


def make_inputs(params, fill, generator, device):
    """(x, w, out): x float32 [b, c, s, s], w float32 [c, c, ks, ks], out float32 [b, c, s-ks+1, s-ks+1], row-major.

    `out` is uninitialised; `generator` lives on `device`. On the meta device, with no generator, the same shapes and
    strides without memory.
    """
    size, kernel, channels, batch = (params[key] for key in ("size", "kernelsize", "channels", "batch"))
    x, w = _FILLS[fill]((batch, channels, size, size), (channels, channels, kernel, kernel), generator, device)
    edge = size - kernel + 1
    return x, w, torch.empty((batch, channels, edge, edge), dtype=torch.float32, device=device)


def exact(data):
    """x correlated with w, and |x| with |w|, float64, of `out`'s shape."""
    x, w = data[0].double(), data[1].double()
    return _correlated(x, w), _correlated(x.abs_(), w.abs_())


def board_expected(data):
    """The board's answer: torch's fp32 convolution, without TF32."""
    with torch.backends.cudnn.flags(enabled=True, deterministic=True, allow_tf32=False):
        return conv2d(data[0], data[1])


def _correlated(x, w):
    # Tap by tap, as products of matrices: cuDNN has no fast float64 convolution for wide kernels.
    edge, (channels, _, kernel, _) = x.shape[-1] - w.shape[-1] + 1, w.shape
    total = x.new_zeros((x.shape[0], channels, edge * edge))
    for row in range(kernel):
        for column in range(kernel):
            patch = x[:, :, row : row + edge, column : column + edge].reshape(x.shape[0], -1, edge * edge)
            total += w[:, :, row, column] @ patch
    return total.view(x.shape[0], channels, edge, edge)


def _published(shape, kernel, generator, device):
    x = torch.randn(shape, dtype=torch.float32, device=device, generator=generator)
    return x, torch.randn(kernel, dtype=torch.float32, device=device, generator=generator)


def _spikes(shape, kernel, generator, device):
    """One pixel in 64 eight times larger: one lost tap is seen."""
    x, w = _published(shape, kernel, generator, device)
    large = torch.randint(0, 64, shape, device=device, generator=generator) == 0
    return torch.where(large, x * 8, x), w


def _ramp(shape, kernel, generator, device):
    """Whole numbers that differ along every axis: axes swapped or a kernel flipped is seen, and the sum is exact."""
    x = torch.randint(-8, 9, shape, device=device, generator=generator)
    w = torch.randint(-8, 9, kernel, device=device, generator=generator)
    return x.to(torch.float32), w.to(torch.float32)


_FILLS = {"published": _published, "spikes": _spikes, "ramp": _ramp}
