"""What one wave of a kernel does from start to end: its instructions weighted by how often they run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from problems.spec import DType
from sandbox.evidence import RecordedKernel
from sandbox.isa import Loop, Stream
from sandbox.pipes import Cost
from sandbox.programs import Trace

Field = Literal["mfma_flops", "valu_flops", "load_bytes"]
_DTYPES: dict[str, DType] = {"f64": "fp64", "f32": "fp32", "f16": "fp16", "bf16": "bf16", "i8": "uint8", "i32": "int32"}


@dataclass(frozen=True, slots=True)
class ProgramWork:
    """What one program asks for: a mean over the grid."""

    flops: float
    dtype: DType | None
    """Of the operands of its dots; None without any."""
    load_bytes: float
    store_bytes: float
    iterations: tuple[float, ...]
    """Of each loop of its Triton code that holds work."""
    distinct_waves: int
    """Waves that can have MFMA tiles of their own; further waves repeat the same ones."""
    imbalance: float = 1.0
    """Work of the busiest program over that of the mean one."""


@dataclass(frozen=True, slots=True)
class LoopRuns:
    """One loop of the assembly and how often a wave runs its body."""

    body: Cost
    runs: float
    pipelined: bool
    """Whether Triton made its loads for a later iteration."""
    covered_cycles: float = 0.0
    """Without that, work between its last load and the wait for it; see `sandbox.isa.Loop`."""
    reloads: int = 0
    """Waits of one pass for spilled registers."""


@dataclass(frozen=True, slots=True)
class WaveWork:
    """All that one wave runs."""

    total: Cost
    straight: Cost
    loops: tuple[LoopRuns, ...]


def program_work(found: Trace, kernel: RecordedKernel, mfma_tile: tuple[int, int]) -> ProgramWork:
    """The mean program of a trace; `mfma_tile` is the kernel's largest MFMA result, (0, 0) where it has none."""
    dots = [(dot, float(dot.times.mean())) for dot in found.dots]
    kinds = [dot.dtype for dot, _ in dots]
    tiles = [-(-dot.rows // max(1, mfma_tile[0])) * -(-dot.columns // max(1, mfma_tile[1])) for dot, _ in dots]
    return ProgramWork(
        flops=sum(dot.flops * times for dot, times in dots),
        dtype=_dtype(kinds[0]) if kinds else None,
        load_bytes=_bytes(found, "load"),
        store_bytes=_bytes(found, "store") + _bytes(found, "atomic"),
        iterations=tuple(float(runs.mean()) for runs in found.iterations),
        distinct_waves=max(1, min([kernel.num_warps, *tiles])),
        imbalance=_imbalance(found),
    )


def computes(code: Stream) -> bool:
    """Whether a kernel without matrix instructions has loops that multiply and add."""
    return any(loop.own.valu_flops for loop in code.loops)


def wave_work(code: Stream, work: ProgramWork, kernel: RecordedKernel) -> WaveWork:
    """How often each loop runs, from conservation: a wave's MFMAs must add up to its share of the program's dots.

    Unrolled, peeled and pipelined loops run other counts than the Triton loop they come from, so counts are not copied.
    Loops without MFMAs are held to the bytes loaded; loops with neither take the Triton count where it is plain.
    """
    flops = work.flops / work.distinct_waves
    loads = work.load_bytes / kernel.num_warps
    runs = [0.0] * len(code.loops)
    plain = list(work.iterations) if len(work.iterations) == len(code.loops) else []
    field = _counted(code, kernel)
    with_mfma = [i for i, loop in enumerate(code.loops) if getattr(loop.own, field)]
    if plain:
        # A loop round another's MFMAs holds peeled ones: it runs as written, the inner one does the rest.
        for i in [i for i in with_mfma if any(code.loops[j].parent == i for j in with_mfma)]:
            runs[i] = plain[i]
            flops -= runs[i] * code.loops[i].own.mfma_flops
            with_mfma.remove(i)
    with_loads = [i for i, loop in enumerate(code.loops) if loop.own.load_bytes and not getattr(loop.own, field)]
    _share(runs, with_mfma, code, max(0.0, flops - getattr(code.straight, field)), field)
    done = code.straight.load_bytes + sum(loop.own.load_bytes * runs[i] for i, loop in enumerate(code.loops))
    _share(runs, with_loads, code, max(0.0, loads - done), "load_bytes")
    for i, loop in enumerate(code.loops):
        if not getattr(loop.own, field) and i not in with_loads:
            runs[i] = plain[i] if plain else _outer_runs(runs, code.loops, loop)
    loops = tuple(
        LoopRuns(
            body=loop.own,
            runs=count,
            reloads=loop.reloads,
            pipelined=kernel.num_stages >= 2 and loop.own.mfma > 0,
            # Triton's own text says how it pipelined; clang's has to be looked at.
            covered_cycles=0.0 if kernel.ttir else loop.covered_cycles,
        )
        for loop, count in zip(code.loops, runs, strict=True)
    )
    total = code.straight
    for counted in loops:
        total += counted.body.times(counted.runs)
    return WaveWork(total, code.straight, loops)


def _counted(code: Stream, kernel: RecordedKernel) -> Field:
    """Which operations must add up to the work: a HIP kernel may do without matrix instructions."""
    matrix = code.straight.mfma_flops or any(loop.own.mfma_flops for loop in code.loops)
    return "mfma_flops" if matrix or kernel.ttir else "valu_flops"


def _share(runs: list[float], loops: list[int], code: Stream, needed: float, field: Field) -> None:
    """Give the loops one count, such that their `field` adds up to what is needed."""
    once = sum(getattr(code.loops[i].own, field) for i in loops)
    for i in loops:
        runs[i] = needed / once


def _outer_runs(runs: list[float], loops: tuple[Loop, ...], loop: Loop) -> float:
    """A loop nothing is known of runs as often as what is inside it starts: at least once."""
    return max(1.0, runs[loop.parent]) if loop.parent is not None else 1.0


def _imbalance(found: Trace) -> float:
    """By operations, or by bytes where there are no dots."""
    parts = [dot.flops * dot.times for dot in found.dots]
    parts = parts or [site.tile_bytes * site.times for site in found.accesses]
    each = np.sum(parts, axis=0) if parts else np.zeros(1)
    return float(each.max() / each.mean()) if each.sum() else 1.0


def _bytes(found: Trace, kind: str) -> float:
    return sum(float(site.tile_bytes * site.times.mean()) for site in found.accesses if site.kind == kind)


def _dtype(element: str) -> DType:
    if element.startswith("f8"):
        return "fp8"
    return _DTYPES.get(element, "fp32")
