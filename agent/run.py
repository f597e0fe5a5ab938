"""One run from its settings to its submission: started, or resumed from its folder."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from agent import submission, winner
from agent.graph import INTERRUPTED, Loop
from agent.interrupt import Interrupt
from agent.knobs import SeedKernel, load_seeds
from agent.model import Model, ModelError
from agent.policy import Policy
from agent.progress import Began, Progress, Silent
from agent.refine import Refine
from agent.resume import Folded, fold
from agent.search import Search
from agent.session import Session
from agent.settings import RunSettings
from agent.state import RunState
from agent.submission import Submission
from agent.version import commit
from dataset import runs
from dataset.attempt import Attempt, RecordError, RunEnded, RunStarted
from dataset.blobs import Blobs
from dataset.journal import Journal, read
from problems.chips import chip
from problems.load import content_sha256, load
from sandbox.runner import Runner, RunnerError

SEED_KERNELS = Path(__file__).resolve().parent.parent / "seed_kernels"
Ending = Literal["ended", "interrupted", "model_error", "runner_error", "record_error"]


class RunRefused(Exception):
    """A run cannot be resumed as asked; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class RunResult:
    """How a session of a run ended. All but ``ended`` can be resumed."""

    run_id: str
    folder: Path
    ending: Ending
    reason: str
    state: RunState
    submission: Submission | None

    @property
    def best(self) -> Attempt | None:
        """The best accepted attempt."""
        return self.state.best

    @property
    def resumable(self) -> bool:
        """Whether `resume` can go on with it."""
        return self.ending != "ended"


def start(
    settings: RunSettings, runs_root: Path, runner: Runner, model: Model | None = None,
    progress: Progress | None = None, interrupt: Interrupt | None = None, seed_kernels: Path = SEED_KERNELS,
) -> RunResult:  # fmt: skip
    """Make a run's folder under `runs_root` and work until a limit, a target, a fault or a signal stops it.

    `ProblemError` and `ModelError` for bad settings before anything is written, `RecordError` where the folder cannot
    be made; later faults end the session and are told in the result.
    """
    _check_model(settings, model)
    problem = load(settings.problem)
    target = chip(settings.chip or problem.chips[0])
    settings = settings.model_copy(update={"problem": problem.name, "chip": target.name})
    seeds = load_seeds(seed_kernels, problem.name, target.arch)
    folder = runs.create(runs_root, problem.name)
    began = RunStarted(
        run_id=folder.name, problem=problem.name, problem_sha256=content_sha256(problem), strategy=settings.strategy,
        settings=settings.record(), seed=settings.seed, commit=commit(), started=_now(),
    )  # fmt: skip
    with Journal.open(folder) as journal:
        journal.append(began)
        empty = Folded(began, RunState(), {}, None, None)
        return _work(settings, folder, journal, empty, seeds, runner, model, progress, interrupt)


def resume(
    folder: Path, runner: Runner, model: Model | None = None, progress: Progress | None = None,
    interrupt: Interrupt | None = None, seed_kernels: Path = SEED_KERNELS,
) -> RunResult:  # fmt: skip
    """Go on with the run in `folder`: nothing on record is bought or judged again.

    `RunRefused` where it has ended, or where its problem or machine is another one; `RecordError` where another process
    writes it.
    """
    with Journal.open(folder) as journal:
        folded = fold(journal.records())
        settings = settings_of(folder)
        _check_model(settings, model)
        _check(folded, runner)
        seeds = load_seeds(seed_kernels, settings.problem, chip(settings.chip).arch if settings.chip else None)
        return _work(settings, folder, journal, folded, seeds, runner, model, progress, interrupt)


def settings_of(folder: Path) -> RunSettings:
    """The settings a run was started with, from its first record; `RecordError` where it has none."""
    first = next(read(folder), None)
    if not isinstance(first, RunStarted):
        raise RecordError(f"{folder} holds no run: it was stopped before it began; start a new one")
    try:
        return RunSettings.model_validate(first.settings)
    except ValidationError as error:
        field = ".".join(str(part) for part in error.errors(include_url=False)[0]["loc"])
        raise RecordError(
            f"{folder}: this version does not know the run's setting {field!r}; resume it with commit {first.commit}"
        ) from error


def _check_model(settings: RunSettings, model: Model | None) -> None:
    if model is None and settings.strategy != "search":
        raise ModelError(f"the strategy {settings.strategy} needs a model: name one with --model")


def _check(folded: Folded, runner: Runner) -> None:
    if folded.ended is not None:
        raise RunRefused(f"{folded.started.run_id} has ended: {folded.ended.reason}. Start a new run")
    problem = load(folded.started.problem)
    if content_sha256(problem) != folded.started.problem_sha256:
        raise RunRefused(
            f"{problem.name} has changed since {folded.started.run_id} was started, so its verdicts no longer compare: "
            f"start a new run, or check out commit {folded.started.commit}"
        )
    then, now = folded.machine, runner.machine()
    if then is not None and (then.kind, then.chip) != (now.kind, now.chip):
        raise RunRefused(
            f"{folded.started.run_id} was judged on {then.chip} ({then.kind}) and this machine judges on {now.chip} "
            f"({now.kind}): times do not compare. Resume it there, or start a new run"
        )


def _work(
    settings: RunSettings, folder: Path, journal: Journal, folded: Folded, seeds: tuple[SeedKernel, ...],
    runner: Runner, model: Model | None, progress: Progress | None, interrupt: Interrupt | None,
) -> RunResult:  # fmt: skip
    problem, target, blobs = load(settings.problem), chip(settings.chip or ""), Blobs(folder)
    session = Session(
        run_id=folder.name, problem=problem, chip=target, seeds={seed.name: seed for seed in seeds},
        policy=_policy(settings, seeds), limits=settings.limits, mode=settings.mode, deadline_s=settings.deadline_s,
        licence=settings.licence, runner=runner, model=model, journal=journal, blobs=blobs,
        progress=progress or Silent(), replies=dict(folded.replies), interrupt=interrupt or Interrupt(),
    )  # fmt: skip
    loop = Loop(session, folded.state)
    session.progress.show(Began(folder.name, folder, session.limits, folded.state))
    with session.interrupt.on_signals():
        ending, reason = _run(loop)
        # A call that failed may have been charged: the journal knows how many, the loop's own state does not.
        state = fold(journal.records()).state if ending == "model_error" else loop.state
        if ending == "ended":
            state, ending, reason = _name_winner(session, state, reason)
        left = submission.write(folder, state, blobs)
        if ending == "ended":
            best = state.best.attempt_id if state.best else None
            journal.append(RunEnded(reason=reason, best_attempt_id=best, ended=_now()))
    return RunResult(folder.name, folder, ending, reason, state, left)


def _run(loop: Loop) -> tuple[Ending, str]:
    try:
        reason = loop.run()
    except KeyboardInterrupt:
        return "interrupted", INTERRUPTED
    except ModelError as error:
        return "model_error", str(error)
    except RunnerError as error:
        return "runner_error", str(error)
    except RecordError as error:
        return "record_error", str(error)
    return ("interrupted" if reason == INTERRUPTED else "ended"), reason


def _name_winner(session: Session, state: RunState, reason: str) -> tuple[RunState, Ending, str]:
    """Measure a measured run's best again. A fault or an interrupt here leaves a run that can be resumed."""
    try:
        found = winner.remeasure(session, state)
    except KeyboardInterrupt:
        return state, "interrupted", INTERRUPTED
    except RunnerError as error:
        return state, "runner_error", str(error)
    if found is not None:
        session.journal.append(found)
        state = winner.crowned(state, found, session.journal.records())
    return state, "ended", reason


def _policy(settings: RunSettings, seeds: tuple[SeedKernel, ...]) -> Policy:
    problem, target = load(settings.problem), chip(settings.chip or "")
    match settings.strategy:
        case "search":
            fitted = tuple(seed.on("hip" if target.vendor == "amd" else "cuda") for seed in seeds)
            return Search(fitted, settings.seed, target.lds_bytes)
        case "refine":
            return Refine(seeds, problem, target.name)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
