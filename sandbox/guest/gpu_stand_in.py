"""What `torch.cuda` answers where there is no GPU: one idle device whose work is done when a call returns."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any

import torch

from .figures import Figures

_SILENT = (
    *("init", "synchronize", "set_device", "empty_cache", "set_stream", "reset_peak_memory_stats", "ipc_collect"),
    *("manual_seed", "manual_seed_all"),
)
"""Functions of `torch.cuda` that have nothing to do here."""


class _Event:
    """A CUDA event on the host's clock: nothing timed here is a time of the device."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self._at_s = 0.0

    def record(self, *_: Any) -> None:
        self._at_s = time.perf_counter()

    def elapsed_time(self, later: _Event) -> float:
        """Milliseconds, at least one: loops that divide by a time must end."""
        return max(1.0, (later._at_s - self._at_s) * 1e3)

    def synchronize(self) -> None:
        """Everything is done when it returns."""

    def wait(self, *_: Any) -> None:
        """See `synchronize`."""

    def query(self) -> bool:
        return True


class _Stream(contextlib.nullcontext[None]):
    """A stream; all of them are the one thread there is."""

    cuda_stream = 0
    device = torch.device("cuda", 0)

    def __init__(self, *_: Any, **__: Any) -> None:
        super().__init__()

    def synchronize(self) -> None:
        """Everything is done when it returns."""

    def wait_stream(self, *_: Any) -> None:
        """See `synchronize`."""

    def wait_event(self, *_: Any) -> None:
        """See `synchronize`."""

    def record_event(self, event: _Event | None = None) -> _Event:
        event = event or _Event()
        event.record()
        return event

    def query(self) -> bool:
        return True


def _no_graphs(*_: Any, **__: Any) -> Any:
    raise NotImplementedError("CUDA graphs are not emulated: launch the kernels directly")


def stand_ins(chip: Figures) -> dict[str, Any]:
    """Replacements for members of `torch.cuda`, by name. One function object each: torch._dynamo wants no twins."""
    return {
        **{name: _constant(value) for name, value in _answers(chip).items()},
        **{name: _constant(None) for name in _SILENT},
        "current_stream": lambda *_: _Stream(),
        "default_stream": lambda *_: _Stream(),
        "stream": lambda *_: contextlib.nullcontext(),
        "device": lambda *_: contextlib.nullcontext(),
        "Stream": _Stream,
        "Event": _Event,
        "CUDAGraph": _no_graphs,
        "graph": _no_graphs,
        "make_graphed_callables": _no_graphs,
    }


def _answers(chip: Figures) -> dict[str, Any]:
    total_bytes = chip.told["total_memory"]
    return {
        "is_available": True,
        "is_initialized": True,
        "is_bf16_supported": True,
        "is_current_stream_capturing": False,
        "device_count": 1,
        "current_device": 0,
        "get_device_name": chip.told["name"],
        "get_device_capability": chip.capability,
        "get_device_properties": chip.for_torch(),
        "mem_get_info": (total_bytes, total_bytes),
        "memory_allocated": 0,
        "max_memory_allocated": 0,
        "memory_reserved": 0,
    }


def _constant(value: Any) -> Callable[..., Any]:
    return lambda *_, **__: value
