"""``kernelwright problems bounds``: the least time of each case on each chip, beside what the boards publish."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kernelwright.console import escape, result_console, say, table
from problems.bounds import SAME, Bounds, Published, case_of, least, of
from problems.chips import CHIPS, chip
from problems.spec import Case, Problem


def as_data(problem: Problem) -> dict[str, Any]:
    """One problem's bounds: ours by case and chip with what limits them, and the published ones with their ratio."""
    said = of(problem)
    return {
        "problem": problem.name,
        "cases": [
            {
                "case": case.params,
                "least": {name: least(problem, case, found).model_dump() for name, found in CHIPS.items()},
            }
            for case in cases(problem, said)
        ],
        "published": [
            row.model_dump() | {"least_us": ours(problem, row), "ratio": row.us / ours(problem, row)}
            for row in said.published
        ],
        "explanations": said.explanations,
        "sources": {name: list(found.sources) for name, found in CHIPS.items()},
    }


def show(problem: Problem) -> None:
    """The same as a table: a line for each case, what differs by more than a hundredth explained below it."""
    said = of(problem)
    shown = table(
        f"{problem.name}: least time of a call, us (what limits it); ratio: published over ours",
        *("case", *CHIPS, "published", "ratio", "differs"),
    )
    for case in cases(problem, said):
        ours_on = [least(problem, case, found) for found in CHIPS.values()]
        theirs = [row for row in said.published if case_of(problem, row) == case]
        shown.add_row(
            escape(case.spec()),
            *(f"{bound.us:.4g} ({bound.limit})" for bound in ours_on),
            "\n".join(f"{row.us:g} ({row.chip})" for row in theirs),
            "\n".join(f"{row.us / ours(problem, row):.3f}" for row in theirs),
            "\n".join(", ".join(row.differs) or _without(problem, row) for row in theirs),
        )
    result_console().print(shown)
    for kind, sentence in said.explanations.items():
        say(f"  {kind}: {sentence}")


def cases(problem: Problem, said: Bounds) -> Iterator[Case]:
    """The benchmark cases, and the test cases that a published figure is for."""
    yield from problem.benchmarks
    named = [case_of(problem, row) for row in said.published]
    yield from (case for case in problem.tests if case in named and case not in problem.benchmarks)


def ours(problem: Problem, row: Published) -> float:
    """Our bound on the row's case and chip, in microseconds; NaN where the problem has no such case."""
    case = case_of(problem, row)
    return least(problem, case, chip(row.chip)).us if case else float("nan")


def _without(problem: Problem, row: Published) -> str:
    return "same" if abs(row.us / ours(problem, row) - 1) <= SAME else "unexplained"
