"""A policy: from the state of a run to its next move, as a pure function of the two."""

from __future__ import annotations

from typing import Protocol

from agent.move import Move
from agent.state import RunState


class Policy(Protocol):
    """One strategy. Deciding twice on the same history gives the same move, in this process or another."""

    def next_move(self, state: RunState) -> Move:
        """The move that follows this history; `Stop` where there is none."""
