"""fp16 matrix product: inputs as the board makes them, the float64 result, and the board's own answer."""

import torch


def make_inputs(params, fill, generator, device):
    """(a [m, k], b [k, n], c [m, n]), float16, row-major; `c` is uninitialised. `generator` lives on `device`.

    On the meta device, with no generator, the same shapes and strides without memory.
    """
    m, n, k = params["m"], params["n"], params["k"]
    a, b = _FILLS[fill](m, n, k, generator, device)
    return a, b, torch.empty((m, n), dtype=torch.float16, device=device)


def exact(data):
    """a b and |a| |b|, float64 [m, n]."""
    a, b, _ = data
    a, b = a.double(), b.double()
    result = a @ b
    return result, a.abs_() @ b.abs_()


def board_expected(data):
    """The board's answer: torch's fp16 product on the GPU, whose very rounding the board asks for.

    None on a CPU: there torch sums in another order, so its bits say nothing about the board's.
    """
    a, b, _ = data
    return a @ b if a.device.type == "cuda" else None


def _published(m, n, k, generator, device):
    a = torch.empty((m, k), dtype=torch.float16, device=device).uniform_(0, 1, generator=generator)
    b = torch.empty((k, n), dtype=torch.float16, device=device).uniform_(0, 1, generator=generator)
    return a, b


def _normal(m, n, k, generator, device):
    a = torch.randn((m, k), dtype=torch.float16, device=device, generator=generator)
    b = torch.randn((k, n), dtype=torch.float16, device=device, generator=generator)
    return a, b


def _spikes(m, n, k, generator, device):
    """Signed, small, and one in 256 of a about a thousand times larger: one lost element is seen."""
    a, b = _normal(m, n, k, generator, device)
    large = torch.randint(0, 256, (m, k), device=device, generator=generator) == 0
    return torch.where(large, a * 16, a * 2**-6), b


def _cancelling(m, n, k, generator, device):
    """The second half of the sum takes back the first, but for one element in 32."""
    a, b = _normal(m, n, k, generator, device)
    half = k // 2
    kept = torch.randint(0, 32, (m, half), device=device, generator=generator) > 0
    a[:, half : 2 * half] = torch.where(kept, a[:, :half], a[:, half : 2 * half])
    b[half : 2 * half] = -b[:half]
    return a, b


def _ones(m, n, k, generator, device):
    """Every element of the product is k, or the next fp16 number to it."""
    ones = {"dtype": torch.float16, "device": device}
    return torch.ones((m, k), **ones), torch.ones((k, n), **ones)


_FILLS = {"published": _published, "normal": _normal, "spikes": _spikes, "cancelling": _cancelling, "ones": _ones}
