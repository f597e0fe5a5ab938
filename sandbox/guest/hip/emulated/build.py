"""Compiles HIP for the CPU: the runtime once, each source to a shared object that calls into it."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from .rewrite import Unsupported, rewrite

HERE = Path(__file__).parent
INCLUDE = HERE / "include"
SHORT_TYPES = HERE.parent / "include" / "rocm"
CACHE = "KERNELWRIGHT_HIP_CACHE"
"""A folder that may hold the runtime already."""
DEADLINE_S = 300.0
_HOOKS = (
    *("-fsanitize=kernel-address", "-mllvm", "-asan-instrumentation-with-call-threshold=0"),
    *("-mllvm", "-asan-stack=0", "-mllvm", "-asan-globals=0", "-mllvm", "-asan-kernel-mem-intrinsic-prefix=1"),
    *("-mllvm", "-asan-opt-same-temp=0"),
)
"""A call into the runtime before each access, also where a read of the same place came before. Layouts stay."""
_LANES = (
    *("-mllvm", "-disable-tail-duplicate", "-mllvm", "-disable-early-taildup", "-mllvm", "-tail-dup-placement=0"),
    *("-mllvm", "-enable-tail-merge=0"),
)
"""No call copied into two branches and no two made one: lanes meet where the source says. (`convergent` holds before
the code generator only.)"""
_COMMON = (
    "-std=c++20",
    "-O2",
    "-g1",
    "-fPIC",
    "-fno-omit-frame-pointer",
    "-fno-color-diagnostics",
    "-Wno-everything",
    "-fdeclspec",
)


class CompilerFault(Exception):
    """A source did not compile. `stderr` is all the compiler said."""

    def __init__(self, stderr: str) -> None:
        super().__init__(stderr)
        self.stderr = stderr


_RUNTIME_LINKED = ("-lstdc++", "-lpthread", "-Wl,-Bsymbolic")
"""To itself first: a candidate's own copies of the standard library's templates are instrumented, and what the runtime
writes with them would be taken for a kernel's accesses."""


def runtime(folder: Path) -> Path:
    """The runtime as a shared object in `folder`, compiled at first need: some 4 s of one core."""
    sources = sorted((HERE / "runtime").glob("*.cpp"))
    key = hashlib.sha256(b"".join(path.read_bytes() for path in [*sources, *(HERE / "runtime").glob("*.h")]))
    key.update((INCLUDE / "emulated" / "lane.h").read_bytes() + repr(_RUNTIME_LINKED).encode())
    made = folder / f"libkw_hip_{key.hexdigest()[:16]}.so"
    for found in (Path(os.environ.get(CACHE, folder)) / made.name, made):
        if os.access(found, os.R_OK):
            return found
    # One unit: most of the time goes into the standard library's headers.
    whole, into = folder / f"{made.stem}.cpp", folder / f"{made.stem}.o"
    whole.write_text("".join(f'#include "{path}"\n' for path in sources))
    _end(_begin([*_clang(), *_COMMON, *_include(()), f"-I{HERE / 'runtime'}", "-c", str(whole), "-o", str(into)]))
    _link([into], made, (*_RUNTIME_LINKED, f"-Wl,-soname,{made.name}"))
    return made


def build(
    source: str,
    name: str,
    folder: Path,
    include: Sequence[Path] = (),
    flags: Sequence[str] = (),
    arch: str = "gfx942",
) -> Path:
    """One translation unit, host and device text together, as ``folder/name.so``.

    Args:
        source: HIP C++; its own ``#line`` marks are kept, else lines are those of `name`.
        name: of the shared object, and of the source in faults and messages.
        include: more folders for system headers, searched after ours.
        flags: ``-D...`` and ``-std=...``; our headers need C++20, so that an older standard is not heeded.
        arch: ``gfx942`` or ``gfx950``: which builtins there are, and which fp8 the conversions mean.

    Raises:
        CompilerFault: it does not compile, or asks for what is not emulated.
    """
    try:
        text = rewrite(source)
    except Unsupported as error:
        raise CompilerFault(f"{name}:1:1: error: {error}") from error
    written, made = folder / f"{name}-emulated.cpp", folder / f"{name}.so"
    written.write_text(f'#line 1 "{name}"\n{text}')
    library = runtime(folder)
    object_file = folder / f"{name}.o"
    # The matrix models are in this unit and want the machine's vectors; the runtime may be kept for other machines.
    machine = [f"-D__{arch}__=1", "-include", "hip/hip_runtime.h", "-ffp-contract=fast", "-march=native"]
    flags = [flag for flag in flags if not re.fullmatch(r"-std=\w+\+\+(98|03|11|14|17|0x|1y|1z)", flag)]
    where = ["-x", "c++", str(written), "-c", "-o", str(object_file)]
    _end(_begin([*_clang(), *_COMMON, *_HOOKS, *_LANES, *_include(include), *machine, *flags, *where]))
    _link([object_file], made, (str(library), f"-Wl,-rpath,{library.parent}", "-lstdc++"))
    return made


def _clang() -> list[str]:
    found = importlib.util.find_spec("ziglang")
    if found is None or not found.submodule_search_locations:
        raise CompilerFault("no compiler for HIP on the CPU: pip install ziglang")
    zig = Path(next(iter(found.submodule_search_locations)))
    # The wheel is built for musl; what it makes here is loaded into the system's Python.
    target = f"--target={platform.machine()}-linux-gnu"
    return [str(zig / "zig"), "clang", target, "-resource-dir", str(zig / "lib")]


def _include(more: Sequence[Path]) -> list[str]:
    folders = (INCLUDE, *more, SHORT_TYPES)
    return [word for path in folders for word in ("-isystem", str(path))]


def _begin(command: Sequence[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def _end(process: subprocess.Popen[str]) -> None:
    try:
        _, stderr = process.communicate(timeout=DEADLINE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    if process.returncode != 0:
        raise CompilerFault(stderr)


def _link(objects: Sequence[Path], made: Path, more: Sequence[str]) -> None:
    partial = made.with_suffix(".part")
    _end(_begin([*_clang(), "-shared", *map(str, objects), "-o", str(partial), *more]))
    partial.rename(made)
