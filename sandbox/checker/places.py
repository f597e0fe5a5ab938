"""Where a tensor is in a tree of tuples, lists, dicts and objects, and patterns that name such places.

A place is the keys from the outermost value inwards, as text: ``("1", "fp8", "0")``. A pattern is a top-level index, or
keys joined by slashes in which ``*`` stands for any one key: ``4``, ``"1/fp8"``, ``"0/*/2"``. It names all that lies at
or below it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import torch

from problems.made import Made

Place = tuple[str, ...]
Pattern = int | str


def tensors(value: Any, at: Place = ()) -> Iterator[tuple[Place, torch.Tensor]]:
    """Every tensor of the tree with its place, in order."""
    if isinstance(value, torch.Tensor):
        yield at, value
    for key, part in _parts(value):
        yield from tensors(part, (*at, key))


def named(place: Place, patterns: Iterable[Pattern]) -> bool:
    """Whether one of `patterns` names `place`."""
    return any(_names(str(pattern).split("/"), place) for pattern in patterns)


def at(value: Any, place: Place) -> Any:
    """What lies at `place`."""
    return at(dict(_parts(value))[place[0]], place[1:]) if place else value


def put(value: Any, place: Place, new: Any) -> Any:
    """The tree with `new` at `place`; what is not on the way there is the same, not a copy."""
    if not place:
        return new
    parts = {key: put(part, place[1:], new) if key == place[0] else part for key, part in _parts(value)}
    if isinstance(value, Made):
        return replace(value, fields=parts)
    return parts if isinstance(value, dict) else type(value)(parts.values())


def _parts(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, Made):
        return list(value.fields.items())
    if isinstance(value, dict):
        return list(value.items())
    if isinstance(value, tuple | list):
        return [(str(index), part) for index, part in enumerate(value)]
    return []


def _names(pattern: list[str], place: Place) -> bool:
    if len(pattern) > len(place):
        return False
    return all(key in ("*", there) for key, there in zip(pattern, place, strict=False))
