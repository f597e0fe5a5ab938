"""What the journal and the blobs ask of a disk: durable names, whole writes, and errors that name their cure."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from dataset.attempt import RecordError

_CURES = {
    errno.ENOSPC: "the disk is full: free space there, then resume the run",
    errno.EDQUOT: "the disk quota is used up: free space there, then resume the run",
    errno.EFBIG: "the file would pass this process's size limit: raise it (ulimit -f unlimited), then resume the run",
    errno.EROFS: "the file system is mounted read-only: choose another folder for the runs",
    errno.EACCES: "permission denied: make the folder writable for this user, or choose another one",
    errno.EPERM: "permission denied: make the folder writable for this user, or choose another one",
    errno.ENOENT: "no such file or folder: check the path",
    errno.ENOTDIR: "a part of the path is a file, not a folder: check the path",
    errno.EISDIR: "it is a folder, where a file is needed: check the path",
    errno.EIO: "the device failed: check the disk before this run is resumed",
    errno.EMFILE: "too many files are open: raise the limit (ulimit -n)",
    errno.ENOLCK: "this file system has no file locks: keep the runs on a local disk",
    errno.EOPNOTSUPP: "this file system has no file locks: keep the runs on a local disk",
}


def record_error(action: str, path: Path, error: OSError) -> RecordError:
    """`error` as a `RecordError`: what was being done, where, and what to do about it."""
    cure = _CURES.get(error.errno or 0, error.strerror or str(error))
    return RecordError(f"cannot {action} {path}: {cure}")


def write_whole(fd: int, content: bytes) -> None:
    """Write every byte of `content`; `OSError` where the disk takes only a part."""
    view = memoryview(content)
    while view:
        view = view[os.write(fd, view) :]


def sync_folder(folder: Path) -> None:
    """Make the names in `folder` durable: a file's own fsync does not cover its entry. Raises `OSError`."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
