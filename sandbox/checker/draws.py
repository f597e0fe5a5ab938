"""The inputs of one case's calls: drawn anew, or the last ones with an element or two changed where nobody can know."""

from __future__ import annotations

import random
import secrets
from typing import Any

import torch

from problems.spec import Case
from sandbox.checker.layout import bits
from sandbox.checker.task import Task

SEEDS = 1_000_000
"""Seeds lie below this: some boards add them to values in fp32, which must not swallow the values."""
_OTHER = SEEDS // 2
"""Between a call's seed and that of the values a changed element takes."""


class Draws:
    """Data for call after call of one case. The seed of each says all that was drawn for it."""

    def __init__(self, task: Task, case: Case) -> None:
        self._task, self._case = task, case
        self._seed, self._calls = 0, 0
        self._last: tuple[Any, ...] = ()

    def fresh(self) -> tuple[tuple[Any, ...], int]:
        """(inputs, seed), unlike any before."""
        defences = self._task.defences
        if self._calls and not defences.fresh_inputs:
            return self._last, self._seed
        self._calls += 1
        self._seed = 1 + secrets.randbelow(SEEDS - 1) if defences.late_seeds else self._calls
        self._last = self._task.inputs(self._case, self._seed)
        return self._last, self._seed

    def perturbed(self) -> tuple[tuple[Any, ...], int]:
        """(inputs, seed): the last call's inputs with one or two elements of one tensor changed.

        Whoever knows its inputs by some of their elements, or by their sum, takes them for the last ones.
        """
        defences = self._task.defences
        if not (self._calls and defences.fresh_inputs and defences.perturbed_elements):
            return self.fresh()
        rng = random.Random(self._seed)
        places = self._places()
        if not places:
            return self.fresh()
        place = rng.choice(places)
        other = self._task.inputs(self._case, 1 + (self._seed + _OTHER) % (SEEDS - 1))
        changed = _changed(self._last[place], other[place], rng)
        self._last = (*self._last[:place], changed, *self._last[place + 1 :])
        return self._last, self._seed

    def _places(self) -> list[int]:
        """Inputs whose elements may take one another's values: numbers, not indices or outputs."""
        writable = self._task.problem.writable
        return [
            place
            for place, item in enumerate(self._last)
            if isinstance(item, torch.Tensor)
            and item.is_floating_point()
            and item.numel() > 0
            and place not in writable
        ]


def _changed(tensor: torch.Tensor, other: torch.Tensor, rng: random.Random) -> torch.Tensor:
    """A copy in which two elements have changed places, or one has another draw's value: either alone stays unseen by
    some fingerprint, a sum or a sample."""
    copy = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device)
    new, old, draw = bits(copy).copy_(bits(tensor)), bits(tensor), bits(other)
    here, there = (tuple(rng.randrange(size) for size in tensor.shape) for _ in range(2))
    if rng.random() < 0.5 and not torch.equal(old[here], old[there]):
        new[here], new[there] = old[there], old[here]
    else:
        new[here] = draw[here]
    return copy
