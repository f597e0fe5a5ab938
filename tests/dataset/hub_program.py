"""In a process of its own, because huggingface_hub reads HF_ENDPOINT when it is imported.

``publish EXPORT REPO [private]`` and ``dry EXPORT REPO`` print what `publish` answers or its error; ``load REPO OUT``
loads every table back from the Hub and writes it under OUT as Parquet.
"""

from __future__ import annotations

import sys
from pathlib import Path

from dataset.publish import PublishError, publish
from dataset.schema import TABLES


def show(export_dir: str, repo_id: str, dry_run: bool, private: bool = False) -> None:
    try:
        done = publish(Path(export_dir), repo_id, dry_run=dry_run, private=private, contact="data@example.org")
    except PublishError as error:
        print(f"PublishError: {error}")
    else:
        print(done.url, done.licence, done.rows["attempts"], *(f"{file.path}={file.size_bytes}" for file in done.files))


def load(repo_id: str, out_dir: str) -> None:
    from datasets import load_dataset

    default = load_dataset(repo_id)["train"]
    for table in TABLES:
        loaded = load_dataset(repo_id, table)["train"]
        assert table != "attempts" or loaded.to_list() == default.to_list()
        loaded.to_parquet(str(Path(out_dir) / f"{table}.parquet"))


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["publish", export_dir, repo_id, *private]:
            show(export_dir, repo_id, dry_run=False, private=bool(private))
        case ["dry", export_dir, repo_id]:
            show(export_dir, repo_id, dry_run=True)
        case ["load", repo_id, out_dir]:
            load(repo_id, out_dir)
