"""HIP extensions on an NVIDIA GPU: torch builds them with nvcc, over our thin headers in place of HIP's.

For kernels without AMD-only builtins; one that has some does not compile there, and the compiler says which. Flags that
only clang for AMD knows are left out.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch.utils import cpp_extension

HEADERS = Path(__file__).parent / "include" / "nvidia"
_HIP = re.compile(r"#\s*include\s*[<\"]hip/")
_AMD_ONLY = re.compile(r"--offload-arch=|--amdgpu|-m(no-)?wavefrontsize|-munsafe-fp-atomics|-mcumode|-fgpu-")


def install() -> None:
    """From here on `load_inline` takes HIP sources too; without an NVIDIA GPU's torch there is nothing to do."""
    if torch.version.cuda is None:
        return
    _show_tools()
    plain = cpp_extension.load_inline

    def load_inline(*args: Any, **kwargs: Any) -> Any:
        if is_hip(kwargs.get("cuda_sources", args[2] if len(args) > 2 else None)):
            kwargs["extra_include_paths"] = [*(kwargs.get("extra_include_paths") or ()), str(HEADERS)]
            kwargs["extra_cuda_cflags"] = portable_flags(kwargs.get("extra_cuda_cflags") or ())
        return plain(*args, **kwargs)

    cpp_extension.load_inline = load_inline


def is_hip(sources: Any) -> bool:
    """Whether a source, or one of several, asks for HIP's headers."""
    return any(_HIP.search(source) for source in ([sources] if isinstance(sources, str) else sources or ()))


def portable_flags(flags: Sequence[str]) -> list[str]:
    """What nvcc takes of `flags`, a flag of two words whole."""
    kept: list[str] = []
    skip = False
    for flag in flags:
        if skip or flag == "-mllvm" or _AMD_ONLY.match(flag):
            skip = flag == "-mllvm"
            continue
        kept.append(flag)
    return kept


def _show_tools() -> None:
    """ninja lies beside the interpreter, the host's C++ compiler beside the C one: neither is on a guest's path."""
    folders = [str(Path(sys.executable).parent)]
    if (compiler := os.environ.get("CC", "")).startswith("/"):
        os.environ.setdefault("CXX", str(Path(compiler).with_name("g++")))
        folders.append(str(Path(compiler).parent))
    os.environ["PATH"] = ":".join([os.environ.get("PATH", ""), *folders])
