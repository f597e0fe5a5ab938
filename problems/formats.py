"""Narrow number formats by their definitions, and where fp4 data lies: packing, shuffled weights, shuffled scales.

The value tables are indexed by bit pattern. The offset functions use whole-number arithmetic alone, so they take
integers and, element by element, integer tensors or arrays.
"""

from __future__ import annotations

import math
from typing import Any


def _minifloat(code: int, exponent_bits: int, mantissa_bits: int, bias: int) -> float:
    """The value of sign, exponent, mantissa with subnormals, no code set apart for infinity or NaN."""
    mantissa = code & ((1 << mantissa_bits) - 1)
    exponent = (code >> mantissa_bits) & ((1 << exponent_bits) - 1)
    if exponent:
        mantissa += 1 << mantissa_bits
    value = math.ldexp(mantissa, max(exponent, 1) - bias - mantissa_bits)
    return -value if code >> (exponent_bits + mantissa_bits) else value


def _e4m3fn(code: int) -> float:
    return math.nan if code & 0x7F == 0x7F else _minifloat(code, 4, 3, 7)


def _e4m3fnuz(code: int) -> float:
    return math.nan if code == 0x80 else _minifloat(code, 4, 3, 8)


def _e5m2(code: int) -> float:
    if code & 0x7F > 0x7C:
        return math.nan
    return math.copysign(math.inf, 0x7F - code) if code & 0x7F == 0x7C else _minifloat(code, 5, 2, 15)


E4M3FN = tuple(_e4m3fn(code) for code in range(256))
"""OCP's fp8, gfx950's and NVIDIA's: bias 7, largest 448, NaN at 0x7F and 0xFF, no infinity, minus zero at 0x80."""
E4M3FNUZ = tuple(_e4m3fnuz(code) for code in range(256))
"""gfx942's fp8: bias 8, largest 240, NaN at 0x80 alone, no infinity, no minus zero."""
E5M2 = tuple(_e5m2(code) for code in range(256))
"""OCP's wide fp8: bias 15, largest 57344, with infinities."""
E8M0 = (*(math.ldexp(1.0, code - 127) for code in range(255)), math.nan)
"""A scale of MXFP4: 2^(code - 127), no sign, no zero; code 0 is 2^-127 and 255 is NaN."""
E2M1 = tuple(_minifloat(code, 2, 1, 1) for code in range(16))
"""fp4: 0, 0.5, 1, 1.5, 2, 3, 4, 6, and with a minus from code 8 on. Two share a byte, even k in the low nibble."""

MX_BLOCK = 32
"""Elements of k that share one e8m0 scale in MXFP4."""
NV_BLOCK = 16
"""Elements of k that share one e4m3fn scale in NVFP4."""


def permuted_scale_offset(row: Any, column: Any, columns: int) -> Any:
    """Byte of scale (row, column) in NVFP4's layout of 128 x 4 tiles, 512 bytes each; `columns` are k/16.

    Tiles lie row-major. In one, four groups of 32 rows are interleaved: (row % 32) * 16 + (row // 32) * 4 + column.
    """
    tiles = -(-columns // 4)
    tile = (row // 128) * tiles + column // 4
    return tile * 512 + (row % 32) * 16 + (row % 128) // 32 * 4 + column % 4


def shuffled_weight_offset(row: Any, byte: Any, row_bytes: int) -> Any:
    """Byte of (row, byte) in AITER's (16, 16) weight shuffle; rows are a multiple of 16, `row_bytes` of 32.

    Tiles of 16 rows by 32 bytes lie row-major; in one, the left 16 x 16 bytes come before the right ones.
    """
    tile = (row // 16) * (row_bytes // 32) + byte // 32
    return tile * 512 + byte % 32 // 16 * 256 + (row % 16) * 16 + byte % 16


def shuffled_scale_offset(row: Any, column: Any, columns: int) -> Any:
    """Byte of scale (row, column) in AITER's e8m0 shuffle; `columns` are k/32, padded to a multiple of 8.

    Tiles of 32 rows by 8 scales, 256 bytes each, lie row-major; rows are padded to a multiple of 256.
    """
    tile = (row // 32) * -(-columns // 8) + column // 8
    inside = (column % 4) * 64 + (row % 16) * 4 + column % 8 // 4 * 2 + row % 32 // 16
    return tile * 256 + inside
