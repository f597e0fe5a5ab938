"""A run read back from its journal, as the reports need it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from agent.state import accepted, judgement, rank
from dataset.attempt import Attempt, RecordError, Remeasured, RunEnded, RunnerFault, RunStarted
from dataset.blobs import Blobs
from dataset.journal import read
from evals.lineage import verdict_of
from sandbox.verdict import Judgement


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """One run. `ended` is None where it is still going or was interrupted."""

    folder: Path
    started: RunStarted
    attempts: tuple[Attempt, ...]
    faults: tuple[RunnerFault, ...]
    ended: RunEnded | None
    remeasured: Remeasured | None = None
    """The best of them measured again; None for an estimated run, and for one that has not ended."""

    @property
    def best(self) -> Attempt | None:
        """The attempt that the run would submit; None where nothing was accepted."""
        if self.remeasured is not None and self.remeasured.winner_attempt_id is not None:
            winner = self.remeasured.winner_attempt_id
            return next(attempt for attempt in self.attempts if attempt.attempt_id == winner)
        return min((attempt for attempt in self.attempts if accepted(attempt)), key=rank, default=None)

    @property
    def seed(self) -> Attempt | None:
        """The seed kernel that the best descends from, or the first one judged; None in a run without seeds."""
        seeds = {attempt.attempt_id: attempt for attempt in self.attempts if attempt.move.kind == "seed"}
        best = self.best
        parents = best.parents if best else ()
        return next((seeds[name] for name in parents if name in seeds), next(iter(seeds.values()), None))

    @property
    def verdicts(self) -> dict[str, int]:
        """How many attempts ended in each verdict, most frequent first."""
        return dict(Counter(verdict_of(attempt) for attempt in self.attempts).most_common())

    def judgement(self, attempt: Attempt | None) -> Judgement | None:
        """What the judge said of an attempt."""
        return judgement(attempt) if attempt else None

    def source(self, attempt: Attempt | None) -> str:
        """The candidate's text; empty where the attempt has none. `RecordError` where its blob is lost."""
        if attempt is None or attempt.candidate_sha256 is None:
            return ""
        return Blobs(self.folder).text(attempt.candidate_sha256)


def load(folder: Path) -> RecordedRun:
    """The run in `folder`; `RecordError` where its journal is missing, damaged or empty."""
    started: RunStarted | None = None
    ended: RunEnded | None = None
    remeasured: Remeasured | None = None
    attempts: list[Attempt] = []
    faults: list[RunnerFault] = []
    for record in read(folder):
        match record:
            case RunStarted():
                started = record
            case Attempt():
                attempts.append(record)
                ended = remeasured = None  # a resumed run goes on after the end that an earlier part of it recorded
            case RunnerFault():
                faults.append(record)
            case Remeasured():
                remeasured = record
            case RunEnded():
                ended = record
            case _:
                pass
    if started is None:
        raise RecordError(f"{folder} holds no run: its journal has no first record. Remove the folder, or run again")
    return RecordedRun(folder, started, tuple(attempts), tuple(faults), ended, remeasured)
