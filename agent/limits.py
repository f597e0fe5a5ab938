"""What ends a run: its budgets and its target."""

from __future__ import annotations

from dataclasses import dataclass

from agent.state import RunState, score_us, time_kind


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
        spent, best = state.spent, state.best
        best_us = score_us(best) if best else None
        if self.target_us is not None and best_us is not None and best and best_us <= self.target_us:
            return f"target reached: {best_us:.4g} us {time_kind(best)}"
        if state.attempts >= self.attempts:
            return f"budget of {self.attempts} attempts spent"
        if self.wall_s is not None and spent.busy_s >= self.wall_s:
            return f"budget of {self.wall_s:g} s spent"
        if self.tokens is not None and spent.tokens >= self.tokens:
            return f"budget of {self.tokens} tokens spent"
        if self.usd is not None and spent.cost_usd >= self.usd:
            return f"budget of {self.usd:g} US dollars spent"
        return ""
