"""Our stand-ins for ROCm's headers, run by the emulation: rocWMMA's products, half's functions, groups of lanes."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest
import torch

from sandbox import hip_cache
from tests.sandbox.guest_client import GuestClient

FNUZ = torch.float8_e4m3fnuz
SUBMISSION = r'''
import torch
from torch.utils.cpp_extension import load_inline

hip = r"""
#include <hip/hip_runtime.h>
#include <hip/hip_cooperative_groups.h>
#include <hip/hip_fp16.h>
#include <rocwmma/rocwmma.hpp>
namespace cg = cooperative_groups;
using Brain = hip_bfloat16;
using Eight = __hip_fp8_e4m3_fnuz;
template <int SIDE, int DEPTH, class T, class LayoutA, class LayoutB>
__global__ void product(const T* a, const T* b, float* out, int lda, int ldb) {
  rocwmma::fragment<rocwmma::matrix_a, SIDE, SIDE, DEPTH, T, LayoutA> left;
  rocwmma::fragment<rocwmma::matrix_b, SIDE, SIDE, DEPTH, T, LayoutB> right;
  rocwmma::fragment<rocwmma::accumulator, SIDE, SIDE, DEPTH, float> sum;
  rocwmma::fill_fragment(sum, 0.0f);
  rocwmma::load_matrix_sync(left, a, lda);
  rocwmma::load_matrix_sync(right, b, ldb);
  rocwmma::mma_sync(sum, left, right, sum);
  rocwmma::store_matrix_sync(out, sum, SIDE, rocwmma::mem_row_major);
}
// a: [SIDE, DEPTH], b: [DEPTH, SIDE], each in rows or, as its transposed, in columns.
template <int SIDE, int DEPTH, class T>
torch::Tensor multiplied(const torch::Tensor& a, const torch::Tensor& b) {
  auto out = torch::empty({SIDE, SIDE}, a.options().dtype(torch::kFloat));
  auto x = (const T*)a.data_ptr(), y = (const T*)b.data_ptr();
  auto z = out.data_ptr<float>();
  using Rows = rocwmma::row_major;
  using Columns = rocwmma::col_major;
  if (a.stride(1) == 1 && b.stride(1) == 1) product<SIDE, DEPTH, T, Rows, Rows><<<1, 64>>>(x, y, z, DEPTH, SIDE);
  else if (a.stride(1) == 1) product<SIDE, DEPTH, T, Rows, Columns><<<1, 64>>>(x, y, z, DEPTH, DEPTH);
  else if (b.stride(1) == 1) product<SIDE, DEPTH, T, Columns, Rows><<<1, 64>>>(x, y, z, SIDE, SIDE);
  else product<SIDE, DEPTH, T, Columns, Columns><<<1, 64>>>(x, y, z, SIDE, DEPTH);
  return out;
}
torch::Tensor multiply(torch::Tensor a, torch::Tensor b) {
  const bool small = a.size(0) == 16;
  switch (a.scalar_type()) {
    case torch::kHalf: return small ? multiplied<16, 32, _Float16>(a, b) : multiplied<32, 16, _Float16>(a, b);
    case torch::kBFloat16: return small ? multiplied<16, 16, Brain>(a, b) : multiplied<32, 8, Brain>(a, b);
    case torch::kFloat: return small ? multiplied<16, 8, float>(a, b) : multiplied<32, 4, float>(a, b);
    default: return small ? multiplied<16, 64, Eight>(a, b) : multiplied<32, 16, Eight>(a, b);
  }
}
__global__ void halves(const __half* in, __half* out) {
  auto tile = cg::tiled_partition<16>(cg::this_thread_block());
  __half2 pair = __halves2half2(in[threadIdx.x], __float2half(2.0f));
  __half most = __low2half(__hmul2(pair, pair));
  for (int by = 8; by; by /= 2) most = __hmax(most, tile.shfl_xor(most, by));
  out[threadIdx.x] = __hadd(most, hsqrt(__habs(in[threadIdx.x])));
}
torch::Tensor largest(torch::Tensor in) {
  auto out = torch::empty_like(in);
  halves<<<1, 64>>>((const __half*)in.data_ptr(), (__half*)out.data_ptr());
  return out;
}
"""
module = load_inline("shims", "", hip, functions=["multiply", "largest"])


def custom_kernel(data):
    return module.multiply(*data) if len(data) == 2 else module.largest(data[0])
'''


@pytest.mark.slow
def test_products_layouts_and_lanes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if importlib.util.find_spec("ziglang") is None:
        pytest.skip("needs ziglang")
    hip_cache.prepare()
    monkeypatch.setenv(hip_cache.VARIABLE, str(hip_cache.place()))
    draw = torch.Generator().manual_seed(7)
    with GuestClient("emulate", "gfx942", tmp_path / "log") as guest:
        assert guest.load(SUBMISSION) == {"op": "loaded"}
        for dtype, deep in (
            (torch.float16, (32, 16)),
            (torch.bfloat16, (16, 8)),
            (torch.float32, (8, 4)),
            (FNUZ, (64, 16)),
        ):
            for side, depth in zip((16, 32), deep, strict=True):
                check_products(guest, dtype, side, depth, draw)
        x = torch.randn(64, generator=draw).half()
        answer = guest.call(x)
        assert answer["op"] == "returned", answer
        most = (x * x).view(4, 16).amax(1, keepdim=True).expand(4, 16).reshape(64)
        assert torch.equal(guest.tensor(answer["tree"]), most + x.abs().float().sqrt().half())


def check_products(guest: GuestClient, dtype: Any, side: int, depth: int, draw: torch.Generator) -> None:
    """All four layouts; whole numbers, so that every product and sum is exact."""
    a = torch.randint(-8, 9, (side, depth), generator=draw).float()
    b = torch.randint(-8, 9, (depth, side), generator=draw).float()
    for left in (a.to(dtype), a.t().contiguous().to(dtype).t()):
        for right in (b.to(dtype), b.t().contiguous().to(dtype).t()):
            answer = guest.call(left, right)
            assert answer["op"] == "returned", answer
            assert torch.equal(guest.tensor(answer["tree"]), a @ b), (dtype, side, left.stride(), right.stride())
