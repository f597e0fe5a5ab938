"""Golden files of the journal: the schema of its records, the columns of an export, a projected run."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import TypeAdapter

from dataset.attempt import SCHEMA_VERSION, Record, RunEnded
from dataset.projection import project
from dataset.schema import TABLES
from tests.dataset.samples import OUTCOMES, attempt, started

_FOLDER = Path(__file__).parent / "golden"


def record_schema() -> str:
    """JSON schema of a journal's record. An old journal must stay readable: see `dataset.attempt.SCHEMA_VERSION`."""
    schema = {"schema_version": SCHEMA_VERSION, **TypeAdapter(Record).json_schema(mode="serialization")}
    return json.dumps(schema, indent=1, sort_keys=True) + "\n"


def export_columns() -> str:
    """Every column of every table, in order."""
    lines = []
    for table, schema in TABLES.items():
        lines += [f"{table}.{field.name}: {field.type}{'' if field.nullable else ' not null'}" for field in schema]
    return "\n".join(lines) + "\n"


def projected_run() -> str:
    """One attempt of every outcome, projected."""
    run = "20261121-142301-amd-fp8-mm-3f2a"
    end = RunEnded(reason="budget", best_attempt_id=f"{run}.0", ended="2026-11-21T15:00:00Z")
    records = [started(run), *(attempt(run, seq, outcome) for seq, outcome in enumerate(OUTCOMES)), end]
    return "".join(f"{line}\n" for line in project(records))


GOLDENS = [
    (_FOLDER / "record_schema.json", record_schema),
    (_FOLDER / "export_columns.txt", export_columns),
    (_FOLDER / "projection.jsonl", projected_run),
]
