"""Between the wire's trees and Python values: tensors become views of shared buffers, results are copied into one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch

from .memory import Buffer, span_bytes
from .objects import make

ALIGNMENT_BYTES = 256
_CARRIERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64, 16: torch.complex128}
"""Dtypes that any other of the same size can be copied as: torch cannot copy every narrow one."""


def decode(tree: Mapping[str, Any], buffers: Mapping[int, Buffer]) -> Any:
    """The value a tree describes; tensors are views into `buffers`, or on the meta device where they have none."""
    match tree["t"]:
        case "tuple":
            return tuple(decode(item, buffers) for item in tree["items"])
        case "list":
            return [decode(item, buffers) for item in tree["items"]]
        case "dict":
            return {name: decode(item, buffers) for name, item in tree["items"].items()}
        case "object":
            return make(tree["kind"], {name: decode(item, buffers) for name, item in tree["items"].items()})
        case "value":
            return tree["value"]
        case "tensor":
            return _view(tree, buffers)
        case other:
            raise ValueError(f"unknown kind of tree: {other}")


def _view(tree: Mapping[str, Any], buffers: Mapping[int, Buffer]) -> torch.Tensor:
    dtype = getattr(torch, tree["dtype"])
    shape, stride = tuple(tree["shape"]), tuple(tree["stride"])
    if tree["buffer"] is None:
        return torch.empty_strided(shape, stride, dtype=dtype, device="meta")
    size = span_bytes(shape, stride, dtype.itemsize)
    return torch.as_strided(buffers[tree["buffer"]].part(tree["offset"], size).view(dtype), shape, stride)


def moved(tree: Mapping[str, Any], by: int) -> Mapping[str, Any]:
    """The same tree with every tensor `by` bytes further on in its buffer."""
    match tree["t"]:
        case "tensor":
            return {**tree, "offset": tree["offset"] + by}
        case "dict" | "object":
            return {**tree, "items": {name: moved(item, by) for name, item in tree["items"].items()}}
        case "tuple" | "list":
            return {**tree, "items": [moved(item, by) for item in tree["items"]]}
        case _:
            return tree


class Encoder:
    """Describes one returned value, copying its tensors into the result buffer one after another."""

    def __init__(self, buffers: Mapping[int, Buffer], result: int | None, device_type: str) -> None:
        self._buffers = buffers
        self._result = result
        self._device_type = device_type
        self._at_bytes = 0

    def encode(self, value: Any) -> dict[str, Any]:
        """The tree of `value`; what is no tree is named by its type."""
        kind = type(value)
        if kind is tuple or kind is list:
            return {"t": kind.__name__, "items": [self.encode(item) for item in value]}
        if kind is dict and all(type(name) is str for name in value):
            return {"t": "dict", "items": {name: self.encode(item) for name, item in value.items()}}
        if value is None or kind in (bool, int, str) or (kind is float and math.isfinite(value)):
            return {"t": "value", "value": value}
        if kind is torch.Tensor and value.layout == torch.strided:
            return self._tensor(value.detach())
        return {"t": "other", "type": _spell(kind)}

    def _tensor(self, tensor: torch.Tensor) -> dict[str, Any]:
        if tensor.device.type not in (self._device_type, "meta"):
            return {"t": "other", "type": f"torch.Tensor on {tensor.device.type}"}
        tree = {"t": "tensor", "dtype": str(tensor.dtype).removeprefix("torch."), "shape": list(tensor.shape)}
        place = self._place_of(tensor) if tensor.device.type != "meta" else None
        if place is not None:
            return {**tree, "stride": list(tensor.stride()), "buffer": place[0], "offset": place[1]}
        offset = self._copy(tensor)
        stride = list(tensor.stride()) if offset is None else _contiguous_stride(tensor.shape)
        return {**tree, "stride": stride, "buffer": self._result if offset is not None else None, "offset": offset or 0}

    def _place_of(self, tensor: torch.Tensor) -> tuple[int, int] | None:
        """Buffer and byte offset of a tensor that lies in a shared buffer."""
        if tensor.is_conj() or tensor.is_neg():
            return None
        places = ((number, buffer.holds(tensor)) for number, buffer in self._buffers.items())
        return next(((number, offset) for number, offset in places if offset is not None), None)

    def _copy(self, tensor: torch.Tensor) -> int | None:
        """Copy to the next aligned place in the result buffer; its offset, or None where that cannot be done."""
        size = tensor.numel() * tensor.element_size()
        carrier = _CARRIERS.get(tensor.element_size())
        if self._result is None or tensor.device.type == "meta" or carrier is None or tensor.is_quantized:
            return None
        room = self._buffers[self._result].memory
        offset = -(-self._at_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        if offset + size > room.numel():
            return None
        source = tensor.resolve_conj().resolve_neg().view(carrier)
        room[offset : offset + size].view(carrier).view(tensor.shape).copy_(source)
        self._at_bytes = offset + size
        return offset


def _contiguous_stride(shape: torch.Size) -> list[int]:
    strides = [1]
    for length in reversed(shape[1:]):
        strides.append(strides[-1] * max(length, 1))
    return strides[::-1] if len(shape) else []


def _spell(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"[:200]
