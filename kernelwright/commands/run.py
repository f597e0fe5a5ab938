"""``kernelwright run`` and ``kernelwright runs resume``: one run of the agent."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from kernelwright.commands.runs import RUNS, RunName
from kernelwright.console import fail, note, say, side_console
from kernelwright.options import (
    AttemptCount,
    BaseUrl,
    ChipName,
    DeadlineS,
    KeyVariable,
    ModelName,
    ModeOption,
    RunnerName,
    RunsDir,
    SeedNumber,
)
from kernelwright.runners import RunnerKind
from kernelwright.status import Status, UsageError

if TYPE_CHECKING:
    from agent.run import RunResult
    from agent.settings import RunSettings


def run(
    problem: Annotated[str, typer.Argument(help="The problem, by its name or a board's.")],
    strategy: Annotated[
        Literal["search", "refine"], typer.Option(help="search tunes the seed kernels; refine asks a model.")
    ] = "search",
    attempts: AttemptCount = 64,
    seed: SeedNumber = 0,
    runner: RunnerName = "auto",
    chip: ChipName = None,
    mode: ModeOption = "benchmark",
    deadline_s: DeadlineS = 120.0,
    base_url: BaseUrl = None,
    model: ModelName = None,
    api_key_env: KeyVariable = "OPENAI_API_KEY",
    model_timeout_s: Annotated[float, typer.Option(min=1.0, help="Seconds to wait for one reply.")] = 600.0,
    price_in: Annotated[float | None, typer.Option(help="US dollars for a million input tokens.")] = None,
    price_out: Annotated[float | None, typer.Option(help="US dollars for a million output tokens.")] = None,
    script: Annotated[Path | None, typer.Option(help="Recorded replies (JSON lines) instead of an endpoint.")] = None,
    budget_usd: Annotated[float | None, typer.Option(help="Stop when so much is spent.")] = None,
    budget_tokens: Annotated[int | None, typer.Option(help="Stop when so many tokens are used.")] = None,
    budget_s: Annotated[float | None, typer.Option(help="Stop after so many seconds of work.")] = None,
    target_us: Annotated[float | None, typer.Option(help="Stop when the best score is at or below this.")] = None,
    runs_dir: RunsDir = RUNS,
) -> None:
    """Run the agent on a problem; the best accepted candidate leaves as submission.py.

    Exit status: 0 a candidate was accepted, 1 none was, 2 usage, 3 machine, model or record fault, 130 interrupted.
    """
    settings: dict[str, Any] = {
        "problem": problem, "strategy": strategy, "attempts": attempts, "seed": seed, "chip": chip, "mode": mode,
        "deadline_s": deadline_s, "model": model, "api_key_env": api_key_env, "model_timeout_s": model_timeout_s,
        "input_usd_per_mtok": price_in, "output_usd_per_mtok": price_out, "script": str(script) if script else None,
        "usd": budget_usd, "tokens": budget_tokens, "wall_s": budget_s, "target_us": target_us,
    }  # fmt: skip
    raise typer.Exit(_run(settings | ({"base_url": base_url} if base_url else {}), runner, runs_dir))


def resume(run: RunName, runs_dir: RunsDir = RUNS) -> None:
    """Go on with an interrupted run: nothing on record is bought or judged again."""
    import os

    from agent import run as agent_run
    from agent.settings import open_model
    from dataset.runs import find
    from kernelwright.progress import TerminalProgress
    from kernelwright.runners import open_runner
    from problems import load

    folder = find(runs_dir, run)
    settings = agent_run.settings_of(folder)
    place: RunnerKind = "gpu" if settings.runner == "gpu" else "cpu"
    with open_runner(place, load(settings.problem), settings.chip) as judge, TerminalProgress(side_console()) as shown:
        result = agent_run.resume(folder, judge, open_model(settings, os.environ), shown)
    raise typer.Exit(_finish(result))


def settings_from(given: dict[str, Any]) -> RunSettings:
    """The run's settings from the command line; `UsageError` where they do not fit together."""
    from pydantic import ValidationError

    from agent.settings import RunSettings

    try:
        return RunSettings.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise UsageError(f"{where + ': ' if where else ''}{first['msg'].removeprefix('Value error, ')}") from error


def _run(given: dict[str, Any], runner: RunnerKind, runs_dir: Path) -> Status:
    import os

    from kernelwright.runners import open_runner, place_of
    from problems import load

    problem = load(given["problem"])
    asked = settings_from(given)
    from agent import run as agent_run
    from agent.settings import open_model
    from kernelwright.progress import TerminalProgress

    # The model first: a missing key is then said before a machine is started.
    model, place = open_model(asked, os.environ), place_of(runner)
    with open_runner(place, problem, given["chip"]) as judge:
        settings = settings_from(given | {"runner": place, "chip": judge.machine().chip})
        with TerminalProgress(side_console()) as shown:
            result = agent_run.start(settings, runs_dir, judge, model, shown)
    return _finish(result)


def _finish(result: RunResult) -> Status:
    """Draw the report, say what came of the run and how to go on with it."""
    from evals import report

    page, summary = report.write(result.folder)
    say(summary.read_text(encoding="utf-8").rstrip())
    note(f"report: {page}")
    if result.submission:
        note(f"submission: {result.submission.path}")
    if result.resumable:
        note(f"go on with: kernelwright runs resume {result.run_id}")
    match result.ending:
        case "ended":
            return Status.ACCEPTED if result.best else Status.NOT_ACCEPTED
        case "interrupted":
            return Status.INTERRUPTED
        case "model_error" | "runner_error" | "record_error":
            fail(result.reason)
            return Status.MACHINE
