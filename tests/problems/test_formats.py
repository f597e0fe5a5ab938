"""Every code point of the narrow formats, and every byte of the fp4 layouts."""

import math
import random

import numpy as np
import pytest
import torch

from problems import formats
from problems.fp4.reference import (
    FP4,
    NV_SCALE,
    SCALE,
    nearest_code,
    packed,
    permuted_scales,
    quantised,
    shuffled_scales,
    shuffled_weights,
    unpacked,
)


@pytest.mark.parametrize(
    ("table", "dtype"),
    [
        (formats.E4M3FN, torch.float8_e4m3fn),
        (formats.E4M3FNUZ, torch.float8_e4m3fnuz),
        (formats.E5M2, torch.float8_e5m2),
        (formats.E8M0, torch.float8_e8m0fnu),
    ],
)
def test_every_code_is_torchs(table: tuple[float, ...], dtype: torch.dtype) -> None:
    theirs = torch.arange(256, dtype=torch.uint8).view(dtype).float().double().tolist()
    assert len(table) == 256
    for code, (ours, other) in enumerate(zip(table, theirs, strict=True)):
        assert math.isnan(ours) == math.isnan(other), code
        assert math.isnan(ours) or (ours == other and math.copysign(1, ours) == math.copysign(1, other)), code


def test_the_corners_of_each_format() -> None:
    assert max(x for x in formats.E4M3FN if x == x) == 448 and formats.E4M3FN[1] == 2.0**-9
    assert max(x for x in formats.E4M3FNUZ if x == x) == 240 and formats.E4M3FNUZ[1] == 2.0**-10
    assert formats.E5M2[0x7B] == 57344 and formats.E5M2[0xFC] == -math.inf and formats.E5M2[1] == 2.0**-16
    assert formats.E8M0[0] == 2.0**-127 and formats.E8M0[254] == 2.0**127 and math.isnan(formats.E8M0[255])
    assert formats.E2M1[:8] == (0, 0.5, 1, 1.5, 2, 3, 4, 6)
    assert [-x for x in formats.E2M1[8:]] == list(formats.E2M1[:8]) and math.copysign(1, formats.E2M1[8]) == -1


def test_a_byte_holds_the_even_element_low() -> None:
    every = torch.arange(256, dtype=torch.uint8)
    values = unpacked(every.view(FP4)).tolist()
    for byte in range(256):
        assert values[2 * byte : 2 * byte + 2] == [formats.E2M1[byte & 15], formats.E2M1[byte >> 4]]
    codes = torch.stack((every & 15, every >> 4), dim=-1).flatten()
    assert torch.equal(packed(codes).view(torch.uint8), every)


def test_each_value_and_each_tie_gets_its_code() -> None:
    assert nearest_code(torch.tensor(formats.E2M1)).tolist() == list(range(16))
    ties = [(0.25, 0), (0.75, 1), (1.25, 1), (1.75, 2), (2.5, 2), (3.5, 4), (5.0, 6)]
    even = torch.tensor([x for x, _ in ties])
    assert unpacked(packed(nearest_code(even.repeat_interleave(2))))[::2].tolist() == [
        min((v for v in formats.E2M1[:8]), key=lambda v: (abs(v - x), formats.E2M1.index(v) % 2)) for x, _ in ties
    ]
    for low, high in zip(formats.E2M1[:7], formats.E2M1[1:8], strict=True):
        midway = torch.tensor([(low + high) / 2], dtype=torch.float64)
        assert nearest_code(midway * (1 - 1e-9)).item() == formats.E2M1.index(low)
        assert nearest_code(midway * (1 + 1e-9)).item() == formats.E2M1.index(high)
    assert nearest_code(torch.tensor([1e30, -7.0])).tolist() == [7, 15]


def quantise_block(block: list[float]) -> tuple[list[float], int]:
    """MXFP4's first quantiser by its words, one block of fp32 values: (fp4 values, e8m0 code)."""
    largest = max(abs(x) for x in block)
    fraction, exponent = math.frexp(largest)
    power = exponent - 1 + (fraction * 2 >= 1.75) if largest >= 2.0**-126 else -127
    power = min(127, max(-127, power - 2))
    values = []
    for x in block:
        ratio = abs(x) / 2.0**power
        nearest = min(range(8), key=lambda code: (abs(formats.E2M1[code] - ratio), code % 2))
        values.append(math.copysign(formats.E2M1[nearest], x))
    return values, power + 127


def test_the_quantiser_by_its_words() -> None:
    rng = random.Random(5)
    blocks = [[rng.gauss(0, 1) * 2.0 ** rng.randrange(-20, 20) for _ in range(32)] for _ in range(200)]
    blocks += [
        [0.0] * 32,
        [2.0**127] + [1.0] * 31,
        [1.75] + [0.1] * 31,
        [float(np.nextafter(np.float32(1.75), 0))] * 32,
    ]
    x = torch.tensor(blocks, dtype=torch.float32)
    codes, scale = quantised(x)
    for row, block in enumerate(x.tolist()):
        values, exponent = quantise_block(block)
        assert unpacked(codes[row]).tolist() == values
        assert int(scale.view(torch.uint8)[row, 0]) == exponent
    assert (codes.dtype, scale.dtype) == (FP4, SCALE)


def test_bf16_values_are_quantised_as_they_are() -> None:
    x = torch.randn((16, 96), generator=torch.Generator().manual_seed(1)).bfloat16()
    codes, scale = quantised(x)
    assert codes.shape == (16, 48) and scale.shape == (16, 3)
    again = quantised(x.float())
    assert torch.equal(codes.view(torch.uint8), again[0].view(torch.uint8))


@pytest.mark.parametrize(("rows", "columns"), [(128, 4), (256, 16), (72, 16), (300, 12)])
def test_permuted_scales_by_a_loop(rows: int, columns: int) -> None:
    tall, wide = -(-rows // 128), -(-columns // 4)
    scale = torch.randint(0, 120, (2, rows, columns), dtype=torch.uint8)
    filler = torch.randint(120, 127, (2, tall, wide, 32, 4, 4), dtype=torch.uint8)
    view = permuted_scales(scale.view(NV_SCALE), filler.view(NV_SCALE))
    assert view.shape == (32, 4, tall, 4, wide, 2)
    assert view.stride() == (16, 4, 512 * wide, 1, 512, 512 * wide * tall)
    bytes_ = view.view(torch.uint8)
    memory = filler.clone().flatten(1)
    for i in range(rows):
        for j in range(columns):
            assert torch.equal(bytes_[i % 32, i % 128 // 32, i // 128, j % 4, j // 4], scale[:, i, j])
            memory[:, formats.permuted_scale_offset(i, j, columns)] = scale[:, i, j]
    assert torch.equal(bytes_.permute(5, 2, 4, 0, 1, 3).reshape(2, -1), memory)
    assert int((memory >= 120).sum()) == 2 * (tall * 128 * wide * 4 - rows * columns)


@pytest.mark.parametrize(("rows", "row_bytes"), [(16, 32), (48, 96), (32, 256)])
def test_shuffled_weights_by_blocks(rows: int, row_bytes: int) -> None:
    weights = torch.randint(0, 256, (3, rows, row_bytes), dtype=torch.uint8)
    blocks = weights.view(3, rows // 16, 16, row_bytes // 32, 2, 16).permute(0, 1, 3, 4, 2, 5)
    shuffled = shuffled_weights(weights.view(FP4)).view(torch.uint8)
    assert torch.equal(shuffled.flatten(1), blocks.reshape(3, -1))
    offsets = [formats.shuffled_weight_offset(n, b, row_bytes) for n in range(rows) for b in range(row_bytes)]
    assert sorted(offsets) == list(range(rows * row_bytes))
    assert torch.equal(shuffled[1].flatten()[torch.tensor(offsets)], weights[1].flatten())


@pytest.mark.parametrize(("rows", "columns"), [(256, 8), (256, 16), (300, 20), (32, 5)])
def test_shuffled_scales_by_blocks(rows: int, columns: int) -> None:
    tall, wide = -(-rows // 256) * 256, -(-columns // 8) * 8
    scale = torch.randint(0, 200, (rows, columns), dtype=torch.uint8)
    filler = torch.randint(200, 255, (tall, wide), dtype=torch.uint8)
    padded = torch.full((tall, wide), 255, dtype=torch.uint8)
    padded[:rows, :columns] = scale
    blocks = padded.view(tall // 32, 2, 16, wide // 8, 2, 4).permute(0, 3, 5, 2, 4, 1).reshape(tall, wide)
    shuffled = shuffled_scales(scale.view(SCALE), filler.view(SCALE)).view(torch.uint8)
    assert torch.equal(shuffled[blocks != 255], blocks[blocks != 255])
    assert torch.equal(shuffled[blocks == 255], filler[blocks == 255])
    offsets = [formats.shuffled_scale_offset(r, c, columns) for r in range(rows) for c in range(columns)]
    assert len(set(offsets)) == rows * columns
    assert torch.equal(shuffled.flatten()[torch.tensor(offsets)], scale.flatten())
