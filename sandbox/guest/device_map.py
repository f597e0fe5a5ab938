"""A GPU that is not there: what a submission asks of ``cuda`` lands on the CPU (emulation) or on meta (capture).

Tensors that live at that place say they are on ``cuda:0``. Covered is what submissions do: device arguments, moves,
`is_cuda`, the questions of `torch.cuda`. Not covered: `torch.Generator(device="cuda")`, CUDA graphs (they raise), and,
in emulation, a tensor made on the CPU on purpose, which looks like a device tensor too.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from .hip_driver import MAX_THREADS, PROPERTIES, WAVE

HIP_VERSION = "6.4.43484"
"""What `torch.version.hip` says while the GPU is emulated: the ROCm 6.4 of GPU MODE's MI300 machines."""

_DEVICE = torch.device("cuda", 0)
_GPU_TYPES = ("cuda", "hip")


class DeviceMap(TorchFunctionMode):
    """While entered, ``cuda`` means `place`."""

    def __init__(self, place: str) -> None:
        super().__init__()
        self._place = torch.device(place)
        tensor = torch.Tensor
        self._answers: dict[Any, Callable[..., Any]] = {
            tensor.is_cuda.__get__: self._is_here,
            tensor.device.__get__: lambda t: _DEVICE if self._is_here(t) else torch.Tensor.device.__get__(t),
            tensor.get_device: lambda t: 0 if self._is_here(t) else -1,
            tensor.cuda: lambda t, *_, **__: t.to(self._place),
            tensor.cpu: lambda t, **_: t.clone() if self._place.type == "cpu" else t.cpu(),
            tensor.pin_memory: lambda t, *_: t,
            tensor.record_stream: lambda *_: None,
        }

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func in self._answers:
            return self._answers[func](*args, **kwargs)
        if "device" in kwargs:
            kwargs["device"] = self.mapped(kwargs["device"])
        kwargs.pop("pin_memory", None)
        if func is torch.Tensor.to:
            args = (args[0], *(self.mapped(arg) if _names_device(arg) else arg for arg in args[1:]))
        return func(*args, **kwargs)

    def mapped(self, device: Any) -> Any:
        """`device`, or the place that stands for it where it is a GPU; a bare number is a GPU's."""
        if device is None:
            return None
        kind = "cuda" if isinstance(device, int) else torch.device(device).type
        return self._place if kind in _GPU_TYPES else device

    def _is_here(self, tensor: torch.Tensor) -> bool:
        return torch.Tensor.device.__get__(tensor).type == self._place.type


def _names_device(value: Any) -> bool:
    return isinstance(value, str | torch.device)


def install(arch: str, device_map: DeviceMap) -> None:
    """Make `torch.cuda`, `torch.version` and `torch.set_default_device` speak of one `arch` device."""
    torch.version.hip = HIP_VERSION
    for name, value in _stand_ins(arch).items():
        setattr(torch.cuda, name, value)
    set_default = torch.set_default_device
    torch.set_default_device = lambda device: set_default(device_map.mapped(device))
    # It changes how a function runs, never what it computes, and its CPU back end needs a C++ compiler.
    torch.compile = lambda model=None, **_: model if model is not None else (lambda inner: inner)


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
    device = _DEVICE

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


def _stand_ins(arch: str) -> dict[str, Any]:
    figures = PROPERTIES[arch]
    properties = SimpleNamespace(
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

    def nothing(*_: Any, **__: Any) -> None:
        return None

    answers: dict[str, Any] = {
        "is_available": True,
        "is_initialized": True,
        "is_bf16_supported": True,
        "is_current_stream_capturing": False,
        "device_count": 1,
        "current_device": 0,
        "get_device_name": figures["name"],
        "get_device_capability": figures["capability"],
        "get_device_properties": properties,
        "mem_get_info": (figures["total_memory"], figures["total_memory"]),
        "memory_allocated": 0,
        "max_memory_allocated": 0,
        "memory_reserved": 0,
    }
    silent = (
        "init",
        "synchronize",
        "set_device",
        "empty_cache",
        "set_stream",
        "reset_peak_memory_stats",
        "ipc_collect",
    )
    return {
        **{name: _constant(value) for name, value in answers.items()},
        **dict.fromkeys((*silent, "manual_seed", "manual_seed_all"), nothing),
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


def _constant(value: Any) -> Callable[..., Any]:
    return lambda *_, **__: value
