"""Ctrl-C and SIGTERM: the first lets the attempt in hand finish, the second stops at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupt:
    """Whether the run was asked to stop."""

    def __init__(self) -> None:
        self.requested = False

    def request(self) -> None:
        """Ask the run to stop after the attempt in hand."""
        self.requested = True

    @contextmanager
    def on_signals(self) -> Iterator[None]:
        """Listen to SIGINT and SIGTERM meanwhile; only a process's main thread can."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self._take) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _take(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True
