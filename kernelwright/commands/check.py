"""``kernelwright check``: judge one submission file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from kernelwright.console import fail, say_json
from kernelwright.options import AsJson, ChipName, DeadlineS, ProblemName, RunnerName
from kernelwright.status import Status, families, kind_of, status_of

ModeName = Literal["test", "benchmark", "leaderboard", "profile"]


@dataclass(frozen=True, slots=True)
class CheckSettings:
    """Everything that decides what ``check`` does."""

    file: Path
    problem: str
    runner: Literal["auto", "cpu", "gpu"]
    chip: str | None
    mode: ModeName
    deadline_s: float


def check(
    file: Annotated[Path, typer.Argument(help="The submission: one file that defines custom_kernel.")],
    problem: ProblemName,
    runner: RunnerName = "auto",
    mode: Annotated[
        ModeName, typer.Option(help="How much is done; each mode does what the one before it does.")
    ] = "benchmark",
    chip: ChipName = None,
    deadline_s: DeadlineS = 120.0,
    as_json: AsJson = False,
) -> None:
    """Judge one submission file.

    Exit status: 0 accepted, 1 not accepted, 2 usage, 3 machine fault or a file that cannot be judged here.
    """
    settings = CheckSettings(file, problem, runner, chip, mode, deadline_s)
    try:
        raise typer.Exit(_judge(settings, as_json))
    except families() as error:
        if not as_json:
            raise
        from kernelwright.judgement_json import failed

        say_json(failed(kind_of(error), str(error)))
        fail(str(error))
        raise typer.Exit(status_of(error)) from error


def _judge(settings: CheckSettings, as_json: bool) -> Status:
    from kernelwright import judgement_json
    from kernelwright.commands.submission import read_submission
    from kernelwright.runners import open_runner
    from problems import load
    from sandbox.runner import Mode

    problem = load(settings.problem)
    candidate = read_submission(settings.file)
    with open_runner(settings.runner, problem, settings.chip) as runner:
        judgement = runner.judge(problem, candidate, Mode(settings.mode), settings.deadline_s)
    if as_json:
        say_json(judgement_json.judged(problem, judgement))
    else:
        from kernelwright.judgement_text import show

        show(problem, judgement)
    return Status.ACCEPTED if judgement.accepted else Status.NOT_ACCEPTED
