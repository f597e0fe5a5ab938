"""Large texts of a run, named by their content: ``blobs/ab/<sha256>`` in the run's folder.

A blob's name exists only once its bytes are on the disk (temporary file, fsync, rename, fsync of the folder), so a
record that names a blob can be written as soon as `put` returns.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

from dataset.attempt import RecordError
from dataset.disk import record_error, sync_folder, write_whole

FOLDER_NAME = "blobs"


class Blobs:
    """The blobs of the run in `folder`. Any number of processes may put and get at once."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / FOLDER_NAME
        self._durable: set[str] = set()

    def path(self, sha256: str) -> Path:
        """Where the blob of that name lies, whether or not it is there."""
        return self.root / sha256[:2] / sha256

    def put(self, content: str | bytes) -> str:
        """Store `content` (text as UTF-8) durably; its sha256 in hex. Storing it again costs nothing.

        `RecordError` where the disk refuses, or where text holds a lone surrogate and so has no UTF-8 form.
        """
        data = _encoded(content, self.root)
        sha256 = hashlib.sha256(data).hexdigest()
        if sha256 in self._durable:
            return sha256
        path = self.path(sha256)
        try:
            self.root.mkdir(exist_ok=True)
            path.parent.mkdir(exist_ok=True)
            if not _holds(path, data):
                _write(path, data)
            # Also where the file was there: whoever wrote it may have been killed before the folders were synced. From
            # the inside out and in a row: what one sync has committed costs the next nothing.
            for folder in (path.parent, self.root, self.root.parent):
                sync_folder(folder)
        except OSError as error:
            raise record_error("store a blob in", path.parent, error) from error
        self._durable.add(sha256)
        return sha256

    def get(self, sha256: str) -> bytes:
        """The blob's bytes. `RecordError` where it is missing, or where its bytes do not have that hash."""
        path = self.path(sha256)
        try:
            data = path.read_bytes()
        except OSError as error:
            raise record_error("read the blob", path, error) from error
        if hashlib.sha256(data).hexdigest() != sha256:
            raise RecordError(
                f"the blob {path} is damaged: its content does not have that hash. Restore it from a copy"
            )
        return data

    def text(self, sha256: str) -> str:
        """The blob as text. `RecordError` as `get`, and where it is not UTF-8."""
        try:
            return self.get(sha256).decode()
        except UnicodeDecodeError as error:
            raise RecordError(f"the blob {self.path(sha256)} is not text: {error}") from error


def _encoded(content: str | bytes, root: Path) -> bytes:
    if isinstance(content, bytes):
        return content
    try:
        return content.encode()
    except UnicodeEncodeError as error:
        raise RecordError(f"cannot store a blob in {root}: the text holds a lone surrogate ({error.reason})") from error


def _holds(path: Path, data: bytes) -> bool:
    try:
        return path.read_bytes() == data
    except FileNotFoundError:
        return False


def _write(path: Path, data: bytes) -> None:
    fd, name = tempfile.mkstemp(dir=path.parent, prefix=".writing-")
    temporary = Path(name)
    try:
        try:
            write_whole(fd, data)
            os.fsync(fd)
        finally:
            os.close(fd)
        temporary.chmod(0o644)
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
