"""What ends a run: its budgets and its target."""

from __future__ import annotations

from dataclasses import dataclass

from agent.state import RunState, judgement, score_us, time_kind
from dataset.attempt import Attempt


@dataclass(frozen=True, slots=True)
class Limits:
    """Budgets of a run over all its sessions; None where there is no limit."""

    attempts: int
    wall_s: float | None = None
    tokens: int | None = None
    usd: float | None = None
    target_us: float | None = None

    def reached(self, state: RunState) -> str:
        """Which limit is reached, in words; an empty text for none."""
        spent, hit = state.spent, self._target(state.best)
        if hit:
            return hit
        if state.attempts >= self.attempts:
            return f"budget of {self.attempts} attempts spent"
        if self.wall_s is not None and spent.busy_s >= self.wall_s:
            return f"budget of {self.wall_s:g} s spent"
        if self.tokens is not None and spent.tokens >= self.tokens:
            return f"budget of {self.tokens} tokens spent"
        if self.usd is not None and spent.cost_usd >= self.usd:
            return f"budget of {self.usd:g} US dollars spent"
        return ""

    def _target(self, best: Attempt | None) -> str:
        """In words where the target is reached by a candidate that the board would not refuse."""
        best_us, said = (score_us(best), judgement(best)) if best else (None, None)
        if self.target_us is None or best is None or said is None or best_us is None or best_us > self.target_us:
            return ""
        return "" if said.board_accepts is False else f"target reached: {best_us:.4g} us {time_kind(best)}"
