"""The two rules an output is held against: ours, and the board's own."""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch

from problems.spec import BoardCheck, Tolerance
from sandbox.verdict import ErrorFigures

CHUNK = 1 << 24
"""Elements compared at a time: the float64 temporaries of a chunk stay near 1 GiB."""
CPU_CHUNK = 1 << 14
"""On a CPU they stay in its cache, and below the size from which torch starts threads, which wait for one another where
others work too: six times less time for a large tensor."""


def compare(
    out: torch.Tensor, exact: torch.Tensor, terms: torch.Tensor, tolerance: Tolerance, finite: bool = True
) -> ErrorFigures:
    """Hold `out` against the float64 result: |out - exact| <= rtol |exact| + term_rtol terms, at every element.

    All three have one shape and lie on one device. Where the result rounds to infinity or NaN in `out`'s dtype, `out`
    must say the same; everywhere else it must be finite. Without `finite` NaN is a wildcard, as in a careless judge.
    """
    worst = torch.zeros(3, dtype=torch.float64, device=out.device)
    mismatches = torch.zeros((), dtype=torch.int64, device=out.device)
    flat = [tensor.reshape(-1) for tensor in (out, exact, terms)]
    for part in zip(*(tensor.split(_step(out)) for tensor in flat), strict=True):
        figures, wrong = _chunk(part[0], part[1], part[2], tolerance, finite)
        worst = torch.maximum(worst, figures)
        mismatches += wrong
    max_abs, max_rel, ratio = worst.tolist()
    return ErrorFigures(
        max_abs=max_abs, max_rel=max_rel, worst_ratio=ratio, mismatches=int(mismatches), elements=out.numel()
    )


def _step(tensor: torch.Tensor) -> int:
    return min(CHUNK, CPU_CHUNK) if tensor.device.type == "cpu" else CHUNK


def merged(figures: Iterable[ErrorFigures]) -> ErrorFigures:
    """The figures of several tensors as of one: the largest errors, all mismatches."""
    parts = list(figures)
    return ErrorFigures(
        max_abs=max(part.max_abs for part in parts),
        max_rel=max(part.max_rel for part in parts),
        worst_ratio=max(part.worst_ratio for part in parts),
        mismatches=sum(part.mismatches for part in parts),
        elements=sum(part.elements for part in parts),
    )


def _chunk(
    out: torch.Tensor, exact: torch.Tensor, terms: torch.Tensor, tolerance: Tolerance, finite: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """(largest absolute error, relative error, error over allowance) and how many elements are over it."""
    got = out.double()
    error = (got - exact).abs_()
    allowed = exact.abs().mul_(tolerance.rtol).add_(terms, alpha=tolerance.term_rtol)
    if _plain(error, exact, allowed, out.dtype):
        ratio, relative = error / allowed, error / exact.abs()
        # 0 over 0 is the only NaN here, and an error of 0 passes whatever the allowance.
        figures = (error, relative.nan_to_num_(nan=0.0, posinf=math.inf), ratio.nan_to_num_(nan=0.0, posinf=math.inf))
        return torch.stack([each.max() for each in figures]), (ratio > 1).sum()
    rounded = exact.to(out.dtype).double()
    odd = ~torch.isfinite(rounded)
    agrees = odd & ((got == rounded) | (got.isnan() & rounded.isnan()))
    if not finite:
        agrees |= got.isnan()
    error = torch.where(agrees, 0.0, torch.where(odd | ~torch.isfinite(got), math.inf, error))
    # An error of 0 passes whatever the allowance, 0 and NaN included; any other error over no allowance never does.
    ratio = torch.where(error == 0, 0.0, torch.nan_to_num(error / allowed, nan=math.inf, posinf=math.inf))
    relative = torch.where(error == 0, 0.0, error / exact.abs())
    relative = torch.nan_to_num(relative, nan=math.inf, posinf=math.inf)
    return torch.stack([error.max(), relative.max(), ratio.max()]), (ratio > 1).sum()


def _plain(error: torch.Tensor, exact: torch.Tensor, allowed: torch.Tensor, dtype: torch.dtype) -> bool:
    """Whether nothing here is infinite or NaN, also once rounded to `dtype`: most chunks, in half the passes."""
    if error.numel() == 0 or not dtype.is_floating_point:
        return False
    # A NaN anywhere is the largest there is, and compares false.
    off, high, low, widest = torch.stack([error.max(), exact.max(), exact.min().neg(), allowed.max()]).tolist()
    most = torch.finfo(dtype).max
    return off < math.inf and high <= most and low <= most and widest < math.inf


def board_accepts(out: torch.Tensor, theirs: torch.Tensor, check: BoardCheck, scale: float = 1.0) -> bool:
    """Whether the board's own check passes: shape equal, dtype not looked at, NaN and same-signed infinities agree.

    `scale` is the value of the check's own on this case.
    """
    if out.shape != theirs.shape:
        return False
    pairs = zip(*(tensor.reshape(-1).split(_step(out)) for tensor in (out, theirs)), strict=True)
    missed = sum(_board_misses(ours, other, check, scale) for ours, other in pairs)
    return missed <= check.missed_share * out.numel()


def _board_misses(out: torch.Tensor, theirs: torch.Tensor, check: BoardCheck, scale: float) -> int:
    allowed = scale * check.atol + scale * check.rtol * theirs.abs()
    if check.difference == "fp32":
        out, theirs = out.float(), theirs.float()
    agree = (out.isnan() & theirs.isnan()) | (out.isinf() & (out == theirs))
    # NaN compares false, so that a NaN on one side alone fails; an infinity's difference with a number is infinite.
    close = (out - theirs).abs() <= allowed
    finite = torch.isfinite(out) & torch.isfinite(theirs)
    return int((~(agree | (close & finite))).sum())
