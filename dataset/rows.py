"""Records of the journal as rows of the export's tables: pure, one function a table."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, assert_never
from urllib.parse import urlsplit

from dataset.attempt import Attempt, Judged, ModelCall, Record, RecordError, RunEnded, RunStarted, Unusable
from problems.spec import Case
from sandbox.verdict import (
    BuildFailed,
    CaseCheck,
    Cheated,
    Crashed,
    Estimated,
    Judgement,
    Measured,
    Passed,
    Rejected,
    TimedOut,
    Timing,
    Untimed,
    Verdict,
    WrongAnswer,
)

Row = dict[str, Any]
_NOT_COLUMNS = {"kernel", "target", "mfma", "memory", "language", "threads", "bank_conflict", "loops", "advice"}


def attempt_row(attempt: Attempt, run: RunStarted, code: str | None) -> Row:
    """The row of table ``attempts``; `code` is the candidate's text, None where the reply held none."""
    return {
        "attempt_id": attempt.attempt_id,
        "run_id": attempt.run_id,
        "seq": attempt.seq,
        "schema_version": attempt.schema_version,
        "problem": attempt.problem,
        "strategy": run.strategy,
        "parents": list(attempt.parents),
        "move": attempt.move.kind,
        "knobs_json": _json(attempt.move.knobs),
        "seed_kernel": attempt.move.seed_kernel,
        "hypothesis": attempt.hypothesis,
        "code": code,
        "code_sha256": attempt.candidate_sha256,
        "language": attempt.language,
        "overhead_s": attempt.overhead_s,
        "licence": attempt.licence,
        "derived_from": [source.model_dump() for source in attempt.derived_from],
        "taint": list(attempt.taint),
        "started": moment(attempt.started, attempt.attempt_id),
        "ended": moment(attempt.ended, attempt.attempt_id),
        "kernelwright_commit": run.commit,
        "redacted": [],
        **(_model_columns(attempt.model_call) if attempt.model_call else {}),
        **_outcome_columns(attempt),
    }


def case_rows(attempt: Attempt) -> list[Row]:
    """Rows of table ``cases``: every case that was checked, with the error figures."""
    verdict = _verdict(attempt)
    checks = verdict.cases if isinstance(verdict, Passed | WrongAnswer) else ()
    return [{"attempt_id": attempt.attempt_id, "idx": idx, **_check_columns(check)} for idx, check in enumerate(checks)]


def timing_rows(attempt: Attempt) -> list[Row]:
    """Rows of table ``timings``: one per benchmark case, with every raw sample, in microseconds."""
    verdict = _verdict(attempt)
    timings = verdict.timings if isinstance(verdict, Passed) else ()
    return [{"attempt_id": attempt.attempt_id, "idx": idx, **_timing_columns(one)} for idx, one in enumerate(timings)]


def kernel_rows(attempt: Attempt) -> list[Row]:
    """Rows of table ``kernels``: what the compiler made of each kernel for each target."""
    records = attempt.outcome.judgement.kernels if isinstance(attempt.outcome, Judged) else ()
    rows = []
    for idx, record in enumerate(records):
        isa = record.isa.model_dump(exclude=_NOT_COLUMNS) if record.isa else {}
        counts = {"mfma_json": _json(record.isa.mfma), "memory_json": _json(record.isa.memory)} if record.isa else {}
        rows.append(
            {"attempt_id": attempt.attempt_id, "idx": idx, "kernel": record.name, "target": record.target}
            | {"launches": record.launches, "error": record.error}
            | isa
            | counts
        )
    return rows


def run_row(run: RunStarted, last: Record, attempts: int, runner_faults: int) -> Row:
    """The row of table ``runs``; `last` is the journal's last record: a run that went on after an end has no end."""
    ended = last if isinstance(last, RunEnded) else None
    # Where a model was served is nobody's business; which public provider served it is.
    served = {"base_url": provider(str(run.settings["base_url"]))} if run.settings.get("base_url") else {}
    return {
        "run_id": run.run_id,
        "problem": run.problem,
        "problem_sha256": run.problem_sha256,
        "strategy": run.strategy,
        "settings_json": _json({**run.settings, **served}),
        "seed": run.seed,
        "kernelwright_commit": run.commit,
        "started": moment(run.started, run.run_id),
        "attempts": attempts,
        "runner_faults": runner_faults,
        "ended": moment(ended.ended, run.run_id) if ended else None,
        "end_reason": ended.reason if ended else None,
        "best_attempt_id": ended.best_attempt_id if ended else None,
        "redacted": [],
    }


def moment(text: str, where: str) -> datetime:
    """An ISO 8601 time as a UTC datetime; one without a zone is UTC. `RecordError` where it is not a time."""
    try:
        when = datetime.fromisoformat(text)
    except ValueError as error:
        raise RecordError(f"{where}: {text!r} is not an ISO 8601 time") from error
    return when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)


def provider(base_url: str) -> str:
    """The public host of a model endpoint, or ``self-hosted`` for one that has no public name."""
    host = urlsplit(base_url).hostname or ""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        private = "." not in host or host.endswith((".local", ".internal", ".lan", ".localhost"))
        return "self-hosted" if private else host
    return "self-hosted"


def _model_columns(call: ModelCall) -> Row:
    return {
        "prompt_sha256": call.prompt_sha256,
        "reply_sha256": call.reply_sha256,
        "model": call.model,
        "provider": provider(call.base_url),
        "input_tokens": call.input_tokens,
        "output_tokens": call.output_tokens,
        "cost_usd": call.cost_usd,
        "model_latency_s": call.latency_s,
    }


def _outcome_columns(attempt: Attempt) -> Row:
    match attempt.outcome:
        case Judged(judgement=judgement, score_us=score_us):
            return {**_judgement_columns(judgement), **_verdict_columns(judgement.verdict), "score_us": score_us}
        case Unusable(reason=reason):
            nothing: Row = {"seeds": [], "flags": [], "findings": []}
            return {**nothing, "verdict": "unusable", "accepted": False, "time_kind": "none", "reason": reason}
        case other:
            assert_never(other)


def _judgement_columns(judgement: Judgement) -> Row:
    machine = judgement.machine
    return {
        "accepted": judgement.accepted,
        "board_accepts": judgement.board_accepts,
        "time_kind": judgement.time_kind,
        "geomean_us": judgement.geomean_us,
        "seeds": list(judgement.seeds),
        "flags": list(judgement.flags),
        "sandbox": judgement.sandbox,
        "judge_wall_s": judgement.wall_s,
        "machine_kind": machine.kind,
        **machine.model_dump(exclude={"kind", "harness"}),
        "harness_sha256": machine.harness,
    }


def _verdict_columns(verdict: Verdict) -> Row:
    row: Row = {"verdict": verdict.kind, "findings": []}
    match verdict:
        case Passed():
            return row
        case Rejected(reason=reason, findings=findings):
            return row | {"reason": reason, "findings": [finding.model_dump() for finding in findings]}
        case BuildFailed(reason=reason, log=log):
            return row | {"reason": reason, "log": log}
        case Crashed(reason=reason, case=case, log=log):
            return row | {"reason": reason, "log": log, "failed_case": case.label() if case else None}
        case TimedOut(reason=reason, deadline_s=deadline_s, case=case):
            failed = case.label() if case else None
            return row | {"reason": reason, "deadline_s": deadline_s, "failed_case": failed}
        case WrongAnswer(reason=reason, cases=cases):
            failed = next((check.case.label() for check in cases if not check.passed), None)
            return row | {"reason": reason, "failed_case": failed}
        case Cheated(reason=reason, evidence=evidence):
            return row | {"reason": reason, "evidence": evidence}
        case other:
            assert_never(other)


def _check_columns(check: CaseCheck) -> Row:
    return {
        **_case_columns(check.case),
        "role": check.role,
        "published_seed": check.case.seed,
        "seed": check.seed,
        "passed": check.passed,
        "board_accepts": check.board_accepts,
        "max_abs_error": check.error.max_abs,
        "max_rel_error": check.error.max_rel,
        "worst_ratio": check.error.worst_ratio,
        "mismatches": check.error.mismatches,
        "elements": check.error.elements,
    }


def _timing_columns(timing: Timing) -> Row:
    row: Row = {**_case_columns(timing.case), "time_kind": timing.kind}
    row |= {"samples_us": [], "wall_us": [], "empty_us": [], "burst_us": []}
    match timing:
        case Measured(samples_us=samples, wall_us=wall):
            row |= {"samples_us": list(samples), "wall_us": list(wall), "empty_us": list(timing.empty_us)}
            row |= {"time_us": timing.us, "agreement": timing.agreement, "bound_us": timing.bound_us}
            row |= {"burst_us": list(timing.burst_us), "burst_calls": timing.burst_calls, "pair_us": timing.pair_us}
            return row | {"chip": timing.chip, "clock": timing.clock, "warmup_calls": timing.warmup_calls}
        case Estimated(chip=chip, us=us, bound=bound, parts_us=parts):
            return row | {"chip": chip, "time_us": us, "bound": bound, "parts_us_json": _json(parts)}
        case Untimed(reason=reason):
            return row | {"reason": reason}
        case other:
            assert_never(other)


def _case_columns(case: Case) -> Row:
    return {"spec": case.spec(), "params_json": _json(case.params), "fill": case.fill}


def _verdict(attempt: Attempt) -> Verdict | None:
    return attempt.outcome.judgement.verdict if isinstance(attempt.outcome, Judged) else None


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, sort_keys=False, ensure_ascii=False)
