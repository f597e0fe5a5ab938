"""Finds a compiler for AMD device code: ROCm's own where there is one, else the `ziglang` wheel's clang.

The wheel's clang 22 knows gfx942 and gfx950 but brings neither HIP's headers nor the device library. Headers and
`ocml.bc`, `ockl.bc` come from Triton's wheel; what ROCm's clang would link beside them (`oclc`) and include before
everything (its HIP wrapper) is ours, in `include/device`. Headers that no package carries are in `include/rocm`, and
searched last: ROCm's own win.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

INCLUDE = Path(__file__).parent / "include"
ISA_VERSIONS = {"gfx942": 9402, "gfx950": 9500}
"""What the device library calls a target: major, minor in two digits, stepping (LLVM AMDGPU usage, "Processors")."""
_FIXED = (
    *("-x", "hip", "--cuda-device-only", "--no-gpu-bundle-output", "-mcode-object-version=5"),
    *("-D__HIP_PLATFORM_AMD__", "-DUSE_ROCM", "-DHIPBLAS_V2", "-fno-color-diagnostics", "-ferror-limit=20"),
)
TORCH = (
    *("-DCUDA_HAS_FP16=1", "-DTORCH_API_INCLUDE_EXTENSION_H", "-DHIP_ENABLE_WARP_SYNC_BUILTINS=1"),
    *("-D__HIP_NO_HALF_OPERATORS__=1", "-D__HIP_NO_HALF_CONVERSIONS__=1"),
)
"""What torch 2.13 defines for an extension on ROCm (`cpp_extension.COMMON_HIPCC_FLAGS`); a candidate may undo it."""
USUAL = ("-O3", "-std=c++20", "-Wno-everything")
CACHE = "KERNELWRIGHT_HIP_CACHE"
"""A folder of the machine's that may hold our headers, precompiled; the same place for guests and who made it."""
_LIBC = ("x86-linux-gnu", "generic-glibc", "x86-linux-any", "any-linux-any")
_LIBCXX = (
    *("ABI_VERSION=1", "ABI_NAMESPACE=__1", "HAS_THREADS=1", "HAS_MONOTONIC_CLOCK", "HAS_MUSL_LIBC=0"),
    *("HAS_FILESYSTEM=1", "HAS_LOCALIZATION", "HAS_UNICODE", "HAS_WIDE_CHARACTERS", "HAS_TERMINAL"),
    *("HAS_RANDOM_DEVICE", "HAS_TIME_ZONE_DATABASE", "HAS_VENDOR_AVAILABILITY_ANNOTATIONS=0"),
    *("PSTL_BACKEND_SERIAL", "HARDENING_MODE=_LIBCPP_HARDENING_MODE_NONE", "DISABLE_VISIBILITY_ANNOTATIONS"),
    "ASSERTION_SEMANTIC_DEFAULT=_LIBCPP_ASSERTION_SEMANTIC_IGNORE",
)
"""What the wheel's own C++ driver defines for its C++ library on Linux with glibc."""
_LIBRARY = ("ocml.bc", "ockl.bc")
_WHOLE = "whole"
HEADERS = ("torch/types.h", "cuda.h", "cuda_runtime.h", "torch/extension.h")
"""What torch.utils.cpp_extension.load_inline puts before CUDA and C++ sources."""


class NoCompiler(Exception):
    """Nothing on this machine compiles HIP. The message says what to install."""


@dataclass(frozen=True, slots=True)
class Toolchain:
    """A compiler and how it is called."""

    name: str
    """For records: ``hipcc of /opt/rocm`` or ``clang of ziglang``."""
    program: tuple[str, ...]
    before: tuple[str, ...]
    """Include folders and what else goes before a source's own flags."""
    after: tuple[str, ...]
    """Include folders searched last."""
    library: tuple[Path, ...] = ()
    """Device library to link by hand; ROCm's compiler finds its own."""
    include: Path = INCLUDE
    """Our headers: as packaged, or the copy of them that `precompiled` was made from."""
    precompiled: Path | None = None
    """Folder of ``<target>.pch``: torch's stand-in with all it includes."""

    def command(self, target: str, folder: Path) -> list[str]:
        """The command for one target up to the source's own flags; `folder` keeps what is made once per process."""
        linked = [*self.library, _constants(self.program, target, folder)] if self.library else []
        bitcode = [word for path in linked for word in ("-Xclang", "-mlink-builtin-bitcode", "-Xclang", str(path))]
        return [*self.program, f"--offload-arch={target}", *_FIXED, *self.before, *bitcode]

    def header(self, target: str, flags: Sequence[str]) -> tuple[str, ...]:
        """Flags for the precompiled header, where there is one and `flags` leave its text as it was."""
        own = [flag for flag in flags if flag not in (*TORCH, *USUAL)]
        plain = all(flag.startswith("-D") and not flag.startswith(("-D_", "-DNDEBUG", "-DUSE_")) for flag in own)
        if self.precompiled is None or not plain or not set(TORCH) <= set(flags):
            return ()
        return ("-Xclang", "-include-pch", "-Xclang", str(self.precompiled / f"{target}.pch"))


def find(environ: Mapping[str, str]) -> Toolchain:
    """The compiler to use; `NoCompiler` where there is none."""
    rocm = Path(environ.get("ROCM_PATH") or "/opt/rocm")
    if (rocm / "bin" / "hipcc").exists():
        return Toolchain(
            name=f"hipcc of {rocm}",
            program=(str(rocm / "bin" / "hipcc"), f"--rocm-path={rocm}"),
            before=(),
            after=("-idirafter", str(INCLUDE / "rocm")),
        )
    zig, triton = _package("ziglang"), _package("triton")
    if zig is None or triton is None or not shutil.which(str(zig / "zig")):
        raise NoCompiler("no compiler for HIP: install ROCm and set ROCM_PATH, or pip install ziglang triton")
    kept = Path(environ[CACHE]) / digest() if environ.get(CACHE) else None
    return _from_wheels(zig, triton / "backends" / "amd", kept if kept and os.access(kept / _WHOLE, os.R_OK) else None)


def _from_wheels(zig: Path, amd: Path, kept: Path | None) -> Toolchain:
    include = kept / "include" if kept else INCLUDE
    before = ("-resource-dir", str(zig / "lib"), "-nogpuinc", "-nogpulib", "-isystem", str(include / "device"))
    # Its clang knows the wheel's folder as if it were an installed one, and finds the C++ library of g++; without g++
    # the wheel's own is told.
    standard = () if _has_gcc() else _own_standard_library(zig)
    return Toolchain(
        name="clang of ziglang",
        program=(str(zig / "zig"), "clang"),
        before=(*before, *standard, "-isystem", str(amd / "include"), "-include", "kernelwright_device.h"),
        after=("-idirafter", str(include / "rocm")),
        library=tuple(amd / "lib" / name for name in _LIBRARY),
        include=include,
        precompiled=kept,
    )


def precompile(folder: Path) -> None:
    """Put our headers and what they make, for every target, into `folder`; at once where they are there."""
    home = folder / digest()
    if (home / _WHOLE).exists():
        return
    shutil.copytree(INCLUDE, home / "include", dirs_exist_ok=True)
    (home / "all.h").write_text("".join(f"#include <{name}>\n" for name in HEADERS))
    zig, triton = _package("ziglang"), _package("triton")
    if zig is None or triton is None:
        return
    compiler = _from_wheels(zig, triton / "backends" / "amd", home)
    for target in ISA_VERSIONS:
        include = ("-isystem", str(compiler.include / "torch_stand_in"), *compiler.after)
        made = ["-Xclang", "-emit-pch", "-S", str(home / "all.h"), "-o", str(home / f"{target}.pch")]
        command = [*compiler.command(target, home), *USUAL, *TORCH, *include, *made]
        subprocess.run(command, check=True, capture_output=True)
    (home / _WHOLE).touch()


@lru_cache(maxsize=1)
def digest() -> str:
    """Of our headers and of the wheels that they are compiled with."""
    key = hashlib.sha256()
    for path in sorted(path for path in INCLUDE.rglob("*") if path.is_file()):
        key.update(f"{path.relative_to(INCLUDE)}\0".encode() + path.read_bytes())
    for name in ("ziglang", "triton"):
        key.update(importlib.metadata.version(name).encode())
    return key.hexdigest()[:16]


def _own_standard_library(zig: Path) -> tuple[str, ...]:
    lib = zig / "lib"
    folders = [lib / "libcxx" / "include", lib / "libcxxabi" / "include", lib / "include"]
    folders += [lib / "libc" / "include" / name for name in _LIBC]
    pairs = [word for folder in folders for word in ("-isystem", str(folder))]
    return ("-nostdlibinc", "-nostdinc++", *(f"-D_LIBCPP_{name}" for name in _LIBCXX), *pairs)


def _has_gcc() -> bool:
    return any(Path("/usr/lib/gcc").glob("*/*/crtbegin.o")) and any(Path("/usr/include/c++").glob("*/cmath"))


def _constants(program: tuple[str, ...], target: str, folder: Path) -> Path:
    """The device library's constants for `target`, compiled at first need."""
    made = folder / f"oclc-{target}.bc"
    if not made.exists():
        source = ["-x", "c", str(INCLUDE / "device" / "oclc.h"), f"-DKW_ISA={ISA_VERSIONS[target]}"]
        flags = ["--target=amdgcn-amd-amdhsa", "-nogpulib", "-mcode-object-version=5", "-O2", "-emit-llvm", "-c"]
        partial = made.with_suffix(".part")
        subprocess.run([*program, *flags, *source, "-o", str(partial)], check=True, capture_output=True)
        partial.rename(made)
    return made


def _package(name: str) -> Path | None:
    found = importlib.util.find_spec(name)
    if found is None or not found.submodule_search_locations:
        return None
    return Path(next(iter(found.submodule_search_locations)))
