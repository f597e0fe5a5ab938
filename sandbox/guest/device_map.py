"""A GPU that is not there: what a submission asks of ``cuda`` lands on the CPU (emulation) or on meta (capture).

Tensors that live at that place say they are on ``cuda:0``. Covered is what submissions do: device arguments, moves,
`is_cuda`, the questions of `torch.cuda`. Not covered: `torch.Generator(device="cuda")`, CUDA graphs (they raise), and,
in emulation, a tensor made on the CPU on purpose, which looks like a device tensor too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from .figures import Figures
from .gpu_stand_in import stand_ins

HIP_VERSION = "6.4.43484"
"""What `torch.version.hip` says while an AMD GPU is emulated: the ROCm 6.4 of GPU MODE's MI300 machines."""

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


def install(chip: Figures, device_map: DeviceMap) -> None:
    """Make `torch.cuda`, `torch.version` and `torch.set_default_device` speak of one such device."""
    if not chip.is_cuda:
        torch.version.hip = torch.version.hip or HIP_VERSION
    for name, value in stand_ins(chip).items():
        setattr(torch.cuda, name, value)
    set_default = torch.set_default_device
    torch.set_default_device = lambda device: set_default(device_map.mapped(device))
    # It changes how a function runs, never what it computes, and its CPU back end needs a C++ compiler.
    torch.compile = lambda model=None, **_: model if model is not None else (lambda inner: inner)
