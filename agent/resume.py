"""A journal folded back into the state of its run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import assert_never

from agent.state import RunState, judgement
from dataset.attempt import Attempt, Intent, Record, RecordError, Remeasured, Replied, RunEnded, RunnerFault, RunStarted
from sandbox.verdict import Machine


@dataclass(frozen=True, slots=True)
class Folded:
    """A run as its journal tells it."""

    started: RunStarted
    state: RunState
    replies: dict[int, Replied]
    """Replies that no attempt has used yet, by attempt number: they are used, never bought again."""
    machine: Machine | None
    """Where the latest candidate was judged."""
    ended: RunEnded | None


def fold(records: Iterable[Record]) -> Folded:
    """Fold a run's records, oldest first; `RecordError` where they do not begin with the run's start.

    A model call without a reply may have been charged and is counted; a judge's without an attempt is made again.
    """
    state, replies, machine = RunState(), dict[int, Replied](), None
    started: RunStarted | None = None
    ended: RunEnded | None = None
    asked = answered = 0
    for record in records:
        match record:
            case RunStarted():
                started = record
            case Intent(call=call):
                asked += call == "model"
            case Replied():
                answered += 1
                replies[record.seq] = record
            case Attempt():
                state = state.after(record)
                replies.pop(record.seq, None)
                said = judgement(record)
                machine = said.machine if said else machine
            case RunEnded():
                ended = record
            case RunnerFault() | Remeasured():
                pass
            case _:
                assert_never(record)
    if started is None:
        raise RecordError("the journal holds no run: it was stopped before it began; start a new one")
    spent = replace(state.spent, possibly_paid=asked - answered)
    return Folded(started, replace(state, spent=spent), replies, machine, ended)
