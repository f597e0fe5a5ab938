"""The state of a run: its history folded into what the next decision needs, and nothing that grows by copying."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime

from agent.move import Assignment
from agent.seen import Seen
from agent.trials import Trial, Trials
from dataset.attempt import Attempt, Judged
from sandbox.verdict import Judgement

RECENT, ELITE = 8, 4


def judgement(attempt: Attempt) -> Judgement | None:
    """What the judge said of an attempt; None where its reply held no candidate."""
    return attempt.outcome.judgement if isinstance(attempt.outcome, Judged) else None


def accepted(attempt: Attempt) -> bool:
    """Whether our rule accepts the attempt's candidate."""
    said = judgement(attempt)
    return said is not None and said.accepted


def score_us(attempt: Attempt) -> float | None:
    """What the board would rank the attempt by, in microseconds; None where it was not accepted or has no time."""
    return attempt.outcome.score_us if isinstance(attempt.outcome, Judged) else None


def time_kind(attempt: Attempt) -> str:
    """``measured``, ``estimated`` or ``none``."""
    said = judgement(attempt)
    return said.time_kind if said else "none"


def setting(seed_kernel: str, knobs: Assignment) -> tuple[str, tuple[tuple[str, object], ...]]:
    """The key under which a setting of a seed kernel is remembered."""
    return seed_kernel, tuple(sorted(knobs.items()))


_KINDS = {"measured": 0, "estimated": 1, "none": 2}


def rank(attempt: Attempt) -> tuple[bool, int, float, int]:
    """Sort key of accepted attempts, best first.

    A candidate that the board's own check refuses comes after every other, since it cannot be submitted. A measured
    one comes before an estimated one, so that times of two kinds are never held against each other.
    """
    said = judgement(attempt)
    refused = said is not None and said.board_accepts is False
    return refused, _KINDS[time_kind(attempt)], score_us(attempt) or 0.0, attempt.seq


@dataclass(frozen=True, slots=True)
class Spent:
    """What a run has used. `possibly_paid` counts model calls whose reply was never recorded: a kill, a lost line."""

    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    unpriced_calls: int = 0
    possibly_paid: int = 0
    busy_s: float = 0.0
    """From the start to the end of each attempt; pauses between a kill and a resume do not count."""

    @property
    def tokens(self) -> int:
        """Input and output tokens together."""
        return self.input_tokens + self.output_tokens

    def after(self, attempt: Attempt) -> Spent:
        """This and one more attempt."""
        busy_s = self.busy_s + _seconds(attempt)
        call = attempt.model_call
        if call is None:
            return replace(self, busy_s=busy_s)
        return Spent(
            self.model_calls + 1,
            self.input_tokens + call.input_tokens,
            self.output_tokens + call.output_tokens,
            self.cost_usd + (call.cost_usd or 0.0),
            self.unpriced_calls + (call.cost_usd is None),
            self.possibly_paid,
            busy_s,
        )


def _seconds(attempt: Attempt) -> float:
    taken = datetime.fromisoformat(attempt.ended) - datetime.fromisoformat(attempt.started)
    return max(0.0, taken.total_seconds())


@dataclass(frozen=True, slots=True)
class RunState:
    """The history of a run, folded. `after` costs the same at attempt 100,000 as at attempt 1."""

    attempts: int = 0
    accepted: int = 0
    spent: Spent = Spent()
    elite: tuple[Attempt, ...] = ()
    """The best accepted attempts, best first, at most `ELITE`."""
    recent: tuple[Attempt, ...] = ()
    """The latest attempts, oldest first, at most `RECENT`."""
    since_best: int = 0
    """Attempts since the best changed."""
    failures: int = 0
    """Attempts without an accepted candidate at the end of the history."""
    seeds: dict[str, str] = field(default_factory=dict)
    """Seed kernels judged with their defaults, and the attempt that did it."""
    trials: dict[str, Trials] = field(default_factory=dict)
    settings: Seen = field(default_factory=Seen)
    sources: Seen = field(default_factory=Seen)
    """Candidates judged, by content hash."""

    @property
    def next_seq(self) -> int:
        """Number of the next attempt; the first is 1."""
        return self.attempts + 1

    @property
    def best(self) -> Attempt | None:
        """The best accepted attempt."""
        return self.elite[0] if self.elite else None

    @property
    def last(self) -> Attempt | None:
        """The latest attempt."""
        return self.recent[-1] if self.recent else None

    def find(self, attempt_id: str) -> Attempt:
        """An attempt that the state still holds whole: one of `elite` or `recent`. `KeyError` for another."""
        for attempt in (*self.elite, *self.recent):
            if attempt.attempt_id == attempt_id:
                return attempt
        raise KeyError(attempt_id)

    def after(self, attempt: Attempt) -> RunState:
        """The state once `attempt` is in the history."""
        ok = accepted(attempt)
        elite = tuple(sorted((*self.elite, attempt), key=rank)[:ELITE]) if ok else self.elite
        sha = attempt.candidate_sha256
        same_best = not ok or elite[0] is not attempt
        tuned = self._with_setting(attempt) if attempt.move.seed_kernel else self
        return replace(
            tuned,
            attempts=attempt.seq,
            accepted=self.accepted + ok,
            spent=self.spent.after(attempt),
            elite=elite,
            recent=(*self.recent, attempt)[-RECENT:],
            since_best=self.since_best + 1 if same_best else 0,
            failures=0 if ok else self.failures + 1,
            sources=self.sources.adding(sha, attempt.seq) if sha else self.sources,
        )

    def _with_setting(self, attempt: Attempt) -> RunState:
        name, knobs = attempt.move.seed_kernel or "", attempt.move.knobs
        trial = Trial(attempt.seq, knobs, score_us(attempt), time_kind(attempt))
        seeds = {**self.seeds, name: attempt.attempt_id} if attempt.move.kind == "seed" else self.seeds
        return replace(
            self,
            seeds=seeds,
            trials={**self.trials, name: self.trials.get(name, Trials()).adding(trial)},
            settings=self.settings.adding(setting(name, knobs), attempt.seq),
        )
