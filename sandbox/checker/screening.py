"""Screens a problem before anyone works on it: does its rule refuse what is no work, do all its inputs matter?

Zeros, a constant and the answer to other inputs are held against our rule and against the board's. Each input is taken
from another draw, alone, and the answer must change. The answer must vary, over its elements and from seed to seed, and
be the same when asked for twice. One case is looked at; what holds in it may not hold in another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import torch

from problems.spec import Case
from sandbox.audit import Audited, Kind, Weakness, Whose

FLAT = 1e-3
"""Spread over size below which an answer counts as constant."""
SEEDS = (1009, 2003)

Answer = list[torch.Tensor]


class Subject(Protocol):
    """A problem that can be asked: one of this project, or one from elsewhere."""

    name: str
    case: Case
    notes: list[str]

    def inputs(self, seed: int) -> Any:
        """Fresh inputs of the case."""

    def places(self, data: Any) -> list[str]:
        """The input tensors that ought to matter, each by its place."""

    def mixed(self, data: Any, other: Any, place: str) -> Any:
        """`data` with the tensor at `place` taken from `other`; the same where that has another shape there."""

    def is_same(self, data: Any, other: Any, place: str) -> bool:
        """Whether both hold the same there: such an input never changes."""

    def is_room(self, data: Any, place: str) -> bool:
        """Whether that input may be room for the result, which nobody reads."""

    def answer(self, data: Any) -> Answer:
        """What is to be returned."""

    def verdicts(self, data: Any, out: Answer) -> dict[str, bool]:
        """Whether each rule that there is accepts `out`, by the rule's name; our own is called ``ours``."""


def screen(subject: Subject) -> Audited:
    """Everything that is found; raises what `subject` raises."""
    data, other = (subject.inputs(seed) for seed in SEEDS)
    answer, elsewhere = subject.answer(data), subject.answer(other)
    passing = _passing(subject, data, answer, elsewhere)
    found = [
        *passing,
        *_varying(subject, answer, elsewhere, any(weakness.kind == "constant" for weakness in passing)),
        *_repeating(subject, data, answer),
        *_ignored(subject, data, other, answer),
    ]
    return Audited(name=subject.name, case=subject.case, notes=tuple(subject.notes), weaknesses=tuple(found))


def _passing(subject: Subject, data: Any, answer: Answer, elsewhere: Answer) -> list[Weakness]:
    """What no kernel computes, and which rule takes it."""
    tries: list[tuple[Kind, str, Answer]] = [
        ("zeros", "zeros are accepted", [torch.zeros_like(part) for part in answer]),
    ]
    if any(part.numel() > 1 for part in answer):
        tries.append(("constant", "its mean, everywhere, is accepted", [_constant(part) for part in answer]))
    if _shapes(answer) == _shapes(elsewhere):
        tries.append(("other answer", "the answer to other inputs is accepted", elsewhere))
    found = []
    for kind, message, out in tries:
        for rule, accepted in subject.verdicts(data, out).items():
            if accepted:
                whose: Whose = "ours" if rule == "ours" else "board"
                found.append(Weakness(kind=kind, rule=whose, message=f"{message} by {rule}"))
    return found


def _varying(subject: Subject, answer: Answer, elsewhere: Answer, constant: bool) -> list[Weakness]:
    """A flat answer is a weakness where some rule takes a constant for it; else it is a note."""
    found = []
    spread = max((_spread(part) for part in answer), default=0.0)
    if spread < FLAT and any(part.numel() > 1 for part in answer):
        message = f"its elements differ from their mean by {spread:.1e} of their size"
        if constant:
            found.append(Weakness(kind="flat", rule="problem", message=message))
        else:
            subject.notes.append(f"{message}; every rule tells it from a constant")
    if _shapes(answer) == _shapes(elsewhere):
        apart = max((_apart(*pair) for pair in zip(answer, elsewhere, strict=True)), default=0.0)
        if apart < FLAT:
            message = f"two seeds' answers differ by {apart:.1e} of their size"
            found.append(Weakness(kind="same for all seeds", rule="problem", message=message))
    return found


def _repeating(subject: Subject, data: Any, answer: Answer) -> list[Weakness]:
    again = subject.answer(data)
    if _shapes(again) == _shapes(answer) and all(_equal(*pair) for pair in zip(answer, again, strict=True)):
        return []
    apart = max((_apart(*pair) for pair in zip(answer, again, strict=False)), default=0.0)
    message = f"the same inputs give another answer the second time, {apart:.1e} of its size away"
    return [Weakness(kind="not repeatable", rule="problem", message=message)]


def _ignored(subject: Subject, data: Any, other: Any, answer: Answer) -> list[Weakness]:
    found = []
    for place in subject.places(data):
        if subject.is_same(data, other, place):
            continue
        mixed = subject.answer(subject.mixed(data, other, place))
        if _shapes(mixed) == _shapes(answer) and all(_equal(*pair) for pair in zip(answer, mixed, strict=True)):
            message = f"input {place} may be anything: the answer stays the same"
            if subject.is_room(data, place):
                subject.notes.append(f"input {place} is taken for room for the result: its contents do not matter")
                continue
            found.append(Weakness(kind="ignored input", rule="problem", message=message))
    return found


def _shapes(answer: Sequence[torch.Tensor]) -> list[torch.Size]:
    return [part.shape for part in answer]


def _equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    """The same numbers, NaN included."""
    return torch.equal(one.double().nan_to_num(), other.double().nan_to_num())


def _constant(part: torch.Tensor) -> torch.Tensor:
    mean = float(_finite(part).mean()) if part.numel() else 0.0
    return torch.full_like(part, mean if part.is_floating_point() else int(mean))


def _finite(part: torch.Tensor) -> torch.Tensor:
    return part.double().nan_to_num(0.0, 0.0, 0.0)


def _spread(part: torch.Tensor) -> float:
    wide = _finite(part)
    size = float(wide.norm())
    return float((wide - wide.mean()).norm()) / size if size else 0.0


def _apart(one: torch.Tensor, other: torch.Tensor) -> float:
    if one.shape != other.shape:
        return float("inf")
    size = float(_finite(one).norm())
    return float((_finite(one) - _finite(other)).norm()) / size if size else 0.0
