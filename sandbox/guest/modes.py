"""The ways a guest runs a candidate: emulated on the CPU, captured without running, on the device; see `ahead` too."""

from __future__ import annotations

import contextlib
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch
import triton
from triton.runtime import driver as active_driver

from . import burst, device_map, dual, floats, memory
from .figures import figures
from .launches import LaunchWatch
from .record import Record

HEAD_START_CYCLES = 200_000
"""The device is kept busy this long before the first event, about 100 us at 2 GHz, so that the host's work of launching
is hidden from the clock as it is behind the flush of 256 MiB on GPU MODE's boards."""
BOARD_FLUSH_WORDS = 32 << 20
"""256 MiB of int64: gpu-mode/reference-kernels@f83cb92 problems/pmpp_v2/eval.py."""
LATE_US = 15.0
"""A device that works on for so much longer after the last event than after a call that leaves nothing has work on a
stream that nobody joined: it counts."""
_LATE_TRIALS = 31

Kernel = Callable[[Any], Any]


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

    def call(self, kernel: Kernel, data: Any, timed: bool, join: bool = True) -> tuple[Any, float | None]:
        """What the kernel returns, complete in memory, and the device-event time in microseconds where timed.

        Without `join`, work on streams that the kernel itself left behind may still be under way.
        """

    def board_call(self, kernel: Kernel, data: Any, clock: str, flush: bool, clone: bool) -> tuple[Any, float | None]:
        """What the kernel returns, and its time in microseconds as a GPU MODE evaluator would take it."""

    def empty(self, copied: int) -> tuple[float, float] | None:
        """What a timed call does without its kernel, with a result of `copied` bytes copied.

        Microseconds by device events: round the head start, and round a kernel that does nothing.
        """

    def burst(self, kernel: Kernel, batch: Sequence[Any], gate: torch.Tensor, queued: burst.Queued) -> None:
        """Call the kernel on each of `batch` while `gate` is shut, hand over what it returned, wait for it all."""

    def empty_burst(self, count: int, copied: int, gate: torch.Tensor, queued: Callable[[], None]) -> None:
        """The same with `count` kernels that do nothing, and results of `copied` bytes in all copied."""

    def settle(self, join: bool = True) -> None:
        """Return when every copy asked for is done."""

    def evidence(self, after: int) -> bytes:
        """Kernels, and launches from number `after`, as JSON."""


class OffDevice:
    """Emulation and capture: a machine without its chip. Compiles for `targets`, launches as the first of them."""

    def __init__(self, targets: Sequence[str], interpret: bool, told: dict[str, Any] | None = None) -> None:
        self.record = Record()
        self.device_type = "cpu" if interpret else "meta"
        self._map = device_map.DeviceMap(self.device_type)
        device_map.install(figures(targets[0], told), self._map)
        if interpret:
            floats.install()
        self._others = dual.install(tuple(targets), self.record, interpret, told)

    def versions(self) -> dict[str, str]:
        """Library versions; there is no device."""
        return {**_library_versions(), "device": "none", "runtime": "none"}

    def running(self) -> contextlib.AbstractContextManager[Any]:
        """Map ``cuda`` away."""
        return self._map

    def map_buffer(self, kind: str, descriptor: int, size: int) -> memory.Buffer:
        """Only host buffers, to stand for a device's or the host's own; capture needs none."""
        if kind not in ("host", "cpu"):
            raise ValueError(f"no {kind} buffers without a device")
        return memory.map_host(descriptor, size)

    def call(self, kernel: Kernel, data: Any, timed: bool, join: bool = True) -> tuple[Any, float | None]:
        """Run it; nothing is timed here."""
        with self.running():
            return kernel(data), None

    def board_call(self, kernel: Kernel, data: Any, clock: str, flush: bool, clone: bool) -> tuple[Any, float | None]:
        """Nothing is timed here."""
        return self.call(kernel, data, timed=False)

    def empty(self, copied: int) -> tuple[float, float] | None:
        """Nothing is timed here."""
        return None

    def burst(self, kernel: Kernel, batch: Sequence[Any], gate: torch.Tensor, queued: burst.Queued) -> None:
        """Nothing is timed here."""
        queued([self.call(kernel, data, timed=False)[0] for data in batch])

    def empty_burst(self, count: int, copied: int, gate: torch.Tensor, queued: Callable[[], None]) -> None:
        """Nothing is timed here."""
        queued()

    def settle(self, join: bool = True) -> None:
        """Copies on the CPU are done when they return."""

    def evidence(self, after: int) -> bytes:
        """Code for every target."""
        with self.running():
            self._others.note()
        return self.record.payload(after)


class OnDevice:
    """The GPU torch sees, CUDA or ROCm, with Triton as installed."""

    device_type = "cuda"

    def __init__(self) -> None:
        torch.cuda.init()
        self.record = Record()
        self._watch = LaunchWatch(self.record, _arch())
        # The first kernel of a process pays for context, allocator and Triton's driver module; no candidate should.
        torch.zeros(1, device="cuda")
        active_driver.active.get_current_target()
        self._clock_ns = time.perf_counter_ns
        self._synchronize, self._sleep = torch.cuda.synchronize, torch.cuda._sleep
        self._synchronize()
        # Waiting for a device that has nothing to do takes a while too: found out before a candidate is there.
        self._nothing_late_us = statistics.median(self._late_after_nothing_us() for _ in range(_LATE_TRIALS))

    def versions(self) -> dict[str, str]:
        """Library versions, the device and its architecture."""
        hip = torch.version.hip
        runtime = f"rocm {hip}" if hip else f"cuda {torch.version.cuda}"
        name = torch.cuda.get_device_name(0)
        return {**_library_versions(), "device": name, "arch": _arch(), "runtime": runtime}

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

    def call(self, kernel: Kernel, data: Any, timed: bool, join: bool = True) -> tuple[Any, float | None]:
        """Run and wait for the whole device; a timed call runs without the launch watch."""
        if not timed:
            with self.running():
                result = kernel(data)
                self._wait(join)
            return result, None
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        self._sleep(HEAD_START_CYCLES)
        start.record()
        result = kernel(data)
        end.record()
        late_us = self._late_us(end, join) - self._nothing_late_us
        event_us = start.elapsed_time(end) * 1e3
        return result, event_us + late_us if late_us > LATE_US else event_us

    def board_call(self, kernel: Kernel, data: Any, clock: str, flush: bool, clone: bool) -> tuple[Any, float | None]:
        """The board's flush goes before its clock, on the same stream; its clones, where it makes any, come after."""
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        self._synchronize()
        if flush:
            torch.empty(BOARD_FLUSH_WORDS, dtype=torch.int64, device="cuda").fill_(42)
        if clock == "event":
            start.record()
            result = kernel(_cloned(data) if clone else data)
            end.record()
            self._synchronize()
            return result, start.elapsed_time(end) * 1e3
        # A board's process has the device to itself and has just made and cloned its inputs. Ours shares the device by
        # turns and has just slept: with a clone our turn has begun, and the host's caches are as warm.
        _cloned(data)
        self._synchronize()
        start_ns = self._clock_ns()
        result = kernel(_cloned(data) if clone else data)
        self._synchronize()
        return result, (self._clock_ns() - start_ns) / 1e3

    def empty(self, copied: int) -> tuple[float, float] | None:
        """The same steps round an empty kernel; two plain allocations stand for the result."""
        begun, start, end = (torch.cuda.Event(enable_timing=True) for _ in range(3))
        begun.record()
        self._sleep(HEAD_START_CYCLES)
        start.record()
        self._sleep(0)
        end.record()
        self._late_us(end, join=True)
        if copied:
            result, room = (torch.empty(copied, dtype=torch.uint8, device="cuda") for _ in range(2))
            room.copy_(result)
        return begun.elapsed_time(start) * 1e3, start.elapsed_time(end) * 1e3

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
        """How long the device works on after `end`; waits for it."""
        end.synchronize()
        ended_ns = self._clock_ns()
        self._wait(join)
        return (self._clock_ns() - ended_ns) / 1e3

    def _late_after_nothing_us(self) -> float:
        end = torch.cuda.Event(enable_timing=True)
        self._sleep(HEAD_START_CYCLES)
        end.record()
        return self._late_us(end, join=True)

    def _wait(self, join: bool) -> None:
        if join:
            self._synchronize()
        else:
            torch.cuda.current_stream().synchronize()

    def evidence(self, after: int) -> bytes:
        """What the untimed calls launched."""
        return self.record.payload(after)


def _cloned(data: Any) -> Any:
    """A deep copy of tuples, lists, dicts and tensors; everything else is the thing itself."""
    if isinstance(data, torch.Tensor):
        return data.clone()
    if isinstance(data, dict):
        return {name: _cloned(part) for name, part in data.items()}
    return type(data)(_cloned(part) for part in data) if isinstance(data, tuple | list) else data


def make_mode(name: str, targets: Sequence[str], told: dict[str, Any] | None = None) -> GuestMode:
    """The mode of that name; `told` are a chip's own figures, where it is one that this guest is not shown."""
    match name:
        case "emulate":
            return OffDevice(targets, interpret=True)
        case "capture":
            return OffDevice(targets[:1], interpret=False, told=told)
        case "ahead":
            from .ahead import AheadMode

            return AheadMode(targets, told)
        case "device":
            return OnDevice()
        case other:
            raise ValueError(f"unknown mode: {other}")


def _arch() -> str:
    if torch.version.hip:
        return str(torch.cuda.get_device_properties(0).gcnArchName).split(":")[0]
    major, minor = torch.cuda.get_device_capability(0)
    return f"sm_{major}{minor}"


def _library_versions() -> dict[str, str]:
    python = ".".join(map(str, sys.version_info[:3]))
    return {"python": python, "torch": torch.__version__, "triton": triton.__version__}
