"""``kernelwright compare``: time two submission files against each other on a GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from kernelwright.commands.faults import told
from kernelwright.console import say, say_json
from kernelwright.options import AsJson, DeadlineS, ProblemName
from kernelwright.status import Status
from problems.spec import Problem
from sandbox.comparison import FEWEST, PAIRS, Compared, Difference


def compare(
    first: Annotated[Path, typer.Argument(help="A submission file.")],
    second: Annotated[Path, typer.Argument(help="Another one, or the same.")],
    problem: ProblemName,
    pairs: Annotated[
        int, typer.Option("--pairs", min=FEWEST, help="Pairs of calls for each ranked case; fixed beforehand.")
    ] = PAIRS,
    deadline_s: DeadlineS = 120.0,
    as_json: AsJson = False,
) -> None:
    """Time two submission files in turns on the same inputs, and say whether the second is faster, slower or neither.

    Exit status: 0 both accepted, 1 one of them not, 2 usage, 3 machine fault or no GPU.
    """
    with told(as_json, _failed):
        raise typer.Exit(_compare(first, second, problem, pairs, deadline_s, as_json))


def _compare(first: Path, second: Path, name: str, pairs: int, deadline_s: float, as_json: bool) -> Status:
    from kernelwright.commands.submission import read_submission
    from problems import load
    from sandbox.gpu import GpuRunner

    problem = load(name)
    one, other = read_submission(first), read_submission(second)
    runner = GpuRunner()
    try:
        found = runner.compare(problem, one, other, pairs, deadline_s)
    finally:
        runner.close()
    if as_json:
        say_json(as_object(problem, found))
    else:
        for line in told_lines(problem, found, first.name, second.name):
            say(line)
    return Status.ACCEPTED if found.first.accepted and found.second.accepted else Status.NOT_ACCEPTED


def as_object(problem: Problem, found: Compared) -> dict[str, Any]:
    """What ``--json`` prints: outcome and ratios at the top, both judgements whole."""
    from kernelwright import judgement_json

    return {
        "problem": problem.name,
        "outcome": found.overall.outcome if found.overall else None,
        "overall": found.overall.model_dump(mode="json") if found.overall else None,
        "cases": [
            {"spec": case.case.spec(), **case.difference.model_dump(mode="json")}
            | {"first_us": list(case.first_us), "second_us": list(case.second_us)}
            for case in found.cases
        ],
        "first": judgement_json.judged(problem, found.first),
        "second": judgement_json.judged(problem, found.second),
    }


def told_lines(problem: Problem, found: Compared, first: str, second: str) -> list[str]:
    """The same for a reader."""
    from kernelwright.judgement_text import machine_words, words

    lines = [f"{name}: {words(said.verdict.kind)}" for name, said in ((first, found.first), (second, found.second))]
    if found.overall is None:
        return [*lines, f"{problem.name}: no comparison, since both must be accepted"]
    for case in found.cases:
        lines.append(f"  {case.case.spec()}: {_figures(case.difference)}")
    verdict = found.overall.outcome
    said = f"{second} is {verdict} than {first}" if verdict in ("faster", "slower") else f"{verdict} between the two"
    lines.append(f"{problem.name}: {said}: {_figures(found.overall)}")
    return [*lines, *(f"flag: {flag}" for flag in dict.fromkeys((*found.first.flags, *found.second.flags))),
            machine_words(found.first.machine)]  # fmt: skip


def _figures(difference: Difference) -> str:
    return (
        f"{difference.ratio:.4f} times as fast [{difference.low:.4f}, {difference.high:.4f}], "
        f"{difference.pairs} pairs; {100 * difference.detectable:.1f} % would have been found"
    )


def _failed(kind: str, message: str) -> dict[str, Any]:
    return {"outcome": None, "overall": None, "cases": [], "error": {"kind": kind, "message": message}}
