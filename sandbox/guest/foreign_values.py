"""Values of code from elsewhere on the wire: a tree as in `wire`, with its tensors' strides kept, and three kinds more.

``{"t": "object", "module": .., "name": .., "fields": {..}}`` is an instance of a class that the problem's own files
define, with ``"parts"``, registered tensors and submodules, where it is a torch module; ``{"t": "dtype", "name": ..}``
and ``{"t": "device"}`` are what they say. Both guests hold the files, so that each makes its own instance.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping
from typing import Any

import torch

from . import tree as plain
from .memory import Buffer, span_bytes

ALIGNMENT_BYTES = 512
MAX_DEPTH = 16


class Plan:
    """One value described, and where in a buffer its tensors will lie."""

    def __init__(self, value: Any, modules: tuple[str, ...]) -> None:
        """`modules`: whose classes may be handed over. `TypeError` for what cannot be."""
        self.bytes = 0
        self._modules = modules
        self._tensors: list[tuple[torch.Tensor, int]] = []
        self.tree = self._node(value, 0)

    def write(self, memory: torch.Tensor) -> None:
        """Copy every tensor to its place in `memory` (uint8, one dimension)."""
        for tensor, offset in self._tensors:
            size = span_bytes(tensor.shape, tensor.stride(), tensor.element_size())
            if size:
                carrier = plain._CARRIERS[tensor.element_size()]
                room = memory[offset : offset + size].view(carrier).as_strided(tensor.shape, tensor.stride())
                room.copy_(tensor.view(carrier))

    def _node(self, value: Any, depth: int) -> dict[str, Any]:
        if depth > MAX_DEPTH:
            raise TypeError("a value is nested too deeply to be handed over")
        if isinstance(value, torch.Tensor):
            return self._tensor(value.detach())
        if isinstance(value, tuple | list):
            kind = "tuple" if isinstance(value, tuple) else "list"
            return {"t": kind, "items": [self._node(item, depth + 1) for item in value]}
        if isinstance(value, dict):
            return {"t": "dict", "items": self._items(value, depth)}
        if value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value)):
            return {"t": "value", "value": value}
        if isinstance(value, torch.dtype):
            return {"t": "dtype", "name": str(value).removeprefix("torch.")}
        if isinstance(value, torch.device):
            return {"t": "device"}
        return self._object(value, depth)

    def _items(self, value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
        if not all(isinstance(name, str) for name in value):
            raise TypeError("a dict's keys must be text to be handed over")
        return {name: self._node(item, depth + 1) for name, item in value.items()}

    def _object(self, value: Any, depth: int) -> dict[str, Any]:
        kind = type(value)
        if kind.__module__ not in self._modules or not hasattr(value, "__dict__"):
            raise TypeError(f"a {kind.__module__}.{kind.__qualname__} cannot be handed over")
        node = {"t": "object", "module": kind.__module__, "name": kind.__qualname__}
        if not isinstance(value, torch.nn.Module):
            return {**node, "fields": self._items(vars(value), depth)}
        own = {name: item for name, item in vars(value).items() if not name.startswith("_")}
        parts = {**value._parameters, **value._buffers, **value._modules}
        return {**node, "fields": self._items(own, depth), "parts": self._items(parts, depth)}

    def _tensor(self, tensor: torch.Tensor) -> dict[str, Any]:
        if tensor.layout != torch.strided or tensor.element_size() not in plain._CARRIERS or tensor.is_quantized:
            raise TypeError(f"a tensor of {tensor.dtype}, {tensor.layout} cannot be handed over")
        tensor = tensor.resolve_conj().resolve_neg()
        offset = -(-self.bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        self.bytes = offset + span_bytes(tensor.shape, tensor.stride(), tensor.element_size())
        self._tensors.append((tensor, offset))
        return {
            "t": "tensor",
            "dtype": str(tensor.dtype).removeprefix("torch."),
            "shape": list(tensor.shape),
            "stride": list(tensor.stride()),
            "buffer": 0,
            "offset": offset,
        }


def decode(tree: Mapping[str, Any], buffers: Mapping[int, Buffer], device: str) -> Any:
    """The value a tree describes; tensors are views into `buffers`."""

    def part(node: Mapping[str, Any]) -> Any:
        return decode(node, buffers, device)

    match tree["t"]:
        case "tuple":
            return tuple(part(item) for item in tree["items"])
        case "list":
            return [part(item) for item in tree["items"]]
        case "dict":
            return {name: part(item) for name, item in tree["items"].items()}
        case "dtype":
            return getattr(torch, tree["name"])
        case "device":
            return torch.device(device)
        case "object":
            return _made(tree, part)
        case _:
            return plain.decode(tree, buffers)


def _made(tree: Mapping[str, Any], part: Any) -> Any:
    kind = getattr(importlib.import_module(tree["module"]), tree["name"])
    made = kind.__new__(kind)
    if "parts" in tree:
        torch.nn.Module.__init__(made)
        for name, node in tree["parts"].items():
            value = part(node)
            if isinstance(value, torch.nn.Module):
                made.add_module(name, value)
            else:
                made.register_buffer(name, value)
    for name, node in tree["fields"].items():
        object.__setattr__(made, name, part(node))
    return made
