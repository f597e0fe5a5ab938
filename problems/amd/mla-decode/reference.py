"""MLA decoding with its projections: inputs as the board makes them, the float64 result, and the board's own answer."""

import math

import torch

from problems.made import Made

HEADS, NOPE, ROPE, VALUE, LATENT, MOST = 128, 128, 64, 128, 512, 8192
WIDTH = LATENT + ROPE
BF16 = torch.bfloat16
BASE = 9984.0
"""Of the frequencies: 10000 in bfloat16, in which the board raises it."""
SUM_SHARE = 2.0**-10
"""What an fp32 sum's order counts for beside its rounding to bfloat16, in the terms of a new cache row."""


def make_inputs(params, fill, generator, device):
    """(config, x, kv_cache); `generator` lives on `device`.

    config: sizes, and bfloat16 weights [out, in], row-major; x bfloat16 [b, 1, dim]; kv_cache: ``data`` bfloat16
    [b, 8192, 576], of which the first ``seq_len`` = prefill rows are filled and the others zero. On the meta device,
    with no generator, the same shapes and strides without memory.
    """
    batch, dim, dq, prefill = (params[key] for key in ("batchsize", "dim", "dq", "prefill"))
    like = {"dtype": BF16, "device": device, "generator": generator}
    shapes = {
        "Q_proj_down_weight": (dq, dim),
        "KV_proj_down_weight": (WIDTH, dim),
        "Q_proj_up_weight": (HEADS * (NOPE + ROPE), dq),
        "KV_proj_up_weight": (HEADS * (NOPE + VALUE), LATENT),
        "wo_weight": (dim, HEADS * VALUE),
    }
    weights = {name: torch.randn(shape, **like).div_(math.sqrt(shape[1])) for name, shape in shapes.items()}
    x = torch.randn((batch, 1, dim), **like)
    cache = torch.zeros((batch, MOST, WIDTH), dtype=BF16, device=device)
    cache[:, :prefill] = torch.randn((batch, prefill, WIDTH), **like)
    _FILLS[fill](weights["Q_proj_up_weight"], cache, prefill)
    config = {
        "batch_size": batch,
        "dim": dim,
        "n_heads": HEADS,
        "q_lora_rank": dq,
        "kv_lora_rank": LATENT,
        "qk_nope_head_dim": NOPE,
        "qk_rope_head_dim": ROPE,
        "v_head_dim": VALUE,
        "seq_len": 1,
        "max_seq_len": MOST,
        "kv_cache_shape": (batch, MOST, WIDTH),
        **weights,
    }
    return Made("config", config), x, Made("kv-cache", {"data": cache, "seq_len": prefill})


def exact(data):
    """[(y, terms), (cache, terms)]: float64 [b, 1, dim], and float32 [b, 8192, 576], exact but for the new row's 2^-24.

    y's terms are the root of the sum of squares of what goes into it through wo: the attention's terms p v, whose sizes
    are estimated by the lengths of the latent rows and of the value weights, and the heads' results. Independent
    relative errors of the rounded steps between are in proportion to it. The cache's terms are 0 where nothing may
    change.
    """
    config, x, cache = data[0].fields, data[1][:, 0].double(), data[2].fields
    rows, terms = _new_rows(config, x)
    heads, noise = _attended(config, x, rows, cache)
    wo = config["wo_weight"].double()
    y = heads @ wo.T
    spread = ((noise + heads.square()) @ wo.square().T).sqrt()
    filled, may_change = cache["data"].float(), torch.zeros_like(cache["data"], dtype=torch.float32)
    filled[:, cache["seq_len"]], may_change[:, cache["seq_len"]] = rows.float(), terms.float()
    return [(y.unsqueeze(1), spread.unsqueeze(1)), (filled, may_change)]


def board_expected(data):
    """The board's answers: every step in bfloat16, with keys and values of all heads made from the latent rows."""
    config, x, cache = data[0].fields, data[1][:, 0], data[2].fields
    length = cache["seq_len"] + 1
    filled = cache["data"].clone()
    filled[:, length - 1] = x @ config["KV_proj_down_weight"].T
    q = (x @ config["Q_proj_down_weight"].T @ config["Q_proj_up_weight"].T).unflatten(-1, (HEADS, NOPE + ROPE))
    cos, sin = (table.to(BF16) for table in _angles(length, x.device))
    q = torch.cat((q[..., :NOPE], _rotated(q[..., NOPE:], cos[-1], sin[-1])), -1)
    heads = torch.empty((x.shape[0], HEADS * VALUE), dtype=BF16, device=x.device)
    for index, rows in enumerate(filled[:, :length]):
        up = (rows[:, :LATENT] @ config["KV_proj_up_weight"].T).unflatten(-1, (HEADS, NOPE + VALUE)).transpose(0, 1)
        shared = _rotated(rows[:, LATENT:], cos, sin).expand(HEADS, length, ROPE)
        keys = torch.cat((up[..., :NOPE], shared), -1)
        scores = q[index].unsqueeze(1) @ keys.mT / math.sqrt(NOPE + ROPE)
        p = torch.softmax(scores, -1)
        heads[index] = (p @ up[..., NOPE:]).flatten()
    return [(heads @ config["wo_weight"].T).unsqueeze(1), filled]


def _new_rows(config, x):
    """What the call adds to the cache, float64 [b, 576], and its terms."""
    weight = config["KV_proj_down_weight"].double()
    rows = x @ weight.T
    return rows, rows.abs() + SUM_SHARE * (x.abs() @ weight.abs().T)


def _attended(config, x, rows, cache):
    """The heads' results before wo, and the sum of squares of their terms, float64 [b, 128*128]."""
    length = cache["seq_len"] + 1
    q = x @ config["Q_proj_down_weight"].double().T @ config["Q_proj_up_weight"].double().T
    q = q.unflatten(-1, (HEADS, NOPE + ROPE))
    up = config["KV_proj_up_weight"].double().unflatten(0, (HEADS, NOPE + VALUE))
    if x.is_meta:
        return x.new_empty((x.shape[0], HEADS * VALUE)), x.new_empty((x.shape[0], HEADS * VALUE))
    cos, sin = _angles(length, x.device)
    rotated = _rotated(q[..., NOPE:], cos[-1], sin[-1])
    # Into the latent space, so that keys and values of all heads need not be made.
    latent = torch.einsum("bhd,hdc->bhc", q[..., :NOPE], up[:, :NOPE])
    heads, noise = (torch.empty((x.shape[0], HEADS, VALUE), dtype=x.dtype, device=x.device) for _ in range(2))
    sizes = up[:, NOPE:].square().sum(-1)
    for index in range(x.shape[0]):
        seen = torch.cat((cache["data"][index, : length - 1].double(), rows[index : index + 1]))
        keys = _rotated(seen[:, LATENT:], cos, sin)
        scores = latent[index] @ seen[:, :LATENT].T + rotated[index] @ keys.T
        p = torch.softmax(scores / math.sqrt(NOPE + ROPE), -1)
        heads[index] = torch.einsum("hc,hdc->hd", p @ seen[:, :LATENT], up[:, NOPE:])
        noise[index] = (p.square() @ seen[:, :LATENT].square().mean(-1)).unsqueeze(-1) * sizes
    return heads.flatten(1), noise.flatten(1)


def _angles(length, device):
    """Cosines and sines of positions 0 to length - 1, float64 [length, 64], of the values that the board's have.

    Frequencies, positions and their products are bfloat16, and so are the cosines: part of what is asked for, as from
    position 256 on the positions themselves are rounded.
    """
    steps = torch.arange(ROPE // 2, dtype=torch.float64, device=device) / (ROPE // 2)
    theta = torch.pow(BASE, -steps).to(BF16)
    angles = torch.arange(length, device=device).to(BF16).unsqueeze(1) * theta
    angles = torch.cat((angles, angles), -1).double()
    return angles.cos().to(BF16).double(), angles.sin().to(BF16).double()


def _rotated(part, cos, sin):
    """`part` [..., 64] turned: dimension d goes with d + 32."""
    first, second = part.chunk(2, -1)
    return part * cos + torch.cat((-second, first), -1) * sin


def _published(q_up, cache, prefill):
    """As the board draws them."""


def _rope(q_up, cache, prefill):
    """The rope part of every query is twice as large: two thirds of what decides which rows count."""
    q_up.unflatten(0, (HEADS, NOPE + ROPE))[:, NOPE:] *= 2


def _ends(q_up, cache, prefill):
    """The first and the last row of every cache are so large that half of the heads look at little else."""
    cache[:, [0, prefill - 1]] *= 2 + 1.2 * math.log(prefill)


_FILLS = {"published": _published, "rope": _rope, "ends": _ends}
