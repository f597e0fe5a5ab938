"""The strategy ``refine``: a model drafts, repairs and optimises; which of these is next is decided here."""

from __future__ import annotations

from agent.knobs import SeedKernel
from agent.move import Crossover, Draft, Move, Optimise, Port, Repair, Seed
from agent.state import RunState, accepted, judgement
from problems.spec import Problem

REPAIRS = 3
"""Times in a row that a failing line is mended before it is left."""
STALE = 6
"""Attempts without a new best after which something else than the best is tried once."""


class Refine:
    """Seeds first; then mend what failed, else improve the best; now and then join two, or start afresh."""

    def __init__(self, seeds: tuple[SeedKernel, ...], problem: Problem, chip: str) -> None:
        self._seeds, self._chip, self._written_for = seeds, chip, problem.chips

    def next_move(self, state: RunState) -> Move:
        """The next move; this strategy never runs out of them."""
        for seed in self._seeds:
            if seed.name not in state.seeds:
                return Seed(seed.name, seed.defaults)
        last, best = state.last, state.best
        if last is not None and not accepted(last) and state.failures % (REPAIRS + 1):
            return Repair(last.attempt_id, base=best.attempt_id if best and judgement(last) is None else None)
        if best is None:
            return Draft()
        if self._chip not in self._written_for and not state.spent.model_calls:
            return Port(best.attempt_id, self._written_for[0])
        if state.since_best % STALE == STALE - 1:
            return Crossover(best.attempt_id, state.elite[1].attempt_id) if len(state.elite) > 1 else Draft()
        return Optimise(best.attempt_id)
