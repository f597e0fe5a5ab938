"""Running on the GPU that torch sees, CUDA or ROCm, timed by its events."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from triton.runtime import driver as active_driver

from . import burst, memory
from .hip import portable
from .launches import LaunchWatch
from .mode import Kernel, Nothing, Took, library_versions
from .record import Record

BOARD_FLUSH_WORDS = 32 << 20
"""256 MiB of int64: gpu-mode/reference-kernels@f83cb92 problems/pmpp_v2/eval.py."""
WAKE_NS = 1_000_000


class OnDevice:
    """The GPU torch sees, CUDA or ROCm, with Triton as installed."""

    device_type = "cuda"

    def __init__(self) -> None:
        torch.cuda.init()
        portable.install()
        self.record = Record()
        self._watch = LaunchWatch(self.record, _arch())
        # The first kernel of a process pays for context, allocator and Triton's driver module; no candidate should.
        torch.zeros(1, device="cuda")
        active_driver.active.get_current_target()
        self._clock_ns = time.perf_counter_ns
        self._synchronize, self._sleep = torch.cuda.synchronize, torch.cuda._sleep
        self._synchronize()

    def versions(self) -> dict[str, str]:
        """Library versions, the device and its architecture."""
        hip = torch.version.hip
        runtime = f"rocm {hip}" if hip else f"cuda {torch.version.cuda}"
        name = torch.cuda.get_device_name(0)
        return {**library_versions(), "device": name, "arch": _arch(), "runtime": runtime}

    def running(self) -> contextlib.AbstractContextManager[Any]:
        """Nothing to map; launches are noted."""
        return self._watch

    def map_buffer(self, kind: str, descriptor: int, size: int) -> memory.Buffer:
        """Host buffers are staged on the device, cuda buffers are mapped there, cpu buffers stay where they are."""
        match kind:
            case "cpu":
                return memory.map_host(descriptor, size)
            case "host":
                return memory.map_host(descriptor, size, stage_on="cuda")
            case "cuda":
                return memory.map_cuda(descriptor, size)
            case other:
                raise ValueError(f"unknown kind of buffer: {other}")

    def call(self, kernel: Kernel, data: Any, head_start: int = 0, join: bool = True) -> tuple[Any, Took | None]:
        """Run and wait for the whole device; a timed call runs without the launch watch."""
        if not head_start:
            with self.running():
                result = kernel(data)
                self._wait(join)
            return result, None
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        self._sleep(head_start)
        start.record()
        result = kernel(data)
        end.record()
        exposed = start.query()
        late_us = self._late_us(end, join)
        return result, Took(start.elapsed_time(end) * 1e3, late_us, exposed)

    def board_call(self, kernel: Kernel, data: Any, clock: str, flush: bool, clone: bool) -> tuple[Any, Took | None]:
        """The board's flush goes before its clock, on the same stream; its clones, where it makes any, come after."""
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        # A board's process has just computed; this one has slept, and a core that has slept launches slowly.
        awake_ns = self._clock_ns() + WAKE_NS
        while self._clock_ns() < awake_ns:
            pass
        self._synchronize()
        if flush:
            torch.empty(BOARD_FLUSH_WORDS, dtype=torch.int64, device="cuda").fill_(42)
        if clock == "event":
            start.record()
            result = kernel(cloned(data) if clone else data)
            end.record()
            self._synchronize()
            return result, Took(start.elapsed_time(end) * 1e3)
        # A board's process has the device to itself and has just made and cloned its inputs. Ours shares the device by
        # turns and has just slept: with a clone our turn has begun, and the host's caches are as warm.
        cloned(data)
        self._synchronize()
        start_ns = self._clock_ns()
        result = kernel(cloned(data) if clone else data)
        self._synchronize()
        return result, Took((self._clock_ns() - start_ns) / 1e3)

    def empty(self, copied: int, head_start: int) -> Nothing | None:
        """The same steps round an empty kernel; two plain allocations stand for the result."""
        begun, start, end = (torch.cuda.Event(enable_timing=True) for _ in range(3))
        begun.record()
        self._sleep(head_start)
        start.record()
        self._sleep(0)
        end.record()
        late_us = self._late_us(end, join=True)
        if copied:
            result, room = (torch.empty(copied, dtype=torch.uint8, device="cuda") for _ in range(2))
            room.copy_(result)
        return Nothing(begun.elapsed_time(start) * 1e3, start.elapsed_time(end) * 1e3, late_us)

    def burst(self, kernel: Kernel, batch: Sequence[Any], gate: torch.Tensor, queued: burst.Queued) -> None:
        """On the current stream; without the launch watch, as every timed call."""
        burst.queue(kernel, batch, gate, queued)
        self._synchronize()

    def empty_burst(self, count: int, copied: int, gate: torch.Tensor, queued: Callable[[], None]) -> None:
        """Plain allocations stand for the results."""
        burst.queue_empty(count, copied, gate, queued)
        self._synchronize()

    def settle(self, join: bool = True) -> None:
        """Wait for the device."""
        self._wait(join)

    def _late_us(self, end: torch.cuda.Event, join: bool) -> float:
        """How long the device works on after `end`, and what finding that out takes; waits for it."""
        end.synchronize()
        ended_ns = self._clock_ns()
        self._wait(join)
        return (self._clock_ns() - ended_ns) / 1e3

    def _wait(self, join: bool) -> None:
        if join:
            self._synchronize()
        else:
            torch.cuda.current_stream().synchronize()

    def evidence(self, after: int) -> bytes:
        """What the untimed calls launched."""
        return self.record.payload(after)


def cloned(data: Any) -> Any:
    """A deep copy of tuples, lists, dicts and tensors; everything else is the thing itself."""
    if isinstance(data, torch.Tensor):
        return data.clone()
    if isinstance(data, dict):
        return {name: cloned(part) for name, part in data.items()}
    return type(data)(cloned(part) for part in data) if isinstance(data, tuple | list) else data


def _arch() -> str:
    if torch.version.hip:
        return str(torch.cuda.get_device_properties(0).gcnArchName).split(":")[0]
    major, minor = torch.cuda.get_device_capability(0)
    return f"sm_{major}{minor}"
