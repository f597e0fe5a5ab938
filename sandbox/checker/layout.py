"""Where a case's tensors lie in the shared buffers, and the tree that tells the guest."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

INPUTS, RESULT = 0, 1
"""Ids of the two buffers that a guest is given."""
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
    bytes: int = 0


def span_bytes(shape: tuple[int, ...], stride: tuple[int, ...], itemsize: int) -> int:
    """Bytes from the first element to the end of the last, strides not negative."""
    if 0 in shape:
        return 0
    return (1 + sum((size - 1) * step for size, step in zip(shape, stride, strict=True))) * itemsize


def lay_out(data: tuple[Any, ...], writable: tuple[int, ...], in_memory: bool = True) -> Layout:
    """Place every tensor of `data`, each on a boundary of its own; without memory the tree says shapes alone."""
    layout = Layout({})
    items = [_node(item, layout, index in writable, in_memory) for index, item in enumerate(data)]
    layout.tree = {"t": "tuple", "items": items}
    return layout


def _node(item: Any, layout: Layout, writable: bool, in_memory: bool) -> dict[str, Any]:
    if isinstance(item, torch.Tensor):
        return _tensor(item, layout, writable, in_memory)
    if isinstance(item, dict):
        return {"t": "dict", "items": {key: _node(part, layout, writable, in_memory) for key, part in item.items()}}
    if isinstance(item, tuple | list):
        kind = "tuple" if isinstance(item, tuple) else "list"
        return {"t": kind, "items": [_node(part, layout, writable, in_memory) for part in item]}
    return {"t": "value", "value": item}


def _tensor(tensor: torch.Tensor, layout: Layout, writable: bool, in_memory: bool) -> dict[str, Any]:
    offset = -(-layout.bytes // ALIGNMENT) * ALIGNMENT
    span = Span(tensor.dtype, tuple(tensor.shape), tuple(tensor.stride()), offset)
    layout.tensors.append(tensor)
    layout.spans.append(span)
    layout.writable.append(writable)
    layout.bytes = offset + span.bytes
    return {
        "t": "tensor",
        "dtype": str(tensor.dtype).removeprefix("torch."),
        "shape": list(span.shape),
        "stride": list(span.stride),
        "buffer": INPUTS if in_memory else None,
        "offset": offset if in_memory else 0,
    }


def fill(layout: Layout, buffer: torch.Tensor, poisoned: bool = True) -> None:
    """Write the inputs into the shared buffer, and poison what the kernel is to write."""
    for tensor, span, writable in zip(layout.tensors, layout.spans, layout.writable, strict=True):
        if writable:
            poison(buffer[span.offset : span.offset + span.bytes], span.dtype, poisoned)
        else:
            bits(span.view(buffer)).copy_(bits(tensor))


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


def changed(layout: Layout, buffer: torch.Tensor) -> list[int]:
    """Which of the tensors that must come back unchanged did not, by their order."""
    triples = enumerate(zip(layout.tensors, layout.spans, layout.writable, strict=True))
    return [
        index
        for index, (tensor, span, writable) in triples
        if not writable and not same_bits(span.view(buffer), tensor)
    ]


def same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors of one shape and dtype hold the same bits, NaN included."""
    return torch.equal(bits(one).to(other.device), bits(other))


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """The same memory as whole numbers of the same size: fp8 copies and NaN compares need no arithmetic."""
    return tensor.view(_BITS[tensor.dtype.itemsize])
