"""The loop, as a graph. The only module that knows LangGraph.

::

    START ──► decide ──► choose ──► draft ──► judge ──► record ──┐
                │  ▲        │                                     │
                ▼  └────────┼─────────────────────────────────────┘
               END ◄────────┘ nothing left to do

No checkpointer: the journal is the run's only memory.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph

from agent.move import ModelMove, SeedMove, Stop, parents, record
from agent.progress import AttemptDone, BestChanged, Working
from agent.session import Drafted, Session
from agent.state import RunState
from dataset.attempt import Attempt, Outcome
from sandbox.candidate import Candidate

INTERRUPTED = "interrupted"
_STEPS_PER_ATTEMPT = 5


class Turn(TypedDict, total=False):
    """What passes between the nodes: the run's state, and the attempt in hand."""

    state: RunState
    stop: str
    move: SeedMove | ModelMove
    drafted: Drafted
    outcome: Outcome
    started: datetime
    started_s: float
    waited_s: float


class Loop:
    """The nodes over one session. `state` is the history so far, also after a node has raised."""

    def __init__(self, session: Session, state: RunState) -> None:
        self.session, self.state = session, state

    def run(self) -> str:
        """Make attempts until something stops the run; why, in words. `ModelError`, `RunnerError`, `RecordError`."""
        limit = _STEPS_PER_ATTEMPT * (self.session.limits.attempts + 2)
        ended = _graph(self).invoke({"state": self.state}, {"recursion_limit": limit})
        return str(ended["stop"])

    def decide(self, turn: Turn) -> Turn:
        """Whether there is to be another attempt. A reply that is paid for is always used first."""
        state = turn["state"]
        if self.session.interrupt.requested:
            return {"stop": INTERRUPTED}
        return {"stop": "" if state.next_seq in self.session.replies else self.session.limits.reached(state)}

    def choose(self, turn: Turn) -> Turn:
        """The policy's next move."""
        started, started_s = datetime.now(UTC), time.perf_counter()
        move = self.session.policy.next_move(turn["state"])
        if isinstance(move, Stop):
            return {"stop": move.reason}
        return {"move": move, "started": started, "started_s": started_s}

    def draft(self, turn: Turn) -> Turn:
        """A candidate for the move, or the reason why the reply holds none."""
        move, state = turn["move"], turn["state"]
        if isinstance(move, SeedMove):
            return {"drafted": self.session.tune(move, state)}
        self.session.progress.show(Working(state.next_seq, move, "drafting"))
        return {"drafted": self.session.draft(move, state)}

    def judge(self, turn: Turn) -> Turn:
        """The verdict, where there is a candidate."""
        made, before_s = turn["drafted"].result, time.perf_counter()
        if not isinstance(made, Candidate):
            return {"outcome": made, "waited_s": 0.0}
        outcome = self.session.judge(made, turn["move"], turn["state"].next_seq)
        return {"outcome": outcome, "waited_s": time.perf_counter() - before_s}

    def record(self, turn: Turn) -> Turn:
        """The attempt, durable before the next decision."""
        attempt = self._attempt(turn)
        self.session.journal.append(attempt)
        before, self.state = turn["state"], turn["state"].after(attempt)
        self.session.progress.show(AttemptDone(attempt, self.state))
        if self.state.best is attempt:
            self.session.progress.show(BestChanged(attempt, before.best))
        return {"state": self.state}

    def _attempt(self, turn: Turn) -> Attempt:
        session, drafted, made, move = self.session, turn["drafted"], turn["drafted"].result, turn["move"]
        seq, waited_s = turn["state"].next_seq, turn["waited_s"] + drafted.waited_s
        candidate = made if isinstance(made, Candidate) else None
        return Attempt(
            attempt_id=f"{session.run_id}.{seq}", run_id=session.run_id, seq=seq, problem=session.problem.name,
            parents=parents(move), move=record(move), hypothesis=drafted.hypothesis, model_call=drafted.model_call,
            candidate_sha256=candidate.sha256 if candidate else None,
            language=candidate.language if candidate else None,
            outcome=turn["outcome"], licence=session.licence, derived_from=drafted.derived_from, taint=drafted.taint,
            started=_iso(turn["started"]), ended=_iso(datetime.now(UTC)),
            overhead_s=max(0.0, time.perf_counter() - turn["started_s"] - waited_s),
        )  # fmt: skip


def _graph(loop: Loop) -> Any:
    graph = StateGraph(Turn)
    graph.add_node("decide", loop.decide)
    graph.add_node("choose", loop.choose)
    graph.add_node("draft", loop.draft)
    graph.add_node("judge", loop.judge)
    graph.add_node("record", loop.record)
    graph.add_edge(START, "decide")
    graph.add_conditional_edges("decide", _unless_stopped("choose"), ["choose", END])
    graph.add_conditional_edges("choose", _unless_stopped("draft"), ["draft", END])
    graph.add_edge("draft", "judge")
    graph.add_edge("judge", "record")
    graph.add_edge("record", "decide")
    return graph.compile()


def _unless_stopped(following: str) -> Callable[[Turn], str]:
    return lambda turn: END if turn.get("stop") else following


def _iso(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds")
