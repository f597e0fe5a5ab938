"""Judging a candidate on several ranks: emulated over gloo on a CPU, or over NCCL or RCCL on the GPUs there are."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from problems.spec import Case, Problem
from sandbox.checker.cases import drawn, worst
from sandbox.checker.guest import FAULTS, Died, Late
from sandbox.checker.outcome import Outcome, Progress, Refuted, Request, verdict_of, wrong
from sandbox.checker.rank_timing import board_times, time_cases
from sandbox.checker.ranks import RankBench, ranks_of
from sandbox.checker.reader import reader
from sandbox.checker.task import Task
from sandbox.checker.trial import Trial
from sandbox.checker.world import World
from sandbox.runner import Mode, RunnerError, Unsupported
from sandbox.verdict import BoardTime, CaseCheck, Measured, Passed, Role, Untimed, Verdict

Start = Callable[[int], World]
"""Starts the guests of so many ranks."""
CONTROL_S = 60.0
CONTROL = """
import torch
import torch.distributed as dist


def custom_kernel(data):
    world, rank = dist.get_world_size(), dist.get_rank()
    known = torch.full((256,), rank + 1.0, device=f"cuda:{rank}")
    dist.all_reduce(known)
    if known.tolist() != [world * (world + 1) / 2] * 256:
        raise RuntimeError("a known sum over all ranks is wrong here")
"""
NO_ESTIMATE = "no estimate: the model knows one chip's kernels, not what several chips wait for and send each other"
STAGED = "several ranks: inputs and outputs are staged through the host"


def emulated(task: Task, request: Request, start: Start, progress: Progress) -> Outcome:
    """Judge on small cases over gloo; times are none, with the reason."""
    small: list[tuple[Role, Case]] = [("small", case) for case in task.problem.small]

    def run(world: World) -> None:
        check(task, world, small + _hidden(task, "small"), progress)

    ranks = max(ranks_of(case) for _, case in small)
    verdict, kernels = _judged(request, progress, start, ranks, run)
    if isinstance(verdict, Passed) and request.mode is not Mode.TEST:
        reasons = tuple(Untimed(case=case, reason=NO_ESTIMATE) for case in task.problem.benchmarks)
        verdict = verdict.model_copy(update={"timings": reasons})
    return _read(verdict, kernels, progress)


def on_gpus(task: Task, request: Request, start: Start, chip: str, gpus: int, progress: Progress) -> Outcome:
    """Judge on `gpus` GPUs of one kind, the board's number or as many as there are; `Unsupported` with fewer than 2."""
    ranks = fitting(task.problem, gpus)
    if ranks < task.problem.world_size:
        progress.flags.append(f"judged on {ranks} ranks: the board has {task.problem.world_size}, this machine {gpus}")
    progress.flags.append(STAGED)
    tests: list[tuple[Role, Case]] = [("test", on_ranks(case, ranks)) for case in task.problem.tests]
    measured, board = list[Measured](), list[BoardTime]()

    def run(world: World) -> None:
        hidden: list[tuple[Role, Case]] = [(role, on_ranks(case, ranks)) for role, case in _hidden(task, "full")]
        check(task, world, tests + hidden, progress)
        if request.mode is not Mode.TEST:
            cases = [on_ranks(case, ranks) for case in task.problem.benchmarks]
            measured.extend(time_cases(task, cases, request.mode, world, lambda: start(ranks), chip, progress))
        if request.mode is Mode.LEADERBOARD:
            ranked = [on_ranks(case, ranks) for case in task.problem.ranked()]
            board.extend(board_times(task, ranked, world, chip, progress))

    verdict, kernels = _judged(request, progress, start, ranks, run)
    if isinstance(verdict, Passed):
        verdict = verdict.model_copy(update={"timings": tuple(measured), "board_us": tuple(board)})
    return _read(verdict, kernels, progress)


def fitting(problem: Problem, gpus: int) -> int:
    """The board's number of ranks, halved until there is a GPU for each; `Unsupported` where 2 are too many."""
    ranks = problem.world_size
    while ranks > gpus:
        ranks //= 2
    if ranks < 2:
        raise Unsupported(f"{problem.name} needs at least 2 GPUs, there is {gpus}: use the CPU runner, or more GPUs")
    return ranks


def on_ranks(case: Case, ranks: int) -> Case:
    """The same case on `ranks` ranks: a case's sizes are those of the whole."""
    return case.model_copy(update={"params": case.params | {"world_size": ranks}})


def _hidden(task: Task, size: Literal["small", "full"]) -> list[tuple[Role, Case]]:
    return [("hidden", case) for case in drawn(task, size)]


def _judged(
    request: Request, progress: Progress, start: Start, ranks: int, run: Callable[[World], None]
) -> tuple[Verdict, list[bytes]]:
    """Load the candidate into `ranks` ranks and `run` its cases; a rank that died or hung is answered for by others."""
    recorded: list[bytes] = []
    world = start(ranks)
    try:
        world.await_ready()
        world.load(request.source, request.deadline_s)
        progress.loaded = True
        run(world)
        recorded.append(world.ranks[0].kernels())
        return Passed(cases=tuple(progress.checks)), recorded
    except FAULTS as fault:
        world.kill()
        if isinstance(fault, Died | Late):
            blame(start, ranks)
        return verdict_of(fault, progress, request.deadline_s), recorded
    except Refuted as refuted:
        return wrong(progress, str(refuted)), recorded
    finally:
        world.close()


def _read(verdict: Verdict, kernels: Sequence[bytes], progress: Progress) -> Outcome:
    reading = reader().read(kernels)
    progress.flags += reading.flags
    return Outcome(verdict, reading.records)


def blame(start: Start, ranks: int) -> None:
    """Return where a known sum over as many ranks succeeds in a sandbox of its own, or raise `RunnerError`."""
    world = start(ranks)
    try:
        world.await_ready()
        world.load(CONTROL, CONTROL_S)
        nothing = {"t": "tuple", "items": []}
        world.each(lambda rank: rank.call(nothing, None), world.group(ranks))
    except FAULTS as fault:
        told = f"a known-good sum over {ranks} ranks fails here too: {type(fault).__name__}: {fault.reason}"
        raise RunnerError(f"the machine failed, not the candidate: {told}") from fault
    finally:
        world.close()


def check(task: Task, world: World, cases: Iterable[tuple[Role, Case]], progress: Progress) -> None:
    """Three calls on each case, the cases in an order drawn by lot: fresh, perturbed, and with a rank held back.

    On the first case every rank is held back in its turn. `Refuted` at the first wrong answer. Where all are right, the
    checks are in the order of `cases`.
    """
    found: dict[int, CaseCheck] = {}
    lot = random.SystemRandom()
    order = list(enumerate(cases))
    lot.shuffle(order)
    for index, (role, case) in order:
        progress.case = case
        everyone = list(range(ranks_of(case)))
        trials = _trials(RankBench(task, case, role, world), [lot.choice(everyone)] if found else everyone)
        found[index] = worst([trial.check for trial in trials])
        if not found[index].passed:
            progress.checks += found.values()
            progress.seeds += [check.seed for check in found.values()]
            raise Refuted(f"{case.label()}: {trials[-1].reason}")
    ordered = [found[index] for index in sorted(found)]
    progress.checks += ordered
    progress.seeds += [check.seed for check in ordered]
    progress.case = None


def _trials(bench: RankBench, held: Sequence[int]) -> list[Trial]:
    """The calls on one case, up to the first wrong one."""
    trials: list[Trial] = []
    try:
        for call in (bench.run, bench.again, *(bench.holder(rank) for rank in held)):
            trials.append(call())
            if not trials[-1].check.passed:
                break
    finally:
        bench.close()
    return trials
