"""From a move to the text that is asked for or tried: pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from agent.header import with_header
from agent.knobs import SeedKernel, apply
from agent.move import Crossover, Draft, ModelMove, Optimise, Port, Repair, SeedMove, parents
from agent.state import RunState, time_kind
from dataset.attempt import Attempt, Judged, Source, Unusable
from problems.chips import Chip
from problems.spec import Problem
from prompts import render
from prompts.view import Kernel, Note
from sandbox.candidate import Candidate
from sandbox.verdict import Passed

OUR_LICENCE = "Apache-2.0"
"""SPDX identifier of the seed kernels and the problem texts that ship with Kernelwright."""
TextOf = Callable[[str], str]
"""A blob's text from its sha256."""


def tuned(move: SeedMove, seed: SeedKernel, problem: Problem) -> Candidate:
    """The seed kernel with the move's knobs set."""
    return Candidate(source=with_header(apply(seed.source, move.knobs), problem))


def prompt(move: ModelMove, state: RunState, problem: Problem, chip: Chip, text_of: TextOf) -> str:
    """What the model is asked for this move; `text_of` reads the sources of its parents."""
    told = notes(state)
    match move:
        case Draft():
            return render.draft(problem, chip, told)
        case Repair(parent=parent, base=base):
            failed, start = state.find(parent), _kernel(state.find(base), text_of) if base else None
            return _mend(failed, start, problem, chip, told, text_of)
        case Optimise(parent=parent):
            return render.optimise(problem, chip, _kernel(state.find(parent), text_of), told)
        case Crossover(parent=parent, other=other):
            first, second = (_kernel(state.find(each), text_of) for each in (parent, other))
            return render.optimise(problem, chip, first, told, other=second)
        case Port(parent=parent, from_chip=from_chip):
            kernel = _kernel(state.find(parent), text_of)
            return render.optimise(problem, chip, kernel, told, from_chip=from_chip)
        case _:
            assert_never(move)


def notes(state: RunState) -> tuple[Note, ...]:
    """The latest attempts, each in a line."""
    return tuple(
        Note(attempt.seq, attempt.move.kind, attempt.hypothesis, _outcome(attempt)) for attempt in state.recent
    )


def sources(move: SeedMove | ModelMove, state: RunState, problem: Problem) -> tuple[Source, ...]:
    """What a move's candidate is derived from: its seed kernel, or our problem text and all that its parents have."""
    if isinstance(move, SeedMove):
        return (Source(what=f"seed_kernels/{move.seed_kernel}", licence=OUR_LICENCE),)
    text = Source(what=f"problems/{problem.name}", licence=OUR_LICENCE)
    inherited = [source for parent in parents(move) for source in state.find(parent).derived_from]
    return tuple(dict.fromkeys((text, *inherited)))


def _mend(
    failed: Attempt, start: Kernel | None, problem: Problem, chip: Chip, told: tuple[Note, ...], text_of: TextOf
) -> str:
    match failed.outcome:
        case Unusable(reason=reason):
            if start is None:
                return render.draft(problem, chip, told, reason)
            return render.optimise(problem, chip, start, told, reason=reason)
        case Judged():
            return render.repair(problem, chip, _kernel(failed, text_of), told)
        case _:
            assert_never(failed.outcome)


def _kernel(attempt: Attempt, text_of: TextOf) -> Kernel:
    if not isinstance(attempt.outcome, Judged) or attempt.candidate_sha256 is None:
        raise ValueError(f"{attempt.attempt_id} holds no judged candidate")
    return Kernel(text_of(attempt.candidate_sha256), attempt.outcome.judgement, attempt.outcome.score_us)


def _outcome(attempt: Attempt) -> str:
    match attempt.outcome:
        case Unusable(reason=reason):
            return f"unusable: {reason}"
        case Judged(judgement=said, score_us=None):
            verdict = said.verdict
            kind = verdict.kind.replace("_", " ")
            return "passed, no time" if isinstance(verdict, Passed) else f"{kind}: {_short(verdict.reason)}"
        case Judged(score_us=score):
            return f"passed, {score:.4g} us {time_kind(attempt)}"
        case _:
            assert_never(attempt.outcome)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 160 else line[:157] + "..."
