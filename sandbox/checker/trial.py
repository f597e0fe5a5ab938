"""One call on fresh inputs: shared, called, copied back, held against both rules."""

from __future__ import annotations

import math
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
from sandbox.checker.layout import ALIGNMENT, HOST, INPUTS, RESULT, changed, fill, poison
from sandbox.checker.memory import HostMemory, Shared
from sandbox.checker.rule import board_accepts, compare, merged
from sandbox.checker.task import Task
from sandbox.verdict import CaseCheck, ErrorFigures, Role

HEAD_START = 1_000_000
"""About 0.5 ms at 2 GHz. On an H200's host that had idled for 10 ms, launching one matrix product took up to 200 us."""
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
        self.head_start = HEAD_START
        """Cycles of a busy device before each timed call; see `sandbox.checker.gpu_timing.rehearse`."""
        self.board_calls = math.inf
        """How many calls more the board's own check is asked about; ours is of every one."""
        self._draws = Draws(task, case)
        shapes = task.lay_out(task.shapes(case))
        self._wanted = task.wanted(case)
        self._apart = -(-shapes.bytes // ALIGNMENT) * ALIGNMENT
        self._inputs = share(self._apart * count)
        self._result = share(sum(_room(part) for part in self._wanted.parts) * count)
        self._host = HostMemory(shapes.host_bytes, "cpu") if shapes.host_bytes else None
        self.tree = shapes.tree
        """The inputs as every call tells them."""
        guest.share(self.buffers)

    @property
    def buffers(self) -> list[Shared]:
        """What the guest sees: inputs, the result, and inputs on the host where there are such."""
        return [self._inputs, self._result, *([self._host] if self._host else [])]

    def close(self) -> None:
        """Give the buffers back."""
        self._inputs.close()
        self._result.close()
        if self._host:
            self._host.close()

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
        layout, host = self._task.lay_out(data), self._host.tensor if self._host else None
        fill(layout, self._inputs.tensor, defences.poisoned_outputs, host)
        poison(self._result.tensor, self._wanted.parts[0].dtype, defences.poisoned_outputs)
        before()
        head_start = self.head_start if timed else 0
        returned = self._guest.call(layout.tree, RESULT, head_start, defences.device_join, board)
        if not defences.trusted_copy:
            time.sleep(LATE_LOOK_S)
        # The guest can still write to the shared memory: what is checked is a copy of its own, taken at once.
        parts, unfit = self._take(returned)
        touched = changed(layout, self._inputs.tensor, host) if defences.inputs_unchanged else []
        return self._judge(data, seed, returned, parts, unfit or _damage(touched))

    def _take(self, returned: Returned) -> tuple[list[torch.Tensor], str]:
        """A copy of every part returned, or none and the reason."""
        memories = {INPUTS: self._inputs, RESULT: self._result} | ({HOST: self._host} if self._host else {})
        sizes = {number: memory.bytes for number, memory in memories.items()}
        try:
            places = answer.read_all(returned.tree, self._wanted, sizes, self._task.defences.exact_types)
        except answer.Unfit as unfit:
            return [], str(unfit)
        except answer.Forged as forged:
            raise Forgery(str(forged)) from forged
        copies = [
            span.view(memories[where].tensor).clone(memory_format=torch.contiguous_format) for where, span in places
        ]
        return [
            copy.to(self._task.device, part.dtype).reshape(part.shape)
            for copy, part in zip(copies, self._wanted.parts, strict=True)
        ], ""

    def _judge(
        self, data: tuple[Any, ...], seed: int, returned: Returned, parts: list[torch.Tensor], reason: str
    ) -> Trial:
        if not parts:
            return Trial(self._check(seed, _nothing(self._wanted), False, None), returned, reason)
        defences = self._task.defences
        asked = (self._case.fill == "published" and self.board_calls > 0) or not defences.our_tolerance
        self.board_calls -= 1
        board = self._board(data, parts) if asked else None
        error = merged(
            compare(out, *truth, tolerance, defences.finite)
            for out, truth, tolerance in zip(
                parts, self._task.exact(data), self._task.tolerances(len(parts)), strict=True
            )
        )
        wrong = error.mismatches > 0 if defences.our_tolerance or board is None else not board
        if not reason and wrong:
            reason = _described(error)
        return Trial(self._check(seed, error, not reason, board), returned, reason)

    def _board(self, data: tuple[Any, ...], parts: list[torch.Tensor]) -> bool | None:
        """What the board's check says of all parts; None where its answer is not known here."""
        expected, problem = self._task.board_expected(data), self._task.problem
        if expected is None:
            return None
        scale = board_scale(problem, self._case)
        pairs = zip(parts, expected, strict=True)
        return all(board_accepts(out, theirs, problem.board_check, scale) for out, theirs in pairs)

    def _check(self, seed: int, error: ErrorFigures, passed: bool, board: bool | None) -> CaseCheck:
        return CaseCheck(case=self._case, role=self._role, seed=seed, passed=passed, error=error, board_accepts=board)


def call_shapes(task: Task, case: Case, guest: Guest) -> None:
    """Call once on shapes alone, in a guest that captures launches."""
    guest.call(task.lay_out(task.shapes(case), in_memory=False).tree, None)


def _room(part: answer.Part) -> int:
    """Bytes for a part, or for one of a wider dtype: so that it is told apart from one that cannot be read."""
    count = math.prod(part.shape)
    return max(count * part.dtype.itemsize, min(count * 8, 1 << 26)) + ALIGNMENT


def _nothing(wanted: answer.Wanted) -> ErrorFigures:
    """The figures of an output that could not be compared: everything is wrong."""
    count = sum(math.prod(part.shape) for part in wanted.parts)
    infinity = float("inf")
    return ErrorFigures(max_abs=infinity, max_rel=infinity, worst_ratio=infinity, mismatches=count, elements=count)


def _damage(touched: list[int]) -> str:
    return f"an input was written to (input tensor {touched[0]}), which the problem forbids" if touched else ""


def _described(error: ErrorFigures) -> str:
    return (
        f"{error.mismatches} of {error.elements} elements are off; "
        f"largest absolute error {error.max_abs:.3g}, {error.worst_ratio:.3g} times what is allowed"
    )
