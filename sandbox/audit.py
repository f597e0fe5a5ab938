"""What an audit of a problem says: how its rule could be met without doing the work."""

from __future__ import annotations

from typing import Literal

from problems.spec import Case, Frozen

Kind = Literal["zeros", "constant", "other answer", "ignored input", "flat", "same for all seeds", "not repeatable"]
Whose = Literal["ours", "board", "problem"]


class Weakness(Frozen):
    """One way in which a problem says too little about a candidate."""

    kind: Kind
    rule: Whose
    """Whose rule lets it through: ours, the board's own; or the problem itself, whatever the rule."""
    message: str


class Audited(Frozen):
    """One problem, screened on one case."""

    name: str
    case: Case | None = None
    reason: str = ""
    """Why it could not be screened here; empty where it was."""
    notes: tuple[str, ...] = ()
    """What a reader must know: reduced sizes, inputs taken for output buffers."""
    weaknesses: tuple[Weakness, ...] = ()

    @property
    def sound(self) -> bool:
        """Screened, and nothing found."""
        return not self.reason and not self.weaknesses
