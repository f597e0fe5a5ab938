"""Full, read-only and limited disks: real ones, a small tmpfs where this user can mount one."""

from __future__ import annotations

import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dataset import runs
from dataset.attempt import RecordError, RunnerFault
from dataset.blobs import Blobs
from dataset.journal import JOURNAL_NAME, Journal, read

MESSAGE = "x" * 3000


def fault(seq: int) -> RunnerFault:
    return RunnerFault(seq=seq, message=MESSAGE)


def fill(folder: Path) -> Path:
    """Take every free byte of the folder's disk; the file that holds them."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file, pytest.raises(OSError):
        while True:
            file.write(b"\0" * 512)
    return filler


@contextmanager
def file_size_limit(limit_bytes: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 kB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)], capture_output=True, text=True, check=False
    )
    if mount.returncode:
        pytest.skip(f"cannot mount a small tmpfs: {mount.stderr.strip()}")
    try:
        yield disk
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_full_disk_keeps_the_journal_valid_and_it_goes_on_after(small_disk: Path) -> None:
    folder = runs.create(small_disk, "pmpp/vectoradd")
    with Journal.open(folder) as journal:
        journal.append(fault(0))
        filler = fill(small_disk)
        done = 0
        with pytest.raises(RecordError, match=r"cannot append to .*journal.jsonl: the disk is full: free space"):
            for seq in range(1, 100):
                journal.append(fault(seq))
                done = seq
        seen = [record.seq for record in read(folder) if isinstance(record, RunnerFault)]
        assert seen == list(range(done + 1))
        assert journal.path.read_bytes().endswith(b"\n")
        filler.unlink()
        journal.append(fault(done + 1))
    assert len(list(read(folder))) == done + 2
    with Journal.open(folder) as journal:
        assert journal.cut_bytes == 0


def test_a_full_disk_leaves_no_half_blob(small_disk: Path) -> None:
    blobs = Blobs(small_disk)
    kept = blobs.put("kept")
    filler = fill(small_disk)
    with pytest.raises(RecordError, match="the disk is full"):
        for seq in range(100):
            blobs.put(MESSAGE * 3 + str(seq))
    names = [path.name for path in blobs.root.rglob("*") if path.is_file()]
    assert all(len(name) == 64 and blobs.get(name) for name in names) and kept in names
    filler.unlink()
    assert blobs.text(blobs.put(MESSAGE)) == MESSAGE


def test_a_read_only_disk_can_be_read_and_says_so_on_writing(small_disk: Path) -> None:
    folder = runs.create(small_disk, "pmpp/vectoradd")
    with Journal.open(folder) as journal:
        journal.append(fault(0))
    sha256 = Blobs(folder).put("kept")
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    assert len(list(read(folder))) == 1 and Blobs(folder).text(sha256) == "kept"
    assert [run.state for run in runs.list_runs(small_disk)] == ["interrupted"]
    for write in (lambda: Journal.open(folder), lambda: Blobs(folder).put("new"), lambda: runs.create(small_disk, "a")):
        with pytest.raises(RecordError, match="read-only: choose another folder"):
            write()


def test_a_file_size_limit_cuts_the_half_written_line(tmp_path: Path) -> None:
    with Journal.open(tmp_path) as journal:
        journal.append(fault(0))
        before = journal.path.read_bytes()
        with file_size_limit(len(before) + 1000), pytest.raises(RecordError, match="process's size limit"):
            journal.append(fault(1))
        assert journal.path.read_bytes() == before
        journal.append(fault(1))
    assert len(list(read(tmp_path))) == 2


def test_a_folder_that_is_a_file_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("")
    for write in (lambda: Journal.open(path), lambda: Blobs(path).put("a"), lambda: runs.create(path, "a")):
        with pytest.raises(RecordError, match="not a folder"):
            write()
    (tmp_path / JOURNAL_NAME).mkdir()
    with pytest.raises(RecordError, match="it is a folder, where a file is needed"):
        Journal.open(tmp_path)
