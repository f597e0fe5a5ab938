"""Grey image: inputs as the board makes them, the float64 result, and the board's own answer."""

import torch

WEIGHTS = (0.2989, 0.5870, 0.1140)
"""Of red, green and blue, as decimal numbers."""


def make_inputs(params, fill, generator, device):
    """(image, out): image float32 [size, size, 3], out float32 [size, size], row-major; `out` is uninitialised.

    `generator` lives on `device`. On the meta device, with no generator, the same shapes and strides without memory.
    """
    size = params["size"]
    image = _FILLS[fill]((size, size, 3), generator, device)
    return image, torch.empty((size, size), dtype=torch.float32, device=device)


def exact(data):
    """The weighted sum of the channels, and of their magnitudes, float64 [size, size]."""
    return _weighted(data[0]), _weighted(data[0].abs())


def board_expected(data):
    """The board's answer: products with fp32 weights, summed over the channels in fp32."""
    image = data[0]
    return (image * torch.tensor(WEIGHTS, dtype=image.dtype, device=image.device)).sum(dim=-1)


def _weighted(image):
    # Channel by channel: at 16384 one float64 plane takes 2 GiB, the image three times that.
    red, green, blue = image.unbind(-1)
    return red.double().mul_(WEIGHTS[0]).add_(green, alpha=WEIGHTS[1]).add_(blue, alpha=WEIGHTS[2])


def _published(shape, generator, device):
    return torch.rand(shape, dtype=torch.float32, device=device, generator=generator)


def _signed(shape, generator, device):
    """N(0, 1): channels cancel."""
    return torch.randn(shape, dtype=torch.float32, device=device, generator=generator)


def _spread(shape, generator, device):
    """Channels 2^-8 to 2^8 apart, differently at each pixel: a swapped channel or pixel is far off."""
    return _published(shape, generator, device) * (_signed(shape, generator, device) * 4).clamp(-8, 8).exp2()


_FILLS = {"published": _published, "signed": _signed, "spread": _spread}
