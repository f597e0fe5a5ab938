from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from dataset import parquet
from dataset.attempt import Attempt, RecordError
from dataset.blobs import Blobs
from dataset.export import MANIFEST_NAME, export, manifest
from dataset.journal import JOURNAL_NAME, Journal, read
from dataset.rows import provider
from dataset.schema import TABLES
from tests.dataset.samples import OUTCOMES, SOURCE, attempt, make_run, started

LEAK = 'TOKEN = "hf_' + "Ab1" * 12 + '"\n'


def tables(folder: Path) -> dict[str, list[dict[str, object]]]:
    return {name: pq.read_table(folder / name).to_pylist() for name in TABLES}


@pytest.fixture
def runs_root(tmp_path: Path) -> Path:
    make_run(tmp_path / "runs")
    make_run(tmp_path / "runs", ended=False)
    return tmp_path / "runs"


def test_every_attempt_is_a_row_with_its_texts(runs_root: Path, tmp_path: Path) -> None:
    summary = export(runs_root, tmp_path / "out")
    found = tables(tmp_path / "out")
    assert summary.rows == {name: len(rows) for name, rows in found.items()} == manifest(tmp_path / "out").rows
    assert len(found["attempts"]) == 2 * len(OUTCOMES) and len(found["runs"]) == 2
    recorded = {
        record.attempt_id: (folder, record)
        for folder in sorted(runs_root.iterdir())
        for record in read(folder)
        if isinstance(record, Attempt)
    }
    for row in found["attempts"]:
        folder, record = recorded.pop(str(row["attempt_id"]))
        expected = Blobs(folder).text(record.candidate_sha256) if record.candidate_sha256 else None
        assert row["code"] == expected and row["parents"] == list(record.parents)
        assert row["verdict"] == (record.outcome.kind if expected is None else record.outcome.judgement.verdict.kind)  # type: ignore[union-attr]
        assert (row["time_kind"] == "none") == (row["geomean_us"] is None)
    assert not recorded


def test_keys_join(runs_root: Path, tmp_path: Path) -> None:
    found = tables(export(runs_root, tmp_path / "out").out_dir)
    attempts = {row["attempt_id"] for row in found["attempts"]}
    blobs = {row["sha256"] for row in found["blobs"]}
    assert len(attempts) == len(found["attempts"]) and len(blobs) == len(found["blobs"])
    for table in ("cases", "timings", "kernels"):
        keys = [(row["attempt_id"], row["idx"]) for row in found[table]]
        assert keys and len(set(keys)) == len(keys) and {key for key, _ in keys} <= attempts
    for row in found["attempts"]:
        assert {row["prompt_sha256"], row["reply_sha256"]} <= blobs
        assert set(row["parents"]) <= attempts  # type: ignore[call-overload]
        assert row["run_id"] in {run["run_id"] for run in found["runs"]}
    assert {run["best_attempt_id"] for run in found["runs"]} <= attempts | {None}


def test_measured_and_estimated_times_stay_apart(runs_root: Path, tmp_path: Path) -> None:
    found = tables(export(runs_root, tmp_path / "out").out_dir)
    for row in found["timings"]:
        if row["time_kind"] == "measured":
            assert row["samples_us"] and row["wall_us"] and row["clock"] and row["parts_us_json"] is None
        else:
            assert row["samples_us"] == [] and row["clock"] is None
        assert (row["time_us"] is None) == (row["time_kind"] == "none")
    kinds = {row["attempt_id"]: row["time_kind"] for row in found["attempts"]}
    assert set(kinds.values()) == {"measured", "estimated", "none"}
    assert max(row["worst_ratio"] for row in found["cases"]) == math.inf  # type: ignore[type-var]


def test_the_schema_does_not_depend_on_the_rows(runs_root: Path, tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    empty, full = export(tmp_path / "none", tmp_path / "empty"), export(runs_root, tmp_path / "full")
    assert set(empty.rows.values()) == {0} and all(full.rows.values())
    for name, schema in TABLES.items():
        assert pq.read_table(empty.out_dir / name).schema.equals(schema)
        assert pq.read_table(full.out_dir / name).schema.equals(schema)
    assert "configs:" not in (empty.out_dir / "README.md").read_text()


def test_row_groups_are_bounded_and_indexed(tmp_path: Path) -> None:
    schema = TABLES["blobs"]
    with parquet.TableWriter(tmp_path / "blobs", schema, row_group_bytes=10_000) as table:
        for number in range(50):
            text = "é" * 1000
            table.write({"sha256": str(number), "use": "prompt", "size_bytes": 2000, "text": text, "redacted": []})
    file = pq.ParquetFile(tmp_path / "blobs" / "train-00000.parquet")
    groups = [file.metadata.row_group(index) for index in range(file.num_row_groups)]
    assert sum(group.num_rows for group in groups) == 50 and max(group.num_rows for group in groups) == 4
    assert all(group.column(0).has_offset_index and group.column(0).has_column_index for group in groups)
    assert parquet.ROW_GROUP_BYTES <= 100 << 20


@pytest.mark.slow
def test_plain_load_dataset_reads_it(runs_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from datasets import get_dataset_config_names, load_dataset

    out = export(runs_root, tmp_path / "out").out_dir
    assert get_dataset_config_names(str(out)) == list(TABLES)
    cache = str(tmp_path / "cache")
    attempts = load_dataset(str(out), cache_dir=cache)["train"]
    assert attempts.to_list() == pq.read_table(out / "attempts").to_pylist()
    timings = load_dataset(str(out), "timings", cache_dir=cache)["train"]
    assert timings.to_list() == pq.read_table(out / "timings").to_pylist()


def test_a_secret_stops_the_export_and_is_not_shown(tmp_path: Path) -> None:
    make_run(tmp_path / "runs", source=SOURCE + LEAK + "# see /home/alice/kernels\n")
    with pytest.raises(RecordError, match=r"hugging_face_token in attempts.code of \S+\.0, character \d+") as caught:
        export(tmp_path / "runs", tmp_path / "out")
    assert "hf_Ab1" not in str(caught.value) and "alice" not in str(caught.value) and "--redact" in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]


def test_a_secret_is_masked_on_request(tmp_path: Path) -> None:
    make_run(tmp_path / "runs", source=SOURCE + LEAK + "# see /home/alice/kernels\n")
    summary = export(tmp_path / "runs", tmp_path / "out", redact=True)
    rows = [row for row in tables(tmp_path / "out")["attempts"] if row["code"]]
    assert summary.redactions == 2 * len(rows)
    for row in rows:
        assert row["redacted"] == ["code"]
        assert '"[redacted: hugging_face_token]"' in str(row["code"]) and "# see [redacted: home_path]/kernels" in str(
            row["code"]
        )
    content = b"".join(path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert b"hf_Ab1" not in content and b"alice" not in content
    assert f"{summary.redactions} places were masked" in (tmp_path / "out" / "README.md").read_text()


def test_a_copy_of_a_run_adds_nothing(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "runs")
    copy = shutil.copytree(folder, tmp_path / "copy")
    summary = export([folder, copy], tmp_path / "out")
    assert summary.duplicates == summary.rows["attempts"] == len(OUTCOMES) and summary.rows["runs"] == 1
    assert export(folder, tmp_path / "one").rows == summary.rows
    with Journal.open(copy) as journal:
        journal.append(attempt(folder.name, 99, OUTCOMES[4], Blobs(copy)))
    further = tables(export([folder, copy], tmp_path / "further").out_dir)
    assert [row["attempts"] for row in further["runs"]] == [len(further["attempts"])] == [len(OUTCOMES) + 1]


def test_two_attempts_of_one_id_are_an_error(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "runs")
    with Journal.open(tmp_path) as journal:
        journal.append(started(folder.name))
        journal.append(attempt(folder.name, 0, OUTCOMES[4], Blobs(tmp_path)))
    with pytest.raises(RecordError, match=rf"two different attempts have the id {folder.name}\.0"):
        export([folder, tmp_path], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_run_says_how_it_was_set_and_whether_it_ended(tmp_path: Path) -> None:
    first, second = make_run(tmp_path / "runs"), make_run(tmp_path / "runs")
    with Journal.open(second) as journal:
        journal.append(attempt(second.name, 99, OUTCOMES[4], Blobs(second)))
    rows = {row["run_id"]: row for row in tables(export(tmp_path / "runs", tmp_path / "out").out_dir)["runs"]}
    assert rows[first.name]["end_reason"] == "budget" and rows[first.name]["best_attempt_id"] == f"{first.name}.0"
    assert rows[second.name]["end_reason"] is None and rows[second.name]["attempts"] == len(OUTCOMES) + 1
    assert rows[first.name]["runner_faults"] == len(OUTCOMES)
    settings = json.loads(str(rows[first.name]["settings_json"]))
    assert settings["attempts"] == 30 and settings["base_url"] == "self-hosted"


def test_a_missing_blob_or_a_damaged_journal_stops_the_export(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "runs")
    blob = next(Blobs(folder).root.glob("*/*"))
    content = blob.read_bytes()
    blob.unlink()
    with pytest.raises(RecordError, match=f"cannot read the blob .*{blob.name}"):
        export(tmp_path / "runs", tmp_path / "out")
    blob.write_bytes(content)
    export(tmp_path / "runs", tmp_path / "out")
    path = folder / JOURNAL_NAME
    path.write_bytes(path.read_bytes().replace(b"seed kernel", b"seed_kernel"))
    with pytest.raises(RecordError, match="is damaged at byte"):
        export(tmp_path / "runs", tmp_path / "out2")


def test_the_folder_must_be_free_or_an_export_to_replace(runs_root: Path, tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.mkdir()
    assert export(runs_root, taken).rows["attempts"] == 2 * len(OUTCOMES)
    with pytest.raises(RecordError, match=r"holds an export already: .*--overwrite"):
        export(runs_root, taken)
    make_run(runs_root)
    assert export(runs_root, taken, overwrite=True).runs == 3 == manifest(taken).runs
    other = tmp_path / "other"
    other.mkdir()
    (other / "mine.txt").write_text("mine")
    for overwrite in (False, True):
        with pytest.raises(RecordError, match="exists and is not an export of Kernelwright"):
            export(runs_root, other, overwrite=overwrite)
        with pytest.raises(RecordError, match="exists and is not an export of Kernelwright"):
            export(runs_root, other / "mine.txt", overwrite=overwrite)
    assert (other / "mine.txt").read_text() == "mine"
    with pytest.raises(RecordError, match=r"no runs to export: .* is not a folder"):
        export(tmp_path / "absent", tmp_path / "new")
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_the_card_counts_what_the_tables_hold(runs_root: Path, tmp_path: Path) -> None:
    out = export(runs_root, tmp_path / "out").out_dir
    card = (out / "README.md").read_text()
    for line in (
        "license: apache-2.0",
        f"| `attempts` | {2 * len(OUTCOMES)} |",
        "| passed | 8 |",
        "| wrong_answer | 2 |",
        "| measured | H200 | gpu | 2 |",
        "| estimated | MI300X | cpu-emulation | 2 |",
        f"| open-model-32b | {2 * len(OUTCOMES)} |",
        f"| seed kernel amd/fp8-mm/block_scaled | Apache-2.0 | {2 * len(OUTCOMES)} |",
        "REMOVAL_CONTACT",
    ):
        assert line in card
    assert json.loads((out / MANIFEST_NAME).read_text())["licence"] == "apache-2.0"


@pytest.mark.parametrize(
    ("base_url", "expected"),
    [
        ("https://api.openai.com/v1", "api.openai.com"),
        ("http://user:pw@models.example.org:8000/v1", "models.example.org"),
        ("http://127.0.0.1:8000/v1", "self-hosted"),
        ("http://[::1]:8000", "self-hosted"),
        ("http://gpu7:8000", "self-hosted"),
        ("http://gpu7.rack.internal/v1", "self-hosted"),
        ("scripted", "self-hosted"),
    ],
)
def test_only_a_public_host_is_named(base_url: str, expected: str) -> None:
    assert provider(base_url) == expected
