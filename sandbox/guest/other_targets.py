"""Compiling for the targets that are not launched: ahead, in child processes, and noted when asked for.

The code generator is most of a small case's time. A child forked at the first launch of a specialisation compiles it
for the other targets while the candidate runs on; what it builds lies in Triton's cache on disk, where this process
finds it. A target whose code generator aborts takes the child down, not the candidate.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .children import Children
from .hip_driver import HipDriver
from .record import Record

Launch = Callable[..., Any]
"""`JITFunction.run` as Triton has it."""


@dataclass(frozen=True, slots=True)
class _Pending:
    function: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    child: int | None


class OtherTargets:
    """Specialisations launched on device 0 and wanted for every other device of the driver."""

    def __init__(self, driver: HipDriver, record: Record, launch: Launch) -> None:
        self._driver, self._record, self._launch = driver, record, launch
        self._pending: list[_Pending] = []
        self._seen: set[str] = set()
        self._children = Children(len(os.sched_getaffinity(0)))

    def want(self, kernel: Any, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Compile what was just launched for the other targets too, once per specialisation."""
        name = str(kernel.metadata.hash)
        if len(self._driver.targets) < 2 or name in self._seen:
            return
        self._seen.add(name)
        child = self._children.start(lambda: self._compile(function, args, kwargs))
        self._pending.append(_Pending(function, args, kwargs, child))

    def note(self) -> None:
        """Put everything wanted so far into the record; waits for the children."""
        for pending in self._pending:
            status = self._children.wait(pending.child) if pending.child is not None else 0
            if status < 0:
                self._note_death(pending, -status)
            else:
                self._compile(pending.function, pending.args, pending.kwargs)
        self._pending.clear()

    def _compile(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        for device in range(1, len(self._driver.targets)):
            try:
                with self._driver.on(device):
                    self._launch(function, *args, grid=None, warmup=True, **dict(kwargs))
            except Exception:  # noqa: BLE001 - noted in the record; only the first target decides
                continue

    def _note_death(self, pending: _Pending, signal: int) -> None:
        fault = RuntimeError(f"the compiler died with signal {signal}")
        for target in self._driver.targets[1:]:
            self._record.failed(fault, target, name=pending.function.__name__)
