"""A group of NVFP4 products: inputs as the board makes them, the float64 results, and the board's own answers."""

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

REPEATED = (2,)
"""Inputs that hold once more what others hold: the permuted scales."""


def make_inputs(params, fill, generator, device):
    """(abc, scales, permuted, sizes), each a list with one entry a group; `generator` lives on `device`.

    abc (a fp4x2 [m, k/2, 1], b fp4x2 [n, k/2, 1], c float16 [m, n, 1]); scales (sfa e4m3fn [m, k/16, 1], sfb e4m3fn
    [n, k/16, 1]) **on the CPU**; permuted the same on `device`, e4m3fn (32, 4, ceil(rows/128), 4, k/64, 1); sizes
    (m, n, k, 1). On the meta device, with no generator, the same shapes and strides without memory.
    """
    groups = [
        _group(m, n, k, fill, generator, device) for m, n, k in zip(params["m"], params["n"], params["k"], strict=True)
    ]
    return tuple(list(parts) for parts in zip(*groups, strict=True))


def exact(data):
    """The products, and the products of magnitudes: a list with (float64 [m, n, 1], the same) for each group."""
    return [_product(abc, scales) for abc, scales in zip(data[0], data[1], strict=True)]


def board_expected(data):
    """The board's answers by torch._scaled_mm: fp32 sums, exact with its values, rounded once to float16; a list."""
    return [result.to(torch.float16) for result, _ in exact(data)]


def repeated(data):
    """`data` with the permuted scales made anew from the raw ones."""
    pairs = zip(data[1], data[2], strict=True)
    permuted = [
        tuple(permuted_again(scale.to(old.device), old) for scale, old in zip(scales, olds, strict=True))
        for scales, olds in pairs
    ]
    return data[0], data[1], permuted, data[3]


def _product(abc, scales):
    a, b, _ = abc
    sfa, sfb = (scale.to(a.device) for scale in scales)
    return product(nv_values(a, sfa), nv_values(b, sfb))


def _group(m, n, k, fill, generator, device):
    like = {"generator": generator, "device": device}
    # Bytes 0 to 254 with each nibble cut to sign and two bits: 0, 0.5, 1, 1.5 of both signs.
    a, b = (random_codes(0, 255, (1, rows, k // 2), generator, device, keep=0xBB) for rows in (m, n))
    c = torch.randn((1, m, n), dtype=torch.float16, **like).permute(1, 2, 0)
    scales = [torch.randint(1, 3, (1, rows, k // NV_BLOCK), **like) for rows in (m, n)]
    fillers = [torch.randint(1, 3, nv_tiles(rows, k, 1), **like) for rows in (m, n)]
    if fill != "published":
        a, b, scales, fillers = _FILLS[fill](a, b, scales, fillers, generator)
    raw, permuted = zip(*map(nv_scales, scales, fillers), strict=True)
    host = raw if a.is_meta else tuple(scale.cpu() for scale in raw)
    return (nv_matrix(a), nv_matrix(b), c), host, permuted, (m, n, k, 1)


def _bytes(like, low, high, generator):
    return torch.randint(low, high, like.shape, generator=generator, device=like.device, dtype=torch.uint8)


def _wide(a, b, scales, fillers, generator):
    """All 16 values, scales of every positive e4m3fn code up to 2, and NaN for the scales past the last row."""
    scales = [_bytes(scale, 0, 0x41, generator).view(NV_SCALE) for scale in scales]
    fillers = [torch.full(filler.shape, torch.nan, device=filler.device) for filler in fillers]
    return _bytes(a, 0, 256, generator), _bytes(b, 0, 256, generator), scales, fillers


def _ones(a, b, scales, fillers, generator):
    """Every element of a product is its k: a lost or doubled piece, or another group's k, is a whole number off."""
    return *(torch.full_like(codes, 0x22) for codes in (a, b)), [torch.ones_like(scale) for scale in scales], fillers


_FILLS = {"published": None, "wide": _wide, "ones": _ones}
