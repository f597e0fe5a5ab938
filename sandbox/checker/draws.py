"""The inputs of one case's calls: drawn anew, or the last ones with an element or two changed where nobody can know."""

from __future__ import annotations

import random
import secrets
from collections import defaultdict
from typing import Any

import torch

from problems.spec import Case
from sandbox.checker.layout import bits
from sandbox.checker.places import Place, at, named, put, tensors
from sandbox.checker.task import Task

SEEDS = 1_000_000
"""Seeds lie below this: some boards add them to values in fp32, which must not swallow the values."""
_OTHER = SEEDS // 2
"""Between a call's seed and that of the values a changed element takes."""
TRIES = 16
"""Inputs tried for one that may change: some, like a mask of ones, never do."""
LOOKS = 512
"""Elements looked at for one that may change: where the draws differ in one of 64, as in a cache that is mostly
empty, 3 in 10,000 find none."""


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
        other = self._task.inputs(self._case, 1 + (self._seed + _OTHER) % (SEEDS - 1))
        for place in self._places(rng):
            changed = _changed(at(self._last, place), at(other, place), rng)
            if changed is not None:
                self._last = self._task.repeated(put(self._last, place, changed))
                return self._last, self._seed
        return self.fresh()

    def _places(self, rng: random.Random) -> list[Place]:
        """Some, by lot, whose elements may take one another's values: numbers, no indices, no outputs, no repetitions.

        Each top-level input is as likely as the others, however many tensors it holds.
        """
        ruled_out = (*self._task.problem.writable, *self._task.repeating)
        found = defaultdict[str, list[Place]](list)
        for place, tensor in tensors(self._last):
            number = tensor.is_floating_point() or tensor.dtype == torch.uint8
            if number and tensor.dim() > 0 and tensor.numel() > 0 and not named(place, ruled_out):
                found[place[0]].append(place)
        drawn = [rng.choice(rng.choice(list(found.values()))) for _ in range(TRIES) if found]
        return list(dict.fromkeys(drawn))


def _changed(tensor: torch.Tensor, other: torch.Tensor, rng: random.Random) -> torch.Tensor | None:
    """A copy in which two elements have changed places, or one has another draw's value: either alone stays unseen by
    some fingerprint, a sum or a sample.

    Only elements that the two draws have different numbers for: what is the same in every draw is no accident. None
    where no such one was found.
    """
    old, draw = bits(tensor), bits(other)
    # How many rows there are may be drawn too.
    sizes = [min(pair) for pair in zip(tensor.shape, other.shape, strict=True)]
    looked_at = torch.tensor([[rng.randrange(size) for size in sizes] for _ in range(LOOKS)]).to(tensor.device)
    indices = looked_at.unbind(1)
    mine, theirs = old[indices], draw[indices]
    free = (mine != theirs) & ~_nan(mine, tensor.dtype) & ~_nan(theirs, tensor.dtype)
    picks = [tuple(place) for place in looked_at[free].tolist()]
    if not picks:
        return None
    copy = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device)
    new = bits(copy).copy_(old)
    here, there = picks[0], next((place for place in picks if not torch.equal(old[place], old[picks[0]])), picks[0])
    if rng.random() < 0.5 and there != here:
        new[here], new[there] = old[there], old[here]
    else:
        new[here] = draw[here]
    return copy


def _nan(codes: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Which of `codes`, of one dimension, are NaN as `dtype`."""
    if dtype in (torch.uint8, torch.float4_e2m1fn_x2):
        return torch.zeros_like(codes, dtype=torch.bool)
    return codes.view(dtype).float().isnan()
