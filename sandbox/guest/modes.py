"""The ways a guest runs a candidate: emulated on the CPU, captured without running, on the device; see `ahead` too."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import torch

from . import burst, device_map, dual, floats, memory
from .figures import figures
from .hip import inline
from .mode import GuestMode, Kernel, Nothing, Took, library_versions
from .on_device import OnDevice
from .record import Record


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
        if figures(targets[0], told).arch.startswith("gfx"):
            inline.install(targets, self.record, run=interpret)

    def versions(self) -> dict[str, str]:
        """Library versions; there is no device."""
        return {**library_versions(), "device": "none", "runtime": "none"}

    def running(self) -> contextlib.AbstractContextManager[Any]:
        """Map ``cuda`` away."""
        return self._map

    def map_buffer(self, kind: str, descriptor: int, size: int) -> memory.Buffer:
        """Only host buffers, to stand for a device's or the host's own; capture needs none."""
        if kind not in ("host", "cpu"):
            raise ValueError(f"no {kind} buffers without a device")
        return memory.map_host(descriptor, size)

    def call(self, kernel: Kernel, data: Any, head_start: int = 0, join: bool = True) -> tuple[Any, Took | None]:
        """Run it; nothing is timed here."""
        with self.running():
            return kernel(data), None

    def board_call(self, kernel: Kernel, data: Any, clock: str, flush: bool, clone: bool) -> tuple[Any, Took | None]:
        """Nothing is timed here."""
        return self.call(kernel, data)

    def empty(self, copied: int, head_start: int) -> Nothing | None:
        """Nothing is timed here."""
        return None

    def burst(self, kernel: Kernel, batch: Sequence[Any], gate: torch.Tensor, queued: burst.Queued) -> None:
        """Nothing is timed here."""
        queued([self.call(kernel, data)[0] for data in batch])

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
