from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from dataset.attempt import RecordError
from dataset.export import MANIFEST_NAME, export
from dataset.publish import PublishError, publish
from dataset.schema import TABLES
from tests.dataset.hub_stand_in import CLOSED_OWNER, TOKEN, HubStandIn
from tests.dataset.samples import OUTCOMES, make_run

ROOT = Path(__file__).parents[2]


@pytest.fixture
def hub() -> Iterator[HubStandIn]:
    with HubStandIn() as hub:
        yield hub


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    make_run(tmp_path / "runs")
    return export(tmp_path / "runs", tmp_path / "out").out_dir


def play(hub_url: str, home: Path, *arguments: str, token: str | None = TOKEN) -> str:
    """Run the hub program in a process of its own; what it printed."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "HUGGING"))}
    environment |= {"HF_ENDPOINT": hub_url, "HF_HOME": str(home)} | ({"HF_TOKEN": token} if token else {})
    command = [sys.executable, "-m", "tests.dataset.hub_program", *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_what_is_published_loads_back_equal(hub: HubStandIn, exported: Path, tmp_path: Path) -> None:
    printed = play(hub.url, tmp_path, "publish", str(exported), "me/kernels")
    assert printed.startswith(f"{hub.url}/datasets/me/kernels apache-2.0 {len(OUTCOMES)} ")
    card = hub.repositories["me/kernels"].files["README.md"].decode()
    assert "contact: data@example.org" in card and 'load_dataset("me/kernels")' in card
    assert "REMOVAL_CONTACT" not in card and "REPOSITORY" not in card
    back = tmp_path / "back"
    back.mkdir()
    play(hub.url, tmp_path, "load", "me/kernels", str(back))
    for table, schema in TABLES.items():
        ours, theirs = pq.read_table(exported / table), pq.read_table(back / f"{table}.parquet")
        assert [(field.name, field.type) for field in theirs.schema] == [(field.name, field.type) for field in schema]
        assert theirs.num_rows and theirs.to_pylist() == ours.to_pylist()


@pytest.mark.slow
def test_a_second_version_replaces_the_first(hub: HubStandIn, exported: Path, tmp_path: Path) -> None:
    play(hub.url, tmp_path, "publish", str(exported), "me/kernels")
    repository = hub.repositories["me/kernels"]
    repository.files["attempts/train-00001.parquet"] = b"from an older version"
    repository.files["NOTES.md"] = b"the publisher's own"
    make_run(tmp_path / "runs")
    export(tmp_path / "runs", exported, overwrite=True)
    printed = play(hub.url, tmp_path, "publish", str(exported), "me/kernels")
    assert f" {2 * len(OUTCOMES)} " in printed
    ours = {"README.md", MANIFEST_NAME, *(f"{name}/train-00000.parquet" for name in TABLES)}
    assert repository.files.keys() == ours | {"NOTES.md"}
    assert repository.files["runs/train-00000.parquet"] == (exported / "runs/train-00000.parquet").read_bytes()


@pytest.mark.slow
def test_refusals_name_their_cure(hub: HubStandIn, exported: Path, tmp_path: Path) -> None:
    def publish_to(repo_id: str, *more: str, url: str = hub.url, token: str | None = TOKEN) -> str:
        return play(url, tmp_path, "publish", str(exported), repo_id, *more, token=token)

    assert "PublishError: no Hugging Face token: set HF_TOKEN" in publish_to("me/kernels", token=None)
    assert hub.requests == []
    assert "(HTTP 401): the token is not valid" in publish_to("me/kernels", token="hf_other")
    assert f"(HTTP 403): the token may not write there: it needs write access to {CLOSED_OWNER}" in publish_to(
        f"{CLOSED_OWNER}/kernels"
    )
    assert "cannot reach http://127.0.0.1:9: " in publish_to("me/kernels", url="http://127.0.0.1:9")
    assert hub.repositories == {}
    publish_to("me/kernels")
    assert "exists and is public" in publish_to("me/kernels", "private")
    publish_to("me/hidden", "private")
    assert hub.repositories["me/hidden"].private and hub.repositories["me/hidden"].files


def test_a_dry_run_lists_what_would_go_up(exported: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_TOKEN", raising=False)
    done = publish(exported, "me/kernels", dry_run=True, private=True)
    paths = {file.path: file.size_bytes for file in done.files}
    assert paths.keys() == {"README.md", MANIFEST_NAME, *(f"{table}/train-00000.parquet" for table in TABLES)}
    assert all(size > 0 for size in paths.values())
    assert paths["blobs/train-00000.parquet"] == (exported / "blobs/train-00000.parquet").stat().st_size
    assert done.rows["attempts"] == len(OUTCOMES) and done.licence == "apache-2.0" and done.private and done.dry_run
    assert done.contact.endswith("/datasets/me/kernels/discussions")


@pytest.mark.slow
def test_a_dry_run_touches_no_network(hub: HubStandIn, exported: Path, tmp_path: Path) -> None:
    printed = play(hub.url, tmp_path, "dry", str(exported), "me/kernels", token=None)
    assert printed.startswith(f"{hub.url}/datasets/me/kernels") and hub.requests == []


@pytest.mark.parametrize(
    "name", ["", "me", "me/", "/x", "me/a/b", "me/a b", "me/a--b", "me/..", "me/x.git", "m" * 97 + "/x"]
)
def test_a_bad_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(PublishError, match="is not the name of a repository: give ORG/NAME"):
        publish(tmp_path, name, dry_run=True)


def test_only_a_whole_export_with_attempts_is_published(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="is not an export: make one with: kernelwright dataset export"):
        publish(tmp_path, "me/kernels", dry_run=True)
    (tmp_path / "runs").mkdir()
    empty = export(tmp_path / "runs", tmp_path / "out").out_dir
    with pytest.raises(RecordError, match="holds no attempts"):
        publish(empty, "me/kernels", dry_run=True)
