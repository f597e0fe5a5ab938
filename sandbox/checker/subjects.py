"""Problems as an audit asks them: this project's own, and those from elsewhere."""

from __future__ import annotations

from typing import Any

import torch

from problems.elsewhere.kernelbench import RTOL_FIRST, RTOL_NOW
from problems.load import board_scale
from problems.spec import Case
from sandbox.checker.foreign import Reference
from sandbox.checker.foreign_rule import against_exact, close, distance
from sandbox.checker.foreign_tree import Leaf, Value
from sandbox.checker.layout import bits
from sandbox.checker.places import Place, at, named, put, tensors
from sandbox.checker.rule import board_accepts, compare
from sandbox.checker.task import Task

MAX_PLACES = 24
"""Inputs looked at one by one; of more, an even sample."""


class OwnSubject:
    """A problem of this project, on a small case."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self.name, self.case = task.problem.name, task.problem.small[0]
        self.notes = ["screened on its first small case"]

    def inputs(self, seed: int) -> tuple[Any, ...]:
        """As the judge makes them."""
        return self._task.inputs(self.case, seed)

    def places(self, data: tuple[Any, ...]) -> list[str]:
        """All tensors but the output buffers and those that repeat others."""
        ruled_out = (*self._task.problem.writable, *self._task.repeating)
        return _some(["/".join(place) for place, _ in tensors(data) if not named(place, ruled_out)])

    def mixed(self, data: tuple[Any, ...], other: tuple[Any, ...], place: str) -> tuple[Any, ...]:
        """What repeats the changed input is made anew."""
        key: Place = tuple(place.split("/"))
        mine, theirs = at(data, key), at(other, key)
        return self._task.repeated(put(data, key, theirs)) if mine.shape == theirs.shape else data

    def is_same(self, data: tuple[Any, ...], other: tuple[Any, ...], place: str) -> bool:
        """By their bits."""
        key: Place = tuple(place.split("/"))
        mine, theirs = at(data, key), at(other, key)
        return mine.shape != theirs.shape or torch.equal(bits(mine), bits(theirs))

    def is_room(self, data: tuple[Any, ...], place: str) -> bool:
        """The problem names those, and they are not looked at."""
        return False

    def answer(self, data: tuple[Any, ...]) -> list[torch.Tensor]:
        """The float64 result, rounded to what is to be returned."""
        parts = self._task.wanted(self.case).parts
        return [exact.to(part.dtype) for (exact, _), part in zip(self._task.exact(data), parts, strict=True)]

    def verdicts(self, data: tuple[Any, ...], out: list[torch.Tensor]) -> dict[str, bool]:
        """Our rule, and the board's where its answer is known here."""
        task, problem = self._task, self._task.problem
        judged = zip(out, task.exact(data), task.tolerances(len(out)), strict=True)
        found = {"ours": all(compare(part, *truth, rule).mismatches == 0 for part, truth, rule in judged)}
        expected = task.board_expected(data)
        if expected is not None:
            scale = board_scale(problem, self.case)
            pairs = zip(out, expected, strict=True)
            found["the board's check"] = all(board_accepts(*pair, problem.board_check, scale) for pair in pairs)
        return found


class ForeignSubject:
    """A problem from elsewhere, its reference at work in a guest."""

    def __init__(self, reference: Reference, case: Case, notes: list[str]) -> None:
        self._reference = reference
        self.name, self.case, self.notes = reference.problem.name, case, notes
        self._seed = 42
        self._modelled = reference.origin.kind == "kernelbench"
        if self._modelled:
            reference.weights(case, self._seed)

    def inputs(self, seed: int) -> Value:
        """From its own generator of inputs."""
        return self._reference.inputs(self.case, seed)

    def places(self, data: Value) -> list[str]:
        """All tensors; one that its own answer says nothing of may be a buffer for the result."""
        return _some([leaf.place for leaf in data.leaves if leaf.span.bytes])

    def mixed(self, data: Value, other: Value, place: str) -> Value:
        """The other's bytes at that place."""
        mine, theirs = _leaf(data, place), _leaf(other, place)
        if theirs is None or mine is None or _form(mine) != _form(theirs):
            return data
        copy = data.data.clone()
        copy[mine.span.offset : mine.span.offset + mine.span.bytes] = _region(other, theirs)
        return Value(data.tree, copy, data.leaves)

    def is_same(self, data: Value, other: Value, place: str) -> bool:
        """By their bytes."""
        mine, theirs = _leaf(data, place), _leaf(other, place)
        if theirs is None or mine is None or _form(mine) != _form(theirs):
            return True
        return torch.equal(_region(data, mine), _region(other, theirs))

    def is_room(self, data: Value, place: str) -> bool:
        """In GPU MODE's problems: of the dtype and shape of a result."""
        leaf, results = _leaf(data, place), self._own(data).leaves
        like = any(leaf is not None and _form(leaf)[:2] == _form(result)[:2] for result in results)
        return like and not self._modelled

    def answer(self, data: Value) -> list[torch.Tensor]:
        """The reference's own, in its own precision."""
        return list(self._own(data).tensors())

    def verdicts(self, data: Value, out: list[torch.Tensor]) -> dict[str, bool]:
        """Ours; beside it KernelBench's tolerances, now and at first, or a problem's own check."""
        own = self._own(data)
        given = _value(own, out)
        if self._modelled:
            exact = self._reference.answer(self.case, data, exact=True, seed=self._seed)
            return {
                "ours": not against_exact(given, own, exact).reason,
                f"KernelBench's check ({RTOL_NOW:g})": close(given, own, RTOL_NOW),
                f"KernelBench's first check ({RTOL_FIRST:g})": close(given, own, RTOL_FIRST),
            }
        right, _ = self._reference.accepts(self.case, data, given)
        near = not self._reference.origin.matched or not distance(given, own, data).reason
        return {"ours": right and near, "its own check": right}

    def _own(self, data: Value) -> Value:
        return self._reference.answer(self.case, data, seed=self._seed)


def _some(places: list[str]) -> list[str]:
    step = -(-len(places) // MAX_PLACES) or 1
    return places[::step]


def _leaf(data: Value, place: str) -> Leaf | None:
    return next((leaf for leaf in data.leaves if leaf.place == place), None)


def _form(leaf: Leaf) -> tuple[Any, ...]:
    return leaf.span.dtype, leaf.span.shape, leaf.span.stride


def _region(data: Value, leaf: Leaf) -> torch.Tensor:
    return data.data[leaf.span.offset : leaf.span.offset + leaf.span.bytes]


def _value(own: Value, out: list[torch.Tensor]) -> Value:
    """`out` in the form of the reference's answer."""
    made = Value(own.tree, own.data.clone(), own.leaves)
    for leaf, part in zip(own.leaves, out, strict=True):
        made.tensor(leaf).copy_(part)
    return made
