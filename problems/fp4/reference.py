"""What the fp4 problems share: codes to values and back, scales and weights in the layouts that kernels read."""

from __future__ import annotations

from collections.abc import Callable

import torch

from problems.formats import (
    E2M1,
    MX_BLOCK,
    permuted_scale_offset,
    shuffled_scale_offset,
    shuffled_weight_offset,
)

FP4 = torch.float4_e2m1fn_x2
SCALE = torch.float8_e8m0fnu
NV_SCALE = torch.float8_e4m3fn


def unpacked(packed: torch.Tensor, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    """The values of fp4x2 [..., k/2] as [..., k] in `dtype`: the low nibble comes first."""
    codes = packed.contiguous().view(torch.uint8)
    table = torch.tensor(E2M1, dtype=dtype, device=packed.device)
    if packed.is_meta:
        return torch.empty((*packed.shape[:-1], 2 * packed.shape[-1]), dtype=dtype, device="meta")
    return table[torch.stack((codes & 15, codes >> 4), dim=-1).flatten(-2).int()]


def packed(codes: torch.Tensor) -> torch.Tensor:
    """fp4x2 [..., k/2] of the four-bit codes [..., k], uint8."""
    return (codes[..., 0::2] | (codes[..., 1::2] << 4)).contiguous().view(FP4)


def scaled(values: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """`values` [..., k] times `scale` [..., blocks], each over k/blocks neighbours, in place."""
    blocks = values.unflatten(-1, (scale.shape[-1], -1))
    blocks.mul_(scale.to(torch.float32).to(values.dtype).unsqueeze(-1))
    return values


def quantised(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """MXFP4 of `values` [..., k]: (fp4x2 [..., k/2], e8m0 [..., k/32]).

    Per 32 elements: the largest magnitude's fp32 bits plus 2^21 with the mantissa dropped, which rounds up from
    1.75 x 2^p, two exponents lower, is the scale. Elements over it go to the nearest fp4, ties to the even code, and
    saturate at 6.
    """
    blocks = values.float().unflatten(-1, (-1, MX_BLOCK))
    largest = blocks.abs().amax(-1)
    exponent = (((largest.view(torch.int32) + (1 << 21)) >> 23 & 0xFF) - 127 - 2).clamp(-127, 127)
    scale = torch.ldexp(torch.ones_like(largest, dtype=torch.float64), exponent)
    ratio = (blocks.double() / scale.unsqueeze(-1)).flatten(-2)
    return packed(nearest_code(ratio)), (exponent + 127).to(torch.uint8).view(SCALE)


def nearest_code(values: torch.Tensor) -> torch.Tensor:
    """The fp4 code, uint8, nearest to each of `values`: ties to the even code, beyond 6 is 6."""
    size = values.abs()
    code = torch.zeros_like(size, dtype=torch.uint8)
    for upper in range(1, 8):
        midway = (E2M1[upper - 1] + E2M1[upper]) / 2
        # A tie goes up where the upper code is the even one.
        code += (size >= midway if upper % 2 == 0 else size > midway).to(torch.uint8)
    return code | (torch.signbit(values).to(torch.uint8) << 3)


def permuted_scales(scale: torch.Tensor, filler: torch.Tensor) -> torch.Tensor:
    """`scale` e4m3fn [l, rows, k/16] in 128 x 4 tiles, as the view (32, 4, R, 4, C, l) that the boards hand over.

    `filler` e4m3fn [l, R, C, 32, 4, 4], in memory order, gives the scales past the last row and column.
    """
    batch, rows, columns = scale.shape
    tile_rows, tile_columns = filler.shape[1:3]
    if not scale.is_meta:
        flat = filler.view(torch.uint8).clone().view(batch, -1)
        flat[:, _offsets(permuted_scale_offset, rows, columns, columns, scale.device)] = scale.view(torch.uint8)
        filler = flat.view(NV_SCALE).view(batch, tile_rows, tile_columns, 32, 4, 4)
    return filler.permute(3, 4, 1, 5, 2, 0)


def shuffled_weights(weights: torch.Tensor) -> torch.Tensor:
    """fp4x2 [..., rows, k/2] in AITER's (16, 16) order, of the same shape; rows a multiple of 16, k of 64."""
    if weights.is_meta:
        return torch.empty_like(weights)
    rows, row_bytes = weights.shape[-2:]
    source = weights.contiguous().view(torch.uint8)
    flat = torch.empty_like(source).flatten(-2)
    flat[..., _offsets(shuffled_weight_offset, rows, row_bytes, row_bytes, weights.device)] = source
    return flat.view(weights.shape).view(weights.dtype)


def shuffled_scales(scale: torch.Tensor, filler: torch.Tensor) -> torch.Tensor:
    """e8m0 [rows, k/32] in AITER's order, with the padding of `filler` e8m0 [ceil256(rows), ceil8(k/32)]."""
    if scale.is_meta:
        return torch.empty_like(filler)
    rows, columns = scale.shape
    flat = filler.view(torch.uint8).clone().flatten()
    flat[_offsets(shuffled_scale_offset, rows, columns, columns, scale.device)] = scale.view(torch.uint8)
    return flat.view(filler.shape).view(SCALE)


def random_codes(
    low: int, high: int, shape: tuple[int, ...], generator: torch.Generator | None, device: str, keep: int = 0xFF
) -> torch.Tensor:
    """Bytes drawn evenly from [low, high), with the bits of `keep` alone; uint8."""
    drawn = torch.randint(low, high, shape, generator=generator, device=device, dtype=torch.uint8)
    return drawn & keep


def _offsets(
    offset: Callable[[torch.Tensor, torch.Tensor, int], torch.Tensor],
    rows: int,
    columns: int,
    width: int,
    device: torch.device,
) -> torch.Tensor:
    row = torch.arange(rows, device=device).unsqueeze(1)
    return offset(row, torch.arange(columns, device=device).unsqueeze(0), width)


def nv_matrix(codes: torch.Tensor) -> torch.Tensor:
    """Bytes [l, rows, k/2] as the boards hand them over: fp4x2 [rows, k/2, l], k-contiguous."""
    return codes.view(FP4).permute(1, 2, 0)


def nv_scales(scale: torch.Tensor, filler: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """`scale` [l, rows, k/16] as e4m3fn [rows, k/16, l], and the same in 128 x 4 tiles; `filler` as drawn there."""
    scale, filler = scale.to(NV_SCALE), filler.to(NV_SCALE)
    return scale.permute(1, 2, 0), permuted_scales(scale, filler)


def nv_tiles(rows: int, k: int, batch: int) -> tuple[int, ...]:
    """The shape of permuted scales in memory order: [l, R, C, 32, 4, 4]."""
    return batch, -(-rows // 128), -(-k // 64), 32, 4, 4


def permuted_again(scale: torch.Tensor, permuted: torch.Tensor) -> torch.Tensor:
    """`permuted` with the scales of `scale` [rows, k/16, l], and its own padding."""
    return permuted_scales(scale.permute(2, 0, 1), permuted.permute(5, 2, 4, 0, 1, 3).contiguous())


def nv_values(matrix: torch.Tensor, scale: torch.Tensor, rows: int | None = None) -> torch.Tensor:
    """float64 [l, rows, k]: an fp4x2 [rows, k/2, l] times its raw scales [rows, k/16, l]; the first `rows` alone."""
    values = unpacked(matrix.permute(2, 0, 1)[:, :rows])
    return scaled(values, scale.permute(2, 0, 1)[:, :rows].contiguous())


def product(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """a [l, m, k] times b [l, n, k] as [m, n, l], and the product of their magnitudes. Both operands are spent."""
    result = a @ b.mT
    return result.permute(1, 2, 0), (a.abs_() @ b.abs_().mT).permute(1, 2, 0)
