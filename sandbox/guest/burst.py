"""Many calls queued on a CUDA device behind a gate: a wait for a word of host memory that the checker sets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from .memory import checked

Queued = Callable[[list[Any]], None]
"""Says that a burst is queued, and where its results will lie."""
_registered: dict[int, torch.Tensor] = {}
"""Host memory that the device sees, by address. Kept, so that no other memory comes to lie at that address."""


def queue(kernel: Callable[[Any], Any], batch: Sequence[Any], gate: torch.Tensor, queued: Queued) -> None:
    """Call `kernel` on each of `batch` behind the gate; what waits for the device meanwhile waits for the gate."""
    _hold(gate)
    queued([kernel(data) for data in batch])


def queue_empty(count: int, copied: int, gate: torch.Tensor, queued: Callable[[], None]) -> None:
    """Queue `count` kernels that do nothing, and as many copies of `copied` bytes in all."""
    result, room = (torch.empty(copied // count, dtype=torch.uint8, device="cuda") for _ in range(2))
    _hold(gate)
    for _ in range(count):
        torch.cuda._sleep(0)
    for _ in range(count if copied else 0):
        room.copy_(result)
    queued()


def _hold(gate: torch.Tensor) -> None:
    """What follows on the current stream waits until the 32-bit word at the start of `gate` is 1 or more."""
    from cuda.bindings import driver

    address = gate.data_ptr()
    if address not in _registered:
        checked(driver.cuMemHostRegister(address, gate.numel(), driver.CU_MEMHOSTREGISTER_DEVICEMAP))
        _registered[address] = gate
    seen = checked(driver.cuMemHostGetDevicePointer(address, 0))
    stream, reached = torch.cuda.current_stream().cuda_stream, driver.CUstreamWaitValue_flags
    checked(driver.cuStreamWaitValue32(stream, seen, 1, reached.CU_STREAM_WAIT_VALUE_GEQ))
