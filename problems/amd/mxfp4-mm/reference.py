"""MXFP4 product: inputs in AITER's layouts, the float64 result, and the board's own answer."""

import torch

from problems.formats import MX_BLOCK
from problems.fp4.reference import SCALE, quantised, scaled, shuffled_scales, shuffled_weights, unpacked

REPEATED = (2, 3, 4)
"""Inputs that follow from b: its quantised form, plain and shuffled, and its shuffled scales."""


def make_inputs(params, fill, generator, device):
    """(a, b, b_q, b_shuffled, b_scale); `generator` lives on `device`.

    a bfloat16 [m, k], b bfloat16 [n, k], b_q and b_shuffled fp4x2 [n, k/2], b_scale e8m0 [ceil256(n), ceil8(k/32)], all
    row-major. On the meta device, with no generator, the same shapes and strides without memory.
    """
    m, n, k = (params[key] for key in "mnk")
    a, b = _FILLS[fill](*_published(m, n, k, generator, device), generator)
    # The board leaves the padding of the scales as it comes from the allocator; NaN is the worst that may lie there.
    padding = torch.full((-(-n // 256) * 256, -(-k // 256) * 8), 0xFF, dtype=torch.uint8, device=device)
    return _with_weights(a, b, padding.view(SCALE))


def exact(data):
    """The product of the quantised operands, and of their magnitudes, float64 [m, n].

    b's scales are read from `b` by the quantiser, so that they cannot be in the wrong order here.
    """
    a, b, b_q, *_ = data
    a, b = _values(*quantised(a)), _values(b_q, quantised(b)[1])
    result = a @ b.T
    return result, a.abs_() @ b.abs_().T


def board_expected(data):
    """The board's answer by AITER: both operands quantised, fp32 sums, bfloat16."""
    a, b, b_q, *_ = data
    a, b = _values(*quantised(a)).float(), _values(b_q, quantised(b)[1]).float()
    return (a @ b.T).to(torch.bfloat16)


def repeated(data):
    """`data` with all forms of b made anew from b."""
    a, b, *_, b_scale = data
    return _with_weights(a, b, torch.full_like(b_scale.view(torch.uint8), 0xFF).view(SCALE))


def _with_weights(a, b, padding):
    if a.is_meta:
        codes = torch.empty((b.shape[0], b.shape[1] // 2), dtype=torch.float4_e2m1fn_x2, device="meta")
        return a, b, codes, torch.empty_like(codes), padding
    b_q, scale = quantised(b)
    return a, b, b_q, shuffled_weights(b_q), shuffled_scales(scale, padding)


def _values(codes, scale):
    if codes.is_meta:
        return unpacked(codes)
    return scaled(unpacked(codes), scale)


def _published(m, n, k, generator, device):
    return [torch.randn((rows, k), dtype=torch.bfloat16, device=device, generator=generator) for rows in (m, n)]


def _same(a, b, generator):
    return a, b


def _per_block(values, factor):
    blocks = values.unflatten(-1, (-1, MX_BLOCK))
    return (blocks * factor.to(values.dtype).unsqueeze(-1)).flatten(-2)


def _wide(a, b, generator):
    """Every block of 32 has a size of its own, from 2^-12 to 2^12."""
    spread = []
    for part in (a, b):
        shape = (part.shape[0], part.shape[1] // MX_BLOCK)
        power = torch.randint(-12, 13, shape, generator=generator, device=part.device)
        spread.append(_per_block(part, torch.exp2(power.float())))
    return spread


def _rounding(a, b, generator):
    """Largest elements near 1.75 x 2^p, where the scale steps, and elements on the ties between two fp4 values."""
    steps = torch.tensor([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0, 7.0, 6.96875, 0.0], device=a.device)
    parts = []
    for part in (a, b):
        pick = torch.randint(0, len(steps), part.shape, generator=generator, device=part.device)
        parts.append((steps[pick] * part.sign().float()).to(torch.bfloat16))
    return parts


def _zero_blocks(a, b, generator):
    """One block of a in four, and one row of b in eight, are all zeros: a scale with nothing under it."""
    some = torch.randint(0, 4, (a.shape[0], a.shape[1] // MX_BLOCK), generator=generator, device=a.device) > 0
    rows = torch.randint(0, 8, (b.shape[0], 1), generator=generator, device=b.device) > 0
    return _per_block(a, some), b * rows


def _ones(a, b, generator):
    """Every element of the product is k: a lost or doubled piece is a whole number off."""
    return torch.ones_like(a), torch.ones_like(b)


_FILLS = {"published": _same, "wide": _wide, "rounding": _rounding, "zero-blocks": _zero_blocks, "ones": _ones}
