"""What the tests of HIP on the CPU share: built sources, pointers, ranges."""

from __future__ import annotations

import ctypes
import functools
import tempfile
from pathlib import Path

import torch

from sandbox.guest.hip.emulated import build, library


@functools.cache
def folder() -> Path:
    """One for all tests of a process: the runtime is compiled once."""
    return Path(tempfile.mkdtemp(prefix="hip-emulated-"))


@functools.cache
def built(source: str, arch: str = "gfx942") -> Path:
    """The source as a shared object."""
    return build.build(source, f"k{abs(hash((source, arch)))}", folder(), arch=arch)


def pointer(tensor: torch.Tensor) -> ctypes.c_void_p:
    return ctypes.c_void_p(tensor.data_ptr())


def call(made: library.Library, name: str, **arguments: torch.Tensor | int | float) -> None:
    """Call an ``extern "C"`` launcher; its tensors are all that kernels may touch."""
    ranges = [(t.data_ptr(), t.nbytes, n) for n, t in arguments.items() if isinstance(t, torch.Tensor)]
    given = [pointer(a) if isinstance(a, torch.Tensor) else a for a in arguments.values()]
    given = [ctypes.c_float(a) if isinstance(a, float) else a for a in given]
    with made.guarded(ranges):
        getattr(made.handle, name)(*given)
