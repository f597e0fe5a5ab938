"""What a guest says a value from elsewhere is, read strictly, and the value as the checker keeps it: raw bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from sandbox.checker.layout import ALIGNMENT, Span, span_bytes

MAX_NODES, MAX_DEPTH, MAX_RANK, MAX_TEXT = 20_000, 20, 16, 256
_EXTENT = 1 << 48
_DTYPES = {str(value).removeprefix("torch."): value for value in vars(torch).values() if isinstance(value, torch.dtype)}


class Malformed(Exception):
    """A tree that no honest guest sends."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """One tensor of a tree: its keys from outside in, where it lies, and in which buffer."""

    place: str
    span: Span
    buffer: int


@dataclass(frozen=True, slots=True)
class Value:
    """A value as the checker holds it: its tree, its bytes (uint8, one dimension, the checker's own), its tensors."""

    tree: dict[str, Any]
    data: torch.Tensor
    leaves: tuple[Leaf, ...]

    def tensor(self, leaf: Leaf) -> torch.Tensor:
        """One of its tensors, as a view of the bytes."""
        return leaf.span.view(self.data)

    def tensors(self) -> tuple[torch.Tensor, ...]:
        """All of them, in order."""
        return tuple(self.tensor(leaf) for leaf in self.leaves)

    def on(self, buffer: int) -> dict[str, Any]:
        """Its tree with every tensor in that buffer."""
        return _moved(self.tree, buffer)


def read(tree: object, sizes: dict[int, int], modules: Sequence[str] = ()) -> tuple[Leaf, ...]:
    """The tensors of `tree`, all inside buffers of these sizes in bytes; `Malformed` for anything else.

    `modules`: whose objects may be in it; dtypes and devices only where there are any.
    """
    nodes = [0]
    return tuple(_read(tree, "", 0, nodes, sizes, modules))


def owned(tree: object, buffers: dict[int, torch.Tensor]) -> Value:
    """A value of a candidate as the checker's own copy, each tensor contiguous; `Malformed` as in `read`."""
    leaves = read(tree, {number: room.numel() for number, room in buffers.items()})
    offset, kept = 0, []
    for leaf in leaves:
        offset = -(-offset // ALIGNMENT) * ALIGNMENT
        shape = leaf.span.shape
        stride = torch.empty(shape, device="meta").stride()
        kept.append(Leaf(leaf.place, Span(leaf.span.dtype, shape, stride, offset), 0))
        offset += kept[-1].span.bytes
    device = next(iter(buffers.values())).device
    data = torch.zeros(max(offset, 1), dtype=torch.uint8, device=device)
    for leaf, own in zip(leaves, kept, strict=True):
        if 0 not in own.span.shape:
            _bytes(own.span.view(data)).copy_(_bytes(leaf.span.view(buffers[leaf.buffer])))
    assert isinstance(tree, dict)
    return Value(_placed(tree, iter(kept)), data, tuple(kept))


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    """As whole numbers of one size: narrow dtypes cannot all be copied."""
    carriers = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    size = tensor.element_size()
    return tensor.view(carriers[size]) if size in carriers else torch.view_as_real(tensor).view(torch.int64)


def _read(
    node: object, place: str, depth: int, nodes: list[int], sizes: dict[int, int], modules: Sequence[str]
) -> Iterator[Leaf]:
    nodes[0] += 1
    if not isinstance(node, dict) or depth > MAX_DEPTH or nodes[0] > MAX_NODES:
        raise Malformed("a value is no tree, or too large a one")
    kind = node.get("t")
    if kind == "tensor":
        yield _leaf(node, place, sizes)
    elif kind in ("tuple", "list") and isinstance(node.get("items"), list):
        for index, item in enumerate(node["items"]):
            yield from _read(item, f"{place}/{index}", depth + 1, nodes, sizes, modules)
    elif kind == "dict":
        yield from _named(node.get("items"), place, depth, nodes, sizes, modules)
    elif kind == "object" and _own(node, modules):
        for part in ("fields", *(["parts"] if "parts" in node else [])):
            yield from _named(node.get(part), place, depth, nodes, sizes, modules)
    elif not _plain(node, kind, modules):
        raise Malformed(f"a value holds a {str(kind)[:32]} that cannot be handed over")


def _named(
    items: object, place: str, depth: int, nodes: list[int], sizes: dict[int, int], modules: Sequence[str]
) -> Iterator[Leaf]:
    if not isinstance(items, dict) or any(len(name) > MAX_TEXT for name in items):
        raise Malformed("a value's names are not those of a table")
    for name, item in items.items():
        yield from _read(item, f"{place}/{name}", depth + 1, nodes, sizes, modules)


def _own(node: dict[str, Any], modules: Sequence[str]) -> bool:
    """An instance of a class at the top of one of the problem's modules: nothing else may be imported for it."""
    return node.get("module") in modules and isinstance(name := node.get("name"), str) and name.isidentifier()


def _plain(node: dict[str, Any], kind: object, modules: Sequence[str]) -> bool:
    if kind == "value":
        value = node.get("value")
        return value is None or isinstance(value, bool | int | float) or (isinstance(value, str) and len(value) < 4096)
    return bool(modules) and (kind == "device" or (kind == "dtype" and node.get("name") in _DTYPES))


def _leaf(node: dict[str, Any], place: str, sizes: dict[int, int]) -> Leaf:
    dtype = _DTYPES.get(node["dtype"]) if isinstance(node.get("dtype"), str) else None
    if dtype is None:
        raise Malformed("a tensor's dtype is not known")
    shape, stride = (_numbers(node.get(field)) for field in ("shape", "stride"))
    buffer, offset = _number(node.get("buffer")), _number(node.get("offset"))
    if len(shape) != len(stride) or buffer not in sizes or offset % dtype.itemsize:
        raise Malformed("a tensor's strides, buffer or offset are not right")
    if offset + span_bytes(shape, stride, dtype.itemsize) > sizes[buffer]:
        raise Malformed("a tensor reaches outside its buffer")
    return Leaf(place or "/", Span(dtype, shape, stride, offset), buffer)


def _numbers(value: object) -> tuple[int, ...]:
    if not isinstance(value, list) or len(value) > MAX_RANK:
        raise Malformed("a tensor's shape or stride is not a short list")
    return tuple(_number(item) for item in value)


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _EXTENT:
        raise Malformed("a tensor is told in something other than whole numbers in range")
    return value


def _moved(node: dict[str, Any], buffer: int) -> dict[str, Any]:
    return _each(node, lambda leaf: {**leaf, "buffer": buffer})


def _placed(node: dict[str, Any], leaves: Iterator[Leaf]) -> dict[str, Any]:
    def place(told: dict[str, Any]) -> dict[str, Any]:
        span = next(leaves).span
        return {**told, "stride": list(span.stride), "buffer": 0, "offset": span.offset}

    return _each(node, place)


def _each(node: dict[str, Any], change: Any) -> dict[str, Any]:
    """The tree with every tensor changed, in order."""
    if node["t"] == "tensor":
        return dict(change(node))
    if node["t"] in ("tuple", "list"):
        return {**node, "items": [_each(item, change) for item in node["items"]]}
    if node["t"] not in ("dict", "object"):
        return node
    parts = [part for part in ("items", "fields", "parts") if part in node]
    return {**node, **{part: {name: _each(item, change) for name, item in node[part].items()} for part in parts}}
