import importlib.metadata
from pathlib import Path

from agent.version import commit


def test_a_checkouts_commit_is_read_from_its_own_files(tmp_path: Path) -> None:
    git = tmp_path / ".git"
    (git / "refs" / "heads").mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "packed-refs").write_text("# pack-refs\n" + "b" * 40 + " refs/heads/main\n")
    assert commit(tmp_path) == "b" * 40
    (git / "refs" / "heads" / "main").write_text("a" * 40 + "\n")
    assert commit(tmp_path) == "a" * 40
    (git / "HEAD").write_text("c" * 40 + "\n")
    assert commit(tmp_path) == "c" * 40


def test_without_a_checkout_the_version_stands_in(tmp_path: Path) -> None:
    assert commit(tmp_path) == importlib.metadata.version("kernelwright")
