"""What a guest says its kernel returned, read strictly. Nothing here touches the tensor's memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from sandbox.checker.layout import Span, span_bytes

MAX_RANK = 16
MAX_EXTENT = 1 << 48
_DTYPES = {name: getattr(torch, name) for name in ("float64", "float32", "float16", "bfloat16")}
_FIELDS = {"t", "dtype", "shape", "stride", "buffer", "offset"}


class Forged(Exception):
    """An answer no honest guest gives: not a tree, or a tensor outside the buffers it was handed."""


class Unfit(Exception):
    """An honest answer that is not what the problem asks for: its type, dtype or shape."""


@dataclass(frozen=True, slots=True)
class Part:
    """One tensor that is to be returned."""

    dtype: torch.dtype
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Wanted:
    """All that is to be returned: the one part itself, or `several` in a tuple or a list."""

    parts: tuple[Part, ...]
    several: bool = False


def read_all(tree: object, wanted: Wanted, buffers: Mapping[int, int], exact: bool = True) -> list[tuple[int, Span]]:
    """Of every part, the buffer's id and the place in it; see `read`."""
    if not wanted.several:
        return [read(tree, wanted.parts[0].dtype, wanted.parts[0].shape, buffers, exact)]
    node, count = _object(tree), len(wanted.parts)
    if node["t"] not in ("tuple", "list"):
        raise Unfit(f"custom_kernel must return {count} tensors in a tuple or list, not {_described(node)}")
    items = node.get("items")
    if set(node) != {"t", "items"} or not isinstance(items, list):
        raise Forged("a sequence's fields are not those of the protocol")
    if len(items) != count:
        raise Unfit(f"custom_kernel returned {len(items)} things, the case asks for {count} tensors")
    found = []
    for index, (item, part) in enumerate(zip(items, wanted.parts, strict=True)):
        try:
            found.append(read(item, part.dtype, part.shape, buffers, exact))
        except Unfit as unfit:
            raise Unfit(f"of {count} tensors, number {index}: {unfit}") from unfit
    return found


def read(
    tree: object, dtype: torch.dtype, shape: tuple[int, ...], buffers: Mapping[int, int], exact: bool = True
) -> tuple[int, Span]:
    """The buffer's id and the place in it of the one tensor asked for.

    `buffers` gives each buffer's size in bytes. Raises `Unfit` or `Forged`. Not `exact`: any dtype and any shape of as
    many elements will do, and the place is that of what was returned.
    """
    node = _object(tree)
    if node.get("t") != "tensor":
        raise Unfit(f"custom_kernel must return one {_name(dtype)} tensor, not {_described(node)}")
    if set(node) != _FIELDS:
        raise Forged("a tensor's fields are not those of the protocol")
    told = node["dtype"]
    if not isinstance(told, str) or len(told) > 64:
        raise Forged("a tensor's dtype is not a name")
    sizes = _whole_numbers(node["shape"], "shape")
    if not exact and torch.Size(sizes).numel() == torch.Size(shape).numel():
        dtype, shape = _DTYPES.get(told, dtype), sizes
    if told != _name(dtype):
        raise Unfit(f"custom_kernel returned {legible(told)}, the problem asks for {_name(dtype)}")
    if sizes != shape:
        raise Unfit(f"custom_kernel returned shape {list(sizes)}, the case asks for {list(shape)}")
    if node["buffer"] is None:
        raise Unfit("custom_kernel returned a tensor whose memory cannot be read: not dense, or on another device")
    return _placed(node, dtype, shape, buffers)


def _placed(
    node: dict[str, Any], dtype: torch.dtype, shape: tuple[int, ...], buffers: Mapping[int, int]
) -> tuple[int, Span]:
    stride = _whole_numbers(node["stride"], "stride")
    if len(stride) != len(shape):
        raise Forged("a tensor's strides do not match its rank")
    buffer, offset = _whole(node["buffer"], "buffer"), _whole(node["offset"], "offset")
    if buffer not in buffers:
        raise Forged(f"a tensor lies in buffer {buffer}, which was never handed over")
    if offset % dtype.itemsize or offset + span_bytes(shape, stride, dtype.itemsize) > buffers[buffer]:
        raise Forged("a tensor reaches outside its buffer")
    return buffer, Span(dtype, shape, stride, offset)


def _object(tree: object) -> dict[str, Any]:
    if not isinstance(tree, dict) or not isinstance(tree.get("t"), str):
        raise Forged("the answer is not a tree")
    return tree


def legible(text: str) -> str:
    """A guest's text without halves of surrogate pairs: JSON can spell them, and no record of ours can hold them."""
    return text.encode(errors="replace").decode()


def _described(node: dict[str, Any]) -> str:
    value = node.get("type" if node["t"] == "other" else "value")
    if node["t"] not in {"other", "value"} or not isinstance(value, str | int | float | None):
        # What else there is may be nested more deeply than can be printed.
        return f"a {legible(node['t'][:16])}"
    return legible(f"{'' if node['t'] == 'other' else 'the value '}{str(value)[:64]}")


def _whole_numbers(value: object, what: str) -> tuple[int, ...]:
    if not isinstance(value, list) or len(value) > MAX_RANK:
        raise Forged(f"a tensor's {what} is not a short list")
    return tuple(_whole(item, what) for item in value)


def _whole(value: object, what: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < MAX_EXTENT:
        raise Forged(f"a tensor's {what} holds something other than whole numbers in range")
    return value


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
