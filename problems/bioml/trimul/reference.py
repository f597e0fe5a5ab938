"""Triangle update: inputs as the board declares them, the float64 result, and the board's own answer."""

import torch
from torch.nn.functional import layer_norm

GATED = ("left", "right")
EPS = 1e-5


def make_inputs(params, fill, generator, device):
    """(x, mask, weights, config), laid out as problem.toml says; `generator` lives on `device` and draws everything.

    On the meta device, with no generator, the same shapes and strides without memory.
    """
    batch, length, dim, hidden = (params[key] for key in ("bs", "seqlen", "dim", "hiddendim"))
    shape = (batch, length, length)
    x = torch.empty((*shape, dim), dtype=torch.float32, device=device)
    x = x.cauchy_(0, 2, generator=generator) if params["distribution"] == "cauchy" else x.normal_(generator=generator)
    if fill == "offset":
        x += 64.0
    mask = _mask(shape, params["nomask"], fill, generator, device)
    return x, mask, _weights(dim, hidden, generator, device), {"hidden_dim": hidden, "dim": dim}


def exact(data):
    """The update, and the magnitude that its last product sums, float64 [bs, seqlen, seqlen, dim]."""
    gated, weight = _gated(data, torch.float64)
    return gated @ weight.T, _magnitude(gated, weight)


def board_expected(data):
    """The board's answer: the same in fp32."""
    gated, weight = _gated(data, torch.float32)
    return gated @ weight.T


def _gated(data, dtype):
    """What the last projection multiplies, [bs, seqlen, seqlen, hiddendim], and its weight, in `dtype`."""
    x, mask, weights, _ = data
    w = {name: tensor.to(dtype) for name, tensor in weights.items()}
    z = layer_norm(x.to(dtype), x.shape[-1:], w["norm.weight"], w["norm.bias"], EPS)
    left, right = (_side(z, mask.to(dtype), w, side) for side in GATED)
    # [b, d, i, k] by [b, d, k, j]: one product of matrices for each hidden channel.
    mixed = left.permute(0, 3, 1, 2) @ right.permute(0, 3, 2, 1)
    del left, right
    mixed = mixed.permute(0, 2, 3, 1)
    normed = layer_norm(mixed, mixed.shape[-1:], w["to_out_norm.weight"], w["to_out_norm.bias"], EPS)
    return normed.mul_((z @ w["out_gate.weight"].T).sigmoid_()), w["to_out.weight"]


def _side(z, mask, w, side):
    gate = (z @ w[f"{side}_gate.weight"].T).sigmoid_()
    return (z @ w[f"{side}_proj.weight"].T).mul_(mask.unsqueeze(-1)).mul_(gate)


def _magnitude(gated, weight):
    """Root of the sum of squares of the last product's factors: errors of its 128 terms do not share a sign."""
    return gated.norm(dim=-1, keepdim=True) * weight.norm(dim=-1)


def _mask(shape, nomask, fill, generator, device):
    """Float32 ones where `nomask`; else int64 zeros and ones, a tenth of them ones where `fill` is sparse."""
    if nomask:
        return torch.ones(shape, dtype=torch.float32, device=device)
    draw = torch.randint(0, 10 if fill == "sparse" else 2, shape, device=device, generator=generator)
    return (draw == 0).to(torch.int64)


def _weights(dim, hidden, generator, device):
    def normal(*shape):
        return torch.randn(shape, dtype=torch.float32, device=device, generator=generator)

    names = ("left_proj", "right_proj", "left_gate", "right_gate", "out_gate")
    return {
        "norm.weight": normal(dim),
        "norm.bias": normal(dim),
        **{f"{name}.weight": normal(hidden, dim) / hidden**0.5 for name in names},
        "to_out_norm.weight": normal(hidden),
        "to_out_norm.bias": normal(hidden),
        "to_out.weight": normal(dim, hidden) / dim**0.5,
    }


_FILLS = ("published", "sparse", "offset")
