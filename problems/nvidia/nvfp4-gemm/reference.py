"""NVFP4 product: inputs as the board makes them, the float64 result, and the board's own answer."""

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


def make_inputs(params, fill, generator, device):
    """(a, b, sfa, sfb, sfa_permuted, sfb_permuted, c); `generator` lives on `device`.

    a fp4x2 [m, k/2, l], b fp4x2 [n, k/2, l], sfa and sfb e4m3fn [rows, k/16, l], all k-contiguous with l outermost; the
    permuted scales e4m3fn (32, 4, rows/128, 4, k/64, l); c float16 [m, n, l], n-contiguous, noise. On the meta device,
    with no generator, the same shapes and strides without memory.
    """
    m, n, k, batch = (params[key] for key in "mnkl")
    a, b, c, sfa, sfa_filler, sfb, sfb_filler = _published(m, n, k, batch, generator, device)
    if fill != "published":
        a, b, sfa, sfb = _FILLS[fill](a, b, sfa, sfb, generator)
    (sfa, sfa_permuted), (sfb, sfb_permuted) = nv_scales(sfa, sfa_filler), nv_scales(sfb, sfb_filler)
    return nv_matrix(a), nv_matrix(b), sfa, sfb, sfa_permuted, sfb_permuted, c


def exact(data):
    """The product, and the product of magnitudes, float64 [m, n, l]."""
    a, b, sfa, sfb, *_ = data
    return product(nv_values(a, sfa), nv_values(b, sfb))


def board_expected(data):
    """The board's answer by torch._scaled_mm: fp32 sums, exact with its values, rounded once to float16."""
    result, _ = exact(data)
    return result.to(torch.float16)


def repeated(data):
    """`data` with the permuted scales made anew from sfa and sfb."""
    a, b, sfa, sfb, sfa_permuted, sfb_permuted, c = data
    return a, b, sfa, sfb, permuted_again(sfa, sfa_permuted), permuted_again(sfb, sfb_permuted), c


def _published(m, n, k, batch, generator, device):
    """Codes [l, rows, k/2], c, scales [l, rows, k/16] and padding, in the board's order of draws."""
    like = {"generator": generator, "device": device}
    a, b = (random_codes(0, 256, (batch, rows, k // 2), generator, device) for rows in (m, n))
    c = torch.randn((batch, m, n), dtype=torch.float16, **like).permute(1, 2, 0)
    scales = []
    for rows in (m, n):
        scales.append(torch.randint(0, 4, (batch, rows, k // NV_BLOCK), **like))
        scales.append(torch.randint(0, 4, nv_tiles(rows, k, batch), **like))
    return a, b, c, *scales


def _wide(a, b, sfa, sfb, generator):
    """Scales of every positive e4m3fn code up to 2, subnormals too."""
    return a, b, *(_codes(scale, 0x41, generator) for scale in (sfa, sfb))


def _codes(scale, most, generator):
    codes = torch.randint(0, most, scale.shape, generator=generator, device=scale.device, dtype=torch.uint8)
    return codes.view(NV_SCALE)


def _spikes(a, b, sfa, sfb, generator):
    """One scale of a in 64 is 448, the largest there is; the others are at most 1/8 and those of b too."""
    low = [_codes(scale, 0x21, generator).float() for scale in (sfa, sfb)]
    large = torch.randint(0, 64, sfa.shape, generator=generator, device=sfa.device) == 0
    return a, b, torch.where(large, 448.0, low[0]), low[1]


def _cancelling(a, b, sfa, sfb, generator):
    """The second half of the sum takes back the first, but for one byte of a in 32. Scales do not change along k."""
    half = a.shape[-1] // 2
    kept = torch.randint(0, 32, a[..., half:].shape, generator=generator, device=a.device) > 0
    a, b = a.clone(), b.clone()
    a[..., half:] = torch.where(kept, a[..., :half], a[..., half:])
    b[..., half:] = b[..., :half] ^ 0x88
    return a, b, *((scale[..., :1] + 1).expand_as(scale).contiguous() for scale in (sfa, sfb))


def _ones(a, b, sfa, sfb, generator):
    """Every element of the product is k: a lost or doubled piece is a whole number off."""
    return *(torch.full_like(codes, 0x22) for codes in (a, b)), *(torch.ones_like(scale) for scale in (sfa, sfb))


_FILLS = {"published": None, "wide": _wide, "spikes": _spikes, "cancelling": _cancelling, "ones": _ones}
