"""``kernelwright check``: judge one submission file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from kernelwright.commands.faults import told
from kernelwright.console import say_json
from kernelwright.options import (
    AsJson,
    ChipName,
    DeadlineS,
    IsolationName,
    ModeName,
    ModeOption,
    ProblemName,
    RunnerName,
)
from kernelwright.runners import RunnerKind
from kernelwright.status import Status


@dataclass(frozen=True, slots=True)
class CheckSettings:
    """Everything that decides what ``check`` does."""

    file: Path
    problem: str
    runner: RunnerKind
    chip: str | None
    mode: ModeName
    deadline_s: float
    isolation: str | None
    racecheck: bool


def check(
    file: Annotated[Path, typer.Argument(help="The submission: one file that defines custom_kernel.")],
    problem: ProblemName,
    runner: RunnerName = "auto",
    mode: ModeOption = "benchmark",
    chip: ChipName = None,
    deadline_s: DeadlineS = 120.0,
    isolation: IsolationName = None,
    racecheck: Annotated[
        bool,
        typer.Option("--racecheck", help="On the CPU, slower: find races, missing fences and unwritten LDS in HIP."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Judge one submission file.

    Exit status: 0 accepted, 1 not accepted, 2 usage, 3 machine fault or a file that cannot be judged here.
    """
    settings = CheckSettings(file, problem, runner, chip, mode, deadline_s, isolation, racecheck)
    from kernelwright.judgement_json import failed

    with told(as_json, failed):
        raise typer.Exit(_judge(settings, as_json))


def _judge(settings: CheckSettings, as_json: bool) -> Status:
    from kernelwright import judgement_json
    from kernelwright.commands.submission import read_submission
    from kernelwright.runners import open_runner
    from problems import load
    from sandbox.runner import Mode

    problem = load(settings.problem)
    candidate = read_submission(settings.file)
    with open_runner(settings.runner, problem, settings.chip, settings.isolation, settings.racecheck) as runner:
        judgement = runner.judge(problem, candidate, Mode(settings.mode), settings.deadline_s)
    if as_json:
        say_json(judgement_json.judged(problem, judgement))
    else:
        from kernelwright.judgement_text import show

        show(problem, judgement)
    return Status.ACCEPTED if judgement.accepted else Status.NOT_ACCEPTED
