from __future__ import annotations

from dataset.attempt import Attempt, Judged
from dataset.projection import project
from sandbox.verdict import Measured, Passed
from tests.dataset.samples import CPU, OUTCOMES, attempt


def replayed(record: Attempt) -> Attempt:
    """The same attempt as another run, on another machine, on another day, would record it."""
    outcome = record.outcome
    if isinstance(outcome, Judged):
        verdict = outcome.judgement.verdict
        if isinstance(verdict, Passed):
            slower = [
                one.model_copy(update={"samples_us": (99.0,)}) if isinstance(one, Measured) else one
                for one in verdict.timings
            ]
            reseeded = [check.model_copy(update={"seed": check.seed + 1}) for check in verdict.cases]
            verdict = verdict.model_copy(update={"timings": tuple(slower), "cases": tuple(reseeded)})
        changed = {"verdict": verdict, "machine": CPU, "seeds": (1,), "wall_s": 9.0, "sandbox": "process"}
        outcome = Judged(judgement=outcome.judgement.model_copy(update=changed), score_us=99.0)
    parents = tuple(f"other.{record.seq - 1}" for _ in record.parents)
    return record.model_copy(
        update={"attempt_id": f"other.{record.seq}", "run_id": "other", "parents": parents, "outcome": outcome}
        | {"started": "2027-01-01T00:00:00Z", "ended": "2027-01-01T00:00:01Z", "overhead_s": 1.0}
    )


def test_a_replay_projects_alike() -> None:
    records = [attempt("r", seq, outcome) for seq, outcome in enumerate(OUTCOMES)]
    assert list(project(records)) == list(project(map(replayed, records)))


def test_another_decision_shows() -> None:
    record = attempt("r", 3, OUTCOMES[0])
    (line,) = project([record])
    others = (
        {"move": record.move.model_copy(update={"knobs": {"BLOCK_M": 128}})},
        {"candidate_sha256": "00" * 32},
        {"parents": ("r.1",)},
        {"outcome": OUTCOMES[9]},
    )
    for other in others:
        assert list(project([record.model_copy(update=other)])) != [line]
