"""Mixture of experts in fp16: inputs as the board makes them, the float64 result, and the board's own answer."""

import torch
from torch.nn.functional import silu, softmax

TERM_RTOL = 0.015625
"""As in problem.toml: what a doubtful token may be off by is divided by it, to count in whole."""
STEP = 2.0**-10
"""Twice what rounding to float16 may change a number by, relative to it."""
TINY = 2.0**-24
"""Step of float16 near zero, where probabilities end."""


def make_inputs(params, fill, generator, device):
    """(x, weights, config), laid out as problem.toml says; `generator` lives on `device`.

    x float16 [bs, seqlen, dhidden], weights a dict of float16 tensors, all row-major. On the meta device, with no
    generator, the same shapes and strides without memory.
    """
    names = ("dhidden", "dexpert", "nroutedexperts", "nsharedexperts", "nexpertspertoken", "bs", "seqlen")
    hidden, inner, routed, shared, chosen, batch, length = (params[name] for name in names)

    def normal(*shape):
        return torch.randn(shape, dtype=torch.float16, device=device, generator=generator)

    x, weights = normal(batch, length, hidden), {"router.weight": normal(routed, hidden) / hidden**0.5}
    for index in range(routed):
        weights |= _expert_weights(f"experts.{index}", hidden, inner, normal)
    weights |= _expert_weights("shared_experts", hidden, inner * shared, normal)
    if fill != "published":
        x = _FILLS[fill](x, weights, generator)
    config = {"d_hidden": hidden, "d_expert": inner, "n_routed_experts": routed, "n_shared_experts": shared}
    return x, weights, config | {"n_experts_per_token": chosen, "batch_size": batch, "seq_len": length}


def exact(data):
    """The mixture, and what went into it, float64 [bs, seqlen, dhidden]. Routed in float64 too.

    Terms are the root of the sum of squares of the last products' terms, each with what roundings before it come to.
    Where rounding decides which experts a token gets, all the doubtful ones' contributions are allowed on top.
    """
    x, weights, config = data
    if x.is_meta:
        return (torch.empty(x.shape, dtype=torch.float64, device="meta"),) * 2
    tokens = x.reshape(-1, x.shape[-1]).double()
    total, squares = _expert(tokens, weights, "shared_experts")
    unsure = torch.zeros_like(total)
    share, chosen, doubtful = _routed(tokens, weights["router.weight"], config["n_experts_per_token"])
    for index in range(share.shape[1]):
        rows = (chosen | doubtful)[:, index].nonzero().squeeze(1)
        value, square = _expert(tokens[rows], weights, f"experts.{index}")
        own = share[rows, index].unsqueeze(1)
        taken, doubted = (mark[rows, index].unsqueeze(1) for mark in (chosen, doubtful))
        value *= own
        total.index_add_(0, rows, value * taken)
        squares.index_add_(0, rows, square.mul_(own * own) * taken)
        unsure.index_add_(0, rows, value.abs_() * doubted)
    return total.view(x.shape), squares.sqrt_().add_(unsure, alpha=1 / TERM_RTOL).view(x.shape)


def board_expected(data):
    """The board's answer by torch: routed, multiplied and added up in float16, experts in order, the shared one last.

    Which of two nearly equal experts it takes hangs on the device's fp16 products.
    """
    x, weights, config = data
    tokens = x.reshape(-1, x.shape[-1])
    share, chosen = softmax(tokens @ weights["router.weight"].T, -1).topk(config["n_experts_per_token"], sorted=False)
    total = torch.zeros_like(tokens)
    for index in range(config["n_routed_experts"]):
        rows, place = (chosen == index).nonzero(as_tuple=True)
        total.index_add_(0, rows, _board_expert(tokens[rows], weights, f"experts.{index}") * share[rows, place, None])
    return (total + _board_expert(tokens, weights, "shared_experts")).view(x.shape)


def _board_expert(tokens, weights, name):
    gate, up, down = (weights[f"{name}.{part}.weight"] for part in range(3))
    return (silu(tokens @ gate) * (tokens @ up)) @ down


def _expert(tokens, weights, name):
    """An expert's answer, and the squares of its sum's terms, float64 [tokens, dhidden].

    A term is an element between gate and down times its weight; to its square come those of what one part in one would
    change it by, through the gate and through the up product.
    """
    gate_weight, up_weight, down_weight = (weights[f"{name}.{part}.weight"].double() for part in range(3))
    gate, up, sizes = tokens @ gate_weight, tokens @ up_weight, tokens.square()
    sigmoid = gate.sigmoid()
    slope, open_ = sigmoid * (1 + gate * (1 - sigmoid)), sigmoid * gate
    inner = open_ * up
    square = inner.square()
    square += (slope * up).square() * (sizes @ gate_weight.square_())
    square += open_.square() * (sizes @ up_weight.square_())
    result = inner @ down_weight
    return result, square @ down_weight.square_()


def _routed(tokens, router, count):
    """(probabilities float64, chosen, doubtful), each [tokens, experts].

    Doubtful is who may be in or out by what rounding to float16 does to logits and probabilities, with a factor of two.
    """
    logits = tokens @ router.double().T
    share = softmax(logits, -1)
    chosen = torch.zeros_like(share, dtype=torch.bool).scatter_(1, share.topk(count).indices, True)
    slack = STEP * (1 + logits.abs()) * share + TINY
    highest_out = (share + slack).masked_fill(chosen, -1.0).amax(1, keepdim=True)
    lowest_in = (share - slack).masked_fill(~chosen, 2.0).amin(1, keepdim=True)
    doubtful = torch.where(chosen, share - slack <= highest_out, share + slack >= lowest_in)
    return share, chosen, doubtful


def _expert_weights(name, hidden, inner, normal):
    """Gate and up [hidden, inner], down [inner, hidden], in the board's order of draws."""
    shapes = ((hidden, inner), (hidden, inner), (inner, hidden))
    return {f"{name}.{part}.weight": normal(*shape) / shape[1] ** 0.5 for part, shape in enumerate(shapes)}


def _skewed(x, weights, generator):
    """One feature that all tokens share makes a few experts popular; others get no token at all."""
    router = weights["router.weight"]
    x[..., 0] = 4.0
    rank = torch.rand(router.shape[0], generator=generator, device=router.device).argsort()
    router[:, 0] = (rank * (1.5 / router.shape[0])).to(router.dtype)
    return x


def _peaked(x, weights, generator):
    """Logits four times as wide: a token's first expert has nearly all of its probability, the last nearly none."""
    weights["router.weight"] *= 4
    return x


def _spikes(x, weights, generator):
    """One element of x in 64 is 8 times as large."""
    large = torch.randint(0, 64, x.shape, generator=generator, device=x.device) == 0
    return torch.where(large, x * 8, x)


def _cancelling(x, weights, generator):
    """In every expert the second half of the inner elements takes back the first, but for one row of down in 8."""
    for name in {name.rsplit(".", 2)[0] for name in weights if name != "router.weight"}:
        gate, up, down = (weights[f"{name}.{part}.weight"] for part in range(3))
        half = gate.shape[1] // 2
        gate[:, half:], up[:, half:] = gate[:, :half], up[:, :half]
        kept = torch.arange(half, device=down.device).unsqueeze(1) % 8 == 0
        down[half:] = torch.where(kept, down[half:], -down[:half])
    return x


_FILLS = {"published": None, "skewed": _skewed, "peaked": _peaked, "spikes": _spikes, "cancelling": _cancelling}
