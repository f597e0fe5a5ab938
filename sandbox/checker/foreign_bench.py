"""One case of a problem from elsewhere: inputs and answers from its reference's guest, calls in the candidate's."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from problems.elsewhere.kernelbench import RTOL_NOW
from problems.spec import Case
from sandbox.checker.foreign import Reference
from sandbox.checker.foreign_rule import NOTHING, Held, against_exact, close, distance
from sandbox.checker.foreign_tree import Malformed, Value, owned
from sandbox.checker.guest import Forgery, Guest, Returned
from sandbox.checker.layout import ALIGNMENT, INPUTS, RESULT
from sandbox.checker.memory import HostMemory, Shared
from sandbox.checker.trial import LATE_LOOK_S, Share, Trial
from sandbox.defences import Defences
from sandbox.verdict import CaseCheck, Role

SEEDS = 1_000_000
SPARE_BYTES = 1 << 20


class ForeignBench:
    """Its buffers, refilled for each call; used as `sandbox.checker.trial.Bench` is.

    Every call is on fresh inputs: what one input says of another is not known here, so no element is changed alone.
    Inputs may come back changed: which of them are meant to be written to is not known either. What is compared is the
    reference's answer on the checker's own copy of them.
    """

    def __init__(
        self, reference: Reference, case: Case, role: Role, guest: Guest, defences: Defences, share: Share = HostMemory
    ) -> None:
        self._reference, self._case, self._role, self._guest = reference, case, role, guest
        self._share, self._defences = share, defences
        self._buffers: list[Shared] = []
        self._seed = _seed()
        self._modelled = reference.origin.kind == "kernelbench"
        if self._modelled:
            self._build()
        first = reference.inputs(case, self._seed)
        self._room = 2 * reference.answer(case, first, seed=self._seed).data.numel() + SPARE_BYTES
        self.tree = first.tree
        self._hand_over(first.data.numel())

    @property
    def buffers(self) -> list[Shared]:
        """What the guest sees: inputs, then the result."""
        return self._buffers

    def close(self) -> None:
        """Give the buffers back."""
        for buffer in self._buffers:
            buffer.close()
        self._buffers = []

    def run(
        self,
        timed: bool = False,
        before: Callable[[], None] = lambda: None,
        perturbed: bool = False,
        given: Any = None,
        board: dict[str, str | bool] | None = None,
    ) -> Trial:
        """Call once on fresh inputs and check."""
        seed = _seed()
        data = self._reference.inputs(self._case, seed)
        if data.data.numel() > self._buffers[INPUTS].bytes:
            self._hand_over(data.data.numel())
        inputs, result = self._buffers
        inputs.tensor[: data.data.numel()].copy_(data.data)
        result.tensor.fill_(0xFF if self._defences.poisoned_outputs else 0)
        before()
        returned = self._guest.call(data.on(INPUTS), RESULT, 0, self._defences.device_join, board)
        if not self._defences.trusted_copy:
            time.sleep(LATE_LOOK_S)
        out, unread = self._take(returned)
        return self._judged(data, seed, returned, out, unread)

    def _build(self) -> None:
        """Hand over what the reference's model was made from; the candidate's is made from the same."""
        weights = self._reference.weights(self._case, self._seed)
        room = self._share(weights.data.numel())
        room.tensor[: weights.data.numel()].copy_(weights.data)
        self._guest.share([room])
        try:
            self._guest.ask({"op": "build", "data": weights.on(0)}, "built")
        finally:
            room.close()

    def _hand_over(self, size: int) -> None:
        self.close()
        self._buffers = [self._share(size + ALIGNMENT), self._share(self._room)]
        self._guest.share(self._buffers)

    def _take(self, returned: Returned) -> tuple[Value | None, str]:
        """The checker's own copy of what came back, or why there is none."""
        if lost := _unreadable(returned.tree):
            return None, lost
        try:
            out = owned(returned.tree, {number: buffer.tensor for number, buffer in enumerate(self._buffers)})
        except Malformed as error:
            raise Forgery(str(error)) from error
        return replace(out, data=out.data.to(self._reference.device)), ""

    def _judged(self, data: Value, seed: int, returned: Returned, out: Value | None, unread: str) -> Trial:
        if out is None:
            return Trial(self._check(seed, Held(NOTHING, unread), None), returned, unread)
        held, board = self._held(data, out)
        return Trial(self._check(seed, held, board), returned, held.reason)

    def _held(self, data: Value, out: Value) -> tuple[Held, bool | None]:
        own = self._reference.answer(self._case, data, seed=self._seed)
        if self._modelled:
            exact = self._reference.answer(self._case, data, exact=True, seed=self._seed)
            return against_exact(out, own, exact), close(out, own, RTOL_NOW)
        right, message = self._reference.accepts(self._case, data, out)
        if not self._reference.origin.matched:
            error = NOTHING.model_copy(update={"max_abs": 0.0, "max_rel": 0.0, "worst_ratio": 0.0, "mismatches": 0})
            held = Held(error) if right else Held(NOTHING, f"its own check refuses it: {message}")
            return held, right
        held = distance(out, own, data)
        return (held if right or held.reason else Held(held.error, f"its own check refuses it: {message}")), right

    def _check(self, seed: int, held: Held, board: bool | None) -> CaseCheck:
        return CaseCheck(
            case=self._case, role=self._role, seed=seed, passed=not held.reason, error=held.error, board_accepts=board
        )


def _seed() -> int:
    return 1 + secrets.randbelow(SEEDS - 1)


def _unreadable(node: object, depth: int = 0) -> str:
    """Why an honest answer cannot be read: it is no tensor, or not one that could be copied."""
    if not isinstance(node, dict) or depth > 16:
        return ""
    if node.get("t") == "other":
        return f"returned a {str(node.get('type'))[:64]}, which is no tensor"
    if node.get("t") == "tensor" and node.get("buffer") is None:
        return "returned a tensor whose memory cannot be read: too large, not dense, or on another device"
    items = node.get("items")
    parts = items.values() if isinstance(items, dict) else items if isinstance(items, list) else []
    return next((lost for part in parts if (lost := _unreadable(part, depth + 1))), "")
