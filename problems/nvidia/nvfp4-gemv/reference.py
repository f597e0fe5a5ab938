"""NVFP4 matrix times vector: inputs as the board makes them, the float64 result, and the board's own answer."""

import torch

from problems.formats import NV_BLOCK
from problems.fp4.reference import (
    NV_SCALE,
    nv_matrix,
    nv_scales,
    nv_tiles,
    nv_values,
    permuted_again,
    product,
    random_codes,
)

REPEATED = (4, 5)
"""Inputs that hold once more what others hold: the permuted scales."""
PADDED = 128
"""Rows of b and sfb, of which the first counts."""


def make_inputs(params, fill, generator, device):
    """(a, b, sfa, sfb, sfa_permuted, sfb_permuted, c); `generator` lives on `device`.

    a fp4x2 [m, k/2, l], b fp4x2 [128, k/2, l], sfa and sfb e4m3fn [rows, k/16, l], all k-contiguous, l outermost; the
    permuted scales e4m3fn (32, 4, rows/128, 4, k/64, l); c float16 [m, 1, l], m-contiguous, noise. On the meta device,
    with no generator, the same shapes and strides without memory.
    """
    m, k, batch = (params[key] for key in "mkl")
    a, b, c, sfa, sfa_filler, sfb, sfb_filler = _published(m, k, batch, generator, device)
    if fill != "published":
        a, b, sfa, sfb = _FILLS[fill](a, b, sfa, sfb, generator)
    (sfa, sfa_permuted), (sfb, sfb_permuted) = nv_scales(sfa, sfa_filler), nv_scales(sfb, sfb_filler)
    return nv_matrix(a), nv_matrix(b), sfa, sfb, sfa_permuted, sfb_permuted, c


def exact(data):
    """The product with row 0 of b, and the product of magnitudes, float64 [m, 1, l]."""
    a, b, sfa, sfb, *_ = data
    return product(nv_values(a, sfa), nv_values(b, sfb, rows=1))


def board_expected(data):
    """The board's answer by torch._scaled_mm: fp32 sums, exact with its values, rounded once to float16."""
    result, _ = exact(data)
    return result.to(torch.float16)


def repeated(data):
    """`data` with the permuted scales made anew from sfa and sfb."""
    a, b, sfa, sfb, sfa_permuted, sfb_permuted, c = data
    return a, b, sfa, sfb, permuted_again(sfa, sfa_permuted), permuted_again(sfb, sfb_permuted), c


def _published(m, k, batch, generator, device):
    """Codes [l, rows, k/2], c, scales [l, rows, k/16] and padding, in the board's order of draws."""
    like = {"generator": generator, "device": device}
    # Bytes below 4: the high nibble, odd k, is always 0, and no value is above 1.5 or negative.
    a, b = (random_codes(0, 4, (batch, rows, k // 2), generator, device) for rows in (m, PADDED))
    c = torch.randn((batch, m, 1), dtype=torch.float16, **like).permute(1, 2, 0)
    scales = []
    for rows in (m, PADDED):
        scales.append(torch.randint(0, 3, (batch, rows, k // NV_BLOCK), **like))
        scales.append(torch.randint(0, 3, nv_tiles(rows, k, batch), **like))
    return a, b, c, *scales


def _codes(shape, low, high, like, generator):
    return torch.randint(low, high, shape, generator=generator, device=like.device, dtype=torch.uint8)


def _every(a, b, sfa, sfb, generator):
    """All 16 values in both nibbles, and scales of every positive e4m3fn code up to 2, subnormals too."""
    scales = [_codes(scale.shape, 0, 0x41, a, generator).view(NV_SCALE) for scale in (sfa, sfb)]
    return *(_codes(part.shape, 0, 256, a, generator) for part in (a, b)), *scales


def _odd(a, b, sfa, sfb, generator):
    """The published values in the high nibbles: even k are zero."""
    return a << 4, b << 4, sfa, sfb


def _cancelling(a, b, sfa, sfb, generator):
    """The second half of the sum takes back the first, but for one byte of a in 32. Scales do not change along k."""
    a, b, _, _ = _every(a, b, sfa, sfb, generator)
    half = a.shape[-1] // 2
    kept = _codes(a[..., half:].shape, 0, 32, a, generator) > 0
    a[..., half:] = torch.where(kept, a[..., :half], a[..., half:])
    b[..., half:] = b[..., :half] ^ 0x88
    return a, b, *((scale[..., :1] + 1).expand_as(scale).contiguous() for scale in (sfa, sfb))


def _padding(a, b, sfa, sfb, generator):
    """As `every`, and NaN for every scale of b's padding rows, which nothing may read into the result."""
    a, b, sfa, sfb = _every(a, b, sfa, sfb, generator)
    sfb = sfb.float()
    sfb[:, 1:] = torch.nan
    return a, b, sfa, sfb


def _ones(a, b, sfa, sfb, generator):
    """Every element of the product is k: a lost or doubled piece is a whole number off."""
    return *(torch.full_like(codes, 0x22) for codes in (a, b)), *(torch.ones_like(scale) for scale in (sfa, sfb))


_FILLS = {
    "published": None,
    "every": _every,
    "odd": _odd,
    "cancelling": _cancelling,
    "padding": _padding,
    "ones": _ones,
}
