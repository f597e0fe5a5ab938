"""Two NVFP4 products and a gate: inputs as the board makes them, the float64 result, and the board's own answer."""

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

REPEATED = (6, 7, 8)
"""Inputs that hold once more what others hold: the permuted scales."""
SMALLEST = 2.0**-24
"""Step of float16 near zero: a gate that is nearly shut rounds to a multiple of it."""
TERM_RTOL = 1e-5


def make_inputs(params, fill, generator, device):
    """(a, b1, b2, sfa, sfb1, sfb2, and these three permuted, c); `generator` lives on `device`.

    a fp4x2 [m, k/2, l], b1 and b2 fp4x2 [n, k/2, l], scales e4m3fn [rows, k/16, l], all k-contiguous, l outermost; the
    permuted scales e4m3fn (32, 4, rows/128, 4, k/64, l); c float16 [m, n, l], n-contiguous, noise. On the meta device,
    with no generator, the same shapes and strides without memory.
    """
    m, n, k, batch = (params[key] for key in "mnkl")
    codes, c, drawn = _published(m, n, k, batch, generator, device)
    scales, fillers = drawn[0::2], drawn[1::2]
    if fill != "published":
        codes, scales = _FILLS[fill](codes, scales, generator)
    raw, permuted = zip(*map(nv_scales, scales, fillers), strict=True)
    return *map(nv_matrix, codes), *raw, *permuted, c


def exact(data):
    """silu(a b1) * (a b2), and what an error of the two sums comes to in it, float64 [m, n, l]."""
    a, b1, b2, sfa, sfb1, sfb2, *_ = data
    gate, gate_terms = product(nv_values(a, sfa), nv_values(b1, sfb1))
    up, up_terms = product(nv_values(a, sfa), nv_values(b2, sfb2))
    sigmoid = torch.sigmoid(gate)
    slope = sigmoid * (1 + gate * (1 - sigmoid))
    terms = (slope * up).abs() * gate_terms + (sigmoid * gate).abs() * up_terms
    return sigmoid * gate * up, terms + SMALLEST / TERM_RTOL


def board_expected(data):
    """The board's answer: both products in fp32, the gate in fp32, float16."""
    a, b1, b2, sfa, sfb1, sfb2, *_ = data
    gate, up = (product(nv_values(a, sfa), nv_values(b, sfb))[0].float() for b, sfb in ((b1, sfb1), (b2, sfb2)))
    return (torch.nn.functional.silu(gate) * up).to(torch.float16)


def repeated(data):
    """`data` with the permuted scales made anew from the raw ones."""
    return *data[:6], *map(permuted_again, data[3:6], data[6:9]), data[9]


def _published(m, n, k, batch, generator, device):
    """Codes [l, rows, k/2], c, and scales [l, rows, k/16] each with its padding, in the board's order of draws."""
    like = {"generator": generator, "device": device}
    # Bytes 0 to 254 with each nibble cut to sign and two bits: 0, 0.5, 1, 1.5 of both signs.
    codes = [random_codes(0, 255, (batch, rows, k // 2), generator, device, keep=0xBB) for rows in (m, n, n)]
    c = torch.randn((batch, m, n), dtype=torch.float16, **like).permute(1, 2, 0)
    scales = []
    for rows in (m, n, n):
        scales.append(torch.rand((batch, rows, k // NV_BLOCK), **like))
        scales.append(torch.rand(nv_tiles(rows, k, batch), **like))
    return codes, c, scales


def _bytes(like, low, high, generator):
    return torch.randint(low, high, like.shape, generator=generator, device=like.device, dtype=torch.uint8)


def _wide(codes, scales, generator):
    """All 16 values, and scales of every positive e4m3fn code up to 1/4, subnormals too."""
    scales = [_bytes(scale, 0, 0x29, generator).view(NV_SCALE) for scale in scales]
    return [_bytes(part, 0, 256, generator) for part in codes], scales


def _cancelling(codes, scales, generator):
    """The second half of the sum takes back the first, but for one byte of a in 32. Scales do not change along k."""
    half = codes[0].shape[-1] // 2
    a, *others = (part.clone() for part in codes)
    kept = torch.randint(0, 32, a[..., half:].shape, generator=generator, device=a.device) > 0
    a[..., half:] = torch.where(kept, a[..., :half], a[..., half:])
    for b in others:
        b[..., half:] = b[..., :half] ^ 0x88
    return [a, *others], [scale[..., :1].expand_as(scale).contiguous() for scale in scales]


def _shut(codes, scales, generator):
    """Gates near -110 and near 110, side by side, at every k: half of the answers vanish, and exp overflows float32."""
    a, b1, b2 = codes
    # Elements are 1 or 1.5 and scales, on average, what makes their k products sum up to 110.
    width = (110 / (1.25**2 * 2 * a.shape[-1])) ** 0.5
    a, b1 = a & 0x33 | 0x22, b1 & 0x33 | 0x22
    negative = torch.randint(0, 2, b1[..., :1].shape, generator=generator, device=b1.device, dtype=torch.uint8) * 0x88
    return [a, b1 | negative, b2], [(scale * 0.5 + 0.75) * width for scale in scales]


_FILLS = {"published": None, "wide": _wide, "cancelling": _cancelling, "shut": _shut}
