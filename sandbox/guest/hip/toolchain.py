"""Finds a compiler for AMD device code: ROCm's own where there is one, else the `ziglang` wheel's clang.

The wheel's clang 22 knows gfx942 and gfx950 but brings neither HIP's headers nor the device library. Headers and
`ocml.bc`, `ockl.bc` come from Triton's wheel; what ROCm's clang would link beside them (`oclc`) and include before
everything (its HIP wrapper) is ours, in `include/device`. Headers that no package carries are in `include/rocm`, and
searched last: ROCm's own win.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

INCLUDE = Path(__file__).parent / "include"
ISA_VERSIONS = {"gfx942": 9402, "gfx950": 9500}
"""What the device library calls a target: major, minor in two digits, stepping (LLVM AMDGPU usage, "Processors")."""
_FIXED = (
    *("-x", "hip", "--cuda-device-only", "--no-gpu-bundle-output", "-mcode-object-version=5"),
    *("-D__HIP_PLATFORM_AMD__", "-DUSE_ROCM", "-DHIPBLAS_V2", "-fno-color-diagnostics", "-ferror-limit=20"),
)
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

    def command(self, target: str, folder: Path) -> list[str]:
        """The command for one target up to the source's own flags; `folder` keeps what is made once per process."""
        linked = [*self.library, _constants(self.program, target, folder)] if self.library else []
        bitcode = [word for path in linked for word in ("-Xclang", "-mlink-builtin-bitcode", "-Xclang", str(path))]
        return [*self.program, f"--offload-arch={target}", *_FIXED, *self.before, *bitcode]


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
    return _from_wheels(zig, triton / "backends" / "amd")


def _from_wheels(zig: Path, amd: Path) -> Toolchain:
    before = ("-resource-dir", str(zig / "lib"), "-nogpuinc", "-nogpulib", "-isystem", str(INCLUDE / "device"))
    # Its clang knows the wheel's folder as if it were an installed one, and finds the C++ library of g++; without g++
    # the wheel's own is told.
    standard = () if _has_gcc() else _own_standard_library(zig)
    return Toolchain(
        name="clang of ziglang",
        program=(str(zig / "zig"), "clang"),
        before=(*before, *standard, "-isystem", str(amd / "include"), "-include", "kernelwright_device.h"),
        after=("-idirafter", str(INCLUDE / "rocm")),
        library=tuple(amd / "lib" / name for name in _LIBRARY),
    )


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
