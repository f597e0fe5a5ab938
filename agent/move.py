"""A move: the next decision of a run, as a value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from dataset.attempt import MoveRecord

Knob = int | str | bool
Assignment = dict[str, Knob]


@dataclass(frozen=True, slots=True)
class Seed:
    """Judge a seed kernel with the defaults of its knobs."""

    seed_kernel: str
    knobs: Assignment


@dataclass(frozen=True, slots=True)
class Tune:
    """Judge a seed kernel with another setting of its knobs; `knobs` is the whole assignment."""

    seed_kernel: str
    knobs: Assignment
    parent: str
    """Attempt that judged the seed kernel's defaults."""
    hypothesis: str


@dataclass(frozen=True, slots=True)
class Draft:
    """Ask the model for a kernel from nothing but the problem."""


@dataclass(frozen=True, slots=True)
class Repair:
    """Ask the model to mend an attempt that was not accepted."""

    parent: str
    base: str | None = None
    """For a parent whose reply held no candidate: the accepted attempt to start from instead, if there is one."""


@dataclass(frozen=True, slots=True)
class Optimise:
    """Ask the model for a faster form of an accepted attempt."""

    parent: str


@dataclass(frozen=True, slots=True)
class Crossover:
    """Ask the model to join what is good in two accepted attempts."""

    parent: str
    other: str


@dataclass(frozen=True, slots=True)
class Port:
    """Ask the model to fit an accepted attempt to another chip than it was written for."""

    parent: str
    from_chip: str


@dataclass(frozen=True, slots=True)
class Stop:
    """Nothing is left to do, and why."""

    reason: str


SeedMove = Seed | Tune
ModelMove = Draft | Repair | Optimise | Crossover | Port
Move = SeedMove | ModelMove | Stop


def parents(move: SeedMove | ModelMove) -> tuple[str, ...]:
    """The attempts that a move starts from."""
    match move:
        case Seed() | Draft():
            return ()
        case Crossover(parent=parent, other=other):
            return (parent, other)
        case Repair(parent=parent, base=base):
            return (parent,) if base is None else (parent, base)
        case Tune(parent=parent) | Optimise(parent=parent) | Port(parent=parent):
            return (parent,)
        case _:
            assert_never(move)


def record(move: SeedMove | ModelMove) -> MoveRecord:
    """The move as the journal keeps it."""
    match move:
        case Seed(seed_kernel=name, knobs=knobs):
            return MoveRecord(kind="seed", knobs=knobs, seed_kernel=name)
        case Tune(seed_kernel=name, knobs=knobs):
            return MoveRecord(kind="tune", knobs=knobs, seed_kernel=name)
        case Draft():
            return MoveRecord(kind="draft")
        case Repair():
            return MoveRecord(kind="repair")
        case Optimise():
            return MoveRecord(kind="optimise")
        case Crossover():
            return MoveRecord(kind="crossover")
        case Port():
            return MoveRecord(kind="port")
        case _:
            assert_never(move)
