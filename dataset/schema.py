"""The tables of an export, as Arrow schemas. Fixed here, so that an empty export has the same columns and types.

Times are in microseconds (``_us``) or seconds (``_s``); ``*_json`` columns hold a JSON object; every time stands beside
the ``time_kind`` that says whether it was measured on a chip or estimated from compiled code. Child tables refer to
``attempts.attempt_id``, ``prompt_sha256`` and ``reply_sha256`` to ``blobs.sha256``, ``run_id`` to ``runs.run_id``.
"""

from __future__ import annotations

import pyarrow as pa

_TEXT, _TEXTS = pa.string(), pa.list_(pa.string())
_INT, _FLOAT, _BOOL = pa.int64(), pa.float64(), pa.bool_()
_WHEN = pa.timestamp("us", tz="UTC")


def _schema(required: dict[str, pa.DataType], optional: dict[str, pa.DataType]) -> pa.Schema:
    fields = [pa.field(name, dtype, nullable=False) for name, dtype in required.items()]
    return pa.schema(fields + [pa.field(name, dtype) for name, dtype in optional.items()])


_ATTEMPTS = _schema(
    {
        "attempt_id": _TEXT,
        "run_id": _TEXT,
        "seq": _INT,
        "schema_version": _INT,
        "problem": _TEXT,
        "strategy": _TEXT,
        "parents": _TEXTS,
        "move": _TEXT,
        "knobs_json": _TEXT,
        "hypothesis": _TEXT,
        "verdict": _TEXT,
        "accepted": _BOOL,
        "time_kind": _TEXT,
        "seeds": pa.list_(_INT),
        "flags": _TEXTS,
        "findings": pa.list_(
            pa.struct({"line": _INT, "rule": _TEXT, "message": _TEXT, "convicts": _BOOL}),
        ),
        "overhead_s": _FLOAT,
        "licence": _TEXT,
        "derived_from": pa.list_(pa.struct({"what": _TEXT, "url": _TEXT, "commit": _TEXT, "licence": _TEXT})),
        "taint": _TEXTS,
        "started": _WHEN,
        "ended": _WHEN,
        "kernelwright_commit": _TEXT,
        "redacted": _TEXTS,
    },
    {
        "seed_kernel": _TEXT,
        "code": _TEXT,
        "code_sha256": _TEXT,
        "language": _TEXT,
        "prompt_sha256": _TEXT,
        "reply_sha256": _TEXT,
        "model": _TEXT,
        "provider": _TEXT,
        "input_tokens": _INT,
        "output_tokens": _INT,
        "cost_usd": _FLOAT,
        "model_latency_s": _FLOAT,
        "reason": _TEXT,
        "log": _TEXT,
        "evidence": _TEXT,
        "failed_case": _TEXT,
        "deadline_s": _FLOAT,
        "board_accepts": _BOOL,
        "geomean_us": _FLOAT,
        "score_us": _FLOAT,
        "judge_wall_s": _FLOAT,
        "sandbox": _TEXT,
        "machine_kind": _TEXT,
        "chip": _TEXT,
        "arch": _TEXT,
        "driver": _TEXT,
        "runtime": _TEXT,
        "torch": _TEXT,
        "triton": _TEXT,
        "python": _TEXT,
        "harness_sha256": _TEXT,
    },
)

_CASES = _schema(
    {
        "attempt_id": _TEXT,
        "idx": _INT,
        "role": _TEXT,
        "spec": _TEXT,
        "params_json": _TEXT,
        "fill": _TEXT,
        "seed": _INT,
        "passed": _BOOL,
        "max_abs_error": _FLOAT,
        "max_rel_error": _FLOAT,
        "worst_ratio": _FLOAT,
        "mismatches": _INT,
        "elements": _INT,
    },
    {"published_seed": _INT, "board_accepts": _BOOL},
)

_TIMINGS = _schema(
    {
        "attempt_id": _TEXT,
        "idx": _INT,
        "spec": _TEXT,
        "params_json": _TEXT,
        "fill": _TEXT,
        "time_kind": _TEXT,
        "samples_us": pa.list_(_FLOAT),
        "wall_us": pa.list_(_FLOAT),
        "empty_us": pa.list_(_FLOAT),
        "burst_us": pa.list_(_FLOAT),
    },
    {
        "chip": _TEXT,
        "time_us": _FLOAT,
        "clock": _TEXT,
        "warmup_calls": _INT,
        "agreement": _TEXT,
        "bound_us": _FLOAT,
        "burst_calls": _INT,
        "pair_us": _FLOAT,
        "bound": _TEXT,
        "parts_us_json": _TEXT,
        "reason": _TEXT,
    },
)

_KERNELS = _schema(
    {"attempt_id": _TEXT, "idx": _INT, "kernel": _TEXT, "target": _TEXT, "launches": _INT},
    {
        "error": _TEXT,
        "vgpr": _INT,
        "agpr": _INT,
        "sgpr": _INT,
        "vgpr_spills": _INT,
        "sgpr_spills": _INT,
        "scratch_bytes": _INT,
        "lds_bytes": _INT,
        "waves_per_workgroup": _INT,
        "occupancy_waves": _INT,
        "occupancy_limit": _TEXT,
        "mfma_json": _TEXT,
        "memory_json": _TEXT,
        "waits": _INT,
        "barriers": _INT,
        "instructions": _INT,
        "code_bytes": _INT,
    },
)

_RUNS = _schema(
    {
        "run_id": _TEXT,
        "problem": _TEXT,
        "problem_sha256": _TEXT,
        "strategy": _TEXT,
        "settings_json": _TEXT,
        "seed": _INT,
        "kernelwright_commit": _TEXT,
        "started": _WHEN,
        "attempts": _INT,
        "runner_faults": _INT,
        "redacted": _TEXTS,
    },
    {"ended": _WHEN, "end_reason": _TEXT, "best_attempt_id": _TEXT},
)

_BLOBS = _schema(
    {"sha256": _TEXT, "use": _TEXT, "size_bytes": _INT, "text": _TEXT, "redacted": _TEXTS},
    {},
)

TABLES: dict[str, pa.Schema] = {
    "attempts": _ATTEMPTS,
    "cases": _CASES,
    "timings": _TIMINGS,
    "kernels": _KERNELS,
    "runs": _RUNS,
    "blobs": _BLOBS,
}
"""One configuration of the data set each; the first is the default."""
