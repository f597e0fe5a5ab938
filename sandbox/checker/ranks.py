"""One case on several ranks: every rank's inputs are made here, every rank's answer is held against the rule here.

A problem of several ranks has a reference that tells them apart: `make_inputs` gives a tuple of every rank's inputs,
`exact` and `board_expected` give a list with an entry for each rank. ``depends(data, rank, on)``, where it is defined,
says whether what `rank` returns hangs on rank `on`; without it all hang on all. A rank that returns before one it hangs
on was called, or was even given its inputs, has not asked it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from typing import Any, cast

import torch

from problems.spec import Case
from sandbox.checker import answer
from sandbox.checker.draws import Draws
from sandbox.checker.guest import Forgery, Returned
from sandbox.checker.layout import ALIGNMENT, INPUTS, RESULT, Layout, changed, fill, lay_out, poison
from sandbox.checker.memory import HostMemory
from sandbox.checker.outcome import Refuted
from sandbox.checker.rule import board_accepts, compare
from sandbox.checker.task import Task
from sandbox.checker.trial import HEAD_START, Trial
from sandbox.checker.world import Rank, World
from sandbox.verdict import CaseCheck, ErrorFigures, Role

HOLD_S = 0.3
"""A rank that needs nobody would have returned within this, or within `HOLD_CALLS` times a whole call."""
HOLD_CALLS = 3.0

Board = dict[str, str | bool]


def ranks_of(case: Case) -> int:
    """How many ranks the case is on."""
    return int(cast(int, case.params["world_size"]))


class RankBench:
    """The shared buffers of one case, two for each rank, and the ranks that see them, in a group of their own."""

    def __init__(self, task: Task, case: Case, role: Role, world: World) -> None:
        self._task, self._case, self._role, self._world = task, case, role, world
        self._draws = Draws(task, case)
        shapes = task.shapes(case)
        sizes = [exact.numel() for exact, _ in _pairs(task, shapes)]
        width = max(task.output_dtype.itemsize, 8)
        self._inputs = [HostMemory(lay_out(part, ()).bytes) for part in shapes]
        self._results = [HostMemory(size * width + ALIGNMENT) for size in sizes]
        self.trees: list[dict[str, Any]] = []
        """The last call's inputs as each rank was told."""
        self._longest_s = 0.0
        self.ranks = world.group(ranks_of(case))
        world.each(lambda rank: rank.share(self.buffers(rank.number)), self.ranks)

    def buffers(self, rank: int) -> list[HostMemory]:
        """What one rank sees: its inputs, then its result."""
        return [self._inputs[rank], self._results[rank]]

    def close(self) -> None:
        """Give the buffers back."""
        for memory in (*self._inputs, *self._results):
            memory.close()

    def run(
        self, timed: bool = False, perturbed: bool = False, withheld: int | None = None, board: Board | None = None
    ) -> Trial:
        """Draw a seed, make every rank's inputs, call all ranks once, check every answer.

        `perturbed`: on the last call's inputs with an element or two changed. `withheld`: this rank is called, and
        given its inputs, only when the others have had the time to return; `Refuted` where one that hangs on it did.
        """
        data, seed = self._draws.perturbed() if perturbed else self._draws.fresh()
        # Before the call: what is checked is copied at once after it.
        self._exact = _pairs(self._task, data)
        layouts = [lay_out(part, ()) for part in data]
        self.trees = [layout.tree for layout in layouts]
        for number in range(len(layouts)):
            if number != withheld:
                self._fill(number, layouts[number])
        join = self._task.defences.device_join
        start = time.perf_counter()
        if withheld is None:
            told = self._world.each(
                lambda rank: rank.call(self.trees[rank.number], RESULT, HEAD_START if timed else 0, join, board),
                self.ranks,
            )
        else:
            told = self._held(withheld, data, layouts[withheld])
        took_s = time.perf_counter() - start
        if withheld is None:
            self._longest_s = max(self._longest_s, took_s)
        outs = [self._take(number, returned) for number, returned in enumerate(told)]
        return self._judge(data, seed, layouts, outs, _slowest(told, took_s * 1e6, board is not None))

    def again(self) -> Trial:
        """A call on the last one's inputs with an element or two changed."""
        return self.run(perturbed=True)

    def holder(self, rank: int) -> Callable[[], Trial]:
        """A call that holds `rank` back."""
        return lambda: self.run(withheld=rank)

    def _fill(self, number: int, layout: Layout) -> None:
        poisoned = self._task.defences.poisoned_outputs
        fill(layout, self._inputs[number].tensor, poisoned)
        poison(self._results[number].tensor, self._task.output_dtype, poisoned)

    def _held(self, on: int, data: tuple[Any, ...], layout: Layout) -> list[Returned]:
        """Call all but rank `on`; wait; then call it."""

        def call(rank: Rank) -> Returned:
            return rank.call(self.trees[rank.number], RESULT)

        others = [rank for rank in self.ranks if rank.number != on]
        hold_s = max(HOLD_S, HOLD_CALLS * self._longest_s)
        for rank in others:
            rank.grant(hold_s)
        calls = self._world.begin(call, others)
        bound = [one for one, rank in zip(calls, others, strict=True) if self._depends(data, rank.number, on)]
        begun = time.monotonic()
        wait(bound, hold_s, FIRST_COMPLETED)
        held_s = min(hold_s, time.monotonic() - begun)
        early = [rank.number for one, rank in zip(calls, others, strict=True) if one in bound and _returned(one)]
        if early:
            self._world.kill()
            reason = (
                f"rank {early[0]} returned before rank {on} was called or given its inputs, on which its result hangs"
            )
            raise Refuted(
                f"{self._case.label()}: {reason}: the ranks do not exchange what the problem has them exchange"
            )
        self._fill(on, layout)
        calls.insert(on, self._world.begin(call, [self.ranks[on]])[0])
        told = self._world.results(calls)
        for rank in others:
            rank.grant(held_s - hold_s)
        return told

    def _depends(self, data: tuple[Any, ...], rank: int, on: int) -> bool:
        depends = getattr(self._task.reference, "depends", None)
        return depends is None or bool(depends(data, rank, on))

    def _take(self, number: int, returned: Returned) -> torch.Tensor | str:
        """A copy of what one rank returned, or why it cannot be read."""
        shape = tuple(self._exact[number][0].shape)
        inputs, result = self.buffers(number)
        sizes, dtype = {INPUTS: inputs.bytes, RESULT: result.bytes}, self._task.output_dtype
        try:
            where, span = answer.read(returned.tree, dtype, shape, sizes, self._task.defences.exact_types)
        except answer.Unfit as unfit:
            return f"rank {number}: {unfit}"
        except answer.Forged as forged:
            raise Forgery(f"rank {number}: {forged}") from forged
        buffer = inputs if where == INPUTS else result
        copy = span.view(buffer.tensor).clone(memory_format=torch.contiguous_format)
        return copy.to(self._task.device, dtype).reshape(shape)

    def _judge(
        self,
        data: tuple[Any, ...],
        seed: int,
        layouts: list[Layout],
        outs: list[torch.Tensor | str],
        returned: Returned,
    ) -> Trial:
        defences, problem = self._task.defences, self._task.problem
        asked = self._case.fill == "published" or not defences.our_tolerance
        theirs = cast(list[torch.Tensor] | None, self._task.reference.board_expected(data)) if asked else None
        figures, reasons, boards = [], [], []
        for number, (out, (exact, terms)) in enumerate(zip(outs, self._exact, strict=True)):
            if isinstance(out, str):
                figures.append(_nothing(exact.numel()))
                reasons.append(out)
                continue
            figures.append(compare(out, exact, terms, problem.tolerance, defences.finite))
            if theirs is not None:
                boards.append(board_accepts(out, theirs[number], problem.board_check))
            if figures[-1].mismatches and (defences.our_tolerance or not boards):
                reasons.append(f"rank {number}: {_described(figures[-1])}")
            if defences.inputs_unchanged and changed(layouts[number], self._inputs[number].tensor):
                reasons.append(f"rank {number}: an input was written to, which the problem forbids")
        board = None if theirs is None else len(boards) == len(outs) and all(boards)
        if not defences.our_tolerance and board is False:
            reasons.append("the board's check fails")
        check = CaseCheck(
            case=self._case, role=self._role, seed=seed, passed=not reasons, error=_all(figures), board_accepts=board
        )
        return Trial(check, returned, reasons[0] if reasons else "")


def _pairs(task: Task, data: tuple[Any, ...]) -> list[tuple[torch.Tensor, torch.Tensor]]:
    return cast(list[tuple[torch.Tensor, torch.Tensor]], task.reference.exact(data))


def _returned(call: Any) -> bool:
    return call.done() and call.exception() is None


def _slowest(told: Sequence[Returned], wall_us: float, board: bool) -> Returned:
    """All ranks' answers as one: the slowest rank's time, as a board the first rank's."""
    times = [returned.event_us for returned in told]
    known = [us for us in times if us is not None]
    claimed = None if len(known) < len(times) else known[0] if board else max(known)
    return Returned(None, claimed, wall_us)


def _all(figures: Sequence[ErrorFigures]) -> ErrorFigures:
    return ErrorFigures(
        max_abs=max(each.max_abs for each in figures),
        max_rel=max(each.max_rel for each in figures),
        worst_ratio=max(each.worst_ratio for each in figures),
        mismatches=sum(each.mismatches for each in figures),
        elements=sum(each.elements for each in figures),
    )


def _nothing(count: int) -> ErrorFigures:
    """The figures of an output that could not be compared: everything is wrong."""
    infinity = float("inf")
    return ErrorFigures(max_abs=infinity, max_rel=infinity, worst_ratio=infinity, mismatches=count, elements=count)


def _described(error: ErrorFigures) -> str:
    return (
        f"{error.mismatches} of {error.elements} elements are off; "
        f"largest absolute error {error.max_abs:.3g}, {error.worst_ratio:.3g} times what is allowed"
    )
