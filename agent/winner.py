"""Naming a measured run's winner: its best candidates and its seed are measured again, on fresh seeds.

The best of many noisy times is too good on average, by the more the longer the run. What was found is therefore judged
once more as a submission would be, and held against the seed by interleaved pairs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from agent.session import Session
from agent.state import RunState, accepted, rank, time_kind
from dataset.attempt import Attempt, Contender, Record, Remeasured
from sandbox.candidate import Candidate
from sandbox.comparison import Comparer, Difference
from sandbox.runner import Mode
from sandbox.verdict import score_us

CONTENDERS = 3


def remeasure(session: Session, state: RunState) -> Remeasured | None:
    """Measure the best `CONTENDERS` and the seed again; None for a run without measured times. `RunnerError`."""
    best = [attempt for attempt in state.elite if time_kind(attempt) == "measured"][:CONTENDERS]
    if not best:
        return None
    seed = _seed(state, session.journal.records())
    field = best if seed is None or seed in best else [*best, seed]
    contenders = tuple(_again(session, attempt) for attempt in field)
    winner = _winner(contenders)
    chosen = next((attempt for attempt in field if winner and attempt.attempt_id == winner.attempt_id), None)
    return Remeasured(
        contenders=contenders,
        seed_attempt_id=seed.attempt_id if seed else None,
        winner_attempt_id=winner.attempt_id if winner else None,
        over_seed=_over(session, seed, chosen),
    )


def crowned(state: RunState, found: Remeasured, records: Iterable[Record]) -> RunState:
    """The state with the winner as its best; unchanged where no contender was accepted again."""
    for record in records:
        if isinstance(record, Attempt) and record.attempt_id == found.winner_attempt_id:
            others = tuple(attempt for attempt in state.elite if attempt.attempt_id != record.attempt_id)
            return replace(state, elite=(record, *others))
    return state


def _seed(state: RunState, records: Iterable[Record]) -> Attempt | None:
    """The fastest accepted seed kernel with its defaults."""
    names = set(state.seeds.values())
    seeds = (record for record in records if isinstance(record, Attempt) and record.attempt_id in names)
    return min((attempt for attempt in seeds if accepted(attempt)), key=rank, default=None)


def _again(session: Session, attempt: Attempt) -> Contender:
    candidate = _candidate(session, attempt)
    said = session.runner.judge(session.problem, candidate, Mode.LEADERBOARD, session.deadline_s)
    return Contender(attempt_id=attempt.attempt_id, judgement=said, score_us=score_us(session.problem, said))


def _winner(contenders: Iterable[Contender]) -> Contender | None:
    """The fastest of those that are accepted again, the ones that the board refuses last."""
    timed = [one for one in contenders if one.judgement.accepted and one.score_us is not None]
    return min(timed, key=lambda one: (one.judgement.board_accepts is False, one.score_us), default=None)


def _over(session: Session, seed: Attempt | None, winner: Attempt | None) -> Difference | None:
    runner = session.runner
    if seed is None or winner is None or winner.attempt_id == seed.attempt_id or not isinstance(runner, Comparer):
        return None
    first, second = _candidate(session, seed), _candidate(session, winner)
    return runner.compare(session.problem, first, second, deadline_s=session.deadline_s).overall


def _candidate(session: Session, attempt: Attempt) -> Candidate:
    return Candidate.model_validate(
        {"source": session.blobs.text(attempt.candidate_sha256 or ""), "language": attempt.language}
    )
