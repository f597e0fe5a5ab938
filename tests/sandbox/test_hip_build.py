"""HIP sources compiled for both chips by whatever compiler this machine has; none of it needs a GPU."""

import os
import re
import shutil
from pathlib import Path

import pytest

from sandbox.guest.hip import build, errors, kernels, toolchain

PRODUCT = """
#include <hip/hip_runtime.h>
#include <hip/hip_fp8.h>
#include <hip/hip_bf16.h>
#include <rocwmma/rocwmma.hpp>
using sums = __attribute__((ext_vector_type(16))) float;
template <int SIZE>
__global__ __launch_bounds__(256) void product(const long* a, const long* b, __hip_bfloat16* out, int steps) {
  __shared__ long kept[SIZE];
  sums total = {};
  for (int step = 0; step < steps; step++) {
    kept[threadIdx.x] = a[step * SIZE + threadIdx.x];
    __syncthreads();
    total = __builtin_amdgcn_mfma_f32_32x32x16_fp8_fp8(kept[threadIdx.x ^ 1], b[step], total, 0, 0, 0);
    __syncthreads();
  }
  for (int i = 0; i < 16; i++) out[i * SIZE + threadIdx.x] = __float2bfloat16(total[i] + expf(total[0]));
}
__global__ void halves(const _Float16* a, const _Float16* b, float* out) {
  rocwmma::fragment<rocwmma::matrix_a, 16, 16, 16, _Float16, rocwmma::row_major> left;
  rocwmma::fragment<rocwmma::matrix_b, 16, 16, 16, _Float16, rocwmma::col_major> right;
  rocwmma::fragment<rocwmma::accumulator, 16, 16, 16, float> sum;
  rocwmma::fill_fragment(sum, 0.0f);
  rocwmma::load_matrix_sync(left, a, 16);
  rocwmma::load_matrix_sync(right, b, 16);
  rocwmma::mma_sync(sum, left, right, sum);
  rocwmma::store_matrix_sync(out, sum, 16, rocwmma::mem_row_major);
}
void start(long* a, __hip_bfloat16* out) { product<256><<<1, 256>>>(a, a, out, 4); }
"""

WRONG = """#include <hip/hip_runtime.h>
__global__ void add(float* out) {
  out[threadIdx.x] = 1;
  __syncthread();
}
void start(int* out) { add<<<1, 64>>>(out); }
"""


@pytest.fixture(scope="module")
def compiler() -> toolchain.Toolchain:
    try:
        return toolchain.find(os.environ)
    except toolchain.NoCompiler as reason:
        pytest.skip(str(reason))


def products(kernel: kernels.Kernel) -> list[str]:
    return re.findall(r"^\s+(v_mfma_\w+)", kernel.assembly, re.MULTILINE)


@pytest.mark.slow
def test_both_chips_with_types_from_our_shims(compiler: toolchain.Toolchain, tmp_path: Path) -> None:
    built = build.compile_all(compiler, build.Source("product", PRODUCT), ("gfx942", "gfx950"), tmp_path)
    for assembly in built.values():
        assert isinstance(assembly, str), assembly
        found = {kernel.name.partition("(")[0]: kernel for kernel in kernels.kernels(assembly)}
        assert set(found) == {"void product<256>", "halves"}
        assert found["halves"].name == "halves(_Float16 const*, _Float16 const*, float*)"
        product, halves = found["void product<256>"], found["halves"]
        assert (product.shared_bytes, product.most_threads) == (2048, 256)
        assert product.arguments == ("global_buffer:8",) * 3 + ("by_value:4",)
        assert set(products(product)) == {"v_mfma_f32_32x32x16_fp8_fp8"}
        assert products(halves) == ["v_mfma_f32_16x16x16_f16"]
        assert f"\n{product.symbol}:" not in halves.assembly


@pytest.mark.slow
def test_the_wheels_alone_are_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without g++'s headers and without ROCm, as on a machine that has pip and nothing else."""
    monkeypatch.setattr(toolchain, "_has_gcc", lambda: False)
    try:
        compiler = toolchain.find({"ROCM_PATH": "/nowhere"})
    except toolchain.NoCompiler as reason:
        pytest.skip(str(reason))
    assert "-nostdlibinc" in compiler.before
    assembly = build.compile_for(compiler, build.Source("product", PRODUCT), "gfx950", tmp_path)
    assert len(kernels.kernels(assembly)) == 2


@pytest.mark.slow
def test_errors_are_place_message_and_hint(compiler: toolchain.Toolchain, tmp_path: Path) -> None:
    text = f'#line 1 "submission.py"\n{WRONG}'
    with pytest.raises(build.BuildError) as caught:
        build.compile_for(compiler, build.Source("wrong", text, own=("submission.py",)), "gfx942", tmp_path)
    barrier, call = caught.value.faults
    assert (barrier.file, barrier.line, barrier.source) == ("submission.py", 4, "__syncthread();")
    assert "did you mean '__syncthreads'" in barrier.message
    assert call.line == 6 and call.message.startswith("cannot initialize a parameter of type 'float *'")
    assert "passing argument to parameter 'out' here" in call.hint
    assert str(tmp_path) not in str(caught.value) and len(str(caught.value)) < 1000


def test_rocms_own_compiler_comes_first(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    shutil.copy("/bin/true", tmp_path / "bin" / "hipcc")
    found = toolchain.find({"ROCM_PATH": str(tmp_path)})
    assert found.program[0] == str(tmp_path / "bin" / "hipcc")
    # Its own headers and library are not searched after ours.
    assert found.before == () and found.library == ()


def test_flags_that_change_the_code_and_nothing_else() -> None:
    asked = ["-O3", "--offload-arch=gfx942", "-std=c++17", "-DN=4", "-mllvm", "-amdgpu-early-inline-all=true"]
    asked += ["-I/etc", "-fplugin=x.so", "-mllvm", "-load=x.so", "-o", "x", "@file", "-ffast-math", "-include", "x"]
    assert build.safe_flags([]) == ()
    assert build.safe_flags(asked) == (
        *("-O3", "-std=c++17", "-DN=4", "-mllvm", "-amdgpu-early-inline-all=true", "-ffast-math"),
    )


def test_an_error_in_a_header_is_told_where_the_candidate_led_there() -> None:
    said = """In file included from mm.hip:1:
/x/include/rocwmma/rocwmma.hpp:69:17: error: static assertion failed: no such type
   69 |   static_assert(known<A>, "no such type");
      |                 ^~~~~~~~
/x/include/rocwmma/rocwmma.hpp:79:66: note: in instantiation of function template specialization requested here
mm.hip:12:17: note: in instantiation of function template specialization 'mma' requested here
   12 |   mma(a, b);
      |   ^
1 error generated when compiling for gfx950.
"""
    (fault,) = errors.read(said, own=("mm.hip",))
    assert (fault.file, fault.line, fault.message) == ("mm.hip", 12, "static assertion failed: no such type")
    assert fault.hint == 'in rocwmma/rocwmma.hpp:69: static_assert(known<A>, "no such type");'
