"""What a built extension asks of torch: tensors by number, and every method and function by name.

The other side is `include/torch_stand_in/kernelwright_values.h`. A number belongs to whoever was given it:
the C++ tensor made from it gives it back when it ends.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import torch

MOST_DIMS = 16
_NONE, _TENSOR, _INT, _REAL, _BOOL, _TEXT, _LIST, _DTYPE, _DEVICE, _NAMED = range(10)
_DTYPES = {
    0: "uint8",
    1: "int8",
    2: "int16",
    3: "int32",
    4: "int64",
    5: "float16",
    6: "float32",
    7: "float64",
    11: "bool",
    15: "bfloat16",
    23: "float8_e5m2",
    24: "float8_e4m3fn",
    25: "float8_e5m2fnuz",
    26: "float8_e4m3fnuz",
    27: "uint16",
    28: "uint32",
    29: "uint64",
    44: "float8_e8m0fnu",
    45: "float4_e2m1fn_x2",
}
"""Numbers of c10::ScalarType."""
_CODES = {getattr(torch, name): code for code, name in _DTYPES.items() if hasattr(torch, name)}
_UNDEFINED = 46


class Value(ctypes.Structure):
    """`KwValue`: a tensor's number, a plain value, characters, or more values."""

    _fields_ = (
        *(("kind", ctypes.c_int32), ("length", ctypes.c_int32), ("whole", ctypes.c_int64)),
        *(("real", ctypes.c_double), ("at", ctypes.c_void_p)),
    )


class _Description(ctypes.Structure):
    _fields_ = (
        *(("data", ctypes.c_void_p), ("numel", ctypes.c_int64)),
        *((name, ctypes.c_int32) for name in ("dims", "dtype", "device", "item_bytes")),
        *(("sizes", ctypes.c_int64 * MOST_DIMS), ("strides", ctypes.c_int64 * MOST_DIMS)),
    )


_DESCRIBE = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.POINTER(_Description))
_CALL = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(Value), ctypes.c_int32, ctypes.POINTER(Value)
)  # fmt: skip
_RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_int64)


class Table(ctypes.Structure):
    """`KwTorch`: what an extension may call."""

    _fields_ = (("describe", _DESCRIBE), ("call", _CALL), ("release", _RELEASE))


class Tensors:
    """The tensors that one extension holds, and its way to torch."""

    def __init__(self, taken: Callable[[torch.Tensor], None]) -> None:
        """`taken`: told of every tensor that the extension gets to see, before it does."""
        self._held: dict[int, torch.Tensor] = {}
        self._last = 0
        self._taken = taken
        self._kept: list[Any] = []
        self._fault: BaseException | None = None
        self.table = Table(_DESCRIBE(self._describe), _CALL(self._call), _RELEASE(self._release))

    def held(self) -> list[torch.Tensor]:
        """Tensors that live in the extension now."""
        return list(self._held.values())

    def forget(self) -> None:
        """Let go of the memory that values of the last call lay in."""
        self._kept.clear()

    def fault(self) -> BaseException | None:
        """What Python raised inside the last call, once."""
        fault, self._fault = self._fault, None
        return fault

    def pack(self, value: Any) -> Value:
        """A value for the extension; `TypeError` for one it cannot take."""
        match value:
            case None:
                return Value(_NONE)
            case torch.Tensor():
                return Value(_TENSOR, 0, self._hold(value))
            case bool():
                return Value(_BOOL, 0, int(value))
            case int():
                return Value(_INT, 0, value)
            case float():
                return Value(_REAL, 0, 0, value)
            case str():
                text = value.encode()
                self._kept.append(ctypes.create_string_buffer(text))
                return Value(_TEXT, len(text), 0, 0.0, ctypes.addressof(self._kept[-1]))
            case torch.dtype():
                return Value(_DTYPE, 0, _CODES[value])
            case torch.device():
                return Value(_DEVICE, 0, int(value.type != "cpu"))
            case list() | tuple():
                values = (Value * len(value))(*(self.pack(part) for part in value))
                self._kept.append(values)
                return Value(_LIST, len(value), 0, 0.0, ctypes.addressof(values))
        raise TypeError(f"an extension takes no {type(value).__name__}")

    def unpack(self, value: Value) -> Any:
        """What the extension said."""
        match value.kind:
            case 0:
                return None
            case 1:
                return self._held[value.whole]
            case 3:
                return value.real
            case 4:
                return bool(value.whole)
            case 5:
                return ctypes.string_at(value.at, value.length).decode(errors="replace")
            case 6 | 9:
                return [self.unpack(part) for part in self._parts(value)]
            case 7:
                return getattr(torch, _DTYPES[value.whole])
            case 8:
                return torch.device("cuda", 0) if value.whole else torch.device("cpu")
            case _:
                return value.whole

    def _parts(self, value: Value) -> Sequence[Value]:
        return (Value * value.length).from_address(value.at) if value.length else ()

    def _hold(self, tensor: torch.Tensor) -> int:
        self._last += 1
        self._held[self._last] = tensor
        self._taken(tensor)
        return self._last

    def _release(self, number: int) -> None:
        self._held.pop(number, None)

    def _describe(self, number: int, out: Any) -> None:
        tensor, told = self._held[number], out.contents
        # That of a tensor on meta is null.
        told.data = tensor.data_ptr()
        told.numel, told.dims, told.item_bytes = tensor.numel(), tensor.dim(), tensor.element_size()
        told.dtype, told.device = _CODES.get(tensor.dtype, _UNDEFINED), int(tensor.is_cuda)
        for place, (size, stride) in enumerate(zip(tensor.shape, tensor.stride(), strict=True)):
            told.sizes[place], told.strides[place] = size, stride

    def _call(self, name: bytes, arguments: Any, count: int, out: Any) -> int:
        try:
            given = [arguments[place] for place in range(count)]
            plain = [self.unpack(value) for value in given if value.kind != _NAMED]
            named = dict(self.unpack(value) for value in given if value.kind == _NAMED)
            out[0] = self.pack(_ask(name.decode(), plain, named))
        except BaseException as fault:  # noqa: BLE001 - the extension passes it on as its own exception
            self._fault = fault
            out[0] = self.pack(f"{type(fault).__name__}: {fault}")
            return 1
        return 0


def _ask(name: str, plain: list[Any], named: dict[str, Any]) -> Any:
    if name == "kernelwright_slice":
        tensor, dim, first, last, step = plain
        index = [slice(None)] * tensor.dim()
        index[dim] = slice(first, last, step)
        return tensor[tuple(index)]
    if name == "kernelwright_from_blob":
        address, sizes = plain
        return _from_blob(address, sizes, named.get("dtype", torch.float32))
    if plain and isinstance(plain[0], torch.Tensor) and hasattr(plain[0], name):
        return getattr(plain[0], name)(*plain[1:], **named)
    place = torch if hasattr(torch, name) else torch.nn.functional
    return getattr(place, name)(*plain, **named)


def _from_blob(address: int, sizes: list[int], dtype: torch.dtype) -> torch.Tensor:
    count = 1
    for size in sizes:
        count *= size
    if not address:
        return torch.empty(sizes, dtype=dtype, device="cuda")
    room = (ctypes.c_char * (count * dtype.itemsize)).from_address(address)
    return torch.frombuffer(room, dtype=dtype, count=count).view(sizes)
