"""Plays agents over problems, and joins what came of it into one evaluation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import assert_never

from pydantic import Field

from agent import run as agent_run
from agent.header import with_header
from agent.knobs import load_seeds
from agent.settings import RunSettings, open_model
from agent.state import judgement
from dataset.attempt import Judged, Unusable
from dataset.disk import record_error
from evals import report
from evals.players import Directory, Player, Strategy, player, read_source, reference
from evals.score import Faulted, Sample, Score
from evals.tally import Baselines, tally
from problems import load
from problems.spec import Frozen, Problem
from sandbox.candidate import Candidate
from sandbox.runner import Mode, Runner, RunnerError
from sandbox.verdict import Judgement, Machine, score_us

OpenRunner = Callable[[Problem], AbstractContextManager[Runner]]


class EvalSettings(Frozen):
    """What an evaluation plays. `run` holds the settings that every run of a strategy shares."""

    agents: tuple[str, ...]
    problems: tuple[str, ...]
    samples: int
    attempts: int
    seed: int = 0
    mode: Mode = Mode.BENCHMARK
    deadline_s: float = 120.0
    run: Mapping[str, str | int | float | bool | None] = Field(default={})


class Evaluation(Frozen):
    """Everything an evaluation's page and file say."""

    settings: EvalSettings
    machines: tuple[Machine, ...]
    samples: tuple[Sample, ...]
    scores: tuple[Score, ...]
    remarks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Table:
    """One problem with its runner, while it is played."""

    settings: EvalSettings
    problem: Problem
    runner: Runner
    runs: Path
    environment: dict[str, str]
    tell: Callable[[str], None]

    def judge(self, candidate: Candidate, following: Candidate | None = None) -> Judgement:
        return self.runner.judge(self.problem, candidate, self.settings.mode, self.settings.deadline_s, following)


def play(
    settings: EvalSettings, out: Path, open_runner: OpenRunner, environment: dict[str, str], tell: Callable[[str], None]
) -> Evaluation:
    """Play every agent on every problem; runs are kept under ``out/runs``. `tell` hears of each sample.

    A fault of the runner costs one sample, which counts in no figure; an interrupted run ends the evaluation with
    `KeyboardInterrupt`. `ProblemError` for what was named wrongly, `ModelError` where a strategy's model is missing,
    `RecordError` where `out` cannot be written.
    """
    players = [player(text) for text in settings.agents]
    tasks = [load(name) for name in settings.problems]
    _prepare(out)
    machines: list[Machine] = []
    samples: list[Sample] = []
    scores: list[Score] = []
    remarks: list[str] = []
    for problem in tasks:
        with open_runner(problem) as runner:
            table = _Table(settings, problem, runner, out / "runs", environment, tell)
            machines.append(runner.machine())
            baselines = _baselines(table)
            for each in players:
                played = _play(table, each)
                if not played:
                    remarks.append(f"{each.name} holds no submission for {problem.name}")
                samples += played
                scores.append(tally(problem, each.name, played, baselines))
    return Evaluation(
        settings=settings,
        machines=tuple(dict.fromkeys(machines)),
        samples=tuple(samples),
        scores=tuple(scores),
        remarks=tuple(remarks),
    )


def _prepare(out: Path) -> None:
    """Make the folder before hours of play are spent on what could then not be written."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise record_error("write the evaluation in", out, error) from error


def _play(table: _Table, who: Player) -> list[Sample]:
    match who:
        case Strategy():
            return [_run(table, who, number) for number in range(table.settings.samples)]
        case Directory():
            return _files(table, who)
        case _:
            assert_never(who)


def _run(table: _Table, who: Strategy, number: int) -> Sample:
    """One run of a strategy; the sample is what it would submit."""
    settings = RunSettings.model_validate(
        dict(table.settings.run)
        | {
            "problem": table.problem.name,
            "strategy": who.name,
            "attempts": table.settings.attempts,
            "seed": table.settings.seed + number,
            "chip": table.runner.machine().chip,
            "mode": table.settings.mode,
            "deadline_s": table.settings.deadline_s,
        }
    )
    result = agent_run.start(settings, table.runs, table.runner, open_model(settings, table.environment))
    report.write(result.folder)
    if result.ending == "interrupted":
        # The run took the signal to itself, to end in good order; the evaluation must not go on with the next one.
        raise KeyboardInterrupt
    said = judgement(result.best) if result.best else None
    outcome: Judged | Unusable | Faulted
    if result.ending != "ended":
        outcome = Faulted(reason=result.reason)
    elif said is None:
        outcome = Unusable(reason=f"no candidate accepted in {result.state.attempts} attempts")
    else:
        outcome = Judged(judgement=said, score_us=score_us(table.problem, said))
    return _told(table, who.name, result.run_id, result.state.attempts, outcome)


def _files(table: _Table, who: Directory) -> list[Sample]:
    """Every file of a directory, one after the other; the runner is told which comes next."""
    paths = who.files(table.problem)
    candidates = [Candidate(source=read_source(path)) for path in paths]
    samples = []
    for path, candidate, following in zip(paths, candidates, [*candidates[1:], None], strict=True):
        name = path.relative_to(who.path).as_posix()
        samples.append(_told(table, who.name, name, 1, _judged(table, candidate, following)))
    return samples


def _judged(table: _Table, candidate: Candidate, following: Candidate | None = None) -> Judged | Faulted:
    try:
        said = table.judge(candidate, following)
    except RunnerError as error:
        return Faulted(reason=str(error))
    return Judged(judgement=said, score_us=score_us(table.problem, said))


def _told(table: _Table, who: str, what: str, attempts: int, outcome: Judged | Unusable | Faulted) -> Sample:
    word = outcome.judgement.verdict.kind if isinstance(outcome, Judged) else outcome.kind
    table.tell(f"{who} on {table.problem.name}: {what}: {word.replace('_', ' ')}")
    return Sample(agent=who, problem=table.problem.name, what=what, attempts=attempts, outcome=outcome)


def _baselines(table: _Table) -> Baselines:
    """The seed kernel, and on a GPU the library call, judged as candidates on the same machine."""
    seeds = load_seeds(agent_run.SEED_KERNELS, table.problem.name)
    seed = _judged(table, Candidate(source=with_header(seeds[0].source, table.problem))) if seeds else None
    call = reference(table.problem) if table.runner.machine().kind == "gpu" else None
    measured = _judged(table, call) if call else None
    return Baselines(
        seed_name=f"seed kernel {seeds[0].name}" if seeds else "seed kernel",
        seed=seed.judgement if isinstance(seed, Judged) else None,
        reference=measured.judgement if isinstance(measured, Judged) else None,
    )
