"""The journal of one run: ``journal.jsonl`` in the run's folder, one writer, any number of readers.

An appended record has reached the operating system when `append` returns, so that killing the process loses nothing;
a durable one has reached the disk, and so has everything appended before it (group commit). A torn tail, left by a
writer that was killed inside an append, was never acknowledged: readers pass over it, the next writer cuts it.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError

from dataset.attempt import SCHEMA_VERSION, Record, RecordError
from dataset.disk import record_error, sync_folder, write_whole
from dataset.frames import pack, scan, size
from dataset.lock import acquire

JOURNAL_NAME = "journal.jsonl"
_RECORD: TypeAdapter[Record] = TypeAdapter(Record)
_BUFFER_BYTES = 1 << 20


def read(path: Path) -> Iterator[Record]:
    """The records of a run's folder (or of a journal file), oldest first, as a stream. Needs no lock.

    `RecordError` on a missing or damaged journal, and on a record of a newer schema.
    """
    file_path = path / JOURNAL_NAME if path.is_dir() else path
    try:
        with file_path.open("rb", buffering=_BUFFER_BYTES) as file:
            for offset, body in scan(file, file_path):
                yield parse(body, file_path, offset)
    except OSError as error:
        raise record_error("read", file_path, error) from error


def parse(body: bytes, path: Path, offset: int) -> Record:
    """One record from its JSON; `path` and `offset` (bytes) say where it stands, for the error."""
    try:
        record = _RECORD.validate_json(body)
    except ValidationError as error:
        raise _refusal(body, path, offset, error) from error
    if record.schema_version > SCHEMA_VERSION:
        raise _too_new(record.kind, record.schema_version, path, offset)
    return record


class Journal:
    """The one writer of a run's journal. Get it from `Journal.open`; threads may share it."""

    def __init__(self, path: Path, fd: int, lock_fd: int, end: int, cut_bytes: int) -> None:
        self.path = path
        self.cut_bytes = cut_bytes
        """Bytes of a torn tail that opening cut off."""
        self._fd, self._lock_fd = fd, lock_fd
        self._end = self._synced = end
        self._broken = ""
        self._writing, self._syncing = threading.Lock(), threading.Lock()

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Lock the run in `folder`, check every frame of its journal, cut a torn tail, and make the rest durable.

        The journal is created where the folder has none. `RecordError` where another process writes it, where the
        disk refuses, or where it is damaged before its end.
        """
        path = folder / JOURNAL_NAME
        lock_fd = acquire(folder)
        fd = -1
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
            end = _valid_end(path)
            cut_bytes = os.fstat(fd).st_size - end
            os.ftruncate(fd, end)
            os.fsync(fd)
            sync_folder(folder)
        except (OSError, RecordError) as error:
            _close(fd, lock_fd)
            raise (record_error("open", path, error) if isinstance(error, OSError) else error) from error
        return cls(path, fd, lock_fd, end, cut_bytes)

    def append(self, record: Record, durable: bool = True) -> None:
        """Add one record. On return it survives a kill of this process; with `durable`, a loss of power too.

        `RecordError` where the disk refuses: the record is then not in the journal, and the journal stays valid.
        """
        try:
            frame = pack(record.model_dump_json().encode())
        except (PydanticSerializationError, UnicodeEncodeError) as error:
            raise RecordError(f"cannot write a record to {self.path}: it holds text that is not Unicode") from error
        with self._writing:
            self._write(frame)
            end = self._end
        if durable:
            self._sync(end)

    def sync(self) -> None:
        """Make everything appended so far durable."""
        self._sync(self._end)

    def records(self) -> Iterator[Record]:
        """What the journal holds, oldest first."""
        return read(self.path)

    def close(self) -> None:
        """Make everything durable and give the lock back; a second call does nothing."""
        if self._fd < 0:
            return
        try:
            if not self._broken:
                self.sync()
        finally:
            fd, self._fd = self._fd, -1
            self._broken = "it was closed"
            _close(fd, self._lock_fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _write(self, frame: bytes) -> None:
        if self._broken:
            raise RecordError(f"the journal {self.path} takes no more records: {self._broken}. Resume the run")
        try:
            write_whole(self._fd, frame)
        except OSError as error:
            self._take_back()
            raise record_error("append to", self.path, error) from error
        self._end += len(frame)

    def _take_back(self) -> None:
        # A part of a frame may have been written; without this, the next record would follow it on the same line.
        try:
            os.ftruncate(self._fd, self._end)
        except OSError as error:
            self._broken = f"an append failed half-way and could not be undone ({error.strerror})"

    def _sync(self, end: int) -> None:
        with self._syncing:
            if self._synced >= end:
                return
            upto = self._end
            try:
                os.fsync(self._fd)
            except OSError as error:
                # After a failed fsync the kernel may have dropped the pages: a second one would lie.
                self._broken = f"the disk did not take it ({error.strerror})"
                raise record_error("make durable", self.path, error) from error
            self._synced = upto


def _valid_end(path: Path) -> int:
    end = 0
    with path.open("rb", buffering=_BUFFER_BYTES) as file:
        for offset, body in scan(file, path):
            end = offset + size(body)
    return end


def _close(*fds: int) -> None:
    for fd in fds:
        if fd >= 0:
            os.close(fd)


def _refusal(body: bytes, path: Path, offset: int, error: ValidationError) -> RecordError:
    try:
        seen = json.loads(body)
    except ValueError:
        seen = None
    if (
        isinstance(seen, dict)
        and isinstance(seen.get("schema_version"), int)
        and seen["schema_version"] > SCHEMA_VERSION
    ):
        return _too_new(str(seen.get("kind")), seen["schema_version"], path, offset)
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    return RecordError(
        f"{path}: the record at byte {offset} is whole but not one that this version knows ({where}: {first['msg']})."
        " Read it with the version of Kernelwright named in the run's first record"
    )


def _too_new(kind: str, version: int, path: Path, offset: int) -> RecordError:
    return RecordError(
        f"{path}: the record at byte {offset} ({kind}) has schema version {version}, and this version of Kernelwright "
        f"reads up to {SCHEMA_VERSION}: upgrade Kernelwright to read this run"
    )
