"""Portable HIP on an NVIDIA GPU: what torch's builder is given there, and whether nvcc takes it."""

import shutil
import subprocess
from pathlib import Path

import pytest

from sandbox.guest.hip import portable

SEED = Path(__file__).parents[2] / "seed_kernels/pmpp/vectoradd/wide_hip/submission.py"
TENSOR = (
    "#include <cstdint>\n#define VECTORS 2\nnamespace torch { struct Tensor { void* data_ptr(); long numel(); }; }\n"
)
WAVES = """
#include <hip/hip_bf16.h>
__global__ void waves(float* x, __hip_bfloat16* y) {
  float sum = __shfl_xor(x[threadIdx.x], 1) + __shfl(x[1], 3) + __shfl_down(x[2], 4) + __shfl_up(x[3], 1);
  if (__any(sum > 0) && __all(sum < 9)) y[0] = __float2bfloat16(sum + __popcll(__ballot(sum > 1)) + __lane_id());
}
void go(float* x, hipStream_t queue) { hipLaunchKernelGGL(waves, dim3(1), dim3(warpSize), 0, queue, x, nullptr); }
"""


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("#include <hip/hip_runtime.h>", True),
        (["int a;", '# include "hip/hip_fp16.h"'], True),
        ("#include <cuda_runtime.h>", False),
        (None, False),
    ],
)
def test_hip_is_known_by_its_headers(source: object, expected: bool) -> None:
    assert portable.is_hip(source) is expected


def test_flags_of_clang_for_amd_are_left_out() -> None:
    given = ["-O3", "--offload-arch=gfx942", "-mllvm", "-amdgpu-early-inline-all=true", "-DTILE=3", "-fgpu-rdc"]
    assert portable.portable_flags(given) == ["-O3", "-DTILE=3"]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs CUDA's compiler")
def test_nvcc_takes_the_portable_seed(tmp_path: Path) -> None:
    """The seed's kernels and launches, and the functions of waves; torch's tensor is declared, not included."""
    hip = SEED.read_text().split('HIP = r"""')[1].split('"""')[0]
    (tmp_path / "seed.cu").write_text(TENSOR + hip + WAVES.replace("warpSize)", "32)"))
    command = ["nvcc", "-std=c++17", "-arch=sm_90", "-I", str(portable.HEADERS), "-c", "seed.cu", "-o", "seed.o"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
