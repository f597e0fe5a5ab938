from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from dataset import runs
from dataset.attempt import RecordError, RunEnded, RunnerFault
from dataset.journal import JOURNAL_NAME, Journal
from tests.dataset.samples import OUTCOMES, make_run, started


def test_a_run_id_says_when_and_what(tmp_path: Path) -> None:
    now = datetime(2026, 11, 21, 14, 23, 1, tzinfo=UTC)
    made = [runs.create(tmp_path / "new" / "runs", "amd/fp8-mm", now) for _ in range(50)]
    assert len({folder.name for folder in made}) == 50
    assert all(re.fullmatch("20261121-142301-amd-fp8-mm-[0-9a-f]{4}", folder.name) for folder in made)
    assert all(folder.is_dir() for folder in made)


def test_a_listing_says_which_run_is_in_what_state(tmp_path: Path) -> None:
    ended, interrupted, empty, damaged, running = (
        make_run(tmp_path),
        make_run(tmp_path, ended=False),
        runs.create(tmp_path, "a"),
        make_run(tmp_path),
        make_run(tmp_path, ended=False),
    )
    (damaged / JOURNAL_NAME).write_bytes(b"12 00000000 {}\n")
    (tmp_path / "notes").mkdir()
    (tmp_path / "readme.txt").write_text("")
    with Journal.open(running):
        found = {run.folder: run for run in runs.list_runs(tmp_path)}
    assert {folder: run.state for folder, run in found.items()} == {
        ended: "ended",
        interrupted: "interrupted",
        empty: "empty",
        damaged: "damaged",
        running: "running",
    }
    assert found[ended].attempts == found[interrupted].attempts == len(OUTCOMES)
    assert found[ended].ended is not None and found[ended].ended.reason == "budget"
    assert found[ended].started == started(ended.name)
    assert found[interrupted].ended is None and "is damaged" in found[damaged].note
    assert runs.summarise(running).state == "interrupted"


def test_a_run_resumed_after_its_end_is_not_ended(tmp_path: Path) -> None:
    folder = make_run(tmp_path)
    with Journal.open(folder) as journal:
        journal.append(RunnerFault(seq=99, message="x" * 300_000))
    assert runs.summarise(folder).state == "interrupted"
    with Journal.open(folder) as journal:
        journal.append(RunEnded(reason="target", best_attempt_id=None, ended="2026-11-21T16:00:00Z"))
    assert runs.summarise(folder).ended == RunEnded(reason="target", best_attempt_id=None, ended="2026-11-21T16:00:00Z")


def test_a_torn_tail_does_not_hide_a_run(tmp_path: Path) -> None:
    folder = make_run(tmp_path)
    with (folder / JOURNAL_NAME).open("ab") as file:
        file.write(b"900000 00000000 " + b"x" * 200_000)
    assert runs.summarise(folder).state == "ended"
    (folder / JOURNAL_NAME).write_bytes(b"12 0")
    assert runs.summarise(folder).state == "empty"


def test_no_folder_is_no_runs(tmp_path: Path) -> None:
    assert runs.list_runs(tmp_path / "absent") == []


def test_find_takes_an_id_or_a_part_that_only_it_has(tmp_path: Path) -> None:
    first = runs.create(tmp_path, "amd/fp8-mm", datetime(2026, 11, 21, tzinfo=UTC))
    second = runs.create(tmp_path, "pmpp/matmul", datetime(2026, 11, 22, tzinfo=UTC))
    assert runs.find(tmp_path, first.name) == first == runs.find(tmp_path, "fp8")
    assert runs.find(tmp_path, "20261122") == second
    with pytest.raises(RecordError, match=f"2 runs in .* match '202611': {first.name}, {second.name}"):
        runs.find(tmp_path, "202611")
    typo = first.name.replace("fp8", "fp6")
    with pytest.raises(RecordError, match=f"no run '{typo}' .*Near: .*{first.name}.*kernelwright runs list"):
        runs.find(tmp_path, typo)
    for empty in ("", "../x", "/etc"):
        with pytest.raises(RecordError, match="no run"):
            runs.find(tmp_path, empty)
    with pytest.raises(RecordError, match="holds no runs"):
        runs.find(tmp_path / "absent", "a")
