"""What `torch.cuda` answers where there is no GPU: one idle AMD device whose work is done when a call returns."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch

from .hip_driver import MAX_THREADS, PROPERTIES, WAVE

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


def stand_ins(arch: str) -> dict[str, Any]:
    """Replacements for members of `torch.cuda`, by name. One function object each: torch._dynamo wants no twins."""
    return {
        **{name: _constant(value) for name, value in _answers(arch).items()},
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


def _answers(arch: str) -> dict[str, Any]:
    figures = PROPERTIES[arch]
    return {
        "is_available": True,
        "is_initialized": True,
        "is_bf16_supported": True,
        "is_current_stream_capturing": False,
        "device_count": 1,
        "current_device": 0,
        "get_device_name": figures["name"],
        "get_device_capability": figures["capability"],
        "get_device_properties": _properties(arch),
        "mem_get_info": (figures["total_memory"], figures["total_memory"]),
        "memory_allocated": 0,
        "max_memory_allocated": 0,
        "memory_reserved": 0,
    }


def _properties(arch: str) -> SimpleNamespace:
    figures = PROPERTIES[arch]
    return SimpleNamespace(
        name=figures["name"],
        gcnArchName=f"{arch}:sramecc+:xnack-",
        major=figures["capability"][0],
        minor=figures["capability"][1],
        total_memory=figures["total_memory"],
        multi_processor_count=figures["multiprocessor_count"],
        warp_size=WAVE,
        max_threads_per_block=MAX_THREADS,
        max_threads_per_multi_processor=2048,
        shared_memory_per_block=figures["max_shared_mem"],
        regs_per_multiprocessor=65536,
        L2_cache_size=4 << 20,
    )


def _constant(value: Any) -> Callable[..., Any]:
    return lambda *_, **__: value
