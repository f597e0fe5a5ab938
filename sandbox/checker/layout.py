"""Where a case's tensors lie in the shared buffers, and the tree that tells the guest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from problems.made import Made
from sandbox.checker.places import Pattern, Place, named

INPUTS, RESULT, HOST = 0, 1, 2
"""Ids of the buffers that a guest is given; the last, of inputs on the host, where a problem has such."""
ALIGNMENT = 512
"""Bytes, as torch's CUDA allocator aligns: a kernel may specialise on it."""
_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


@dataclass(frozen=True, slots=True)
class Span:
    """One tensor inside a buffer: shape and stride in elements, offset in bytes."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int = 0

    @property
    def bytes(self) -> int:
        """Bytes from its first element to the end of its last."""
        return span_bytes(self.shape, self.stride, self.dtype.itemsize)

    def view(self, buffer: torch.Tensor) -> torch.Tensor:
        """The tensor, in `buffer` (uint8, one dimension)."""
        if 0 in self.shape:
            return torch.empty(self.shape, dtype=self.dtype, device=buffer.device)
        part = buffer[self.offset : self.offset + self.bytes].view(self.dtype)
        return part.as_strided(self.shape, self.stride)


@dataclass(slots=True)
class Layout:
    """Inputs as a tree for the wire, their tensors in order, and where each lies."""

    tree: dict[str, Any]
    tensors: list[torch.Tensor] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    writable: list[bool] = field(default_factory=list)
    """Which are outputs: poisoned, not filled."""
    updated: list[bool] = field(default_factory=list)
    """Which are filled and may come back changed."""
    on_host: list[bool] = field(default_factory=list)
    bytes: int = 0
    host_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Rights:
    """What a kernel may do with which inputs, as patterns of `sandbox.checker.places`."""

    writable: tuple[Pattern, ...] = ()
    updated: tuple[Pattern, ...] = ()
    on_host: tuple[Pattern, ...] = ()
    """Inputs that lie in the host's memory, whatever the device."""


def span_bytes(shape: tuple[int, ...], stride: tuple[int, ...], itemsize: int) -> int:
    """Bytes from the first element to the end of the last, strides not negative."""
    if 0 in shape:
        return 0
    return (1 + sum((size - 1) * step for size, step in zip(shape, stride, strict=True))) * itemsize


def lay_out(data: Any, rights: Rights | tuple[Pattern, ...] = (), in_memory: bool = True) -> Layout:
    """Place every tensor of `data`, each on a boundary of its own; without memory the tree says shapes alone.

    A tuple of patterns in place of `rights` names the writable inputs.
    """
    layout = Layout({})
    rights = rights if isinstance(rights, Rights) else Rights(rights)
    layout.tree = _node(data, (), layout, rights, in_memory)
    return layout


def _node(item: Any, place: Place, layout: Layout, rights: Rights, in_memory: bool) -> dict[str, Any]:
    def node(key: object, part: Any) -> dict[str, Any]:
        return _node(part, (*place, str(key)), layout, rights, in_memory)

    if isinstance(item, torch.Tensor):
        return _tensor(item, place, layout, rights, in_memory)
    if isinstance(item, Made):
        items = {name: node(name, part) for name, part in item.fields.items()}
        return {"t": "object", "kind": item.kind, "items": items}
    if isinstance(item, dict):
        return {"t": "dict", "items": {key: node(key, part) for key, part in item.items()}}
    if isinstance(item, tuple | list):
        kind = "tuple" if isinstance(item, tuple) else "list"
        return {"t": kind, "items": [node(index, part) for index, part in enumerate(item)]}
    return {"t": "value", "value": item}


def _tensor(tensor: torch.Tensor, place: Place, layout: Layout, rights: Rights, in_memory: bool) -> dict[str, Any]:
    on_host = named(place, rights.on_host)
    offset = -(-(layout.host_bytes if on_host else layout.bytes) // ALIGNMENT) * ALIGNMENT
    span = Span(tensor.dtype, tuple(tensor.shape), tuple(tensor.stride()), offset)
    layout.tensors.append(tensor)
    layout.spans.append(span)
    layout.writable.append(named(place, rights.writable))
    layout.updated.append(named(place, rights.updated))
    layout.on_host.append(on_host)
    if on_host:
        layout.host_bytes = offset + span.bytes
    else:
        layout.bytes = offset + span.bytes
    return {
        "t": "tensor",
        "dtype": str(tensor.dtype).removeprefix("torch."),
        "shape": list(span.shape),
        "stride": list(span.stride),
        "buffer": (HOST if on_host else INPUTS) if in_memory else None,
        "offset": offset if in_memory else 0,
    }


def fill(layout: Layout, buffer: torch.Tensor, poisoned: bool = True, host: torch.Tensor | None = None) -> None:
    """Write the inputs into the shared buffer, those on the host into `host`, and poison what is to be written."""
    for tensor, span, writable, memory in _each(layout, buffer, host):
        if writable:
            poison(memory[span.offset : span.offset + span.bytes], span.dtype, poisoned)
        else:
            bits(span.view(memory)).copy_(bits(tensor))


def _each(
    layout: Layout, buffer: torch.Tensor, host: torch.Tensor | None
) -> Iterator[tuple[torch.Tensor, Span, bool, torch.Tensor]]:
    """Every tensor, its place, whether it is an output, and the memory it is in."""
    memories = [buffer if host is None or not on_host else host for on_host in layout.on_host]
    return zip(layout.tensors, layout.spans, layout.writable, memories, strict=True)


def poison(region: torch.Tensor, dtype: torch.dtype, poisoned: bool = True) -> None:
    """Fill `region` (uint8) so that an element left alone is found: NaN where the dtype has one, else noise.

    Zeros where not `poisoned`.
    """
    if not poisoned:
        region.zero_()
    elif dtype.is_floating_point:
        region.fill_(0xFF)
    else:
        region.random_(0, 256)


def changed(layout: Layout, buffer: torch.Tensor, host: torch.Tensor | None = None) -> list[int]:
    """Which of the tensors that must come back unchanged did not, by their order."""
    return [
        index
        for index, (tensor, span, writable, memory) in enumerate(_each(layout, buffer, host))
        if not (writable or layout.updated[index]) and not same_bits(span.view(memory), tensor)
    ]


def same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors of one shape and dtype hold the same bits, NaN included."""
    return torch.equal(bits(one).to(other.device), bits(other))


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """The same memory as whole numbers of the same size: fp8 copies and NaN compares need no arithmetic."""
    return tensor.view(_BITS[tensor.dtype.itemsize])
