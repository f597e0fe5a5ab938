"""How the work of a case is shared among the HIP launches of one call, whose code does not say what each does.

Operations go to the kernels with matrix instructions, or where there are none to those that multiply and add in loops;
among those by their waves. The others move data: they are given no operations, and the case's bytes where they loop.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from problems.spec import Work
from sandbox.evidence import RecordedKernel, RecordedLaunch
from sandbox.isa import stream
from sandbox.waves import computes


def shares(work: Work, launched: Sequence[tuple[RecordedKernel, RecordedLaunch]]) -> list[Work]:
    """The part of `work` that each launch does; all of it for a Triton kernel, which is followed by itself."""
    kernels = {id(kernel): kernel for kernel, _ in launched if not kernel.ttir}
    matrix = {key for key, kernel in kernels.items() if _has_matrix(kernel)}
    busy = matrix or {key for key, kernel in kernels.items() if computes(stream(kernel))}
    waves = [_waves(kernel, launch) if id(kernel) in busy else 0 for kernel, launch in launched]
    return [
        work if kernel.ttir or not busy else _part(work, count / max(1, sum(waves)))
        for (kernel, _), count in zip(launched, waves, strict=True)
    ]


def _part(work: Work, share: float) -> Work:
    if share == 0:
        return Work(flops={}, bytes=work.bytes)
    return Work(flops={name: count * share for name, count in work.flops.items()}, bytes=work.bytes * share)


def _has_matrix(kernel: RecordedKernel) -> bool:
    code = stream(kernel)
    return bool(code.straight.mfma_flops or any(loop.own.mfma_flops for loop in code.loops))


def _waves(kernel: RecordedKernel, launch: RecordedLaunch) -> int:
    return math.prod(launch.grid) * kernel.num_warps
