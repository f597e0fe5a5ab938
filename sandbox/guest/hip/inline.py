"""Stands in for `torch.utils.cpp_extension.load_inline` and `load`: compiled for the chips, built and run on the CPU.

The device pass of every target and the CPU's build run side by side. What does not compile for the first target does
not load; for another target it is noted. Without data (capture) kernels are told and not run.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch.utils import cpp_extension

from ..record import Record
from . import build, errors, toolchain, torch_headers
from .emulated import build as emulated
from .emulated.library import Launch, Library
from .extension import Extension
from .kernels import Kernel, kernels
from .unit import Unit, assembled, caller, from_files

STAND_IN = toolchain.INCLUDE / "torch_stand_in"
WAVE = 64
TORCH = toolchain.TORCH


@dataclass(frozen=True, slots=True)
class _Built:
    """One extension's kernels by symbol, for each target."""

    by_target: dict[str, dict[str, Kernel]]

    def symbol(self, spelled: str) -> str | None:
        """The kernel that a launch names: by symbol, else by its C++ name where only one has it."""
        first = next(iter(self.by_target.values()))
        if spelled in first:
            return spelled
        base = _base(spelled)
        found = [symbol for symbol, kernel in first.items() if _base(kernel.name) == base]
        exact = [symbol for symbol in found if _arguments(first[symbol].name) == _arguments(spelled)]
        chosen = found if len(found) == 1 else exact
        return chosen[0] if len(chosen) == 1 else None


class Inline:
    """Builds the extensions of one candidate."""

    def __init__(self, targets: Sequence[str], record: Record, run: bool) -> None:
        self._targets, self._record, self._run = tuple(targets), record, run
        self._folder = Path(tempfile.mkdtemp(prefix="hip-"))
        self._made: dict[str, Extension] = {}

    def load_inline(
        self,
        name: str,
        cpp_sources: Any,
        cuda_sources: Any = None,
        sycl_sources: Any = None,
        functions: Any = None,
        extra_cflags: Any = None,
        extra_cuda_cflags: Any = None,
        *_: Any,
        **__: Any,
    ) -> Extension:
        """As torch's, under torch's names; what only concerns the build (folders, ninja, verbosity) is left out."""
        flags = [*(extra_cflags or ()), *(extra_cuda_cflags or ())]
        return self.built(assembled(name, cpp_sources, cuda_sources, functions, flags, caller()))

    def load(
        self, name: str, sources: Any, extra_cflags: Any = None, extra_cuda_cflags: Any = None, *_: Any, **__: Any
    ) -> Extension:
        """As torch's, for source files that are there."""
        return self.built(from_files(name, sources, [*(extra_cflags or ()), *(extra_cuda_cflags or ())]))

    def built(self, unit: Unit) -> Extension:
        """Build one unit, once per text; `BuildError` where it does not compile."""
        key = hashlib.sha256(f"{unit.text}\0{unit.flags}".encode()).hexdigest()
        if key not in self._made:
            try:
                self._made[key] = self._build(unit)
            except (build.BuildError, toolchain.NoCompiler) as fault:
                self._record.failed(fault, self._targets[0], name=unit.name)
                raise
        return self._made[key]

    def _build(self, unit: Unit) -> Extension:
        compiler = toolchain.find(os.environ)
        folder = Path(tempfile.mkdtemp(prefix=f"{unit.name}-", dir=self._folder))
        defined = (*TORCH, f"-DTORCH_EXTENSION_NAME={unit.name}")
        source = build.Source(
            unit.name,
            unit.text,
            unit.own,
            (*defined, *build.safe_flags(unit.flags)),
            (compiler.include / "torch_stand_in",),
        )
        with ThreadPoolExecutor(2) as pool:
            host = pool.submit(_for_the_cpu, unit, folder, self._targets[0])
            device = pool.submit(build.compile_all, compiler, source, self._targets, folder)
            known = self._kernels(unit, device.result(), lambda error: _blamed(compiler, source, error, folder))
            path = self._host(unit, host)
        racecheck = bool(os.environ.get("KERNELWRIGHT_RACECHECK"))
        library = Library(path, self._noted(_Built(known)), run=self._run, check=racecheck, arch=self._targets[0])
        return Extension(unit.name, library)

    def _kernels(
        self,
        unit: Unit,
        compiled: dict[str, str | build.BuildError],
        blamed: Callable[[build.BuildError], Exception],
    ) -> dict[str, dict[str, Kernel]]:
        known: dict[str, dict[str, Kernel]] = {}
        for target, assembly in compiled.items():
            if isinstance(assembly, str):
                known[target] = {kernel.symbol: kernel for kernel in kernels(assembly)}
            elif target == self._targets[0]:
                raise blamed(assembly)
            else:
                self._record.failed(assembly, target, name=unit.name)
        return known

    def _host(self, unit: Unit, host: Future[Path]) -> Path:
        """The CPU's build; what only it cannot compile is the emulation's lack, and said to be."""
        try:
            return host.result()
        except emulated.CompilerFault as fault:
            said = errors.short(errors.read(fault.stderr, unit.own), fault.stderr)
            raise NotEmulated(
                f"{said}\n{unit.name} compiles for {self._targets[0]}, but not for the emulation"
            ) from None

    def _noted(self, built: _Built) -> Callable[[Launch], None]:
        def note(launch: Launch) -> None:
            symbol = built.symbol(launch.kernel)
            if symbol is None:
                return
            index = None
            for target, by_symbol in built.by_target.items():
                if symbol in by_symbol:
                    noted = self._record.noted(_described(by_symbol[symbol], target, launch))
                    index = noted if index is None else index
            if index is not None:
                self._record.launched(index, launch.grid, launch.args)

        return note


class NotEmulated(NotImplementedError):
    """A source that the chip's compiler takes and the emulation does not."""


def install(targets: Sequence[str], record: Record, run: bool) -> Inline:
    """Put the stand-in in torch's place. A candidate imported later finds it there."""
    inline = Inline(targets, record, run)
    cpp_extension.load_inline = inline.load_inline
    cpp_extension.load = inline.load
    return inline


def _blamed(
    compiler: toolchain.Toolchain, source: build.Source, error: build.BuildError, folder: Path
) -> build.BuildError | NotEmulated:
    """The error, or, where torch's own headers take what its stand-in does not, that the stand-in lacks it."""
    lack = NotEmulated(f"{errors.short(error.faults)}\nthe emulation's stand-in for torch lacks it")
    if torch_headers.unknown(error.faults):
        return lack
    if torch_headers.doubtful(error.faults):
        try:
            whole = replace(source, name=f"{source.name}_whole", include=torch_headers.folders())
            build.compile_for(compiler, whole, error.target, folder)
        except build.BuildError as own:
            return own
        return lack
    return error


def _for_the_cpu(unit: Unit, folder: Path, target: str) -> Path:
    kept = tuple(flag for flag in build.safe_flags(unit.flags) if flag.startswith(("-D", "-U", "-std=")))
    flags = (*TORCH, f"-DTORCH_EXTENSION_NAME={unit.name}", *kept)
    return emulated.build(unit.text, unit.name, folder, (STAND_IN,), flags, target)


def _described(kernel: Kernel, target: str, launch: Launch) -> dict[str, Any]:
    """A kernel as evidence, as it was launched. ``shared`` is what the launch adds to the LDS that its code fixes."""
    threads = launch.block[0] * launch.block[1] * launch.block[2]
    metadata = {
        "language": "hip",
        "symbol": kernel.symbol,
        "most_threads": kernel.most_threads,
        "num_warps": min(32, max(1, -(-threads // WAVE))),
        "num_stages": 0,
        "warp_size": WAVE,
        "shared": launch.shared_bytes,
        "block": list(launch.block),
    }
    shape = repr((kernel.assembly, metadata))
    return {
        "name": kernel.name[:512],
        "target": target,
        "hash": hashlib.sha256(shape.encode()).hexdigest(),
        "ttir": "",
        "amdgcn": kernel.assembly,
        "metadata": metadata,
        "constants": {},
        "error": None,
        "signature": {str(place): kind for place, kind in enumerate(kernel.arguments)},
    }


def _arguments(name: str) -> str:
    """Template arguments without spaces; empty where there are none."""
    found = re.search(r"<(.*)>", name.rpartition("(")[0] or name)
    return re.sub(r"\s+", "", found[1]) if found else ""


def _base(name: str) -> str:
    """The unqualified name before template and call arguments."""
    head = name.partition("(")[0].partition("<")[0].strip()
    return head.rpartition(" ")[2].rpartition("::")[2]
