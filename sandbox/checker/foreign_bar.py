"""A bar's answers about problems from elsewhere: a judgement, or what an audit finds."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from typing import Any

import torch

from problems.spec import Problem, ProblemError
from sandbox.audit import Audited
from sandbox.checker import foreign_judging
from sandbox.checker.foreign import STEP_S, Broken
from sandbox.checker.memory import HostMemory
from sandbox.checker.outcome import Progress, Request
from sandbox.checker.pool import Pool
from sandbox.checker.screening import screen
from sandbox.checker.subjects import ForeignSubject
from sandbox.defences import Defences
from sandbox.isolation import Sandbox
from sandbox.isolation.measures import in_force
from sandbox.runner import Mode, Unsupported
from sandbox.verdict import Judgement, Machine

Place = tuple[Machine, str, Sandbox, Pool]
"""A machine, the device the checker computes on, a sandbox and its warm guests."""

PLAIN = "plain processes: neither the reference nor the candidate was confined"


def problem_in(header: dict[str, Any]) -> Problem | None:
    """The problem from elsewhere that a request carries whole; None where it names one of this project."""
    told = header.get("elsewhere")
    return Problem.model_validate_json(told) if isinstance(told, str) else None


def judgement(
    problem: Problem,
    header: dict[str, Any],
    source: str,
    place: Place,
    alone: AbstractContextManager[None],
) -> Judgement:
    """Judge one candidate, one at a time where `alone` holds the device."""
    machine, device, sandbox, pool = place
    start, gpu = time.monotonic(), device == "cuda"
    if problem.origin is None:
        raise Broken("a problem from elsewhere was sent without its origin; import it again")
    foreign_judging.refuse(problem)
    request = Request(source, Mode(header["mode"]), float(header["deadline_s"]))
    progress = Progress()
    if sandbox.name == "process":
        progress.flags.append(PLAIN)
    mode = "device" if gpu else "emulate"
    defences = Defences.model_validate_json(header["defences"])
    step_s = STEP_S if gpu else foreign_judging.SMALL_STEP_S
    with (
        alone,
        pool.lend((mode, mode)) as [guest, other],
        foreign_judging.opened(problem, other, device, step_s) as reference,
    ):
        outcome = foreign_judging.judge(
            problem,
            request,
            guest,
            reference,
            progress,
            defences,
            gpu,
            HostMemory,
            torch.cuda.synchronize if gpu else _done,
        )
    return Judgement(
        verdict=outcome.verdict,
        machine=machine.model_copy(update={"harness": foreign_judging.judge_sha256(problem.origin)}),
        sandbox=in_force(sandbox.name),
        seeds=tuple(progress.seeds),
        kernels=outcome.kernels,
        flags=tuple(dict.fromkeys(progress.flags)),
        wall_s=time.monotonic() - start,
    )


def audited(problem: Problem, place: Place, alone: AbstractContextManager[None]) -> Audited:
    """Screen a problem from elsewhere, on a small case; why not, where its reference cannot do it here."""
    _, device, _, pool = place
    gpu = device == "cuda"
    try:
        foreign_judging.refuse(problem)
        step_s = STEP_S if gpu else foreign_judging.SMALL_STEP_S
        with (
            alone,
            pool.lend(("device" if gpu else "emulate",)) as [guest],
            foreign_judging.opened(problem, guest, device, step_s) as reference,
        ):
            todo, said = foreign_judging.cases(reference, gpu)
            return screen(ForeignSubject(reference, todo[0][1], said))
    except (Unsupported, ProblemError) as error:
        return Audited(name=problem.name, reason=str(error))


def _done() -> None:
    """On the CPU everything is written when a copy returns."""
