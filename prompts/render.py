"""One typed function per template. Pure: the same values give the same text, whose hash the journal keeps."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import jinja2

from problems.chips import Chip
from problems.load import work
from problems.spec import Case, Problem
from prompts.view import Kernel, Note, View, view

ROOT = Path(__file__).parent
_RANKINGS = {
    "geomean": "the geometric mean over all of them",
    "last": "the last of them alone",
    "mean": "the mean over all of them",
    "weighted": "a weighted sum over all of them",
}


def draft(problem: Problem, chip: Chip, notes: tuple[Note, ...] = (), reason: str = "") -> str:
    """Ask for a submission from nothing but the problem; `reason` says why the last reply held none."""
    return _render("draft.j2", problem, chip, notes=notes, reason=reason.rstrip("."))


def repair(problem: Problem, chip: Chip, kernel: Kernel, notes: tuple[Note, ...] = ()) -> str:
    """Ask to mend a kernel that the judge did not accept."""
    return _render("repair.j2", problem, chip, kernel=kernel, view=_view(problem, chip, kernel), notes=notes)


def optimise(
    problem: Problem, chip: Chip, kernel: Kernel, notes: tuple[Note, ...] = (),
    other: Kernel | None = None, from_chip: str = "", reason: str = "",
) -> str:  # fmt: skip
    """Ask for a faster form of an accepted kernel; with `other`, for one that joins the two; or ported from a chip.

    `reason` says why the last reply held no submission.
    """
    return _render(
        "optimise.j2", problem, chip, kernel=kernel, view=_view(problem, chip, kernel), notes=notes, other=other,
        other_view=_view(problem, chip, other) if other else None, from_chip=from_chip, reason=reason.rstrip("."),
    )  # fmt: skip


def _render(template: str, problem: Problem, chip: Chip, **values: object) -> str:
    text = _environment().get_template(template).render(
        problem=problem, chip=chip, bounds=_bounds(problem, chip), ranking=_RANKINGS[problem.board_timing.ranked_by],
        parts=_parts(problem, chip), **values,
    )  # fmt: skip
    return _without_gaps(text)


def _view(problem: Problem, chip: Chip, kernel: Kernel) -> View:
    return view(kernel, {case.spec(): bound_us for case, bound_us in _bounds(problem, chip)})


def _bounds(problem: Problem, chip: Chip) -> list[tuple[Case, float]]:
    needed = [(case, work(problem, case)) for case in problem.benchmarks]
    return [(case, chip.roofline_us(need.flops, need.bytes)) for case, need in needed]


def _parts(problem: Problem, chip: Chip) -> str:
    """The cards that matter here, each with its sources."""
    names = [chip.arch] + ["triton_amd"] * (chip.vendor == "amd") + ["fp8"] * ("fp8" in problem.flops)
    files = [f"parts/{name}.md" for name in names if (ROOT / "parts" / f"{name}.md").is_file()]
    return "\n".join(_environment().get_template(file).render(chip=chip) for file in files)


@lru_cache(maxsize=1)
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader((ROOT, ROOT / "templates")), undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, autoescape=False,
    )  # fmt: skip
    environment.filters.update(
        us=lambda us: f"{us:.4g}", figure=lambda value: f"{value:.3g}", counts=_counts, fence=_fence
    )
    return environment


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items())) or "none"


def _without_gaps(text: str) -> str:
    """At most one empty line in a row outside code: what a template leaves where a part is absent."""
    lines: list[str] = []
    fence = ""
    for line in text.splitlines():
        mark = line[: len(line) - len(line.lstrip("`~"))]
        if len(mark) >= 3 and (not fence or mark == fence):
            fence = "" if fence else mark
        if fence or line.strip() or (lines and lines[-1].strip()):
            lines.append(line.rstrip())
    return "\n".join(lines).strip() + "\n"


def _fence(source: str) -> str:
    """A fence that the source does not hold itself."""
    return next(mark for length in range(3, 99) if (mark := "`" * length) not in source)
