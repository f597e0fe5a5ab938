"""Conversion builtins against torch's casts, and gfx950's lane swaps."""

import pytest
import torch

from sandbox.guest.hip.emulated import library
from tests.sandbox import hip_emulation as emulation

pytestmark = pytest.mark.slow
SOURCE = r"""
#include <hip/hip_runtime.h>
__global__ void down(const float* x, unsigned char* f, unsigned char* b, int n) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (2 * i + 1 >= n) return;
  unsigned low = __builtin_amdgcn_cvt_pk_fp8_f32(x[2 * i], x[2 * i + 1], 0x55555555, false);
  unsigned high = __builtin_amdgcn_cvt_pk_bf8_f32(x[2 * i], x[2 * i + 1], 0x55555555, true);
  f[2 * i] = low, f[2 * i + 1] = low >> 8;
  b[2 * i] = high >> 16, b[2 * i + 1] = high >> 24;
}
extern "C" void go_down(const float* x, unsigned char* f, unsigned char* b, int n) {
  down<<<(n + 127) / 128, 64>>>(x, f, b, n);
}

__global__ void up(const unsigned* x, float* f, float* b) {
  int i = threadIdx.x;
  for (int k = 0; k < 4; k++) {
    f[4 * i + k] = k == 0   ? __builtin_amdgcn_cvt_f32_fp8(x[i], 0)
                   : k == 1 ? __builtin_amdgcn_cvt_f32_fp8(x[i], 1)
                            : __builtin_amdgcn_cvt_pk_f32_fp8(x[i], true)[k - 2];
    b[4 * i + k] = k < 2 ? __builtin_amdgcn_cvt_pk_f32_bf8(x[i], false)[k] : __builtin_amdgcn_cvt_f32_bf8(x[i], k);
  }
}
extern "C" void go_up(const unsigned* x, float* f, float* b) { up<<<1, 64>>>(x, f, b); }

#ifdef __gfx950__
__global__ void swaps(unsigned* out) {
  unsigned l = threadIdx.x;
  auto wide = __builtin_amdgcn_permlane32_swap(l, l + 100, false, false);
  auto near = __builtin_amdgcn_permlane16_swap(l, l + 100, false, false);
  out[l] = wide.x, out[64 + l] = wide.y, out[128 + l] = near.x, out[192 + l] = near.y;
}
extern "C" void go_swaps(unsigned* out) { swaps<<<1, 64>>>(out); }
#endif
"""
KINDS = {
    "gfx942": (torch.float8_e4m3fnuz, torch.float8_e5m2fnuz),
    "gfx950": (torch.float8_e4m3fn, torch.float8_e5m2),
}


@pytest.mark.parametrize("arch", KINDS)
def test_fp8_is_the_architectures_own(arch: str) -> None:
    made = library.Library(emulation.built(SOURCE, arch), arch=arch)
    every = torch.arange(256, dtype=torch.int32).to(torch.uint8)
    values = torch.cat([every.view(kind).float() for kind in KINDS[arch]])
    ties = (values[:-1] + values[1:]) / 2
    x = torch.cat([values, ties, torch.randn(4096) * 30, torch.tensor([1e-9, -1e-9, 1e9, float("inf"), float("nan")])])
    x = torch.cat([x, x[: len(x) % 2]])
    found = [torch.zeros(len(x), dtype=torch.uint8) for _ in range(2)]
    emulation.call(made, "go_down", x=x, f=found[0], b=found[1], n=len(x))
    for got, kind in zip(found, KINDS[arch], strict=True):
        # Past the largest torch saturates some formats; the instruction, without clamp, does not.
        inside = (x.abs() <= torch.finfo(kind).max) | x.isnan()
        expected = x.to(kind).float().nan_to_num(9e9)
        assert torch.equal(got.view(kind).float().nan_to_num(9e9)[inside], expected[inside])
        assert not got.view(kind)[x == 1e9].float().isfinite().any()
    back = [torch.zeros(256) for _ in range(2)]
    emulation.call(made, "go_up", x=every, f=back[0], b=back[1])
    for got, kind in zip(back, KINDS[arch], strict=True):
        assert torch.equal(got.nan_to_num(9e9), every.view(kind).float().nan_to_num(9e9))


def test_swaps_of_halves_and_rows() -> None:
    made = library.Library(emulation.built(SOURCE, "gfx950"), arch="gfx950")
    out = torch.zeros(4, 4, 16, dtype=torch.int32)
    emulation.call(made, "go_swaps", out=out)
    first = torch.arange(64, dtype=torch.int32).view(4, 16)
    second = first + 100
    assert torch.equal(out[0], torch.cat([first[:2], second[:2]]))
    assert torch.equal(out[1], torch.cat([first[2:], second[2:]]))
    assert torch.equal(out[2], torch.stack([first[0], second[0], first[2], second[2]]))
    assert torch.equal(out[3], torch.stack([first[1], second[1], first[3], second[3]]))
