"""Block-scaled fp8 product: inputs as the board makes them, the float64 result, and the board's own answer."""

import torch

BLOCK = 128
FP8 = torch.float8_e4m3fnuz


def make_inputs(params, fill, generator, device):
    """(a, b, a_scale, b_scale, c); `generator` lives on `device`.

    a e4m3fnuz [m, k] stride (1, m), b e4m3fnuz [n, k] stride (1, n), a_scale float32 [m, k/128] stride (1, m), b_scale
    float32 [ceil(n/128), k/128] stride (1, ceil(n/128)), c bfloat16 [m, n] row-major zeros. On the meta device, with no
    generator, the same shapes and strides without memory.
    """
    m, n, k = params["m"], params["n"], params["k"]
    a, b, a_scale, b_scale = _FILLS[fill](m, n, k, generator, device)
    return a.T, b.T, a_scale.T, b_scale.T, torch.zeros((m, n), dtype=torch.bfloat16, device=device)


def exact(data):
    """The product, and the product of magnitudes, float64 [m, n]; the scales are applied in float64 too."""
    a, b = (_scaled(data, side, torch.float64) for side in (0, 1))
    result = a @ b.T
    return result, a.abs_() @ b.abs_().T


def board_expected(data):
    """The board's answer: operands scaled and multiplied in fp32, rounded to bfloat16."""
    a, b = (_scaled(data, side, torch.float32) for side in (0, 1))
    return (a @ b.T).to(torch.bfloat16)


def _scaled(data, side, dtype):
    """Operand `side` (0 for a, 1 for b) times its scales, [rows, k] in `dtype`."""
    values, scale = data[side], data[2 + side].to(dtype)
    scaled = values.to(torch.float32).to(dtype).contiguous()
    if side == 1:
        scale = scale.repeat_interleave(BLOCK, dim=0)[: values.shape[0]]
    scaled.view(values.shape[0], -1, BLOCK).mul_(scale.unsqueeze(-1))
    return scaled


def _published(m, n, k, generator, device):
    """a [k, m], b [k, n], scales [k/128, m] and [k/128, ceil(n/128)], in the board's order of draws."""
    blocks = k // BLOCK
    a, b = (torch.randn((k, rows), dtype=torch.bfloat16, device=device, generator=generator).to(FP8) for rows in (m, n))
    a_scale, b_scale = (
        torch.randn((blocks, columns), dtype=torch.float32, device=device, generator=generator)
        for columns in (m, -(-n // BLOCK))
    )
    return a, b, a_scale, b_scale


def _wide(m, n, k, generator, device):
    """Every fp8 code but NaN, equally often: both signs, zero, subnormals, up to 240."""
    _, _, a_scale, b_scale = _published(m, n, k, generator, device)
    a, b = (_codes((k, rows), generator, device) for rows in (m, n))
    return a, b, a_scale, b_scale


def _codes(shape, generator, device):
    # Code 0x80 is fnuz's only NaN; it would be minus zero in other fp8 formats.
    code = torch.randint(0, 255, shape, device=device, generator=generator)
    return torch.where(code < 0x80, code, code + 1).to(torch.uint8).view(FP8)


def _spikes(m, n, k, generator, device):
    """One element of a in 128 is +-240, the largest there is."""
    a, b, a_scale, b_scale = _published(m, n, k, generator, device)
    large = torch.randint(0, BLOCK, a.shape, device=device, generator=generator) == 0
    values = a.to(torch.float32)
    return torch.where(large, values.sign() * 240, values).to(FP8), b, a_scale, b_scale


def _cancelling(m, n, k, generator, device):
    """The second half of the sum takes back the first, but for one element in 32. Scales do not change along k."""
    a, b, a_scale, b_scale = _published(m, n, k, generator, device)
    half = k // 2
    kept = torch.randint(0, 32, (half, m), device=device, generator=generator) > 0
    values, others = a.to(torch.float32), b.to(torch.float32)
    values[half:] = torch.where(kept, values[:half], values[half:])
    others[half:] = -others[:half]
    same = [scale[:1].expand_as(scale).contiguous() for scale in (a_scale, b_scale)]
    return values.to(FP8), others.to(FP8), *same


def _scales(m, n, k, generator, device):
    """Scales of both signs over 2^-12 to 2^12: they do not fit into fp16 operands, and no block may take another's."""
    a, b, a_scale, b_scale = _published(m, n, k, generator, device)
    spread = [torch.rand(scale.shape, device=device, generator=generator) * 24 - 12 for scale in (a_scale, b_scale)]
    return a, b, a_scale.sign() * spread[0].exp2(), b_scale.sign() * spread[1].exp2()


def _ones(m, n, k, generator, device):
    """Every element of the product is k: a lost or doubled piece is a whole number off."""
    blocks, like = k // BLOCK, {"dtype": torch.float32, "device": device}
    a, b = (torch.ones((k, rows), **like).to(FP8) for rows in (m, n))
    return a, b, torch.ones((blocks, m), **like), torch.ones((blocks, -(-n // BLOCK)), **like)


_FILLS = {
    "published": _published,
    "wide": _wide,
    "spikes": _spikes,
    "cancelling": _cancelling,
    "scales": _scales,
    "ones": _ones,
}
