"""What the optimiser is told of one seed kernel's settings: bounded, whatever the length of the run."""

from __future__ import annotations

from dataclasses import dataclass, replace

from agent.move import Assignment

BEST, EPOCH = 64, 64


@dataclass(frozen=True, slots=True)
class Trial:
    """One judged setting. `score_us` is None where it was not accepted or has no time."""

    seq: int
    knobs: Assignment
    score_us: float | None
    time_kind: str


@dataclass(frozen=True, slots=True)
class Trials:
    """The best settings up to the end of the last epoch, and every setting since.

    The base changes once in `EPOCH` trials only, so that an optimiser can be fed the rest one by one; it is a function
    of the history alone, so that a resumed run sees what an uninterrupted one sees.
    """

    epoch: int = 0
    base: tuple[Trial, ...] = ()
    since: tuple[Trial, ...] = ()

    def adding(self, trial: Trial) -> Trials:
        """These and one more; closes the epoch when it is full."""
        since = (*self.since, trial)
        if len(since) < EPOCH:
            return replace(self, since=since)
        return Trials(self.epoch + 1, _best((*self.base, *since)), ())


def _best(trials: tuple[Trial, ...]) -> tuple[Trial, ...]:
    """The `BEST` lowest scores, and one in eight places for failures, which teach where not to look; oldest first."""
    scored = sorted((t for t in trials if t.score_us is not None), key=lambda t: (t.score_us or 0.0, t.seq))
    failed = [t for t in trials if t.score_us is None][-BEST // 8 :]
    return tuple(sorted((*scored[: BEST - len(failed)], *failed), key=lambda t: t.seq))
