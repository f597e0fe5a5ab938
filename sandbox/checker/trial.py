"""One call on fresh inputs: shared, called, copied back, held against both rules."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from problems.load import board_scale
from problems.spec import Case
from sandbox.checker import answer
from sandbox.checker.draws import Draws
from sandbox.checker.guest import Forgery, Guest, Returned
from sandbox.checker.layout import ALIGNMENT, INPUTS, RESULT, Layout, changed, fill, lay_out, poison
from sandbox.checker.memory import HostMemory, Shared
from sandbox.checker.rule import board_accepts, compare
from sandbox.checker.task import Task
from sandbox.verdict import CaseCheck, ErrorFigures, Role

LATE_LOOK_S = 0.05
"""How long a judge without a trusted copy leaves an output lying before it looks."""
Share = Callable[[int], Shared]


@dataclass(frozen=True, slots=True)
class Trial:
    """One call, checked."""

    check: CaseCheck
    returned: Returned
    reason: str
    """Why it is wrong; empty where it is right."""


class Bench:
    """The shared buffers of one case, refilled for each call, and the guest that sees them: room for `count` calls."""

    def __init__(
        self, task: Task, case: Case, role: Role, guest: Guest, share: Share = HostMemory, count: int = 1
    ) -> None:
        self._task, self._case, self._role, self._guest = task, case, role, guest
        self._draws = Draws(task, case)
        shapes = lay_out(task.shapes(case), task.problem.writable)
        exact, _ = task.reference.exact(task.shapes(case))
        self._shape = tuple(exact.shape)
        # Room for a result of a wider dtype than the right one, so that it is told apart from one that cannot be read.
        room = max(exact.numel() * task.output_dtype.itemsize, min(exact.numel() * 8, 1 << 26)) + ALIGNMENT
        self._apart = -(-shapes.bytes // ALIGNMENT) * ALIGNMENT
        self._inputs = share(self._apart * count)
        self._result = share(room * count)
        self.tree = shapes.tree
        """The inputs as every call tells them."""
        guest.share(self.buffers)

    @property
    def buffers(self) -> list[Shared]:
        """What the guest sees: inputs, then the result."""
        return [self._inputs, self._result]

    def close(self) -> None:
        """Give the buffers back."""
        self._inputs.close()
        self._result.close()

    def run(
        self,
        timed: bool = False,
        before: Callable[[], None] = lambda: None,
        perturbed: bool = False,
        given: tuple[tuple[Any, ...], int] | None = None,
        board: dict[str, str | bool] | None = None,
    ) -> Trial:
        """Draw a seed, make inputs, call once, check. `before` runs last before the call: flush, synchronise.

        `perturbed`: on the last call's inputs with an element or two changed, instead of new ones. `given`: on these
        inputs, made from this seed. `board`: timed as a board does, see `sandbox.checker.board_time`.
        """
        defences = self._task.defences
        data, seed = given or (self._draws.perturbed() if perturbed else self._draws.fresh())
        layout = lay_out(data, self._task.problem.writable)
        fill(layout, self._inputs.tensor, defences.poisoned_outputs)
        poison(self._result.tensor, self._task.output_dtype, defences.poisoned_outputs)
        before()
        returned = self._guest.call(layout.tree, RESULT, timed, defences.device_join, board)
        if not defences.trusted_copy:
            time.sleep(LATE_LOOK_S)
        # The guest can still write to the shared memory: what is checked is a copy of its own, taken at once.
        out, unfit = self._take(returned)
        touched = changed(layout, self._inputs.tensor) if defences.inputs_unchanged else []
        return self._judge(data, seed, returned, out, unfit or _damage(touched))

    def _take(self, returned: Returned) -> tuple[torch.Tensor | None, str]:
        sizes = {INPUTS: self._inputs.bytes, RESULT: self._result.bytes}
        try:
            where, span = answer.read(
                returned.tree, self._task.output_dtype, self._shape, sizes, self._task.defences.exact_types
            )
        except answer.Unfit as unfit:
            return None, str(unfit)
        except answer.Forged as forged:
            raise Forgery(str(forged)) from forged
        buffer = self._inputs if where == INPUTS else self._result
        copy = span.view(buffer.tensor).clone(memory_format=torch.contiguous_format)
        return copy.to(self._task.device, self._task.output_dtype).reshape(self._shape), ""

    def _judge(
        self, data: tuple[Any, ...], seed: int, returned: Returned, out: torch.Tensor | None, reason: str
    ) -> Trial:
        if out is None:
            return Trial(self._check(seed, _nothing(self._shape), False, None), returned, reason)
        defences = self._task.defences
        asked = self._case.fill == "published" or not defences.our_tolerance
        theirs = self._task.reference.board_expected(data) if asked else None
        scale = board_scale(self._task.problem, self._case)
        board = None if theirs is None else board_accepts(out, theirs, self._task.problem.board_check, scale)
        exact, terms = self._task.reference.exact(data)
        error = compare(out, exact, terms, self._task.problem.tolerance, defences.finite)
        wrong = error.mismatches > 0 if defences.our_tolerance or board is None else not board
        if not reason and wrong:
            reason = _described(error)
        return Trial(self._check(seed, error, not reason, board), returned, reason)

    def _check(self, seed: int, error: ErrorFigures, passed: bool, board: bool | None) -> CaseCheck:
        return CaseCheck(case=self._case, role=self._role, seed=seed, passed=passed, error=error, board_accepts=board)


def call_shapes(task: Task, case: Case, guest: Guest) -> None:
    """Call once on shapes alone, in a guest that captures launches."""
    layout: Layout = lay_out(task.shapes(case), task.problem.writable, in_memory=False)
    guest.call(layout.tree, None)


def _nothing(shape: tuple[int, ...]) -> ErrorFigures:
    """The figures of an output that could not be compared: everything is wrong."""
    count = torch.Size(shape).numel()
    infinity = float("inf")
    return ErrorFigures(max_abs=infinity, max_rel=infinity, worst_ratio=infinity, mismatches=count, elements=count)


def _damage(touched: list[int]) -> str:
    return f"an input was written to (input tensor {touched[0]}), which the problem forbids" if touched else ""


def _described(error: ErrorFigures) -> str:
    return (
        f"{error.mismatches} of {error.elements} elements are off; "
        f"largest absolute error {error.max_abs:.3g}, {error.worst_ratio:.3g} times what is allowed"
    )
