"""The lock of a journal's one writer. The kernel lets go of it when the process ends, however it ends."""

from __future__ import annotations

import fcntl
import os
import socket
import time
from pathlib import Path

from dataset.attempt import RecordError
from dataset.disk import record_error, write_whole

LOCK_NAME = "journal.lock"
_PATIENCE_S = 0.25
"""A listing holds the lock for an instant to see whether it is free; a writer waits that out."""


def acquire(folder: Path) -> int:
    """Take the writer's lock of the run in `folder`; the descriptor that holds it.

    `RecordError` naming the process and the host where another writer has it.
    """
    path = folder / LOCK_NAME
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise record_error("lock", path, error) from error
    try:
        _wait(fd, path)
        os.ftruncate(fd, 0)
        write_whole(fd, f"pid {os.getpid()} on host {socket.gethostname()}\n".encode())
    except OSError as error:
        os.close(fd)
        raise record_error("lock", path, error) from error
    except RecordError:
        os.close(fd)
        raise
    return fd


def is_held(folder: Path) -> bool:
    """Whether a writer has the run in `folder` open now. Never creates a file."""
    try:
        fd = os.open(folder / LOCK_NAME, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(fd)
    return False


def _wait(fd: int, path: Path) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise RecordError(_held(path)) from None
        time.sleep(0.01)


def _held(path: Path) -> str:
    holder = path.read_text(errors="replace").strip() or "another process"
    return (
        f"the run {path.parent.name} is being written by {holder}: wait until it ends or stop it; "
        "reading the run needs no lock"
    )
