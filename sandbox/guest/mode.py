"""What a guest's mode does: one of `modes`, or one rank's."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
import triton

from . import burst, memory
from .record import Record

Kernel = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Took:
    """A call's own time."""

    us: float
    late_us: float = 0.0
    """How long, by the host's clock, the whole device was waited for once the last event was done."""
    exposed: bool = False
    """The head start was over before all was launched: some of the host's work may be in the time."""


@dataclass(frozen=True, slots=True)
class Nothing:
    """What an empty call took: round the head start and round a kernel that does nothing, by device events."""

    head_us: float
    pair_us: float
    late_us: float
    """As in `Took`."""


class GuestMode(Protocol):
    """How candidates run. A guest has one mode and serves one candidate."""

    record: Record
    device_type: str
    """Where torch says the candidate's tensors are, under whatever maps it."""

    def versions(self) -> dict[str, str]:
        """What this guest runs on."""

    def running(self) -> contextlib.AbstractContextManager[Any]:
        """Entered while the candidate's code runs."""

    def map_buffer(self, kind: str, descriptor: int, size: int) -> memory.Buffer:
        """Map one shared buffer, taking its descriptor; `ValueError` for a kind this mode cannot map."""

    def call(self, kernel: Kernel, data: Any, head_start: int = 0, join: bool = True) -> tuple[Any, Took | None]:
        """What the kernel returns, complete in memory, and where there is a head start the time by device events.

        `head_start`: cycles that the device is kept busy before the first event, so that the host's work of launching
        is hidden from the clock. Without `join`, work on streams that the kernel left behind may still be under way.
        """

    def board_call(self, kernel: Kernel, data: Any, clock: str, flush: bool, clone: bool) -> tuple[Any, Took | None]:
        """What the kernel returns, and its time as a GPU MODE evaluator would take it."""

    def empty(self, copied: int, head_start: int) -> Nothing | None:
        """What a timed call does without its kernel, with a result of `copied` bytes copied."""

    def burst(self, kernel: Kernel, batch: Sequence[Any], gate: torch.Tensor, queued: burst.Queued) -> None:
        """Call the kernel on each of `batch` while `gate` is shut, hand over what it returned, wait for it all."""

    def empty_burst(self, count: int, copied: int, gate: torch.Tensor, queued: Callable[[], None]) -> None:
        """The same with `count` kernels that do nothing, and results of `copied` bytes in all copied."""

    def settle(self, join: bool = True) -> None:
        """Return when every copy asked for is done."""

    def evidence(self, after: int) -> bytes:
        """Kernels, and launches from number `after`, as JSON."""


def library_versions() -> dict[str, str]:
    """Of what a candidate is run by."""
    python = ".".join(map(str, sys.version_info[:3]))
    return {"python": python, "torch": torch.__version__, "triton": triton.__version__}
