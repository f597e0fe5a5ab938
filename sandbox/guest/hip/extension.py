"""A built extension as the module that `load_inline` would return: its functions, called with tensors."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace
from typing import Any

import torch

from .emulated.library import Library
from .tensors import Tensors, Value


class ExtensionError(RuntimeError):
    """An extension's function raised, as `TORCH_CHECK` does."""


@dataclass(frozen=True, slots=True)
class _Function:
    number: int
    name: str
    count: int
    parameters: tuple[tuple[str, Value | None], ...]
    """Names and, where there is one, the default, as far as the binding says."""

    def arranged(self, args: tuple[Any, ...], kwargs: dict[str, Any], pack: Callable[[Any], Value]) -> list[Value]:
        """Values in the function's order; `TypeError` where they do not fit."""
        given = [pack(value) for value in args]
        left = dict(kwargs)
        for name, default in self.parameters[len(given) :]:
            if name in left:
                given.append(pack(left.pop(name)))
            elif default is not None:
                given.append(default)
        if left or len(given) != self.count:
            names = ", ".join(name for name, _ in self.parameters)
            raise TypeError(f"{self.name}({names}) takes {self.count} arguments, {len(args) + len(kwargs)} were given")
        return given


class Extension(ModuleType):
    """The functions of one library; kernels they launch are checked against the tensors it holds."""

    def __init__(self, name: str, library: Library) -> None:
        super().__init__(name)
        self._library = library
        self._tensors = Tensors(self._watch)
        self._handle = library.handle
        self._handle.kw_torch_bind(ctypes.byref(self._tensors.table))
        for function in self._functions():
            space, _, plain = function.name.rpartition("::")
            setattr(_operators(space) if space else self, plain, _callable(self, function))

    def _run(self, function: _Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call one function; `ExtensionError` where it throws, `HipFault` where a kernel of it did wrong."""
        values = function.arranged(args, kwargs, self._tensors.pack)
        given, result = (Value * max(1, len(values)))(*values), Value()
        try:
            with self._library.guarded(filter(None, map(_range, self._tensors.held()))):
                raised = self._handle.kw_torch_run(function.number, given, ctypes.byref(result))
                found = self._tensors.unpack(result)
        finally:
            fault = self._tensors.fault()
            self._handle.kw_torch_clear()
            self._tensors.forget()
        if raised:
            raise ExtensionError(found) from fault
        return tuple(found) if isinstance(found, list) and _has_tensor(found) else found

    def _watch(self, tensor: torch.Tensor) -> None:
        """Memory that the extension gets during a call is its kernels' too."""
        self._library.ranges(filter(None, [_range(tensor)]))

    def _functions(self) -> list[_Function]:
        name, count = ctypes.c_char_p(), ctypes.c_int32()
        total = self._handle.kw_torch_list(1 << 30, ctypes.byref(name), ctypes.byref(count))
        found: list[_Function] = []
        for number in range(total):
            self._handle.kw_torch_list(number, ctypes.byref(name), ctypes.byref(count))
            spelled = (name.value or b"").decode()
            found.append(_Function(number, spelled, count.value, self._parameters(number)))
        return found

    def _parameters(self, number: int) -> tuple[tuple[str, Value | None], ...]:
        found: list[tuple[str, Value | None]] = []
        while True:
            name, default = ctypes.c_char_p(), Value()
            known = self._handle.kw_torch_parameter(number, len(found), ctypes.byref(name), ctypes.byref(default))
            if not known:
                return tuple(found)
            found.append(((name.value or b"").decode(), default if known == 2 else None))


def _operators(space: str) -> Any:
    """The operators of a library, where candidates look for them: ``torch.ops.<space>``."""
    if not isinstance(vars(torch.ops).get(space), SimpleNamespace):
        setattr(torch.ops, space, SimpleNamespace())
    return getattr(torch.ops, space)


def _callable(extension: Extension, function: _Function) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        return extension._run(function, args, kwargs)

    call.__name__ = function.name
    return call


def _range(tensor: torch.Tensor) -> tuple[int, int, str] | None:
    """Where a tensor's storage lies; None where it has none."""
    if tensor.is_meta:
        return None
    storage = tensor.untyped_storage()
    name = f"tensor {str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"
    return (storage.data_ptr(), storage.nbytes(), name) if storage.nbytes() else None


def _has_tensor(values: list[Any]) -> bool:
    return any(isinstance(value, torch.Tensor) for value in values)
