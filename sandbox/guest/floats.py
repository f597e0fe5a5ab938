"""bf16 and fp8 arithmetic in Triton's interpreter, repaired.

As shipped (Triton 3.9) the interpreter adds and multiplies the bit patterns of bf16, truncates fp32 to bf16 where
hardware rounds to nearest even, and lets the mantissa of a value rounded up to fp8 run over (triton issue 11584). Here
both are computed in fp32 and rounded once, to nearest even. A value beyond an fp8 format's range becomes its largest
finite one, as Triton's saturating conversions do.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import triton.language as tl
from triton.runtime import interpreter

Handle = interpreter.TensorHandle
Builder = interpreter.InterpreterBuilder

_FP8 = {
    name: getattr(torch, dtype)
    for name, dtype in (
        ("fp8e4nv", "float8_e4m3fn"),
        ("fp8e4b8", "float8_e4m3fnuz"),
        ("fp8e5", "float8_e5m2"),
        ("fp8e5b16", "float8_e5m2fnuz"),
    )
}
"""Triton's names of the fp8 formats, and torch's dtypes of them."""


def install() -> None:
    """Repair `InterpreterBuilder`, and its reductions and scans, for the rest of this process."""
    _repair_casts()
    _repair_operators()
    _repair_dot()
    for operation in (interpreter.ReduceOps, interpreter.ScanOps):
        operation.apply_impl = _in_fp32(operation.apply_impl)


def _is_bf16(handle: Any) -> bool:
    return isinstance(handle, Handle) and handle.dtype.scalar == tl.bfloat16


@functools.cache
def _decoded(name: str) -> np.ndarray[Any, Any]:
    """Every value of an fp8 format by its bit pattern, as fp32."""
    return torch.arange(256, dtype=torch.uint8).view(_FP8[name]).float().numpy()


def builder_type(kind: Any, builder: Any) -> Any:
    """The interpreter's type of an fp8 format, None for other formats."""
    return getattr(builder, f"get_{kind.name}_ty")() if kind.name in _FP8 else None


def widen(handle: Any) -> Any:
    """A bf16 or fp8 handle as fp32, exactly; anything else as it is."""
    if not isinstance(handle, Handle):
        return handle
    kind = handle.dtype.scalar
    if kind == tl.bfloat16:
        bits = np.asarray(handle.data, dtype=np.uint16).astype(np.uint32) << 16
        return Handle(bits.view(np.float32), tl.float32)
    if str(kind) in _FP8:
        return Handle(_decoded(str(kind))[np.asarray(handle.data, dtype=np.uint8)], tl.float32)
    return handle


def to_bf16(values: Any) -> Any:
    """A handle of `values` rounded to bf16, to nearest even; NaN stays NaN."""
    wide = np.ascontiguousarray(values, dtype=np.float32)
    bits = wide.view(np.uint32)
    rounded = ((bits + np.uint32(0x7FFF) + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return Handle(np.where(np.isnan(wide), np.uint16(0x7FC0), rounded).reshape(np.shape(values)), tl.bfloat16)


def to_fp8(values: Any, kind: Any) -> Any:
    """A handle of `values` rounded to an fp8 format, to nearest even, saturating; NaN stays NaN."""
    dtype = _FP8[str(kind)]
    wide = torch.from_numpy(np.array(values, dtype=np.float32))
    largest = torch.finfo(dtype).max
    bits = wide.clamp(-largest, largest).to(dtype).view(torch.uint8).numpy()
    return Handle(bits.reshape(np.shape(values)), kind)


def _repair_casts() -> None:
    cast, convert = Builder.cast_impl, Builder.create_fp_to_fp

    def cast_impl(self: Any, source: Any, target: Any) -> Any:
        if target.scalar == source.dtype.scalar:
            return source
        if target.scalar == tl.bfloat16:
            return to_bf16(widen(source).data)
        wide = widen(source)
        return wide if target.scalar == wide.dtype.scalar else cast(self, wide, target)

    def create_fp_to_fp(self: Any, source: Any, target: Any, rounding: Any) -> Any:
        nearest = rounding is None or rounding == interpreter._ir.ROUNDING_MODE.RTNE
        if str(target.scalar) in _FP8 and nearest:
            return to_fp8(widen(source).data, target.scalar)
        if str(source.dtype.scalar) in _FP8 or (nearest and tl.bfloat16 in (source.dtype.scalar, target.scalar)):
            return cast_impl(self, source, target)
        return convert(self, source, target, rounding)

    Builder.cast_impl, Builder.create_fp_to_fp = cast_impl, create_fp_to_fp


def _repair_operators() -> None:
    binary, unary, clamp, fma = Builder.binary_op, Builder.unary_op, Builder.create_clampf, Builder.create_fma

    def binary_op(self: Any, left: Any, right: Any, operator: Any) -> Any:
        if not (_is_bf16(left) or _is_bf16(right)):
            return binary(self, left, right, operator)
        out = operator(widen(left).data, widen(right).data)
        return Handle(out, tl.int1) if out.dtype == np.bool_ else to_bf16(out)

    def unary_op(self: Any, value: Any, operator: Any) -> Any:
        return to_bf16(operator(widen(value).data)) if _is_bf16(value) else unary(self, value, operator)

    def create_clampf(self: Any, value: Any, low: Any, high: Any, propagate: Any) -> Any:
        if not _is_bf16(value):
            return clamp(self, value, low, high, propagate)
        return to_bf16(clamp(self, widen(value), widen(low), widen(high), propagate).data)

    def create_fma(self: Any, x: Any, y: Any, z: Any) -> Any:
        return to_bf16(fma(self, widen(x), widen(y), widen(z)).data) if _is_bf16(z) else fma(self, x, y, z)

    Builder.binary_op, Builder.unary_op = binary_op, unary_op
    Builder.create_clampf, Builder.create_fma = create_clampf, create_fma


def _repair_dot() -> None:
    dot = Builder.create_dot

    def create_dot(self: Any, a: Any, b: Any, accumulator: Any, precision: Any, most_imprecise: Any) -> Any:
        out = dot(self, widen(a), widen(b), widen(accumulator), precision, most_imprecise)
        return to_bf16(out.data) if _is_bf16(accumulator) else out

    Builder.create_dot = create_dot


def _in_fp32(apply: Callable[..., Any]) -> Callable[..., Any]:
    """A reduction or scan that computes bf16 inputs in fp32 and rounds what comes out; indices stay integers."""

    def apply_impl(self: Any, inputs: Any) -> Any:
        if not any(_is_bf16(value.handle) for value in inputs):
            return apply(self, inputs)
        out = apply(self, tuple(_tensor(widen(value.handle), value) for value in inputs))
        outs = out if isinstance(out, list | tuple) else (out,)
        narrow = [_is_bf16(value.handle) for value in inputs]
        return [
            _tensor(to_bf16(o.handle.data), o) if o.dtype == tl.float32 and narrow[min(i, len(narrow) - 1)] else o
            for i, o in enumerate(outs)
        ]

    return apply_impl


def _tensor(handle: Any, like: Any) -> Any:
    kind = tl.block_type(handle.dtype, list(like.type.shape)) if like.type.is_block() else handle.dtype
    return tl.core.tensor(handle, kind)
