"""What a look at compiled code says beyond counts: the cost of each loop, and advice. Never a verdict."""

from __future__ import annotations

from typing import Literal

from problems.spec import Frozen

Rule = Literal[
    "fp8-upcast",
    "lds-size",
    "partial-wave",
    "half-wave",
    "narrow-access",
    "scattered-access",
    "register-step",
    "spill",
    "scratch",
    "bank-conflict",
    "drained-loads",
    "no-mfma",
    "call",
]


class LoopCost(Frozen):
    """One pass over a loop's own instructions, inner loops left out: the cycles each pipe is busy with it."""

    label: str
    """Of its head in the assembly."""
    line: int
    """Of its head, in the recorded text, from 1."""
    depth: int
    """1 for an outermost loop."""
    instructions: int
    cycles: dict[str, float]
    """By pipe, for one wave on each SIMD: ``mfma`` and ``valu`` belong to a SIMD, ``lds`` and ``vmem`` to the compute
    unit, so that theirs are counted for every SIMD whose waves run the loop. ``issue``: one wave issues at most one
    instruction in four cycles, which other waves fill."""
    binding: str
    """The pipe with most cycles, ``issue`` aside where several waves share a SIMD."""
    waves_per_simd: int

    @property
    def cycles_per_iteration(self) -> float:
        """Of the binding pipe: no wave can run an iteration faster, and none is promised to run it as fast."""
        return self.cycles[self.binding]


class Advice(Frozen):
    """What a kernel engineer would point at, with the instruction that shows it. It accepts and rejects nothing."""

    rule: Rule
    line: int
    """Of the instruction in the recorded assembly, from 1; 0 where it is not about one."""
    instruction: str
    message: str
    remedy: str
