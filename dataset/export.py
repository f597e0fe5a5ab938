"""Runs as a data set: Parquet tables and a card in one folder, which `datasets.load_dataset(folder)` reads."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

from dataset import leaks, rows
from dataset.attempt import Attempt, Record, RecordError, RunnerFault, RunStarted
from dataset.blobs import Blobs
from dataset.card import Census, render
from dataset.disk import record_error
from dataset.journal import JOURNAL_NAME, read
from dataset.parquet import TableWriter
from dataset.runs import list_runs
from dataset.schema import TABLES

MANIFEST_NAME = "kernelwright-export.json"
"""Marks a folder as an export, and says what is in it."""
_SHOWN_LEAKS = 8


@dataclass(frozen=True, slots=True)
class ExportSummary:
    """What an export holds."""

    out_dir: Path
    rows: dict[str, int]
    """Rows of each table."""
    runs: int
    size_bytes: int
    duplicates: int
    """Attempts that were met again, word for word, and kept once."""
    redactions: int
    """Places that were masked."""
    licence: str
    """The Hub's name of the licence of all rows, or ``other``."""


def export(
    source: Path | Sequence[Path], out_dir: Path, *, redact: bool = False, overwrite: bool = False
) -> ExportSummary:
    """Write the attempts of `source`, a folder of runs or a list of run folders, to the new folder `out_dir`.

    The folder appears whole or not at all. Raises `RecordError`: a journal or blob cannot be read; two different
    attempts have one id; a text holds a secret or a home path (`redact` masks them instead); `out_dir` is not empty
    (`overwrite` replaces it, where it is an export).
    """
    out_dir = out_dir.resolve()
    folders = _run_folders(source)
    _check_free(out_dir, overwrite)
    try:
        out_dir.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{out_dir.name}-", dir=out_dir.parent) as scratch:
            new = Path(scratch) / "new"
            summary = _Export(new, redact).write(folders, out_dir)
            if out_dir.exists():
                out_dir.rename(Path(scratch) / "old")
            new.rename(out_dir)
    except OSError as error:
        raise record_error("export to", out_dir, error) from error
    return summary


def manifest(folder: Path) -> ExportSummary:
    """What the export in `folder` says it holds. `RecordError` where it is not one of ours."""
    try:
        content = json.loads((folder / MANIFEST_NAME).read_text())
        return ExportSummary(**{**content, "out_dir": folder})
    except (OSError, ValueError, TypeError) as error:
        raise RecordError(f"{folder} is not an export: make one with: kernelwright dataset export {folder}") from error


class _Export:
    """One export under way: the tables' writers, and what was seen so far."""

    def __init__(self, folder: Path, redact: bool) -> None:
        self._folder, self._redact = folder, redact
        self._census = Census()
        self._leaks: list[str] = []
        self._redactions = self._duplicates = 0
        self._attempts: dict[str, bytes] = {}
        self._blobs: set[str] = set()
        self._runs: dict[str, rows.Row] = {}
        self._tables: dict[str, TableWriter] = {}

    def write(self, folders: list[Path], out_dir: Path) -> ExportSummary:
        with ExitStack() as stack:
            self._tables = {
                name: stack.enter_context(TableWriter(self._folder / name, schema)) for name, schema in TABLES.items()
            }
            for folder in folders:
                self._write_run(folder)
            for run_id, row in self._runs.items():
                self._put("runs", run_id, row)
            self._refuse_leaks()
        counts = {name: table.rows for name, table in self._tables.items()}
        (self._folder / "README.md").write_text(render(self._census, counts, self._redactions))
        size_bytes = sum(path.stat().st_size for path in self._folder.rglob("*") if path.is_file())
        summary = ExportSummary(
            out_dir, counts, len(self._runs), size_bytes, self._duplicates, self._redactions, self._census.licence
        )
        content = {key: value for key, value in asdict(summary).items() if key != "out_dir"}
        (self._folder / MANIFEST_NAME).write_text(json.dumps(content, indent=2) + "\n")
        return summary

    def _write_run(self, folder: Path) -> None:
        run: RunStarted | None = None
        last: Record | None = None
        attempts = faults = 0
        for last in read(folder):
            if isinstance(last, RunStarted):
                run = last
            elif run is None:
                raise RecordError(f"{folder / JOURNAL_NAME} does not begin with the run's start")
            elif isinstance(last, Attempt):
                attempts += 1
                self._write_attempt(last, run, Blobs(folder))
            else:
                faults += isinstance(last, RunnerFault)
        if run is None or last is None:
            return
        # Of two copies of a run, the one that got further.
        known = self._runs.get(run.run_id)
        if known is None or known["attempts"] < attempts:
            self._runs[run.run_id] = rows.run_row(run, last, attempts, faults)

    def _write_attempt(self, attempt: Attempt, run: RunStarted, blobs: Blobs) -> None:
        if self._is_duplicate(attempt):
            return
        code = blobs.text(attempt.candidate_sha256) if attempt.candidate_sha256 else None
        row = rows.attempt_row(attempt, run, code)
        self._census.count(row)
        self._put("attempts", attempt.attempt_id, row)
        for name, make in (("cases", rows.case_rows), ("timings", rows.timing_rows), ("kernels", rows.kernel_rows)):
            for child in make(attempt):
                self._put(name, attempt.attempt_id, child)
        if attempt.model_call:
            self._write_blob(attempt.model_call.prompt_sha256, "prompt", blobs)
            self._write_blob(attempt.model_call.reply_sha256, "reply", blobs)

    def _is_duplicate(self, attempt: Attempt) -> bool:
        """Whether it was exported already, from a copy of its run; two that differ are an error."""
        digest = hashlib.sha256(attempt.model_dump_json().encode()).digest()
        known = self._attempts.setdefault(attempt.attempt_id, digest)
        if known != digest:
            raise RecordError(f"two different attempts have the id {attempt.attempt_id}: export one of their runs only")
        seen = attempt.attempt_id in self._census.ids
        self._duplicates += seen
        return seen

    def _write_blob(self, sha256: str, use: str, blobs: Blobs) -> None:
        if sha256 in self._blobs:
            return
        self._blobs.add(sha256)
        text = blobs.text(sha256)
        size_bytes = len(text.encode())
        self._put(
            "blobs", sha256, {"sha256": sha256, "use": use, "size_bytes": size_bytes, "text": text, "redacted": []}
        )

    def _put(self, table: str, key: str, row: rows.Row) -> None:
        found = list(leaks.find(row))
        if found and self._redact:
            row = leaks.mask(row)
            self._redactions += len(found)
        else:
            places = (f"{leak.kind} in {table}.{leak.column} of {key}, character {leak.position}" for leak in found)
            self._leaks.extend(places)
        self._tables[table].write(row)

    def _refuse_leaks(self) -> None:
        if not self._leaks:
            return
        shown = "; ".join(self._leaks[:_SHOWN_LEAKS])
        more = f"; and {len(self._leaks) - _SHOWN_LEAKS} more" if len(self._leaks) > _SHOWN_LEAKS else ""
        raise RecordError(f"nothing was exported: secrets or home paths found: {shown}{more}. Mask them with --redact")


def _run_folders(source: Path | Sequence[Path]) -> list[Path]:
    if not isinstance(source, Path):
        return list(source)
    if (source / JOURNAL_NAME).exists():
        return [source]
    if not source.is_dir():
        raise RecordError(f"no runs to export: {source} is not a folder. Start a run with: kernelwright run PROBLEM")
    return [run.folder for run in list_runs(source) if run.state != "empty"]


def _check_free(out_dir: Path, overwrite: bool) -> None:
    if out_dir.is_dir() and _is_empty(out_dir):
        return
    if not out_dir.exists():
        return
    if not (out_dir / MANIFEST_NAME).is_file():
        raise RecordError(f"{out_dir} exists and is not an export of Kernelwright: choose a new or an empty folder")
    if not overwrite:
        raise RecordError(f"{out_dir} holds an export already: choose another folder, or replace it with --overwrite")


def _is_empty(folder: Path) -> bool:
    return next(_inside(folder), None) is None


def _inside(folder: Path) -> Iterator[Path]:
    try:
        yield from folder.iterdir()
    except OSError as error:
        raise record_error("look into", folder, error) from error
