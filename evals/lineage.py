"""The family tree of a run's attempts: who was made from whom, laid out for drawing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dataset.attempt import Attempt, Judged

COLUMN, ROW, MARGIN = 26.0, 18.0, 14.0
MAX_NODES = 400
"""A drawing of more says nothing; the table and the journal hold them all."""


@dataclass(frozen=True, slots=True)
class Node:
    """One attempt in the drawing, with its place in pixels."""

    attempt_id: str
    title: str
    label: str
    """Beside the last node of a row; empty where the next generation stands there."""
    verdict: str
    x: float
    y: float
    on_path: bool
    """Whether the best attempt descends from it, or is it."""
    parent: tuple[float, float] | None
    """The place of its first parent."""


@dataclass(frozen=True, slots=True)
class Lineage:
    """The whole drawing."""

    nodes: tuple[Node, ...]
    width: float
    height: float
    left_out: int


def verdict_of(attempt: Attempt) -> str:
    """The verdict's kind, or ``unusable`` where the reply held no candidate."""
    return attempt.outcome.judgement.verdict.kind if isinstance(attempt.outcome, Judged) else "unusable"


def path_to(attempts: Sequence[Attempt], attempt_id: str | None) -> frozenset[str]:
    """The attempt and its ancestors by first parent."""
    parents = {attempt.attempt_id: attempt.parents[:1] for attempt in attempts}
    path: list[str] = []
    while attempt_id in parents and attempt_id not in path:
        path.append(attempt_id)
        attempt_id = next(iter(parents[attempt_id]), None)
    return frozenset(path)


def draw(attempts: Sequence[Attempt], best: str | None) -> Lineage:
    """Columns by generation, one row a leaf, each parent level with its first child."""
    path = path_to(attempts, best)
    shown = _chosen(attempts, path)
    known = {attempt.attempt_id for attempt in shown}
    children: dict[str | None, list[Attempt]] = {}
    for attempt in shown:
        parent = next((name for name in attempt.parents if name in known and name != attempt.attempt_id), None)
        children.setdefault(parent, []).append(attempt)
    places = _places(children)
    nodes = tuple(
        _node(attempt, places, parent, path, leaf=attempt.attempt_id not in children)
        for parent, group in children.items()
        for attempt in group
        if attempt.attempt_id in places
    )
    width = max((node.x for node in nodes), default=0.0) + MARGIN + 220
    height = max((node.y for node in nodes), default=0.0) + MARGIN
    return Lineage(nodes, width, height, len(attempts) - len(nodes))


def _chosen(attempts: Sequence[Attempt], path: frozenset[str]) -> list[Attempt]:
    """All attempts, or the path to the best and the earliest of the others."""
    if len(attempts) <= MAX_NODES:
        return list(attempts)
    others = [attempt.attempt_id for attempt in attempts if attempt.attempt_id not in path]
    kept = path | set(others[: max(0, MAX_NODES - len(path))])
    return [attempt for attempt in attempts if attempt.attempt_id in kept]


def _places(children: dict[str | None, list[Attempt]]) -> dict[str, tuple[float, float]]:
    """Depth first without recursion: a chain of refinements can be longer than Python's stack."""
    places: dict[str, tuple[float, float]] = {}
    row = 0
    stack = [(attempt, 0, True) for attempt in reversed(children.get(None, []))]
    while stack:
        attempt, depth, first = stack.pop()
        if places and not (first and depth):
            row += 1
        places[attempt.attempt_id] = (MARGIN + depth * COLUMN, MARGIN + row * ROW)
        below = children.get(attempt.attempt_id, [])
        stack += [(child, depth + 1, i == 0) for i, child in reversed(list(enumerate(below)))]
    return places


def _node(
    attempt: Attempt,
    places: dict[str, tuple[float, float]],
    parent: str | None,
    path: frozenset[str],
    leaf: bool,
) -> Node:
    x, y = places[attempt.attempt_id]
    name = f"{attempt.seq} {attempt.move.kind}"
    return Node(
        attempt_id=attempt.attempt_id,
        title=f"attempt {name}: {verdict_of(attempt).replace('_', ' ')}",
        label=name if leaf else "",
        verdict=verdict_of(attempt),
        x=x,
        y=y,
        on_path=attempt.attempt_id in path,
        parent=places.get(parent) if parent else None,
    )
