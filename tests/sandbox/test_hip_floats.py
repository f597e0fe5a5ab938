"""Our HIP headers' 8-bit floats against torch's, bit by bit, on the CPU."""

import ctypes
import shutil
import subprocess

import pytest
import torch

from sandbox.guest.hip.toolchain import INCLUDE

FORMATS = (torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz)
PROGRAM = """
#include <hip/kernelwright_fp8_bits.h>
extern "C" void decode(int kind, const unsigned char* from, float* to, int count) {
  for (int i = 0; i < count; i++) to[i] = kw_from_fp8(from[i], __hip_fp8_interpretation_t(kind));
}
extern "C" void encode(int kind, int saturate, const float* from, unsigned char* to, int count) {
  for (int i = 0; i < count; i++)
    to[i] = kw_to_fp8(from[i], __hip_saturation_t(saturate), __hip_fp8_interpretation_t(kind));
}
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    if shutil.which("g++") is None:
        pytest.skip("needs g++")
    folder = tmp_path_factory.mktemp("fp8")
    (folder / "fp8.cpp").write_text(PROGRAM)
    library = folder / "fp8.so"
    include = f"-I{INCLUDE / 'rocm'}"
    subprocess.run(["g++", "-std=c++20", "-O1", "-shared", "-fPIC", include, "fp8.cpp", "-o", library.name],
                   cwd=folder, check=True)  # fmt: skip
    return ctypes.CDLL(str(library))


def pointer(tensor: torch.Tensor) -> ctypes.c_void_p:
    return ctypes.c_void_p(tensor.data_ptr())


@pytest.mark.slow
@pytest.mark.parametrize("kind", range(4), ids=[str(form).removeprefix("torch.") for form in FORMATS])
def test_every_code_and_every_rounding(built: ctypes.CDLL, kind: int) -> None:
    codes = torch.arange(256, dtype=torch.uint8)
    values = torch.empty(256)
    built.decode(kind, pointer(codes), pointer(values), 256)
    expected = codes.view(FORMATS[kind]).float()
    assert torch.equal(values.nan_to_num(1e9), expected.nan_to_num(1e9))

    finite = expected[expected.isfinite()].unique()
    middles = (finite[1:] + finite[:-1]) / 2
    near = torch.cat([finite, middles, middles.nextafter(torch.tensor(-1e9)), middles.nextafter(torch.tensor(1e9))])
    asked = torch.cat([near, torch.tensor([float("nan"), -0.0, 1e-30, -1e-30]), torch.randn(4096) * 3]).contiguous()
    found = torch.empty(asked.numel(), dtype=torch.uint8)
    built.encode(kind, 0, pointer(asked), pointer(found), asked.numel())
    right = asked.to(FORMATS[kind])
    # torch keeps the sign of a NaN or not by format: any NaN is as good.
    assert torch.equal(found.view(FORMATS[kind]).float().nan_to_num(1e9), right.float().nan_to_num(1e9))

    beyond = torch.tensor([1e30, -1e30, float("inf"), -float("inf")])
    built.encode(kind, 1, pointer(beyond), pointer(found), 4)
    largest = finite.max()
    assert torch.equal(found[:4].view(FORMATS[kind]).float(), torch.stack([largest, -largest] * 2))
