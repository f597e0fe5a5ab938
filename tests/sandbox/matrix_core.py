"""An independent model of AMD's matrix cores: where Triton puts operands, and products in float64.

For instructions of one block, rows, columns and k of each lane's registers come from Triton 3.9's layouts
(``AMDMFMALayout`` and ``DotOperandLayout`` as linear layouts, which it lowers ``tl.dot`` with); Triton has none for
several blocks, nor for 4x4 of f64: those are AMD's matrix instruction calculator's element-to-register equations.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from triton._C.libtriton import gluon_ir, ir
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.amd import AMDMFMALayout

Array = NDArray[Any]
TORCH = {
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f32": torch.float32,
    "xf32": torch.float32,
    "f64": torch.float64,
    "i8": torch.int8,
}
FP8 = {
    "gfx942": {"fp8": torch.float8_e4m3fnuz, "bf8": torch.float8_e5m2fnuz},
    "gfx950": {"fp8": torch.float8_e4m3fn, "bf8": torch.float8_e5m2},
}


@dataclass(frozen=True)
class Shape:
    """An instruction: D of rows x rows is C and the sum over `depth` of A times B, `blocks` times."""

    name: str
    rows: int
    depth: int
    blocks: int
    a: str
    b: str
    out: str
    arch: str

    @property
    def each(self) -> int:
        """Values of A in one lane."""
        return self.rows * self.depth * self.blocks // 64

    @property
    def outputs(self) -> int:
        return self.rows * self.rows * self.blocks // 64


def bits_to_values(kind: str, arch: str, raw: Array) -> Array:
    """Bytes of one operand, [..., bytes], to float64 or int64 values [..., count]."""
    dtype = TORCH.get(kind) or FP8[arch][kind]
    values = torch.from_numpy(np.ascontiguousarray(raw)).view(dtype)
    if kind == "i8":
        return values.numpy().astype(np.int64)
    if kind == "xf32":
        words = values.view(torch.int32)
        keep = torch.where(torch.isfinite(values), words & ~0x1FFF, words)
        return keep.view(torch.float32).double().numpy()
    return values.double().numpy()


@functools.cache
def _context() -> Any:
    context = ir.context()
    ir.load_dialects(context)
    return context


@functools.cache
def _builder() -> Any:
    return gluon_ir.GluonOpBuilder(_context())


def spread(layout: Any, count: int) -> Array:
    """Coordinates [64 lanes, count registers, dimensions] of a linear layout: sums of its bases."""
    found = np.zeros((64, count, len(layout.shape)), dtype=np.int64)
    for lane in range(64):
        for register in range(count):
            at = np.zeros(len(layout.shape), dtype=np.int64)
            for bit, base in enumerate(layout.reg_bases):
                at ^= np.array(base) * (register >> bit & 1)
            for bit, base in enumerate(layout.lane_bases):
                at ^= np.array(base) * (lane >> bit & 1)
            found[lane, register] = at
    return found


def triton_layouts(rows: int, depth: int, width: int, arch: str, bits: int) -> tuple[Any, Any, Any]:
    """Linear layouts of A, B and D, for `width` values that lie next to each other along k in a lane."""
    mfma = AMDMFMALayout(
        version=3 if arch == "gfx942" else 4,
        instr_shape=[rows, rows, depth],
        transposed=False,
        warps_per_cta=[1, 1],
        element_bitwidth=bits,
    )
    builder = _builder()

    def operand(index: int, shape: list[int]) -> Any:
        dot = gl.DotOperandLayout(operand_index=index, parent=mfma, k_width=width)
        return builder.to_linear_layout(dot._to_ir(builder), shape)

    out = builder.to_linear_layout(mfma._to_ir(builder), [rows, rows])
    return operand(0, [rows, depth]), operand(1, [depth, rows]), out


def scale_layout(operand: int, rows: int, depth: int) -> Any:
    """Layout of the scales, [rows, depth / 32]."""
    return gluon_ir.get_amd_mfma_scale_layout(operand, [rows, depth // 32], rows, [1, 1], [1, 1])


def places(shape: Shape) -> tuple[Array, Array, Array]:
    """(block, row, k) of A's values, (block, k, column) of B's, (block, row, column) of D's: [64, count, 3] each."""
    if shape.blocks == 1:
        width = min(shape.each, 16)
        a, b, d = triton_layouts(shape.rows, shape.depth, width, shape.arch, 64 if shape.out == "f64" else 32)
        parts = spread(a, shape.each), spread(b, shape.each), spread(d, shape.outputs)
        return tuple(np.concatenate([np.zeros((*p.shape[:2], 1), int), p], axis=2) for p in parts)  # type: ignore[return-value]
    return _blocked(shape)


def _blocked(shape: Shape) -> tuple[Array, Array, Array]:
    rows, depth, blocks = shape.rows, shape.depth, shape.blocks
    a, b = np.zeros((64, shape.each, 3), int), np.zeros((64, shape.each, 3), int)
    d = np.zeros((64, shape.outputs, 3), int)
    for block in range(blocks):
        for i in range(rows):
            for k in range(depth):
                # A[i][k].block: lane rows * block + i, value k; f64 4x4: lane 4 * block + 16 * k + i.
                lane, value = (4 * block + 16 * k + i, 0) if shape.out == "f64" else (rows * block + i, k)
                a[lane, value], b[lane, value] = (block, i, k), (block, k, i)
            for j in range(rows):
                if shape.out == "f64":
                    lane, value = 16 * i + 4 * block + j, 0
                elif rows == 32:
                    lane, value = 32 * (i // 4 % 2) + j, 16 * block + 4 * (i // 8) + i % 4
                elif rows == 16:
                    lane, value = 16 * (i // 4) + j, 4 * block + i % 4
                else:
                    lane, value = 4 * block + j, i
                d[lane, value] = (block, i, j)
    return a, b, d


def matrix(values: Array, where: Array, size: tuple[int, int, int]) -> Array:
    """Registers [64, count] as matrices [block, ., .]; every element is there exactly once."""
    made = np.full(size, np.nan if values.dtype == np.float64 else 0, dtype=values.dtype)
    seen = np.zeros(size, dtype=int)
    at = tuple(where.reshape(-1, 3).T)
    made[at] = values.reshape(-1)
    np.add.at(seen, at, 1)
    assert (seen == 1).all()
    return made


def multiply(a: Array, b: Array, c: Array) -> tuple[Array, Array]:
    """C + A B, [block, row, column], and the sum of the sizes of all terms, for error bounds."""
    with np.errstate(all="ignore"):
        exact = c + np.einsum("bik,bkj->bij", a, b)
        sizes = np.abs(c) + np.einsum("bik,bkj->bij", np.abs(a), np.abs(b))
    return exact, sizes
