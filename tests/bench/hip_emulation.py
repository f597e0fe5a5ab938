"""Seconds of HIP on the CPU: building the runtime and a kernel, and an fp8 product on the matrix instructions.

``python -m tests.bench.hip_emulation [--n 1024] [--rounds 5] [--check]``

Each time is wall clock on this machine; the product is held against torch's. The kernel is a plain one: 64x64 tiles of
four waves, 32x32x16 fp8 instructions, two barriers for every 16 of k.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import platform
import statistics
import tempfile
import time
from pathlib import Path

import torch

from sandbox.guest.hip.emulated import build, library

SOURCE = r"""
#include <hip/hip_runtime.h>
typedef float f32x16 __attribute__((ext_vector_type(16)));
// C [n, n] = A [n, n] times B [n, n]^T, fp8 of the architecture, row-major.
__global__ __launch_bounds__(256) void product(const long* a, const long* b, float* c, int n) {
  __shared__ long sa[128], sb[128];
  int t = threadIdx.x, lane = t & 63, wave = t >> 6, row = (wave >> 1) * 32, column = (wave & 1) * 32;
  f32x16 sum = {};
  for (int k = 0; k < n / 16; k++) {
    int u = t & 127;
    if (t < 128) sa[u] = a[(blockIdx.x * 64 + (u >> 1)) * (n / 8) + k * 2 + (u & 1)];
    else sb[u] = b[(blockIdx.y * 64 + (u >> 1)) * (n / 8) + k * 2 + (u & 1)];
    __syncthreads();
    long x = sa[(row + (lane & 31)) * 2 + (lane >> 5)], y = sb[(column + (lane & 31)) * 2 + (lane >> 5)];
    sum = __builtin_amdgcn_mfma_f32_32x32x16_fp8_fp8(x, y, sum, 0, 0, 0);
    __syncthreads();
  }
  for (int i = 0; i < 16; i++) {
    int at = blockIdx.x * 64 + row + 8 * (i / 4) + 4 * (lane / 32) + i % 4;
    c[at * n + blockIdx.y * 64 + column + (lane & 31)] = sum[i];
  }
}
extern "C" void go(const long* a, const long* b, float* c, int n) {
  product<<<dim3(n / 64, n / 64), 256>>>(a, b, c, n);
}
"""


def timed(made: library.Library, n: int) -> tuple[float, float, float]:
    """Seconds of one product, its largest error over the largest value, and the cores' seconds together."""
    a, b = (torch.randn(n, n).to(torch.float8_e4m3fnuz) for _ in range(2))
    c = torch.zeros(n, n)
    started, used = time.perf_counter(), time.process_time()
    with made.guarded([(t.data_ptr(), t.nbytes, name) for t, name in ((a, "a"), (b, "b"), (c, "c"))]):
        made.handle.go(*(ctypes.c_void_p(t.data_ptr()) for t in (a, b, c)), n)
    seconds, used = time.perf_counter() - started, time.process_time() - used
    expected = a.float() @ b.float().T
    return seconds, float((c - expected).abs().max() / expected.abs().max()), used


def main() -> None:
    """Print one JSON object."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--n", type=int, default=1024)
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--check", action="store_true", help="in the checking mode")
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        started = time.perf_counter()
        build.runtime(folder)
        runtime_s, started = time.perf_counter() - started, time.perf_counter()
        path = build.build(SOURCE, "product", folder)
        kernel_s = time.perf_counter() - started
        rounds = [timed(library.Library(path, check=given.check), given.n) for _ in range(given.rounds)]
    seconds = [row[0] for row in rounds]
    print(
        json.dumps(
            {
                "machine": f"{platform.machine()}, {os.cpu_count()} cores",
                "n": given.n,
                "check": given.check,
                "runtime_build_s": round(runtime_s, 2),
                "kernel_build_s": round(kernel_s, 2),
                "product_s": [round(value, 3) for value in seconds],
                "median_s": round(statistics.median(seconds), 3),
                "cores_median_s": round(statistics.median(row[2] for row in rounds), 3),
                "largest_error": max(row[1] for row in rounds),
            }
        )
    )


if __name__ == "__main__":
    main()
