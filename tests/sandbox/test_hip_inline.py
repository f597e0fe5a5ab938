"""Submissions in HIP through `load_inline`: built, run and captured by a real guest, without a GPU."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest
import torch

from sandbox import hip_cache
from sandbox.guest.hip import torch_headers
from sandbox.guest.hip.errors import Fault
from sandbox.guest.hip.unit import assembled
from tests.sandbox.guest_client import GuestClient

SUBMISSION = r'''
import torch
from torch.utils.cpp_extension import load_inline

hip = r"""
#include <hip/hip_runtime.h>
#include <hip/hip_bf16.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
template <int SCALE>
__global__ __launch_bounds__(128) void scaled(const __hip_bfloat16* in, float* out, int n, float plus) {
  extern __shared__ float kept[];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  kept[threadIdx.x] = i < n ? float(in[i]) * SCALE : 0;
  __syncthreads();
  if (i < n) out[i] = kept[threadIdx.x] + plus;
}
std::tuple<torch::Tensor, int64_t> scale(torch::Tensor in, double plus, std::vector<int64_t> shape) {
  TORCH_CHECK(in.is_cuda() && in.is_contiguous(), "in must be contiguous and on a GPU, is on ", in.device());
  TORCH_CHECK(in.scalar_type() == torch::kBFloat16, "bfloat16 is wanted, not ", in.scalar_type());
  auto out = torch::empty(shape, in.options().dtype(torch::kFloat32));
  int n = in.numel();
  scaled<3><<<(n + 127) / 128, 128, 512, at::cuda::getCurrentCUDAStream()>>>(
      (const __hip_bfloat16*)in.data_ptr(), out.data_ptr<float>(), n, plus);
  C10_CUDA_CHECK(cudaGetLastError());
  return {out.view({-1}), n};
}
"""
module = load_inline(
    "scale", "std::tuple<torch::Tensor, int64_t> scale(torch::Tensor, double, std::vector<int64_t>);", hip,
    functions=["scale"], extra_cuda_cflags=["-O3", "--offload-arch=gfx942"], verbose=True,
)


def custom_kernel(data):
    out, count = module.scale(data[0], 0.5, [data[0].numel()])
    assert count == data[0].numel()
    return out
'''


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    """The emulation's runtime, compiled ahead as before a judgement."""
    if importlib.util.find_spec("ziglang") is None:
        pytest.skip("needs ziglang")
    hip_cache.prepare()
    monkeypatch.setenv(hip_cache.VARIABLE, str(hip_cache.place()))


@pytest.mark.slow
def test_a_submission_runs_and_is_recorded(prepared: None, tmp_path: Path) -> None:
    with GuestClient("emulate", "gfx942,gfx950", tmp_path / "log") as guest:
        assert guest.load(SUBMISSION) == {"op": "loaded"}
        x = torch.randn(1000).to(torch.bfloat16)
        answer = guest.call(x)
        assert answer["op"] == "returned", answer
        assert torch.equal(guest.tensor(answer["tree"]), x.float() * 3 + 0.5)
        check_record(guest.kernels(), ["gfx942", "gfx950"])

        answer = guest.call(torch.randn(8))
        assert answer["kind"] == "run"
        assert answer["log"].strip().endswith("ExtensionError: bfloat16 is wanted, not Float")


@pytest.mark.slow
def test_shapes_alone_tell_the_launches(prepared: None, tmp_path: Path) -> None:
    with GuestClient("capture", "gfx942", tmp_path / "log") as guest:
        assert guest.load(SUBMISSION) == {"op": "loaded"}
        answer = guest.capture(torch.empty(1000, dtype=torch.bfloat16))
        assert answer["op"] == "returned", answer
        assert answer["tree"]["shape"] == [1000]
        check_record(guest.kernels(), ["gfx942"])
        broken = SUBMISSION.replace("__syncthreads();", "__syncthread();").replace("in.numel();", "in.nummel();")
        failed = guest.load(broken)
        assert failed["kind"] == "build"
        assert "submission.py:15: use of undeclared identifier '__syncthread'; did you mean" in failed["log"]
        assert "submission.py:22: no member named 'nummel' in 'at::Tensor'" in failed["log"]


def check_record(record: dict[str, Any], targets: list[str]) -> None:
    kernels = record["kernels"]
    assert [kernel["target"] for kernel in kernels] == targets
    for kernel in kernels:
        assert kernel["name"] == "void scaled<3>(__hip_bfloat16 const*, float*, int, float)"
        assert kernel["metadata"]["block"] == [128, 1, 1] and kernel["metadata"]["shared"] == 512
        assert (kernel["metadata"]["num_warps"], kernel["error"]) == (2, None)
        assert ".amdgpu_metadata" in kernel["amdgcn"]
    launch = {"kernel": 0, "grid": [8, 1, 1], "args": {"2": 1000, "3": 0.5}, "call": 0, "tuning": False}
    assert record["launches"] == [launch]


def test_lines_are_those_of_the_file_that_holds_the_source() -> None:
    source = "__global__ void one() {}\nvoid start() { one<<<1, 1>>>(); cudaDeviceSynchronize(); }\n"
    text = f'x = r"""{source}"""\n'
    unit = assembled("my ext", "void start();", source, ["start"], origin=("submission.py", "# a line\n" + text))
    lines = unit.text.splitlines()
    assert unit.name == "my_ext"
    assert lines[lines.index("__global__ void one() {}") - 1] == '#line 2 "submission.py"'
    assert '#line 1 "my ext.cpp"' in lines
    assert "hipDeviceSynchronize" in unit.text and "cudaDeviceSynchronize" not in unit.text
    assert '  m.def("start", torch::wrap_pybind_function(start), "");' in lines


def test_what_the_stand_in_lacks_is_not_the_candidates_fault() -> None:
    """torch has cdist and Tensor.erf, and no is_contigous; a wrong call may be either's."""
    lack = Fault("submission.py", 3, "no member named 'cdist' in namespace 'torch'")
    method = Fault("submission.py", 4, "no member named 'erf' in 'at::Tensor'")
    wrong = Fault("submission.py", 5, "no member named 'is_contigous' in 'at::Tensor'")
    call = Fault(
        "submission.py", 6, "no matching member function for call to 'sum'", hint="x (kernelwright_tensor.h:9)"
    )
    assert torch_headers.unknown([lack, method]) and not torch_headers.unknown([lack, wrong])
    assert torch_headers.doubtful([lack, wrong]) and torch_headers.doubtful([call])
    assert not torch_headers.doubtful([wrong, Fault("submission.py", 7, "use of undeclared identifier 'x'")])
