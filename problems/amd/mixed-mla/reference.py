"""MLA decoding over a cache in three precisions: the board's inputs, the float64 result, and the board's own answer."""

import torch

from problems.fp4.reference import FP4, SCALE, nearest_code, quantised

HEADS, WIDTH, LATENT = 16, 576, 512
SM_SCALE = 1 / 24
FP8 = torch.float8_e4m3fn
REPEATED = ("1/fp8", "1/mxfp4")
"""Inputs that hold once more what others hold: the narrower caches."""


def make_inputs(params, fill, generator, device):
    """(q, kv_data, qo_indptr, kv_indptr, config); `generator` lives on `device`.

    q bfloat16 [b*qs, 16, 576]; kv_data {"bf16": bfloat16 [n, 1, 576], "fp8": (e4m3fn [n, 1, 576], float32 [1]),
    "mxfp4": (fp4x2 [n, 1, 288], e8m0 [n, 18])}, n = b * kvseqlen; both indptr int32 [b + 1]. On the meta device,
    with no generator, the same shapes and strides without memory.
    """
    batch, queries, length = (params[key] for key in ("batchsize", "qseqlen", "kvseqlen"))
    like = {"dtype": torch.bfloat16, "device": device, "generator": generator}
    q = torch.randn((batch * queries, HEADS, WIDTH), **like)
    kv = torch.randn((batch * length, 1, WIDTH), **like)
    if fill != "published":
        q, kv = _FILLS[fill](_coarse(q), _coarse(kv), length)
    steps = torch.arange(batch + 1, dtype=torch.int32, device=device)
    config = {
        "batch_size": batch,
        "num_heads": HEADS,
        "num_kv_heads": 1,
        "qk_head_dim": WIDTH,
        "kv_lora_rank": LATENT,
        "qk_rope_head_dim": WIDTH - LATENT,
        "v_head_dim": LATENT,
        "q_seq_len": queries,
        "kv_seq_len": length,
        "sm_scale": SM_SCALE,
    }
    return q, {"bf16": kv, "fp8": _fp8(kv), "mxfp4": _mxfp4(kv)}, steps * queries, steps * length, config


def exact(data):
    """The attention over the bfloat16 cache, and the root of the sum of squares of its terms p v.

    Both float64 [b*qs, 16, 512]. What independent relative errors of the cache's rows do to an element is in proportion
    to the second.
    """
    return _attention(data[0], data[1]["bf16"], data[4], torch.float64)


def board_expected(data):
    """The board's answer: q and cache in fp8, then bfloat16; fp32 between, as AITER's rounding of p is not known."""
    values, scale = data[1]["fp8"]
    q, q_scale = _fp8(data[0])
    result, _ = _attention(q.float() * q_scale, values.float() * scale, data[4], torch.float32)
    return result.to(torch.bfloat16)


def repeated(data):
    """`data` with the fp8 and MXFP4 caches made anew from the bfloat16 one."""
    q, kv_data, *others = data
    kv = kv_data["bf16"]
    return q, {"bf16": kv, "fp8": _fp8(kv), "mxfp4": _mxfp4(kv)}, *others


def _attention(q, kv, config, dtype):
    batch, queries, length = (config[key] for key in ("batch_size", "q_seq_len", "kv_seq_len"))
    result, noise = (torch.empty((batch * queries, HEADS, LATENT), dtype=dtype, device=q.device) for _ in range(2))
    if q.is_meta:
        return result, noise
    # One sequence at a time: the whole cache in float64 would be 9.7 GB at batch 256 and length 8192.
    for index in range(batch):
        rows = slice(index * queries, (index + 1) * queries)
        keys = kv[index * length : (index + 1) * length, 0].to(dtype)
        p = torch.softmax(q[rows].to(dtype) @ keys.T * config["sm_scale"], dim=-1)
        values = keys[:, :LATENT]
        result[rows] = p @ values
        noise[rows] = (p.square() @ values.square()).sqrt()
    return result, noise


def _fp8(values):
    """`values` over one scale for all, largest magnitude / 448 in bfloat16, as e4m3fn; and the scale, float32 [1]."""
    if values.is_meta:
        return values.to(FP8), torch.empty(1, device="meta")
    scale = values.abs().amax() / torch.finfo(FP8).max
    return (values / scale).clamp(-448, 448).to(FP8), scale.float().view(1)


def _mxfp4(kv):
    rows = kv.shape[0]
    if kv.is_meta:
        return (
            torch.empty((rows, 1, WIDTH // 2), dtype=FP4, device="meta"),
            torch.empty((rows, WIDTH // 32), dtype=SCALE, device="meta"),
        )
    codes, scale = quantised(kv)
    return codes, scale.view(rows, -1)


def _coarse(values):
    """Normal values rounded to 0, +-0.5, 1, 1.5, 2, 3 or 4, which MXFP4 holds exactly and fp8 to 1 part in 16."""
    if values.is_meta:
        return values
    table = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 4], dtype=values.dtype, device=values.device)
    code = nearest_code(values.float())
    return torch.where(code >= 8, -1, 1) * table[(code & 7).int()]


def _as_is(q, kv, length):
    return q, kv


def _rope(q, kv, length):
    """The last 64 columns of q are four times as large: they decide, and they are no values."""
    return torch.cat((q[..., :LATENT], q[..., LATENT:] * 4), dim=-1), kv


def _ends(q, kv, length):
    """The first and the last row of every cache score 8 more than the others: whoever loses either is far off."""
    q, kv = q.clone(), kv.clone()
    # Values that fp8 holds exactly beside a largest one of 4: a common error of 48 columns would shift the score.
    q[..., :48] = 1
    by_sequence = kv.view(-1, length, WIDTH)
    by_sequence[..., :48] = 0
    by_sequence[:, [0, -1], :48] = 4
    return q, kv


def _high(q, kv, length):
    """Every score is 128 higher: the exponential of a score, not less the largest, overflows float32."""
    q, kv = q.clone(), kv.clone()
    q[..., :256] = 3
    kv[..., :256] = 4
    return q, kv


def _low(q, kv, length):
    """Every score is 128 lower: the same exponentials are all zero."""
    q, kv = _high(q, kv, length)
    q[..., :256] = -3
    return q, kv


_FILLS = {"published": None, "coarse": _as_is, "rope": _rope, "ends": _ends, "high": _high, "low": _low}
