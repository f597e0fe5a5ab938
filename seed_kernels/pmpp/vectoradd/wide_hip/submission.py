#!POPCORN leaderboard vectoradd_v2
#!POPCORN gpus H100
# Elementwise fp16 addition in portable HIP: a lane moves 16 bytes at a time, as in the Triton seed `flat`, whose twin
# this is. Chips: any that HIP compiles for, and NVIDIA's by a thin header (sandbox/guest/hip/include/nvidia).
from task import input_t, output_t
from torch.utils.cpp_extension import load_inline

THREADS = 256  # knob
VECTORS = 2  # knob

HIP = r"""
#include <hip/hip_runtime.h>
#include <hip/hip_fp16.h>

struct alignas(16) Eight {
  __half2 pair[4];
};

// Eight elements at a time, VECTORS times a lane, a block's vectors side by side.
__global__ void add_wide(const Eight* a, const Eight* b, Eight* out, long vectors) {
  long first = long(blockIdx.x) * blockDim.x * VECTORS + threadIdx.x;
  for (int turn = 0; turn < VECTORS; ++turn) {
    long at = first + long(turn) * blockDim.x;
    if (at >= vectors) return;
    Eight left = a[at], right = b[at], sum;
    for (int pair = 0; pair < 4; ++pair) sum.pair[pair] = __hadd2(left.pair[pair], right.pair[pair]);
    out[at] = sum;
  }
}

// The elements that no vector holds, or all of them where the addresses are not whole vectors.
__global__ void add_rest(const __half* a, const __half* b, __half* out, long first, long elements) {
  long at = first + long(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at < elements) out[at] = __hadd(a[at], b[at]);
}

void add(torch::Tensor a, torch::Tensor b, torch::Tensor out, int64_t threads) {
  long elements = a.numel();
  auto left = (const __half*)a.data_ptr(), right = (const __half*)b.data_ptr();
  auto sum = (__half*)out.data_ptr();
  bool whole = ((uintptr_t)left | (uintptr_t)right | (uintptr_t)sum) % sizeof(Eight) == 0;
  long vectors = whole ? elements / 8 : 0, first = vectors * 8;
  if (vectors > 0) {
    long each = threads * VECTORS;
    add_wide<<<(vectors + each - 1) / each, threads>>>((const Eight*)left, (const Eight*)right, (Eight*)sum, vectors);
  }
  if (first < elements)
    add_rest<<<(elements - first + threads - 1) / threads, threads>>>(left, right, sum, first, elements);
}
"""
CPP = "void add(torch::Tensor a, torch::Tensor b, torch::Tensor out, int64_t threads);"
module = load_inline(
    name="vector_add_wide",
    cpp_sources=CPP,
    cuda_sources=f"#define VECTORS {VECTORS}\n" + HIP,
    functions=["add"],
    extra_cuda_cflags=["-O3"],
)


def custom_kernel(data: input_t) -> output_t:
    a, b, out = data
    module.add(a, b, out, THREADS)
    return out
