"""The folders of runs: one per run under a root, named ``20261121-142301-amd-fp8-mm-3f2a`` (UTC, problem, random)."""

from __future__ import annotations

import difflib
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from dataset.attempt import Record, RecordError, RunEnded, RunStarted
from dataset.disk import record_error, sync_folder
from dataset.frames import unpack
from dataset.journal import JOURNAL_NAME, parse, read
from dataset.lock import is_held

State = Literal["running", "ended", "interrupted", "empty", "damaged"]
_RUN_ID = re.compile(r"\d{8}-\d{6}-[a-z0-9-]+-[0-9a-f]{4}")
_ATTEMPT = b' {"kind":"attempt",'
"""How an attempt's JSON begins in its line. Quotes inside a text are escaped, so it occurs nowhere else."""
_TAIL_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Run:
    """What a listing says of one run, without parsing its journal."""

    run_id: str
    folder: Path
    state: State
    """``running``: a writer has it open now. ``empty``: made, but nothing was recorded."""
    attempts: int
    started: RunStarted | None
    ended: RunEnded | None
    note: str
    """Why it is ``damaged``; else empty."""


def create(root: Path, problem: str, now: datetime | None = None) -> Path:
    """Make the folder of a new run under `root` and return it; its name is the run's id.

    `RecordError` where the disk refuses. `now` is for a caller that has the time already; it must know its zone.
    """
    stamp = (now or datetime.now(UTC)).astimezone(UTC).strftime("%Y%m%d-%H%M%S")
    slug = re.sub(r"[^a-z0-9]+", "-", problem.lower()).strip("-") or "problem"
    folder = root / f"{stamp}-{slug}-{secrets.token_hex(2)}"
    try:
        root.mkdir(parents=True, exist_ok=True)
        folder.mkdir()
        sync_folder(root)
    except FileExistsError:
        return create(root, problem, now) if root.is_dir() else _not_a_folder(root)
    except OSError as error:
        raise record_error("make a run folder in", root, error) from error
    return folder


def list_runs(root: Path) -> list[Run]:
    """Every run under `root`, oldest first; none where there is no such folder.

    Cheap: of each journal only the first and the last record are parsed. A half-made or damaged run is listed too.
    """
    return [summarise(folder) for folder in _folders(root)]


def find(root: Path, run_id: str) -> Path:
    """The folder of a run, from its id or from a part of the id that only it has.

    `RecordError` where there is none, with near matches, or more than one.
    """
    names = [folder.name for folder in _folders(root)]
    exact = [name for name in names if name == run_id]
    matches = exact or [name for name in names if run_id and run_id in name]
    if len(matches) == 1:
        return root / matches[0]
    if matches:
        raise RecordError(
            f"{len(matches)} runs in {root} match {run_id!r}: {', '.join(matches[:8])}. Give more of the id"
        )
    if not names:
        raise RecordError(f"no run {run_id!r}: {root} holds no runs. Start one with: kernelwright run PROBLEM")
    near = difflib.get_close_matches(run_id, names, n=3, cutoff=0.5) or names[-3:]
    raise RecordError(f"no run {run_id!r} in {root}. Near: {', '.join(near)}. List them with: kernelwright runs list")


def summarise(folder: Path) -> Run:
    """One run's line of a listing; never raises for what is wrong inside the folder."""
    try:
        started, last, attempts = _ends(folder / JOURNAL_NAME)
    except (RecordError, OSError) as error:
        return Run(folder.name, folder, "damaged", 0, None, None, str(error))
    ended = last if isinstance(last, RunEnded) else None
    state: State = "ended" if ended else "interrupted" if last else "empty"
    state = "running" if is_held(folder) else state
    return Run(folder.name, folder, state, attempts, started, ended, "")


def _folders(root: Path) -> list[Path]:
    try:
        inside = sorted(root.iterdir()) if root.exists() else []
    except OSError as error:
        raise record_error("list the runs in", root, error) from error
    return [
        path for path in inside if path.is_dir() and (_RUN_ID.fullmatch(path.name) or (path / JOURNAL_NAME).exists())
    ]


def _ends(path: Path) -> tuple[RunStarted | None, Record | None, int]:
    """First record if it is a run's start, last whole record, and the number of attempts."""
    if not path.exists() or path.stat().st_size == 0:
        return None, None, 0
    first = next(read(path), None)
    attempts = sum(chunk.count(_ATTEMPT) for chunk in _chunks(path))
    return (first if isinstance(first, RunStarted) else None), _last(path), attempts


def _chunks(path: Path) -> Iterator[bytes]:
    """The file in large pieces that end where a line ends."""
    with path.open("rb") as file:
        while chunk := file.read(1 << 22):
            yield chunk + file.readline()


def _last(path: Path) -> Record | None:
    """The last whole record, read from the end; a torn tail is passed over."""
    size, tail_bytes = path.stat().st_size, _TAIL_BYTES
    while True:
        start = max(0, size - tail_bytes)
        with path.open("rb") as file:
            file.seek(start)
            lines = file.read(size - start).splitlines(keepends=True)
        whole = [line for line in (lines if start == 0 else lines[1:]) if line.endswith(b"\n")]
        if whole or start == 0:
            break
        tail_bytes *= 4
    if not whole:
        return None
    body = unpack(whole[-1])
    if body is None:
        raise RecordError(f"the last record of {path} is damaged: kernelwright runs show {path.parent.name} says where")
    return parse(body, path, size)


def _not_a_folder(root: Path) -> Path:
    raise RecordError(f"cannot make a run folder in {root}: it is a file, not a folder")
