"""``kernelwright eval``: agents over problems."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernelwright.console import note, say
from kernelwright.options import (
    AttemptCount,
    BaseUrl,
    ChipName,
    DeadlineS,
    KeyVariable,
    ModelName,
    ModeOption,
    RunnerName,
    SeedNumber,
)
from kernelwright.runners import RunnerKind
from kernelwright.status import Status, UsageError

if TYPE_CHECKING:
    from evals.score import Score


def evaluate(
    agents: Annotated[str, typer.Option(help="search, refine and dir:PATH (a directory of submissions), with commas.")],
    problems: Annotated[str, typer.Option(help="The problems, with commas between them.")],
    out: Annotated[Path, typer.Option(help="Where eval.html, eval.json and the runs go.")] = Path("evaluation"),
    samples: Annotated[int, typer.Option(min=1, help="Runs of each strategy on each problem.")] = 1,
    attempts: AttemptCount = 24,
    seed: SeedNumber = 0,
    runner: RunnerName = "auto",
    chip: ChipName = None,
    mode: ModeOption = "benchmark",
    deadline_s: DeadlineS = 120.0,
    base_url: BaseUrl = None,
    model: ModelName = None,
    api_key_env: KeyVariable = "OPENAI_API_KEY",
    script: Annotated[Path | None, typer.Option(help="Recorded replies instead of an endpoint.")] = None,
) -> None:
    """Play agents over problems: correct@k, speedups, fraction of the bound, distance to published times.

    Exit status: 0 every agent was right at least once where it had a sample, 1 not, 2 usage, 3 fault.
    """
    given = {"model": model, "api_key_env": api_key_env, "script": str(script) if script else None}
    settings: dict[str, Any] = {
        "agents": _listed("--agents", agents), "problems": _listed("--problems", problems), "samples": samples,
        "attempts": attempts, "seed": seed, "mode": mode, "deadline_s": deadline_s,
        "run": given | ({"base_url": base_url} if base_url else {}),
    }  # fmt: skip
    raise typer.Exit(_evaluate(settings, out, runner, chip))


def _evaluate(given: dict[str, Any], out: Path, runner: RunnerKind, chip: str | None) -> Status:
    import os

    from evals import page
    from evals.play import EvalSettings, play
    from evals.score import overall
    from kernelwright.commands.run import settings_from
    from kernelwright.runners import open_runner, place_of

    place = place_of(runner)
    settings = EvalSettings.model_validate(given | {"run": given["run"] | {"runner": place}})
    if "refine" in settings.agents:
        settings_from({**settings.run, "problem": settings.problems[0], "strategy": "refine"})
    evaluation = play(settings, out, lambda problem: open_runner(place, problem, chip), dict(os.environ), note)
    html, file = page.write(evaluation, out)
    for score in evaluation.scores:
        time = f", best {score.best_us:.4g} us {score.time_kind} {score.chip}" if score.best_us is not None else ""
        say(f"{score.problem}  {score.agent}  {score.correct}/{score.n} right, {score.ready} ready{time}")
    for agent in dict.fromkeys(score.agent for score in evaluation.scores):
        whole = overall(agent, evaluation.scores)
        if whole is not None:
            left = f"; not compared: {', '.join(whole.left_out)}" if whole.left_out else ""
            say(
                f"{agent}  {whole.speedup:.3f} of {whole.baseline} over {whole.n} problems, {whole.failed} failed{left}"
            )
    note(f"wrote {html} and {file}")
    return _status(evaluation.scores)


def _status(scores: tuple[Score, ...]) -> Status:
    """An agent without a submission for a problem was not wrong there; a fault leaves the evaluation incomplete."""
    if any(score.faults for score in scores):
        return Status.MACHINE
    wrong = any(score.n and not score.correct for score in scores)
    return Status.NOT_ACCEPTED if wrong else Status.ACCEPTED


def _listed(option: str, text: str) -> tuple[str, ...]:
    """The parts between commas, each once; `UsageError` for none."""
    parts = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not parts:
        raise UsageError(f"{option} names nothing; give at least one")
    return parts
