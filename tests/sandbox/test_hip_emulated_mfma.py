"""Every matrix builtin of the emulation against the independent model in `matrix_core`, on both architectures."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sandbox.guest.hip.emulated import library
from tests.sandbox import hip_emulation as emulation
from tests.sandbox import matrix_core as core
from tests.sandbox.matrix_core import Array, Shape

pytestmark = pytest.mark.slow
BYTES = {"f64": 8, "f32": 4, "xf32": 4, "f16": 2, "bf16": 2, "fp8": 1, "bf8": 1, "i8": 1}
_BOTH = [
    *[("f32_32x32x1f32", 32, 1, 2, "f32"), ("f32_16x16x1f32", 16, 1, 4, "f32"), ("f32_4x4x1f32", 4, 1, 16, "f32")],
    *[("f32_32x32x2f32", 32, 2, 1, "f32"), ("f32_16x16x4f32", 16, 4, 1, "f32")],
    *[("f32_32x32x4f16", 32, 4, 2, "f16"), ("f32_16x16x4f16", 16, 4, 4, "f16"), ("f32_4x4x4f16", 4, 4, 16, "f16")],
    *[("f32_32x32x8f16", 32, 8, 1, "f16"), ("f32_16x16x16f16", 16, 16, 1, "f16")],
    *[("f32_32x32x4bf16_1k", 32, 4, 2, "bf16"), ("f32_16x16x4bf16_1k", 16, 4, 4, "bf16")],
    *[("f32_4x4x4bf16_1k", 4, 4, 16, "bf16"), ("f32_32x32x8bf16_1k", 32, 8, 1, "bf16")],
    *[("f32_16x16x16bf16_1k", 16, 16, 1, "bf16"), ("i32_32x32x4i8", 32, 4, 2, "i8"), ("i32_16x16x4i8", 16, 4, 4, "i8")],
    *[("i32_4x4x4i8", 4, 4, 16, "i8"), ("i32_32x32x16_i8", 32, 16, 1, "i8"), ("i32_16x16x32_i8", 16, 32, 1, "i8")],
    *[("f64_16x16x4f64", 16, 4, 1, "f64"), ("f64_4x4x4f64", 4, 4, 4, "f64")],
]
_ONLY = {
    "gfx942": [("f32_16x16x8_xf32", 16, 8, 1, "xf32"), ("f32_32x32x4_xf32", 32, 4, 1, "xf32")],
    "gfx950": [
        *[("f32_16x16x32_f16", 16, 32, 1, "f16"), ("f32_32x32x16_f16", 32, 16, 1, "f16")],
        *[("f32_16x16x32_bf16", 16, 32, 1, "bf16"), ("f32_32x32x16_bf16", 32, 16, 1, "bf16")],
        *[("i32_16x16x64_i8", 16, 64, 1, "i8"), ("i32_32x32x32_i8", 32, 32, 1, "i8")],
    ],
}


def shapes(arch: str) -> list[Shape]:
    plain = [Shape(n, m, k, g, t, t, n[:3], arch) for n, m, k, g, t in [*_BOTH, *_ONLY[arch]]]
    eight = [
        Shape(f"f32_{m}x{m}x{k}_{a}_{b}", m, k, 1, a, b, "f32", arch)
        for m, k in ((16, 32), (32, 16))
        for a in ("fp8", "bf8")
        for b in ("fp8", "bf8")
    ]
    return [*plain, *eight]


def source(arch: str) -> str:
    """A kernel for each instruction: lane l's registers are the l-th rows of a, b and d."""
    made = ["#include <hip/hip_runtime.h>"]
    for shape in shapes(arch):
        function = f"__builtin_amdgcn_mfma_{shape.name}"
        made.append(
            f"""template <class A, class B, class C>
__global__ void k_{shape.name}(C (*)(A, B, C, int, int, int), const char* a, const char* b, char* d) {{
  A x; B y; C z;
  __builtin_memcpy(&x, a + threadIdx.x * sizeof x, sizeof x);
  __builtin_memcpy(&y, b + threadIdx.x * sizeof y, sizeof y);
  __builtin_memcpy(&z, d + threadIdx.x * sizeof z, sizeof z);
  z = {function}(x, y, z, 0, 0, 0);
  __builtin_memcpy(d + threadIdx.x * sizeof z, &z, sizeof z);
}}
extern "C" void go_{shape.name}(const char* a, const char* b, char* d) {{
  k_{shape.name}<<<1, 64>>>(&{function}, a, b, d);
}}"""
        )
    return "\n".join(made)


def draw(kind: str, arch: str, count: int, how: str, random: np.random.Generator) -> Array:
    """Bytes [64, count * size] of an operand: any bits, small whole numbers, or the values that break things."""
    size = BYTES[kind]
    if kind == "i8":
        low, high = (-3, 4) if how == "whole" else (-128, 128)
        return random.integers(low, high, (64, count)).astype(np.int8).view(np.uint8)
    dtype = core.TORCH.get(kind) or core.FP8[arch][kind]
    if how == "whole":
        values = torch.from_numpy(random.integers(-3, 4, (64, count)).astype(np.float32))
        return values.to(dtype).view(torch.uint8).numpy().reshape(64, count * size)
    if how == "random":
        values = torch.from_numpy(random.standard_normal((64, count)))
        return values.to(dtype).view(torch.uint8).numpy().reshape(64, count * size)
    if size == 1:
        return random.integers(0, 256, (64, count)).astype(np.uint8)
    info = torch.finfo(dtype)
    special = [
        0.0,
        -0.0,
        info.max,
        -info.max,
        info.tiny,
        info.smallest_normal / 2,
        1.0,
        -1.0,
        1 + info.eps,
        1e-3,
        -65504,
    ]
    rare = [float("inf"), float("-inf"), float("nan")]
    picks = random.choice(np.array(special), (64, count))
    wild = random.random((64, count)) < 0.003
    values = torch.from_numpy(np.where(wild, random.choice(np.array(rare), (64, count)), picks))
    return values.to(dtype).view(torch.uint8).numpy().reshape(64, count * size)


@pytest.fixture(scope="module", params=["gfx942", "gfx950"])
def made(request: pytest.FixtureRequest) -> tuple[str, library.Library]:
    return request.param, library.Library(emulation.built(source(request.param), request.param), arch=request.param)


def run(made: library.Library, shape: Shape, a: Array, b: Array, c: Array) -> Array:
    d = torch.from_numpy(c.copy())
    emulation.call(made, f"go_{shape.name}", a=torch.from_numpy(a.copy()), b=torch.from_numpy(b.copy()), d=d)
    return d.numpy()


def test_plain_instructions(made: tuple[str, library.Library]) -> None:
    arch, made_library = made
    for shape in shapes(arch):
        for how in ("whole", "random", "adversarial"):
            random = np.random.default_rng(abs(hash((shape.name, how))) % 2**32)
            a, b = (draw(kind, arch, shape.each, how, random) for kind in (shape.a, shape.b))
            c = draw("f64" if shape.out == "f64" else "f32", arch, shape.outputs, how, random)
            if shape.out == "i32":
                c = random.integers(-1000, 1000, (64, shape.outputs)).astype(np.int32)
            got = run(made_library, shape, a, b, c)
            with np.errstate(all="ignore"):
                check(shape, how, a, b, c, got)


def check(shape: Shape, how: str, a: Array, b: Array, c: Array, got: Array) -> None:
    """Whole numbers exactly; else within (K + 1) units in the last place of the sum of the terms' sizes."""
    of_a, of_b, of_d = core.places(shape)
    rows, depth, blocks = shape.rows, shape.depth, shape.blocks
    left = core.matrix(core.bits_to_values(shape.a, shape.arch, a), of_a, (blocks, rows, depth))
    right = core.matrix(core.bits_to_values(shape.b, shape.arch, b), of_b, (blocks, depth, rows))
    out = {"f32": np.float32, "f64": np.float64, "i32": np.int32}[shape.out]
    wide = np.int64 if shape.out == "i32" else np.float64
    before = core.matrix(c.view(out).astype(wide), of_d, (blocks, rows, rows))
    after = core.matrix(got.view(out).astype(wide), of_d, (blocks, rows, rows))
    exact, sizes = core.multiply(left, right, before)
    if shape.out == "i32" or how == "whole":
        assert np.array_equal(after, exact), (shape.name, how)
        return
    unit = 2.0**-53 if shape.out == "f64" else 2.0**-24
    rounded = exact.astype(out).astype(np.float64)
    bound = np.where(np.isfinite(sizes), (depth + 1) * unit * sizes + np.finfo(out).tiny * unit * 2, np.inf)
    same = (after == rounded) | (np.isnan(after) & np.isnan(exact)) | (np.abs(after - exact) <= bound)
    # Where terms far past the largest number cancel, what is left is their rounding: anything within the bound.
    same |= np.isinf(after) & (np.abs(exact) + bound >= np.finfo(out).max) & np.isfinite(sizes)
    # In f64 itself a product may pass it: what comes of that hangs on the order and on fused steps.
    same |= (out is np.float64) & ~np.isfinite(sizes)
    assert same.all(), (shape.name, how, after[~same][:4], exact[~same][:4])
    if out is np.float32:
        assert np.isnan(exact[np.isnan(after)]).all(), (shape.name, how)


FORMATS = ("fp8", "bf8", "e2m3", "e3m2", "e2m1")
BITS = (8, 8, 6, 6, 4)
SCALED = """#include <hip/hip_runtime.h>
template <int FA, int FB>
__global__ void small(const char* a, const char* b, const int* sa, const int* sb, float* d) {
  kw::I8 x, y; kw::F4 z;
  int l = threadIdx.x;
  __builtin_memcpy(&x, a + l * 32, 32), __builtin_memcpy(&y, b + l * 32, 32), __builtin_memcpy(&z, d + l * 4, 16);
  z = __builtin_amdgcn_mfma_scale_f32_16x16x128_f8f6f4(x, y, z, FA, FB, 1, sa[l], 2, sb[l]);
  __builtin_memcpy(d + l * 4, &z, 16);
}
template <int FA, int FB>
__global__ void large(const char* a, const char* b, const int* sa, const int* sb, float* d) {
  kw::I8 x, y; kw::F16 z;
  int l = threadIdx.x;
  __builtin_memcpy(&x, a + l * 32, 32), __builtin_memcpy(&y, b + l * 32, 32), __builtin_memcpy(&z, d + l * 16, 64);
  z = __builtin_amdgcn_mfma_scale_f32_32x32x64_f8f6f4(x, y, z, FA, FB, 1, sa[l], 2, sb[l]);
  __builtin_memcpy(d + l * 16, &z, 64);
}
#define GO(M, FA, FB) M<FA, FB><<<1, 64>>>(a, b, sa, sb, d);
#define ALL(M, FA) if (fb == 0) GO(M, FA, 0) if (fb == 1) GO(M, FA, 1) if (fb == 2) GO(M, FA, 2) \
  if (fb == 3) GO(M, FA, 3) if (fb == 4) GO(M, FA, 4)
extern "C" void go(const char* a, const char* b, const int* sa, const int* sb, float* d, int rows, int fa, int fb) {
  if (rows == 16) { if (fa == 0) { ALL(small, 0) } if (fa == 1) { ALL(small, 1) } if (fa == 2) { ALL(small, 2) }
    if (fa == 3) { ALL(small, 3) } if (fa == 4) { ALL(small, 4) } }
  else { if (fa == 0) { ALL(large, 0) } if (fa == 1) { ALL(large, 1) } if (fa == 2) { ALL(large, 2) }
    if (fa == 3) { ALL(large, 3) } if (fa == 4) { ALL(large, 4) } }
}
"""


def short_value(kind: int, code: int) -> float:
    """OCP Microscaling Formats v1.0, tables 5.3.1 to 5.3.3."""
    if kind == 4:
        return (-1.0 if code & 8 else 1.0) * (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)[code & 7]
    mantissa, bias = (3, 1) if kind == 2 else (2, 3)
    exponent, rest = (code & 31) >> mantissa, code & ((1 << mantissa) - 1)
    size = (
        rest * 2.0 ** (1 - bias - mantissa) if not exponent else (1 + rest * 2.0**-mantissa) * 2.0 ** (exponent - bias)
    )
    return -size if code & 32 else size


def short_values(kind: int, raw: Array) -> Array:
    """Bytes [64, 32] of a lane's operand to its 32 values."""
    if kind < 2:
        return core.bits_to_values(FORMATS[kind], "gfx950", raw)
    stream = np.unpackbits(raw, axis=1, bitorder="little")[:, : 32 * BITS[kind]].reshape(64, 32, BITS[kind])
    codes = (stream * (1 << np.arange(BITS[kind]))).sum(axis=2)
    return np.vectorize(lambda code: short_value(kind, int(code)))(codes)


@pytest.mark.parametrize("rows", [16, 32])
def test_scaled_instructions(rows: int) -> None:
    made = library.Library(emulation.built(SCALED, "gfx950"), arch="gfx950")
    depth = 2048 // rows
    for fa in range(5):
        for fb in range(5):
            random = np.random.default_rng(rows * 100 + fa * 10 + fb)
            a, b = (random.integers(0, 256, (64, 32)).astype(np.uint8) for _ in range(2))
            sa, sb = (random.integers(0, 2**31, 64).astype(np.int32) for _ in range(2))
            if fa % 2:
                sa, sb = (s & 0x0F0F0F0F | 0x70707070 for s in (sa, sb))
            c = random.standard_normal((64, rows * rows // 64)).astype(np.float32)
            d = torch.from_numpy(c.copy())
            tensors = [torch.from_numpy(x.copy()) for x in (a, b, sa, sb)]
            names = ("a", "b", "sa", "sb")
            emulation.call(made, "go", **dict(zip(names, tensors, strict=True)), d=d, rows=rows, fa=fa, fb=fb)
            with np.errstate(all="ignore"):
                check_scaled(rows, depth, (fa, fb), (a, b), (sa >> 8 & 255, sb >> 16 & 255), (c, d.numpy()))


def check_scaled(
    rows: int,
    depth: int,
    kinds: tuple[int, int],
    raw: tuple[Array, Array],
    scales: tuple[Array, Array],
    cd: tuple[Array, Array],
) -> None:
    """Values by Triton's operand layout for the format's width, scales by its layout of mfma scales."""
    sides = []
    for operand in (0, 1):
        layout = core.triton_layouts(rows, depth, 16 if kinds[operand] < 2 else 32, "gfx950", 32)[operand]
        at = core.spread(layout, 32).reshape(-1, 2)
        values = np.zeros((rows, depth) if operand == 0 else (depth, rows))
        values[at[:, 0], at[:, 1]] = short_values(kinds[operand], raw[operand]).reshape(-1)
        where = core.spread(core.scale_layout(operand, rows, depth), 1)[:, 0]
        factor = np.zeros((rows, depth // 32))
        codes = scales[operand]
        factor[where[:, 0], where[:, 1]] = np.where(codes == 255, np.nan, 2.0 ** (codes.astype(np.float64) - 127))
        wide = np.repeat(factor, 32, axis=1)
        sides.append(values * (wide if operand == 0 else wide.T))
    out = core.spread(core.triton_layouts(rows, depth, 16, "gfx950", 32)[2], rows * rows // 64)
    c, d = (np.zeros((rows, rows)) for _ in range(2))
    for made, registers in ((c, cd[0]), (d, cd[1])):
        made[out[..., 0], out[..., 1]] = registers
    exact, sizes = core.multiply(sides[0][None], sides[1][None], c[None])
    bound = (depth + 1) * 2.0**-24 * sizes[0] + 2.0**-149
    rounded = exact[0].astype(np.float32).astype(np.float64)
    same = (d == rounded) | (np.isnan(d) & np.isnan(exact[0])) | (np.abs(d - exact[0]) <= bound)
    same |= np.isinf(d) & (np.abs(exact[0]) + bound >= np.finfo(np.float32).max)
    assert same.all(), (rows, kinds, d[~same][:4], exact[0][~same][:4])
