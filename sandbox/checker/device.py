"""The GPU as the checker uses it: memory it shares, caches it flushes, a guest for empty calls."""

from __future__ import annotations

import contextlib
import math
import statistics
import time
from collections.abc import Callable
from functools import cached_property
from typing import Any

import torch

from problems.chips import Chip
from sandbox import clock
from sandbox.checker import vmm
from sandbox.checker.control import Control, miniature
from sandbox.checker.guest import Returned
from sandbox.checker.memory import HostMemory, Shared
from sandbox.checker.pool import Pool
from sandbox.checker.trial import HEAD_START, Bench, Share

FLUSH_BYTES = 512 << 20
"""Twice the largest last-level cache of the chips we know (MI300X: 256 MiB)."""
CALM_CALLS = 15
SMALL_BYTES = 1 << 16
"""For the one-element tensors of an empty call: 128 of them."""


class Device:
    """One GPU."""

    def __init__(self, chip_name: str, chip: Chip | None) -> None:
        self.chip_name, self.chip = chip_name, chip
        self.share: Share | None = None
        """How buffers are shared; None until `connect`."""
        self.control: Control | None = None
        """Makes the empty calls; without it no two clocks are compared."""
        self.calm_us = math.inf
        """What an empty call took before the candidate came, after the shortest head start; see `calm`."""
        self._calm_copy_us, self._calm_head_us = 0.0, 0.0
        self._pool: Pool | None = None
        self._small: Shared | None = None

    def connect(self, pool: Pool) -> None:
        """Find out, once, how buffers are shared: device memory where a guest can map it, else staged by the host."""
        self._pool = pool
        if self.share is not None:
            return
        self.share = HostMemory
        if vmm.available():
            memory = vmm.DeviceMemory(1)
            if pool.holds("device", lambda guest: guest.share([memory])):
                self.share = vmm.DeviceMemory
            memory.close()
            self._calm_copy_us = self._copy_us()

    def prepare_empty(self, bench: Bench) -> Callable[[int, int], Returned] | None:
        """Empty calls like those on `bench`, given the bytes copied and the head start; None where nobody makes them.

        Staged buffers are copied at every call, so they are the bench's own; mapped ones are not, and small ones do.
        """
        if self.control is None:
            return None
        if self.share in (None, HostMemory):
            self.control.prepare(bench.tree, bench.buffers)
        else:
            self._small = self._small or self.share(SMALL_BYTES)
            self.control.prepare(miniature(bench.tree), [self._small])
        return self.control.empty

    def welcome(self) -> None:
        """Let the next candidate's guest touch the device, while nothing is timed."""
        if self._pool is not None:
            self._pool.prepare_next("device")

    def hush(self) -> None:
        """Wait until it has done so: from here on a candidate is timed."""
        if self._pool is not None:
            self._pool.await_next("device")

    def calm(self, tree: dict[str, Any]) -> None:
        """Note what an empty call on `tree` takes, while no candidate is there that could make it take longer.

        Nothing is noted where buffers are staged: what such a call takes hangs on the case.
        """
        self.calm_us = math.inf
        if self.control is None or self.share in (None, HostMemory):
            return
        self._small = self._small or self.share(SMALL_BYTES)
        self.control.prepare(miniature(tree), [self._small])
        calls = []
        for _ in range(CALM_CALLS):
            self.flush()
            calls.append(self.control.empty(0, HEAD_START))
        self.calm_us = statistics.median(call.wall_us for call in calls)
        self._calm_head_us = statistics.median(call.event_us or 0.0 for call in calls)

    def calm_after(self, head_start: int) -> float:
        """What an empty call with this head start took then."""
        return self.calm_us + self._calm_head_us * (head_start / HEAD_START - 1)

    def calm_burst_us(self, count: int, moved_bytes: int) -> float:
        """The most that a burst of `count` empty kernels with so many bytes copied takes when nobody disturbs it."""
        copy_us = self._calm_copy_us * moved_bytes / (FLUSH_BYTES // 2)
        return self.calm_us + clock.FLOOR_US + 1.1 * copy_us + clock.GAP_US * count

    def _copy_us(self) -> float:
        """What copying half of what a flush writes takes, by the host's clock."""
        half, took_us = FLUSH_BYTES // 2, []
        for _ in range(CALM_CALLS):
            self.settle()
            start_ns = time.perf_counter_ns()
            self._sweep[:half].copy_(self._sweep[half:])
            self.settle()
            took_us.append((time.perf_counter_ns() - start_ns) / 1e3)
        return statistics.median(took_us)

    @cached_property
    def _sweep(self) -> torch.Tensor:
        return torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda")

    def settle(self) -> None:
        """Wait until everything written is in memory."""
        torch.cuda.synchronize()

    def flush(self) -> None:
        """Take away lines that a candidate made persist, and evict the inputs just written from the caches.

        In this order: a reset is not over when it returns, and nothing of ours may share the device with a timed call.
        """
        self._reset_persisting()
        self._sweep.fill_(1)
        torch.cuda.synchronize()

    @cached_property
    def _reset_persisting(self) -> Callable[[], Any]:
        if torch.version.cuda is not None:
            with contextlib.suppress(ImportError):
                from cuda.bindings import driver

                return lambda: driver.cuCtxResetPersistingL2Cache()
        return lambda: None
