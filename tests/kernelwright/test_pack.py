"""``kernelwright pack``: bad input is refused before any work; what it makes is a submission that passes."""

from pathlib import Path

import pytest

from sandbox.binding import BindingError, read
from sandbox.includes import IncludeError, inlined
from sandbox.packing import PackError, on_current_queue, packed

KERNEL = """#pragma once
#include <hip/hip_runtime.h>
#include <hip/hip_fp16.h>
__global__ void copy_kernel(const __half* in, __half* out, int n) {  // streams through
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i];
}
"""
LAUNCHER = """#include "copy.h"
#include "copy.h"
torch::Tensor copy(torch::Tensor in, torch::Tensor out) {
  int n = in.numel();
  copy_kernel<<<dim3((n + 255) / 256, 1), 256>>>((const __half*)in.data_ptr(), (__half*)out.data_ptr(), n);
  return out;
}
"""
BINDING = """
board = "amd-identity"
gpus = ["MI300"]
[functions]
copy = "torch::Tensor copy(torch::Tensor in, torch::Tensor out)"
[custom_kernel]
takes = ["x", "out"]
calls = ["result = copy(x, out)"]
returns = "result"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "copy.h").write_text(KERNEL)
    (tmp_path / "copy.hip").write_text(LAUNCHER)
    (tmp_path / "copy.toml").write_text(BINDING)
    return tmp_path


def test_one_file_with_headers_queue_and_header_lines(folder: Path) -> None:
    text = packed([folder / "copy.hip"], read(folder / "copy.toml"))
    assert text.startswith("#!POPCORN leaderboard amd-identity\n#!POPCORN gpus MI300\n")
    assert text.count("__global__ void copy_kernel") == 1 and '#include "' not in text
    assert "<<<dim3((n + 255) / 256, 1), 256, 0, current_queue()>>>" in text
    # GPU MODE's server refuses the word anywhere.
    assert "stream" not in text.lower()
    assert "    x, out = data\n    result = extension().copy(x, out)\n    return result\n" in text
    compile(text, "submission.py", "exec")


def test_launches_keep_what_they_name() -> None:
    given = "a<<<g, b>>>(x); c<T><<<dim3(1, 2), b, f(1, 2)>>>(); d<<<g, b, 0, q>>>();"
    added = (
        "a<<<g, b, 0, current_queue()>>>(x); c<T><<<dim3(1, 2), b, f(1, 2), current_queue()>>>(); d<<<g, b, 0, q>>>();"
    )
    assert on_current_queue(given) == added


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("[functions]", "[functions"), "is not TOML"),
        (("board =", "bord ="), "bord: Extra inputs are not permitted"),
        (("torch::Tensor copy(", "torch::Tensor kopy("), "the declaration is of kopy"),
        (("copy(x, out)", "move(x, out)"), "calls move, which functions does not declare"),
        (("copy(x, out)", "copy(x, y)"), "custom_kernel.calls: y is neither taken from data nor made by a call"),
        (("copy(x, out)", "copy(x, out); 1"), "is not one call"),
        (('returns = "result"', 'returns = "results"'), "custom_kernel.returns: results is neither"),
        (('gpus = ["MI300"]', 'flags = ["-I/usr"]'), "-I/usr is no flag that a submission needs"),
    ],
)
def test_a_wrong_binding_says_what_is_wrong(folder: Path, change: tuple[str, str], said: str) -> None:
    (folder / "copy.toml").write_text(BINDING.replace(*change))
    with pytest.raises(BindingError) as error:
        read(folder / "copy.toml")
    assert said in str(error.value)


def test_wrong_sources_say_what_is_wrong(folder: Path) -> None:
    binding = read(folder / "copy.toml")
    (folder / "other.hip").write_text('#include "missing.h"\n')
    with pytest.raises(PackError, match=r'other.hip:1: #include "missing.h" is not beside it'):
        packed([folder / "other.hip"], binding)
    with pytest.raises(PackError, match=r"copy is declared in the binding, and none of copy.h defines it"):
        packed([folder / "copy.h"], binding)
    (folder / "round.h").write_text('#include "round.h"\n')
    with pytest.raises(IncludeError, match="included by itself"):
        inlined(folder / "round.h")


def test_a_header_under_a_condition_stays_under_it(folder: Path) -> None:
    (folder / "both.hip").write_text('#if A\n#include "copy.h"\n#endif\n#if B\n#include "copy.h"\n#endif\n')
    text = inlined(folder / "both.hip")
    assert text.count("__global__") == 2 and text.count("#ifndef KW_ONCE_") == 2
