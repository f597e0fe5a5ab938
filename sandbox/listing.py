"""Splits AMDGCN assembly into its kernels: a file of clang's holds several, one of Triton's a single one.

Each kernel is a function in the text, an entry in the metadata block at the end, and a comment block of counts between.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

_METADATA = re.compile(r"^\s*\.amdgpu_metadata\s*$(.*?)^\s*\.end_amdgpu_metadata\s*$", re.MULTILINE | re.DOTALL)
_ENTRY = re.compile(r"^  - ", re.MULTILINE)
_NAME = re.compile(r"^    \.name:\s+['\"]?([^\s'\"]+)", re.MULTILINE)
_END = re.compile(r"^\.Lfunc_end\d+:", re.MULTILINE)
_NEXT = re.compile(r"; -- Begin function|^\s*\.amdgpu_metadata", re.MULTILINE)
MAX_KERNELS = 1024


class IsaError(Exception):
    """The text is not the assembly of a kernel: no metadata, no instruction, or no kernel of that name."""


@dataclass(frozen=True, slots=True)
class Listing:
    """One kernel of an assembly text."""

    symbol: str
    """As the linker knows it, mangled where it was C++; empty where the text has no metadata to name it."""
    first_line: int
    """Number of the body's first line in the whole text, from 1."""
    body: str
    """Its instructions and labels; with a single kernel the whole text, since what it calls is in there."""
    metadata: str
    counts: str
    """Comments after the function: ``; codeLenInByte``, ``; NumVgprs``."""


def symbols(asm: str) -> tuple[str, ...]:
    """The kernels that the metadata names, in its order."""
    return tuple(_entries(asm))


@lru_cache(maxsize=64)
def listing(asm: str, name: str) -> Listing:
    """The kernel called `name`, by its symbol or its C++ name; `IsaError` where that is none, or more than one."""
    entries = _entries(asm)
    if len(entries) < 2:
        return Listing(next(iter(entries), ""), 1, asm, asm, asm)
    symbol = _symbol(tuple(entries), name)
    start = re.search(rf"^{re.escape(symbol)}:", asm, re.MULTILINE)
    if start is None:
        raise IsaError(f"the assembly has metadata for {symbol}, and no code")
    ended = _END.search(asm, start.end())
    end = ended.end() if ended else len(asm)
    following = _NEXT.search(asm, end)
    counts = asm[end : following.start() if following else len(asm)]
    first_line = asm.count("\n", 0, start.start()) + 1
    return Listing(symbol, first_line, asm[start.start() : end], entries[symbol], counts)


def base_name(symbol: str) -> str:
    """The C++ name in an Itanium-mangled symbol, namespaces and templates left out; any other symbol as it is."""
    rest = re.match(r"_ZL?(?:N[KVr]*)?", symbol)
    if rest is None:
        return symbol
    at, name = rest.end(), symbol
    while length := re.match(r"\d{1,4}", symbol[at:]):
        at += length.end()
        name = symbol[at : at + int(length[0])]
        at += int(length[0])
        if not rest[0].rstrip("KVr").endswith("N"):
            break
    return name


@lru_cache(maxsize=64)
def _entries(asm: str) -> dict[str, str]:
    block = _METADATA.search(asm)
    if block is None:
        return {}
    found: dict[str, str] = {}
    for text in _ENTRY.split(block[1].split("amdhsa.target:")[0])[1:]:
        if (name := _NAME.search("    " + text)) is not None:
            found[name[1]] = text
    if len(found) > MAX_KERNELS:
        raise IsaError(f"{len(found)} kernels in one assembly")
    return found


def _symbol(known: tuple[str, ...], name: str) -> str:
    matches = [symbol for symbol in known if symbol == name] or [
        symbol for symbol in known if base_name(symbol) == name.split("<")[0].rpartition("::")[2]
    ]
    if len(matches) == 1:
        return matches[0]
    what = "several kernels" if matches else "no kernel"
    raise IsaError(f"the assembly has {what} called {name}; it has {', '.join(known[:8])}")
