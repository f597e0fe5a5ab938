"""The least time a call can take on a chip, beside the bounds that the boards publish.

A bound here is one that no kernel can beat, which takes more care than a roofline: matrix units at the highest clock,
not the data sheet's; data that the last call left in cache need not come from HBM where the board flushes nothing; and
what a cache holds when the call ends has not yet gone to HBM. ``bounds.toml`` in a problem's folder gives the bytes
that a call writes, and the published figures with what sets them apart.
"""

from __future__ import annotations

import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from problems.chips import MATRIX, Chip
from problems.expression import ExpressionError, evaluate
from problems.load import ROOT, folder, work
from problems.spec import BoardTiming, Case, Frozen, ParamValue, Problem, ProblemError, Work

Limit = Literal["arithmetic", "HBM", "cache", "links", "launch"]
Difference = Literal[
    "vendor time",
    "wrong bytes",
    "other peak",
    "other bytes",
    "launch floor",
    "warm cache",
    "output in cache",
    "not said",
]
SAME = 0.01
"""Bounds that differ by no more are the same."""


class Bound(Frozen):
    """The least time of one call, and what sets it."""

    us: float
    limit: Limit
    parts_us: dict[Limit, float]


class Published(Frozen):
    """A figure that a board publishes as a case's bound."""

    chip: str
    case: dict[str, ParamValue]
    us: float
    differs: tuple[Difference, ...] = ()
    """What sets it apart from ours, where that is more than `SAME`; `Bounds.explanations` has a sentence on each."""
    source: str


class Bounds(Frozen):
    """What ``bounds.toml`` says of one problem."""

    written_bytes: str
    """Bytes of the result, an expression over the case's parameters."""
    explanations: dict[Difference, str] = Field(default={})
    published: tuple[Published, ...] = ()


def least(problem: Problem, case: Case, chip: Chip, root: Path = ROOT) -> Bound:
    """The least time of one call of `case` on `chip`, as the problem's board times it.

    The slowest of: arithmetic, HBM, cache, links, and an empty kernel's launch. `ProblemError` where ``bounds.toml`` is
    missing or broken.
    """
    timing = problem.board_timing
    # Back to back, calls overlap: no floor holds for each.
    floor_us = chip.launch_floor_us if timing.calls_per_sample == 1 else 0.0
    return _bound(problem, case, chip, timing, floor_us, root)


def least_cold(problem: Problem, case: Case, chip: Chip, root: Path = ROOT) -> Bound:
    """The same as our own judge times it: caches flushed before each call, the launch taken off."""
    ours = problem.board_timing.model_copy(update={"flush_l2": True, "calls_per_sample": 1})
    return _bound(problem, case, chip, ours, 0.0, root)


def _bound(problem: Problem, case: Case, chip: Chip, timing: BoardTiming, floor_us: float, root: Path) -> Bound:
    needed = work(problem, case)
    parts: dict[Limit, float] = {
        "arithmetic": _arithmetic_s(chip, needed) * 1e6,
        "HBM": _hbm_bytes(timing, needed, _written(problem, case, root), chip) / chip.hbm_bytes_per_s * 1e6,
        "cache": needed.bytes / chip.l2_bytes_per_s * 1e6,
        "links": needed.link_bytes / chip.link_bytes_per_s * 1e6,
        "launch": floor_us,
    }
    limit = max(parts, key=lambda name: parts[name])
    return Bound(us=parts[limit], limit=limit, parts_us=parts)


def of(problem: Problem, root: Path = ROOT) -> Bounds:
    """The problem's ``bounds.toml``; `ProblemError` where it is missing or broken."""
    path = folder(problem, root) / "bounds.toml"
    return _read(path, path.stat().st_mtime_ns if path.is_file() else 0)


def case_of(problem: Problem, row: Published) -> Case | None:
    """The published test or benchmark case that the row's parameters single out; None where there is none."""
    return next((case for case in (*problem.benchmarks, *problem.tests) if _matches(case, row)), None)


def _matches(case: Case, row: Published) -> bool:
    return all(case.params.get(name) == value for name, value in row.case.items())


def _arithmetic_s(chip: Chip, needed: Work) -> float:
    """Matrix products share one kind of unit; every other dtype may be computed beside them."""
    times = {dtype: count / chip.highest_flops_per_s(dtype) for dtype, count in needed.flops.items()}
    return max(sum(s for dtype, s in times.items() if dtype in MATRIX), *times.values(), 0.0)


def _hbm_bytes(timing: BoardTiming, needed: Work, written: float, chip: Chip) -> float:
    """Bytes that no cache can spare: not an input left there by another call, not a result still there at the end."""
    cache = chip.last_level_bytes
    warm = 0.0 if timing.flush_l2 else min(needed.bytes - written, cache)
    # Of a row of calls, the cache holds the results of the last.
    return needed.bytes - warm - min(written, cache / timing.calls_per_sample)


def _written(problem: Problem, case: Case, root: Path) -> float:
    try:
        return float(evaluate(of(problem, root).written_bytes, case.params))
    except ExpressionError as error:
        raise ProblemError(f"{problem.name}, case {case.spec()!r}: {error}; correct written_bytes") from error


@lru_cache(maxsize=128)
def _read(path: Path, _changed_ns: int) -> Bounds:
    where = "/".join(path.parts[-4:])
    try:
        table: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ProblemError(f"{where}: cannot be read as TOML: {error}; add or correct it") from error
    for row in table.get("published", []):
        case = row.get("case", {})
        row["case"] = {name: tuple(value) if isinstance(value, list) else value for name, value in case.items()}
    try:
        found = Bounds.model_validate(table)
    except ValidationError as error:
        raise ProblemError(f"{where}: {error.errors(include_url=False)[0]}; correct it") from error
    unexplained = {kind for row in found.published for kind in row.differs} - set(found.explanations)
    if unexplained:
        raise ProblemError(f"{where}: explanations: none for {', '.join(sorted(unexplained))}; add it")
    return found
