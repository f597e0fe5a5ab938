"""``kernelwright compile``: what Triton's AMD backend makes of a submission's kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from kernelwright.commands.faults import told
from kernelwright.console import say, say_json
from kernelwright.options import AsJson, DeadlineS, ProblemName
from kernelwright.status import Status
from problems.spec import Problem
from sandbox.verdict import Judgement

Target = Literal["gfx942", "gfx950"]
_CHIPS: dict[Target, str] = {"gfx942": "MI300X", "gfx950": "MI355X"}


def compile_file(
    file: Annotated[Path, typer.Argument(help="The submission: one file that defines custom_kernel.")],
    problem: ProblemName,
    target: Annotated[Target, typer.Option(help="The architecture to compile for.")] = "gfx942",
    deadline_s: DeadlineS = 120.0,
    as_json: AsJson = False,
) -> None:
    """Compile a submission's kernels for a target, as its launches on the published cases specialise them.

    Needs no GPU. Exit status: 0 every kernel compiled, 1 one did not or none was launched, 2 usage, 3 machine fault.
    """

    def failed(kind: str, message: str) -> dict[str, Any]:
        return {"target": target, "verdict": None, "kernels": [], "error": {"kind": kind, "message": message}}

    with told(as_json, failed):
        raise typer.Exit(_compile(file, problem, target, deadline_s, as_json))


def _compile(file: Path, name: str, target: Target, deadline_s: float, as_json: bool) -> Status:
    from kernelwright.commands.submission import read_submission
    from kernelwright.runners import open_runner
    from problems import load

    problem = load(name)
    candidate = read_submission(file)
    with open_runner("cpu", problem, _CHIPS[target]) as runner:
        judgement = runner.judge(problem, candidate, deadline_s=deadline_s)
    found = report(problem, judgement, target)
    if as_json:
        say_json(found)
    else:
        _show(judgement, target, found)
    return Status.ACCEPTED if found["compiled"] else Status.NOT_ACCEPTED


def report(problem: Problem, judgement: Judgement, target: str) -> dict[str, Any]:
    """The kernels compiled for `target`; ``compiled`` only where there are any and none failed."""
    from kernelwright.judgement_json import reason

    records = [record for record in judgement.kernels if record.target == target]
    return {
        "problem": problem.name,
        "target": target,
        "verdict": judgement.verdict.kind,
        "reason": reason(judgement),
        "compiled": bool(records) and all(record.isa is not None for record in records),
        "kernels": [record.model_dump(mode="json") for record in records],
        "machine": judgement.machine.model_dump(mode="json"),
    }


def _show(judgement: Judgement, target: str, found: dict[str, Any]) -> None:
    from kernelwright.inspection_text import show

    records = tuple(record for record in judgement.kernels if record.target == target)
    if records:
        show(records)
    else:
        say(f"no kernel was compiled for {target}")
    if not judgement.accepted:
        say(f"judged {judgement.verdict.kind.replace('_', ' ')}: {found['reason']}", "yellow")
