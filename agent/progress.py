"""What a run tells whoever watches it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from agent.limits import Limits
from agent.move import ModelMove, SeedMove
from agent.state import RunState
from dataset.attempt import Attempt


@dataclass(frozen=True, slots=True)
class Began:
    """A session began: of a new run (`state` is empty), or of a resumed one."""

    run_id: str
    folder: Path
    limits: Limits
    state: RunState


@dataclass(frozen=True, slots=True)
class Working:
    """An attempt is with the model or with the judge."""

    seq: int
    move: SeedMove | ModelMove
    stage: Literal["drafting", "judging"]


@dataclass(frozen=True, slots=True)
class Faulted:
    """The place of work failed while judging; the candidate is judged again."""

    seq: int
    message: str
    tries_left: int


@dataclass(frozen=True, slots=True)
class AttemptDone:
    """An attempt is on record. `state` holds it, with what is spent of the limits."""

    attempt: Attempt
    state: RunState


@dataclass(frozen=True, slots=True)
class BestChanged:
    """The attempt just done is the new best."""

    attempt: Attempt
    previous: Attempt | None


Event = Began | Working | Faulted | AttemptDone | BestChanged


class Progress(Protocol):
    """Whoever watches. Called in the run's own thread: be quick."""

    def show(self, event: Event) -> None:
        """Take one event."""


class Silent:
    """Watches without a word."""

    def show(self, event: Event) -> None:
        """Nothing."""
