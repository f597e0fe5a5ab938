"""Compiles one HIP source to assembly, one process per target, side by side."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from . import errors
from .toolchain import USUAL, Toolchain

DEADLINE_S = 300.0
MAX_STDERR = 1 << 20
_SAFE = ("-O", "-D", "-U", "-std=", "-ffast-math", "-fno-fast-math", "-munsafe-fp-atomics", "-mno-unsafe-fp-atomics")
_SAFE_WHOLE = (
    *("-fgpu-rdc", "-fno-gpu-rdc", "-funroll-loops", "-fno-unroll-loops", "-fgpu-flush-denormals-to-zero"),
    *("-mcumode", "-mno-cumode", "-ffinite-math-only", "-fno-math-errno", "-fassociative-math", "-freciprocal-math"),
    *("-fno-slp-vectorize", "-fno-vectorize", "-fno-strict-aliasing", "-fno-finite-math-only", "-w"),
)
_MACHINE = ("-amdgpu-", "--amdgpu-", "-enable-", "--enable-", "-unroll-", "--unroll-", "-inline-", "--inline-")
"""What may follow ``-mllvm``: options of the code generator and its passes."""
_INLINED = ("-mllvm", "-amdgpu-early-inline-all=true", "-mllvm", "-amdgpu-function-calls=false")
"""As hipcc compiles: without it clang leaves calls in large kernels, whose registers then go through scratch memory."""


class BuildError(RuntimeError):
    """A source did not compile. The message is short; `faults` has each error."""

    def __init__(self, name: str, target: str, faults: tuple[errors.Fault, ...], stderr: str) -> None:
        first = f"; {faults[0].text().partition(chr(10))[0]}" if faults else ""
        super().__init__(f"{errors.short(faults, stderr)}\n{name} does not compile for {target}{first}")
        self.faults = faults
        self.target = target


@dataclass(frozen=True, slots=True)
class Source:
    """One translation unit."""

    name: str
    text: str
    own: tuple[str, ...] = ()
    """Names its ``#line`` marks give to the candidate's own text; its own name where there are none."""
    flags: tuple[str, ...] = ()
    include: tuple[Path, ...] = ()


def safe_flags(flags: Sequence[str]) -> tuple[str, ...]:
    """Of a candidate's flags those that change the code and nothing else; targets, paths and plugins are left out."""
    kept: list[str] = []
    words = list(flags)
    for flag, following in zip(words, [*words[1:], ""], strict=False):
        if flag == "-mllvm" and following.startswith(_MACHINE):
            kept += [flag, following]
        elif flag.startswith(_SAFE) or flag in _SAFE_WHOLE:
            kept.append(flag)
    return tuple(kept)


def compile_for(toolchain: Toolchain, source: Source, target: str, folder: Path) -> str:
    """The assembly of `source` for one target, with its metadata; `BuildError` where it does not compile."""
    written = folder / f"{source.name}.hip"
    if not written.exists() or written.read_text() != source.text:
        written.write_text(source.text)
    made = folder / f"{source.name}-{target}.s"
    include = [word for path in source.include for word in ("-isystem", str(path))]
    command = [*toolchain.command(target, folder), *USUAL, *_INLINED, *source.flags, *include, *toolchain.after]
    out, header = ("-S", str(written), "-o", str(made)), toolchain.header(target, source.flags)
    ended = run([*command, *header, *out])
    if ended.returncode != 0 and header:
        # Whether the precompiled header fits is the compiler's to say; errors are told as they are without it.
        ended = run([*command, *out])
    if ended.returncode != 0:
        raise BuildError(source.name, target, errors.read(ended.stderr, source.own or (str(written),)), ended.stderr)
    return made.read_text()


def compile_all(
    toolchain: Toolchain, source: Source, targets: Sequence[str], folder: Path
) -> dict[str, str | BuildError]:
    """Assembly, or why there is none, for each target."""

    def attempt(target: str) -> str | BuildError:
        try:
            return compile_for(toolchain, source, target, folder)
        except BuildError as error:
            return error

    with ThreadPoolExecutor(max(1, len(targets))) as pool:
        return dict(zip(targets, pool.map(attempt, targets), strict=True))


def run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run a compiler to its end; one that takes `DEADLINE_S` has failed."""
    try:
        ended = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=DEADLINE_S, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 1, "", f"error: not compiled within {DEADLINE_S:.0f} s")
    return subprocess.CompletedProcess(command, ended.returncode, "", ended.stderr[:MAX_STDERR])
