"""Options that several commands share, each declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from kernelwright.runners import RunnerKind

ProblemName = Annotated[str, typer.Option("--problem", help="The problem, by its name or a board's.")]
RunnerName = Annotated[
    RunnerKind,
    typer.Option("--runner", help="Where it is judged; auto takes the GPU where torch sees one."),
]
ChipName = Annotated[
    str | None,
    typer.Option(
        "--chip", help="Whose code the CPU runner compiles and estimates; the problem's first chip if left out."
    ),
]
ModeName = Literal["test", "benchmark", "leaderboard", "profile"]
ModeOption = Annotated[
    ModeName, typer.Option("--mode", help="How much the judge does; each mode does what the one before it does.")
]
IsolationName = Annotated[
    str | None,
    typer.Option(
        "--isolation",
        help="The sandbox: bubblewrap, namespaces, docker, docker:IMAGE or process; the first that works if left out.",
    ),
]
DeadlineS = Annotated[
    float, typer.Option("--deadline-s", min=1.0, help="Seconds until a candidate's whole process group is killed.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else on standard output.")]
RunsDir = Annotated[Path, typer.Option("--runs-dir", help="The folder of all runs.")]
AttemptCount = Annotated[int, typer.Option("--attempts", min=1, help="Attempts in a run, over all its sessions.")]
SeedNumber = Annotated[int, typer.Option("--seed", help="Seed of every random choice that the agent makes.")]
BaseUrl = Annotated[
    str | None, typer.Option("--base-url", help="An OpenAI-compatible endpoint, for the strategy refine.")
]
ModelName = Annotated[str | None, typer.Option("--model", help="The model at that endpoint.")]
KeyVariable = Annotated[str, typer.Option("--api-key-env", help="The environment variable that holds the key.")]
