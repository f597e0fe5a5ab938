"""Mixture of experts in MXFP4: inputs in AITER's layouts, the float64 result, and the board's own answer."""

import torch
from torch.nn.functional import silu, softmax

from problems.formats import MX_BLOCK
from problems.fp4.reference import (
    FP4,
    SCALE,
    nearest_code,
    packed,
    quantised,
    scaled,
    shuffled_scales,
    shuffled_weights,
    unpacked,
)

REPEATED = (5, 6, 7, 8)
"""Inputs that hold once more what others hold: weights and scales in AITER's order."""
TERM_RTOL = 0.015625
"""As in problem.toml: what a code in doubt may be off by is divided by it, to count in whole."""
IN_DOUBT = 5.0
"""What codes in doubt are off by together, at the most, over the root of the sum of squares of each one's."""
NARROW = 1.25 * 2.0**-8
"""What rounding to bfloat16 before the second quantisation changes an element by, relative to it, and a little more."""
SUMMED = 2.0**-16
"""What fp32 sums and a fast exponential may change gate and up by, relative to the root of their terms' squares."""


def make_inputs(params, fill, generator, device):
    """(x, gate_up, down, their scales, both in AITER's order, their scales in AITER's order, weights, ids, config).

    Laid out as problem.toml says; `generator` lives on `device`. On the meta device, with no generator, the same shapes
    and strides without memory.
    """
    names = ("dhidden", "dexpert", "nroutedexperts", "nsharedexperts", "nexpertspertoken", "bs")
    hidden, inner, routed, shared, chosen, tokens = (params[name] for name in names)

    def normal(*shape):
        return torch.randn(shape, dtype=torch.bfloat16, device=device, generator=generator)

    x, router = normal(tokens, hidden), normal(routed, hidden) / hidden**0.5
    share, ids = softmax(x @ router.T, -1).topk(chosen, sorted=False)
    experts = routed + shared
    gate_up = normal(experts, 2 * inner, hidden) / hidden**0.5
    down = normal(experts, hidden, inner) / inner**0.5
    share = share.float()
    if fill != "published":
        x, gate_up, down, share, ids = _FILLS[fill](x, gate_up, down, share, ids, generator)
    always = torch.arange(routed, experts, device=device).expand(tokens, -1)
    ids = torch.cat((ids, always), -1).to(torch.int32)
    share = torch.cat((share, torch.ones_like(always, dtype=torch.float32)), -1)
    config = {"d_hidden": hidden, "d_expert": inner, "d_hidden_pad": hidden, "d_expert_pad": inner}
    config |= {"n_routed_experts": routed, "n_shared_experts": shared, "n_experts_per_token": chosen}
    config |= {"total_top_k": chosen + shared, "bs": tokens}
    (gate_up, gate_up_scale), (down, down_scale) = _quantised_each(gate_up), _quantised_each(down)
    again = map(shuffled_weights, (gate_up, down)), map(shuffled_scales, *[(gate_up_scale, down_scale)] * 2)
    return x, gate_up, down, gate_up_scale, down_scale, *again[0], *again[1], share, ids, config


def exact(data):
    """The mixture of what both quantisations leave, and what went into it, float64 [bs, dhidden].

    Terms are the root of the sum of squares of the last products' terms. Where a rounding before the second
    quantisation may lead to a neighbouring code, or to another scale, what that changes is allowed on top.
    """
    x, gate_up, down, gate_up_scale, down_scale, *_, share, ids, _ = data
    if x.is_meta:
        return (torch.empty(x.shape, dtype=torch.float64, device="meta"),) * 2
    tokens = _values(*quantised(x))
    total, squares, doubts = (torch.zeros_like(tokens) for _ in range(3))
    for expert in range(gate_up.shape[0]):
        rows, place = (ids == expert).nonzero(as_tuple=True)
        if len(rows):
            weight = _matrix(down, down_scale, expert).T
            parts = _inner(tokens[rows], _matrix(gate_up, gate_up_scale, expert).T)
            inner, doubt = (part * share[rows, place, None].double() for part in parts)
            total.index_add_(0, rows, inner @ weight)
            weight.square_()
            squares.index_add_(0, rows, inner.square() @ weight)
            doubts.index_add_(0, rows, doubt.square() @ weight)
    return total, squares.sqrt_().add_(doubts.sqrt_(), alpha=IN_DOUBT / TERM_RTOL)


def board_expected(data):
    """The board's answer by AITER: fp32 sums, bfloat16 before the second quantisation, bfloat16 at the end."""
    x, gate_up, down, gate_up_scale, down_scale, *_, share, ids, _ = data
    tokens = _values(*quantised(x)).float()
    total = torch.zeros_like(tokens)
    for expert in range(gate_up.shape[0]):
        rows, place = (ids == expert).nonzero(as_tuple=True)
        if len(rows):
            gate, up = (tokens[rows] @ _matrix(gate_up, gate_up_scale, expert).float().T).chunk(2, -1)
            inner = _values(*quantised((silu(gate) * up).bfloat16())).float()
            part = inner @ _matrix(down, down_scale, expert).float().T
            total.index_add_(0, rows, part * share[rows, place, None])
    return total.to(torch.bfloat16)


def repeated(data):
    """`data` with weights and scales in AITER's order made anew from the plain ones."""
    weights, scales = map(shuffled_weights, data[1:3]), map(shuffled_scales, data[3:5], data[3:5])
    return *data[:5], *weights, *scales, *data[9:]


def _inner(tokens, weight):
    """What the last product multiplies, quantised, and how far each element of it may be off, [tokens, dexpert]."""
    gate, up = (tokens @ weight).chunk(2, -1)
    gate_size, up_size = (tokens.square() @ weight.square()).sqrt_().chunk(2, -1)
    sigmoid = gate.sigmoid()
    slope, open_ = sigmoid * (1 + gate * (1 - sigmoid)), sigmoid * gate
    inner = open_ * up
    slack = (slope * up).abs() * gate_size + open_.abs() * up_size
    return _requantised(inner, slack * SUMMED + inner.abs() * NARROW)


def _requantised(inner, slack):
    """`inner` [tokens, k] in MXFP4, and how far that may move where each element moves by up to its `slack`."""
    nominal, doubt = _values(*quantised(inner)), torch.zeros_like(inner)
    size = inner.abs()
    for largest in (size + slack, (size - slack).clamp_(min=0)):
        scale = _scale(largest.unflatten(-1, (-1, MX_BLOCK)).amax(-1))
        for moved in (inner - slack, inner + slack):
            ratio = (moved.unflatten(-1, (-1, MX_BLOCK)) / scale.float().double().unsqueeze(-1)).flatten(-2)
            doubt = torch.maximum(doubt, (_values(packed(nearest_code(ratio)), scale) - nominal).abs())
    return nominal, doubt


def _scale(largest):
    """The e8m0 scale of blocks whose largest magnitudes these are: 2^(p-2), p rounded up from 1.75 x 2^p."""
    exponent = (largest.float().view(torch.int32) + (1 << 21)) >> 23
    return (exponent - 2).clamp(0, 254).to(torch.uint8).view(SCALE)


def _quantised_each(weights):
    """MXFP4 of [experts, rows, k], an expert at a time: fp4x2 [experts, rows, k/2], e8m0 [experts * rows, k/32]."""
    experts, rows, k = weights.shape
    codes = torch.empty((experts, rows, k // 2), dtype=torch.uint8, device=weights.device)
    scale = torch.empty((experts, rows, k // MX_BLOCK), dtype=torch.uint8, device=weights.device)
    for index in range(0 if weights.is_meta else experts):
        for whole, part in zip((codes, scale), quantised(weights[index]), strict=True):
            whole[index] = part.view(torch.uint8)
    return codes.view(FP4), scale.flatten(0, 1).view(SCALE)


def _matrix(codes, scale, expert):
    """One expert's weights in float64, [rows, k]."""
    rows = codes.shape[1]
    return _values(codes[expert], scale[expert * rows : (expert + 1) * rows])


def _values(codes, scale):
    return scaled(unpacked(codes), scale)


def _weighted(x, gate_up, down, share, ids, generator):
    """Routed experts weigh 0.5 to 2, as much as the shared one: an expert left out shows."""
    weight = torch.rand(share.shape, generator=generator, device=share.device)
    return x, gate_up, down, 0.5 + 1.5 * weight, ids


def _skewed(x, gate_up, down, share, ids, generator):
    """All tokens choose the first one's experts; the others get none."""
    _, _, _, share, _ = _weighted(x, gate_up, down, share, ids, generator)
    return x, gate_up, down, share, ids[:1].expand_as(ids)


def _wide(x, gate_up, down, share, ids, generator):
    """Every block of 32 of x has a size of its own, 2^-6 to 2^6; so has every row of the weights, 2^-2 to 2^2."""
    _, _, _, share, _ = _weighted(x, gate_up, down, share, ids, generator)
    blocks = x.unflatten(-1, (-1, MX_BLOCK))
    x = (blocks * _powers(blocks[..., :1], 6, generator)).flatten(-2)
    return x, *(part * _powers(part[..., :1], 2, generator) for part in (gate_up, down)), share, ids


def _rounding(x, gate_up, down, share, ids, generator):
    """Largest elements of x near 1.75 x 2^p, where the scale steps; the others on the ties between two fp4 values."""
    steps = torch.tensor([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0, 7.0, 6.96875, 0.0], device=x.device)
    pick = torch.randint(0, len(steps), x.shape, generator=generator, device=x.device)
    return (steps[pick] * x.sign().float()).to(torch.bfloat16), gate_up, down, share, ids


def _powers(like, largest, generator):
    power = torch.randint(-largest, largest + 1, like.shape, generator=generator, device=like.device)
    return torch.exp2(power.float()).to(like.dtype)


_FILLS = {"published": None, "weighted": _weighted, "skewed": _skewed, "wide": _wide, "rounding": _rounding}
