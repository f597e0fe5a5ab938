"""The kernels of an assembly text: each with its own code and its own entry of the metadata."""

from __future__ import annotations

import ctypes
import ctypes.util
import re
from dataclasses import dataclass
from functools import lru_cache

_METADATA = re.compile(r"^\s*\.amdgpu_metadata\s*$\n(.*?)^\s*\.end_amdgpu_metadata", re.MULTILINE | re.DOTALL)
_KEY = re.compile(r"^    \.(\w+):\s+'?([^'\n]*)'?$", re.MULTILINE)
_ARGUMENT = re.compile(r"^      - \.", re.MULTILINE)
_FIELD = re.compile(r"\.(size|value_kind):\s+(\w+)")
_SHORT_FLOATS = (("DF16_", "Dd", "_Float16"), ("DF16b", "De", "__bf16"))
_SPELLED = {"Dd": "decimal64", "De": "decimal128"}
"""C++ libraries before 13 cannot read these types; a type that no kernel has takes their place meanwhile."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel, compiled for one target."""

    symbol: str
    name: str
    """Its C++ name, with template arguments."""
    assembly: str
    """Its code and its metadata, without the other kernels of the file."""
    shared_bytes: int
    """LDS known when it was compiled; a launch may ask for more."""
    most_threads: int
    """Of one workgroup, from its launch bounds; 1024 without them."""
    arguments: tuple[str, ...]
    """In order, as ``global_buffer:8`` or ``by_value:4``; the compiler's hidden ones are left out."""


def kernels(assembly: str) -> tuple[Kernel, ...]:
    """All kernels of one assembly text, in the order of their metadata."""
    found = _METADATA.search(assembly)
    if found is None:
        return ()
    head, *entries = re.split(r"^  - ", found[1].partition("\namdhsa.target")[0], flags=re.MULTILINE)
    tail = found[1][len(found[1].partition("\namdhsa.target")[0]) :]
    return tuple(_kernel(assembly, head, f"    {entry}", tail) for entry in entries)


def _kernel(assembly: str, head: str, entry: str, tail: str) -> Kernel:
    fields = dict(_KEY.findall(entry))
    symbol = fields["name"]
    metadata = f"\t.amdgpu_metadata\n{head}  - {entry[4:]}{tail}\t.end_amdgpu_metadata\n"
    first = assembly.partition("\n")[0]
    return Kernel(
        symbol=symbol,
        name=demangled(symbol),
        assembly=f"{first}\n{_code(assembly, symbol)}{metadata}",
        shared_bytes=int(fields.get("group_segment_fixed_size", 0)),
        most_threads=int(fields.get("max_flat_workgroup_size", 1024)),
        arguments=_arguments(entry),
    )


def _code(assembly: str, symbol: str) -> str:
    """From the kernel's first directive to that of the next function, so that the compiler's counts are in it."""
    begin = re.search(rf"^.*; -- Begin function {re.escape(symbol)}$", assembly, re.MULTILINE)
    if begin is None:
        return ""
    following = re.compile(r"; -- Begin function|^\s*\.amdgpu_metadata", re.MULTILINE).search(assembly, begin.end())
    end = assembly.rfind("\n", 0, following.start()) + 1 if following else len(assembly)
    return assembly[begin.start() : end]


def _arguments(entry: str) -> tuple[str, ...]:
    described = [dict(_FIELD.findall(part)) for part in _ARGUMENT.split(entry.partition(".group_segment")[0])[1:]]
    known = [(part["value_kind"], part["size"]) for part in described if "value_kind" in part and "size" in part]
    return tuple(f"{kind}:{size}" for kind, size in known if not kind.startswith("hidden"))


@lru_cache(maxsize=4096)
def demangled(symbol: str) -> str:
    """The C++ name of a symbol, by the C++ library's own reader; the symbol itself where it is none."""
    status = ctypes.c_int(-1)
    read = _library().__cxa_demangle
    read.restype = ctypes.c_void_p
    read.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    known = symbol
    for short, stand_in, _ in _SHORT_FLOATS:
        known = known.replace(short, stand_in)
    at = read(known.encode(), None, None, ctypes.byref(status))
    if status.value != 0 or not at:
        return symbol
    name = ctypes.string_at(at).decode(errors="replace")
    ctypes.CDLL(None).free(ctypes.c_void_p(at))
    for _, stand_in, spelled in _SHORT_FLOATS:
        name = name.replace(_SPELLED[stand_in], spelled)
    return name


@lru_cache(maxsize=1)
def _library() -> ctypes.CDLL:
    # torch brings it into every guest.
    return ctypes.CDLL("libstdc++.so.6")
