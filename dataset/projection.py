"""What of a run must come out the same when it is replayed: its attempts without times, seeds and machine.

Two runs with the same seed and the same recorded verdicts have equal projections, whatever they ran on and when.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from dataset.attempt import Attempt, Record, RunEnded
from problems.spec import Case
from sandbox.verdict import Passed, WrongAnswer

_OMIT: dict[str, Any] = {
    "attempt_id": True,
    "run_id": True,
    "parents": True,
    "started": True,
    "ended": True,
    "overhead_s": True,
    "model_call": {"latency_s", "base_url"},
    "outcome": True,
}


def project(records: Iterable[Record]) -> Iterator[str]:
    """One line of JSON for each attempt, keys in order, and one for the run's end."""
    for record in records:
        if isinstance(record, Attempt):
            yield _line(_attempt(record))
        elif isinstance(record, RunEnded):
            best = _seq(record.best_attempt_id) if record.best_attempt_id else None
            yield _line({"kind": "run_ended", "reason": record.reason, "best": best})


def _attempt(attempt: Attempt) -> dict[str, Any]:
    # A run's id holds its date: parents and the attempt itself go by their number in the run.
    parents = [_seq(parent) for parent in attempt.parents]
    return {**attempt.model_dump(mode="json", exclude=_OMIT), "parents": parents, "outcome": _outcome(attempt)}


def _outcome(attempt: Attempt) -> dict[str, Any]:
    outcome = attempt.outcome
    if outcome.kind == "unusable":
        return {"kind": outcome.kind, "reason": outcome.reason}
    judgement = outcome.judgement
    verdict = judgement.verdict
    projected: dict[str, Any] = {
        "kind": verdict.kind,
        "accepted": judgement.accepted,
        "board_accepts": judgement.board_accepts,
        "time_kind": judgement.time_kind,
        "flags": list(judgement.flags),
        "kernels": [f"{kernel.name} {kernel.target}" for kernel in judgement.kernels],
    }
    if not isinstance(verdict, Passed):
        projected["reason"] = verdict.reason
    if isinstance(verdict, Passed | WrongAnswer):
        projected["cases"] = [[check.role, _label(check.case, check.role), check.passed] for check in verdict.cases]
    return projected


def _label(case: Case, role: str) -> str:
    """The case; a hidden one is drawn afresh by every judgement."""
    return "drawn" if role == "hidden" else case.label()


def _seq(attempt_id: str) -> int:
    return int(attempt_id.rpartition(".")[2])


def _line(value: dict[str, Any]) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
