"""Forked copies of this process, each doing one thing on the side; so many at a time."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable

from . import SOCKET_FD


class Children:
    """At most `limit` of them run; one more waits for the oldest."""

    def __init__(self, limit: int) -> None:
        self._limit = max(1, limit)
        self._running: list[int] = []
        self._statuses: dict[int, int] = {}

    def start(self, act: Callable[[], object]) -> int | None:
        """Fork one that does `act` and ends; None where that cannot be."""
        if len(self._running) >= self._limit:
            self.wait(self._running[0])
        try:
            with warnings.catch_warnings():
                # Python warns of forking beside threads; the child touches nothing that torch's or NumPy's hold.
                warnings.simplefilter("ignore", DeprecationWarning)
                child = os.fork()
        except OSError:
            return None
        if child == 0:
            try:
                # Whoever waits at the other end must see this process's parent go, not its last child.
                os.closerange(SOCKET_FD, SOCKET_FD + 1)
                act()
            finally:
                os._exit(0)
        self._running.append(child)
        return child

    def wait(self, child: int) -> int:
        """Its exit status, negative for a signal; 0 where somebody else has reaped it."""
        if child in self._running:
            self._running.remove(child)
            try:
                self._statuses[child] = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            except ChildProcessError:
                # The candidate waited for children of its own, and reaped ours.
                self._statuses[child] = 0
        return self._statuses[child]

    def wait_for_all(self) -> None:
        """Until none runs."""
        for child in list(self._running):
            self.wait(child)
