"""The next candidate's kernels, compiled while the current candidate is judged.

See docs/decisions/compile-ahead.md. The guest that compiles sees no GPU, and what it hands over goes to its own
candidate's next guest, unread. Whatever goes wrong here costs the verdict nothing: that guest then compiles for itself.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from problems.spec import Case
from sandbox.checker.cases import drawn
from sandbox.checker.guest import FAULTS, NotReady, Raised
from sandbox.checker.pool import Pool, spares
from sandbox.checker.task import Task
from sandbox.checker.trial import call_shapes
from sandbox.guest.cache import MAX_BYTES
from sandbox.isolation import Sandbox
from sandbox.runner import Unsupported

DEADLINE_S = 60.0
"""For all that one candidate has compiled ahead."""
PATIENCE_S = 5.0
"""For the kernels that are being compiled when their candidate's turn comes."""
_LAST = ("nice", "-n", "19")
"""Behind whatever else wants a core: the current candidate's guest, and the clock that watches it."""

Key = tuple[str, str, str]


@dataclass(slots=True)
class _Work:
    key: Key
    begun: threading.Event = field(default_factory=threading.Event)
    """Set once the candidate is loaded: before that there is nothing to wait for."""
    stop: threading.Event = field(default_factory=threading.Event)
    packed: Future[bytes] = field(default_factory=Future)


class Ahead:
    """Compiles for one target, one candidate at a time, in a thread of its own that outlives every guest it starts."""

    def __init__(self, sandbox: Sandbox, target: str, figures: dict[str, Any]) -> None:
        """`figures`: what the GPU says of itself; see `sandbox.guest.figures`."""
        self._pool = Pool(
            sandbox, {"ahead": (target,)}, depth=spares(), under=_LAST, options=("--figures", json.dumps(figures))
        )
        self._thread = ThreadPoolExecutor(1, "ahead")
        self._work: _Work | None = None

    def begin(self, task: Task, source: str | None) -> None:
        """Start on the candidate that comes next, where one is known; what else was begun is dropped."""
        self._drop()
        if source is not None:
            self._work = work = _Work(_key(task, source))
            work.packed = self._thread.submit(self._compile, task, source, work)

    def take(self, task: Task, source: str, within_s: float = 0.0) -> bytes:
        """What is compiled of this candidate `within_s` from now, for its own guest; empty where that is nothing."""
        work = self._work
        if work is None or work.key != _key(task, source):
            return b""
        self._work = None
        wait([work.packed], within_s)
        work.stop.set()
        if not wait([work.packed], PATIENCE_S if work.begun.is_set() else 0).done:
            self._pool.interrupt()
            return b""
        return work.packed.result()

    def close(self) -> None:
        """End its guests and its thread."""
        self._drop()
        self._thread.submit(self._pool.close)
        self._thread.shutdown()

    def _drop(self) -> None:
        work, self._work = self._work, None
        if work is not None and not work.packed.done():
            work.stop.set()
            self._pool.interrupt()

    def _compile(self, task: Task, source: str, work: _Work) -> bytes:
        if work.stop.is_set():
            return b""
        try:
            with self._pool.lend(("ahead",)) as [guest]:
                # Who stops it kills what is lent; what was lent only after that ends here.
                if work.stop.is_set():
                    return b""
                work.begun.set()
                guest.load(source, DEADLINE_S)
                for case in _cases(task):
                    if work.stop.is_set():
                        break
                    with suppress(Raised, Unsupported):
                        call_shapes(task, case, guest)
                packed = guest.cache()
        except (*FAULTS, Unsupported, NotReady, OSError, MemoryError):
            return b""
        return packed if len(packed) <= MAX_BYTES else b""


def _cases(task: Task) -> Sequence[Case]:
    """The published cases, and a draw of hidden ones: what those are specialised on, most others are too.

    Those that will be judged are drawn when the candidate is loaded on its device, and nobody knows them before.
    """
    return (*task.problem.tests, *task.problem.benchmarks, *drawn(task, "full"))


def _key(task: Task, source: str) -> Key:
    return task.problem.name, str(task.root), source
