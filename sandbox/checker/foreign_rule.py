"""The rules that an answer to a problem from elsewhere is held against: ours, and the problem's own."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from problems.spec import Tolerance
from sandbox.checker.foreign_tree import Value
from sandbox.checker.rule import compare
from sandbox.verdict import ErrorFigures

STEPS, TIMES = 2.0**-19, 16.0
"""Sixteen steps of fp32; how much more than the reference in its own precision a candidate may err."""
WIDEST = 2.0**-10
"""A reference that errs more than this against its own float64 run does not compute the same thing there."""
ALONE = 2.0**-13
"""The allowance where there is no float64 run to compare with."""
DISTANCE = 1 / 64
_COARSE = {"float8": 1 / 8, "float4": 1 / 4}
NOTHING = ErrorFigures(max_abs=math.inf, max_rel=math.inf, worst_ratio=math.inf, mismatches=1, elements=1)


@dataclass(frozen=True, slots=True)
class Held:
    """What came of one comparison."""

    error: ErrorFigures
    reason: str = ""
    """Why it is wrong; empty where it is right."""


def shaped(out: Value, wanted: Value, dtypes: bool) -> str:
    """How the outputs' tensors differ in number, shape or, where `dtypes`, in dtype; empty where they do not."""
    if len(out.leaves) != len(wanted.leaves):
        return f"returned {len(out.leaves)} tensors, the reference returns {len(wanted.leaves)}"
    for mine, theirs in zip(out.leaves, wanted.leaves, strict=True):
        if mine.span.shape != theirs.span.shape:
            return f"output {theirs.place} has shape {list(mine.span.shape)}, not {list(theirs.span.shape)}"
        if dtypes and mine.span.dtype != theirs.span.dtype:
            return f"output {theirs.place} is {mine.span.dtype}, not {theirs.span.dtype}"
    return ""


def against_exact(out: Value, own: Value, exact: Value | None) -> Held:
    """Hold `out` against the float64 run, by the allowance that the reference's own error gives."""
    if reason := shaped(out, own, dtypes=True):
        return Held(NOTHING, reason)
    exacts = exact.tensors() if exact is not None else own.tensors()
    found = [_leaf(*three) for three in zip(out.tensors(), own.tensors(), exacts, strict=True)]
    worst = max(found, key=lambda error: error.worst_ratio)
    mismatches, elements = (sum(getattr(each, field) for each in found) for field in ("mismatches", "elements"))
    worst = worst.model_copy(update={"mismatches": mismatches, "elements": elements})
    return Held(worst, _said(worst) if mismatches else "")


def allowance(own: torch.Tensor, exact: torch.Tensor) -> tuple[float, torch.Tensor]:
    """(the relative allowance, what is relative to: the float64 run, or `own` where that computes something else)."""
    if not own.is_floating_point():
        return 0.0, own.double()
    wide = exact.double()
    errs = ((own.double() - wide).abs() / (wide.abs() + rms(wide))).nan_to_num(0.0, posinf=0.0)
    worst = float(errs.max()) if errs.numel() else 0.0
    return (ALONE, own.double()) if worst > WIDEST else (min(max(STEPS, TIMES * worst), WIDEST), wide)


def rms(exact: torch.Tensor) -> float:
    """Root mean square of what is finite."""
    finite = exact[torch.isfinite(exact)]
    return float(finite.double().square().mean().sqrt()) if finite.numel() else 0.0


def _leaf(out: torch.Tensor, own: torch.Tensor, exact: torch.Tensor) -> ErrorFigures:
    if out.numel() == 0:
        return ErrorFigures(max_abs=0.0, max_rel=0.0, worst_ratio=0.0, mismatches=0, elements=0)
    allowed, wide = allowance(own, exact)
    terms = torch.full_like(wide, rms(wide))
    return compare(out, wide, terms, Tolerance(rtol=allowed, term_rtol=allowed, reason=""))


def close(out: Value, own: Value, tolerance: float) -> bool:
    """KernelBench's own rule: `torch.allclose` in the declared precision."""
    if shaped(out, own, dtypes=True):
        return False
    pairs = zip(out.tensors(), own.tensors(), strict=True)
    return all(torch.allclose(theirs, mine, atol=tolerance, rtol=tolerance) for mine, theirs in pairs)


def distance(out: Value, own: Value, inputs: Value) -> Held:
    """Hold the whole result against the reference's: no constant lies that near to anything that varies."""
    if reason := shaped(out, own, dtypes=False):
        return Held(NOTHING, reason)
    names = [str(leaf.span.dtype) for value in (inputs, own) for leaf in value.leaves]
    most = max([DISTANCE, *(share for name in names for kind, share in _COARSE.items() if kind in name)])
    ratios = [far(*pair) / most for pair in zip(out.tensors(), own.tensors(), strict=True)]
    worst, elements = max(ratios, default=0.0), sum(tensor.numel() for tensor in out.tensors())
    error = ErrorFigures(
        max_abs=worst * most, max_rel=worst * most, worst_ratio=worst, mismatches=int(worst > 1), elements=elements
    )
    return Held(error, f"the whole result is {worst * most:.3g} away from the reference's" if worst > 1 else "")


def far(out: torch.Tensor, own: torch.Tensor) -> float:
    """|out - own| / |own| over all elements; whole numbers are left to the problem's own check."""
    if not (own.is_floating_point() and out.is_floating_point()) or own.numel() == 0 or own.element_size() == 0:
        return 0.0
    mine, theirs = out.double(), own.double()
    odd = ~torch.isfinite(theirs)
    if bool((odd != ~torch.isfinite(mine)).any()):
        return math.inf
    mine, theirs = mine.masked_fill(odd, 0.0), theirs.masked_fill(odd, 0.0)
    norm, error = float(theirs.norm()), float((mine - theirs).norm())
    return 0.0 if error == 0 else error / norm if norm else math.inf


def _said(error: ErrorFigures) -> str:
    return (
        f"{error.mismatches} of {error.elements} elements are off; "
        f"largest absolute error {error.max_abs:.3g}, {error.worst_ratio:.3g} times what is allowed"
    )
