"""The page on right and wrong answers: a summary, then what became of each, problem by problem, a column a machine."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

Row = dict[str, Any]
Found = dict[str, Any]

HEAD = """# Wrong variants

Each problem's library call as a candidate, and ten answers that are wrong as a kernel's author may well get them wrong
(`tests/problems/wrong/`), judged in mode test. Written by `python -m tests.bench.variants`. A right one must pass, a
wrong one be refused for its answer and not for a crash. A cell says how many elements are off in the worst case that
was judged, and the largest error over its allowance. Cases come in an order drawn by lot and the first wrong one ends
a judgement: figures differ from run to run, verdicts must not.
"""


def page(found: Sequence[Found]) -> str:
    """Markdown for one or more results of `tests.bench.variants`, each a column."""
    problems = list(dict.fromkeys(row["problem"] for one in found for row in one["rows"]))
    parts = [HEAD, *map(_source, found), "\n## Summary\n\n", _summary(found, problems)]
    parts += [f"\n## {problem}\n\n" + _answers(found, problem) for problem in problems]
    return "".join(parts)


def joined(found: Sequence[Found]) -> list[Found]:
    """One result for each kind of machine: a candidate judged more than once is as it was judged last."""
    columns: dict[str, Found] = {}
    for one in found:
        before = columns.get(place(one), one | {"rows": []})
        keys = {(row["problem"], row["what"]) for row in one["rows"]}
        kept = [row for row in before["rows"] if (row["problem"], row["what"]) not in keys]
        commits = dict.fromkeys([*before["commit"].split(", "), one["commit"]])
        rows = sorted(kept + one["rows"], key=lambda row: row["problem"])
        columns[place(one)] = one | {"rows": rows, "commit": ", ".join(commits)}
    return list(columns.values())


def place(one: Found) -> str:
    """A column's title: the chip, or that it is an emulation."""
    machine = one["machine"]
    return machine["chip"] if machine["kind"] == "gpu" else "CPU emulation"


def _source(one: Found) -> str:
    machine, rows = one["machine"], one["rows"]
    software = f"Python {machine['python']}, torch {machine['torch']}, triton {machine['triton']}"
    if machine["kind"] == "gpu":
        software += f", {machine['runtime']}, driver {machine['driver']}"
    sizes = "published test cases and hidden ones" if machine["kind"] == "gpu" else "small cases and small hidden ones"
    said = f"{sizes}; n = {len(rows)} candidates, each judged once; commit {one['commit']}, {one['date']}"
    return f"\n- {place(one)}: {said}; {software}; judge {machine['harness'][:12]}.\n"


def _summary(found: Sequence[Found], problems: Sequence[str]) -> str:
    titles = [f"{place(one)}: {side}" for one in found for side in ("right ones pass", "wrong ones refused")]
    lines = [_line(["problem", *titles]), _line(["---"] * (1 + len(titles)))]
    for problem in [*problems, ""]:
        counts = [_count(one, problem, right) for one in found for right in (True, False)]
        lines.append(_line([problem or "all", *counts]))
    return "".join(lines)


def _count(one: Found, problem: str, right: bool) -> str:
    rows = [row for row in one["rows"] if row["right"] is right and problem in ("", row["problem"])]
    judged = [row for row in rows if row["said"] != "not judged"]
    good, left = sum(row["said"] == "ok" for row in judged), len(rows) - len(judged)
    return f"{good} of {len(judged)}" + (f", {left} not judged" if left else "")


def _answers(found: Sequence[Found], problem: str) -> str:
    keys = dict.fromkeys(
        (row["right"], row["what"]) for one in found for row in one["rows"] if row["problem"] == problem
    )
    lines = [_line(["answer", *map(place, found)]), _line(["---"] * (1 + len(found)))]
    for right, what in keys:
        cells = [_cell(one, problem, right, what) for one in found]
        lines.append(_line([f"right: {what}" if right else what, *cells]))
    return "".join(lines)


def _cell(one: Found, problem: str, right: bool, what: str) -> str:
    rows = [row for row in one["rows"] if (row["problem"], row["right"], row["what"]) == (problem, right, what)]
    return _said(rows[0]) if rows else ""


def _said(row: Row) -> str:
    if row["said"] == "not judged":
        return f"not judged: {row['why'].split(';')[0]}"
    if row["said"] != "ok":
        return f"**{row['kind']}** {row['why']}"
    if row["right"]:
        return f"passed {row['cases']} cases; at most {row['times_allowed']:.2g} of what is allowed"
    return f"refused: {_error(row)}" + ("; the board's rule takes it there" if row.get("board_accepts") else "")


def _error(row: Row) -> str:
    if "elements are off" not in row["why"]:
        return row["why"].removeprefix(f"{row.get('case', '')}: ")
    times = f", {row['times_allowed']:.3g} times what is allowed" if math.isfinite(row["times_allowed"]) else ""
    return f"{row['mismatches']} of {row['elements']} off{times} (`{row['case']}`)"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"
