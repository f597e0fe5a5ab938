"""Ten planted bugs, each beside its right twin: the twin passes in the checking mode, the bug is caught and named.

A wrong lane layout and a wrong fp8 flavour are no fault of memory or order: they are caught as wrong answers.
"""

import pytest
import torch

from sandbox.guest.hip.emulated import fault, library
from tests.sandbox import hip_emulation as emulation

pytestmark = pytest.mark.slow
SOURCE = r"""
#include <hip/hip_runtime.h>
typedef float f32x4 __attribute__((ext_vector_type(4)));

// 16x16 of A [16, K] times B [16, K]^T, both fp8; K a multiple of 32.
template <bool Bug>
__global__ void layout(const long* a, const long* b, float* c, int K) {
  int lane = threadIdx.x;
  f32x4 sum = {};
  for (int k = 0; k < K / 32; k++) {
    int at = (lane & 15) * (K / 8) + k * 4 + (lane >> 4);
    sum = __builtin_amdgcn_mfma_f32_16x16x32_fp8_fp8(a[at], b[at], sum, 0, 0, 0);
  }
  for (int i = 0; i < 4; i++) c[(Bug ? 4 * i + (lane >> 4) : 4 * (lane >> 4) + i) * 16 + (lane & 15)] = sum[i];
}

template <bool Bug>
__global__ void barrier(const float* x, float* out) {
  __shared__ float tile[256];
  tile[threadIdx.x] = x[threadIdx.x];
  if (!Bug) __syncthreads();
  out[threadIdx.x] = tile[255 - threadIdx.x];
}

template <bool Bug>
__global__ void race(float* out) {
  if (threadIdx.x) return;
  if (Bug) out[0] = out[0] + 1;
  else atomicAdd(out, 1.0f);
}

template <bool Bug>
__global__ void tile(const float* x, float* out, int n) {
  float sum = 0;
  for (int t = 0; Bug ? t <= n / 64 : t < n / 64; t++) sum += x[t * 64 + threadIdx.x];
  out[threadIdx.x] = sum;
}

// Block 0 writes and raises a flag, block 1 waits for it and reads.
template <int Scope, bool Fence, bool Order>
__global__ void hand_over(float* data, int* flag, float* out) {
  int t = threadIdx.x;
  if (blockIdx.x == 0) {
    data[t] = t;
    __syncthreads();
    if (Fence) __threadfence();
    if (t == 0) __hip_atomic_store(flag, 1, Order ? __ATOMIC_RELEASE : __ATOMIC_RELAXED, Scope);
  } else {
    if (t == 0) while (!__hip_atomic_load(flag, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT)) {}
    __syncthreads();
    out[t] = data[t] + 1;
  }
}

template <bool Bug>
__global__ void unwritten(const float* x, float* out, int n) {
  __shared__ float part[64];
  int t = threadIdx.x;
  if (t < n || !Bug) part[t] = t < n ? x[t] : 0;
  __syncthreads();
  out[t] = part[t] + part[63 - t];
}

// Lanes of one wave exchange through LDS.
template <bool Bug>
__global__ void step(const float* x, float* out) {
  __shared__ float tile[64];
  int t = threadIdx.x;
  for (int i = 0; i < 2; i++) {
    tile[t] = x[t] + i;
    if (!Bug) __builtin_amdgcn_wave_barrier();
    out[t] = tile[63 - t];
    if (!Bug) __builtin_amdgcn_wave_barrier();
  }
}

template <bool Bug>
__global__ void divergent(float* out) {
  if (!Bug || threadIdx.x < 100) __syncthreads();
  out[threadIdx.x] = 1;
}

template <bool Bug>
__global__ void bounds(float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (Bug || i < n) out[i] = i;
}
template <bool Bug>
__global__ void shared_bounds(float* out) {
  __shared__ float a[64];
  __shared__ float b[64];
  b[threadIdx.x] = 1;
  a[threadIdx.x + (Bug ? 1 : 0)] = 2;
  out[threadIdx.x] = b[threadIdx.x];
}

// An fp8 of this architecture to float, by hand, with the bias of the one or the other.
template <int Bias>
__global__ void flavour(const unsigned char* x, float* out) {
  unsigned bits = x[threadIdx.x], e = bits >> 3 & 15, m = bits & 7;
  float size = e ? ldexpf(1 + m / 8.0f, int(e) - Bias) : ldexpf(m / 8.0f, 1 - Bias);
  out[threadIdx.x] = bits & 128 ? -size : size;
}

extern "C" {
void go_layout(int bug, const long* a, const long* b, float* c, int K) {
  if (bug) layout<true><<<1, 64>>>(a, b, c, K);
  else layout<false><<<1, 64>>>(a, b, c, K);
}
void go_barrier(int bug, const float* x, float* out) {
  if (bug) barrier<true><<<1, 256>>>(x, out);
  else barrier<false><<<1, 256>>>(x, out);
}
void go_race(int bug, float* out) {
  if (bug) race<true><<<8, 64>>>(out);
  else race<false><<<8, 64>>>(out);
}
void go_tile(int bug, const float* x, float* out, int n) {
  if (bug) tile<true><<<1, 64>>>(x, out, n);
  else tile<false><<<1, 64>>>(x, out, n);
}
void go_scope(int bug, float* data, int* flag, float* out) {
  if (bug) hand_over<__HIP_MEMORY_SCOPE_WORKGROUP, false, true><<<2, 128>>>(data, flag, out);
  else hand_over<__HIP_MEMORY_SCOPE_AGENT, false, true><<<2, 128>>>(data, flag, out);
}
void go_fence(int bug, float* data, int* flag, float* out) {
  if (bug) hand_over<__HIP_MEMORY_SCOPE_AGENT, false, false><<<2, 128>>>(data, flag, out);
  else hand_over<__HIP_MEMORY_SCOPE_AGENT, true, false><<<2, 128>>>(data, flag, out);
}
void go_unwritten(int bug, const float* x, float* out, int n) {
  if (bug) unwritten<true><<<1, 64>>>(x, out, n);
  else unwritten<false><<<1, 64>>>(x, out, n);
}
void go_step(int bug, const float* x, float* out) {
  if (bug) step<true><<<1, 64>>>(x, out);
  else step<false><<<1, 64>>>(x, out);
}
void go_divergent(int bug, float* out) {
  if (bug) divergent<true><<<1, 256>>>(out);
  else divergent<false><<<1, 256>>>(out);
}
void go_bounds(int bug, float* out, int n) {
  if (bug) bounds<true><<<2, 64>>>(out, n);
  else bounds<false><<<2, 64>>>(out, n);
}
void go_shared_bounds(int bug, float* out) {
  if (bug) shared_bounds<true><<<1, 64>>>(out);
  else shared_bounds<false><<<1, 64>>>(out);
}
void go_flavour(int bug, const unsigned char* x, float* out) {
  if (bug) flavour<7><<<1, 64>>>(x, out);
  else flavour<8><<<1, 64>>>(x, out);
}
}
"""


@pytest.fixture(scope="module")
def made() -> library.Library:
    return library.Library(emulation.built(SOURCE), check=True)


def zeros(*size: int) -> torch.Tensor:
    return torch.zeros(*size)


def flag() -> torch.Tensor:
    return torch.zeros(1, dtype=torch.int32)


FAULTS = [
    ("barrier", lambda: {"x": torch.ones(256), "out": zeros(256)}, "missing barrier", "tile[255 - threadIdx.x]"),
    ("race", lambda: {"out": zeros(1)}, "race", "out[0] = out[0] + 1"),
    ("tile", lambda: {"x": torch.ones(256), "out": zeros(64), "n": 256}, "out of bounds", "sum += x[t * 64"),
    ("scope", lambda: {"data": zeros(128), "flag": flag(), "out": zeros(128)}, "wrong scope", "__hip_atomic_load(flag"),
    ("fence", lambda: {"data": zeros(128), "flag": flag(), "out": zeros(128)}, "missing fence", "out[t] = data[t] + 1"),
    (
        "unwritten",
        lambda: {"x": torch.ones(50), "out": zeros(64), "n": 50},
        "uninitialised shared memory",
        "part[63 - t]",
    ),
    ("step", lambda: {"x": torch.ones(64), "out": zeros(64)}, "lanes out of step", "tile[63 - t]"),
    ("divergent", lambda: {"out": zeros(256)}, "divergent barrier", "if (!Bug || threadIdx.x < 100) __syncthreads()"),
    ("bounds", lambda: {"out": zeros(100), "n": 100}, "out of bounds", "if (Bug || i < n) out[i] = i"),
    ("shared_bounds", lambda: {"out": zeros(64)}, "out of bounds", "a[threadIdx.x + (Bug ? 1 : 0)] = 2"),
]


@pytest.mark.parametrize(("name", "arguments", "kind", "line"), FAULTS, ids=[row[0] for row in FAULTS])
def test_a_bug_is_named_and_its_twin_passes(
    made: library.Library, name: str, arguments: object, kind: str, line: str
) -> None:
    assert callable(arguments)
    emulation.call(made, f"go_{name}", bug=0, **arguments())
    with pytest.raises(fault.HipFault) as caught:
        emulation.call(made, f"go_{name}", bug=1, **arguments())
    assert caught.value.kind == kind
    assert any(line in SOURCE.splitlines()[place.line - 1] for place in caught.value.places)


def test_the_place_of_an_access_out_of_bounds_is_exact(made: library.Library) -> None:
    with pytest.raises(fault.HipFault) as caught:
        emulation.call(made, "go_bounds", bug=1, out=zeros(100), n=100)
    assert (caught.value.places[0].block, caught.value.places[0].thread) == ((1, 0, 0), (36, 0, 0))
    assert "0 bytes past the end of out (400 bytes)" in caught.value.message


def test_a_wrong_lane_layout_is_a_wrong_answer(made: library.Library) -> None:
    a, b = (torch.randn(16, 64).to(torch.float8_e4m3fnuz) for _ in range(2))
    right, wrong = zeros(16, 16), zeros(16, 16)
    emulation.call(made, "go_layout", bug=0, a=a, b=b, c=right, K=64)
    emulation.call(made, "go_layout", bug=1, a=a, b=b, c=wrong, K=64)
    expected = a.float() @ b.float().T
    torch.testing.assert_close(right, expected)
    assert (wrong - expected).abs().max() > 1


def test_a_wrong_fp8_flavour_is_a_wrong_answer(made: library.Library) -> None:
    x = torch.randn(64).to(torch.float8_e4m3fnuz)
    right, wrong = zeros(64), zeros(64)
    emulation.call(made, "go_flavour", bug=0, x=x, out=right)
    emulation.call(made, "go_flavour", bug=1, x=x, out=wrong)
    assert torch.equal(right, x.float()) and torch.equal(wrong, 2 * x.float())
