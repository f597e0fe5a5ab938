"""Reads Triton IR text into a tree of operations. Only the form Triton prints; anything else is a `TtirError`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod

MAX_OPS = 50_000
MAX_DEPTH = 32
MAX_LINE = 32_768
_LOC_TABLE = re.compile(r"^#loc")
_LOC = re.compile(r'\s*loc\((?:[^()"]|"[^"]*"|\((?:[^()"]|"[^"]*")*\))*\)')
_RESULTS = re.compile(r"^(%[\w$.]+(?::\d+)?(?:, *%[\w$.]+(?::\d+)?)*) = (.*)$")
_NAME = re.compile(r'^"?([a-z_]+\.[\w.]+)"?')
_FUNCTION = re.compile(r"^tt\.func (?:public |private )?@")
_ARGUMENT = re.compile(r'%([\w$.]+): *((?:[^,(){}"]|"[^"]*"|\{[^{}]*\})*)')
_OPERAND = re.compile(r"%[\w$.]+(?:#\d+)?")
_TENSOR = re.compile(r"tensor<((?:\d+x)*)(!tt\.ptr<[^<>]*(?:<[^<>]*>)?[^<>]*>|[\w]+)")
_WORKING = ("tt.load", "tt.store", "tt.dot", "tt.atomic", "tt.descriptor_", "tt.call", "tt.dot_scaled")
_ELEMENT_BYTES = {"f64": 8, "i64": 8, "f32": 4, "i32": 4, "f16": 2, "bf16": 2, "i16": 2, "i8": 1, "i1": 1}


class TtirError(Exception):
    """The text is not Triton IR as Triton prints it, or is too large."""


@dataclass(slots=True)
class Op:
    """One operation. `text` is what follows its name, without locations."""

    name: str
    results: tuple[str, ...]
    text: str
    regions: list[list[Op]] = field(default_factory=list)

    @property
    def operands(self) -> list[str]:
        """The SSA values it reads, types left out."""
        return _OPERAND.findall(self.text.split(" : ", 1)[0])

    def nested(self) -> list[Op]:
        """The operations of all its regions."""
        return [op for region in self.regions for op in region]

    def works(self) -> bool:
        """Whether it, or anything in it, reads or writes memory or multiplies tiles."""
        return self.name.startswith(_WORKING) or any(op.works() for op in self.nested())

    def branches(self) -> bool:
        """Whether anything in it is a loop or a condition that holds work."""
        return any((op.name.startswith("scf.") and op.works()) or op.branches() for op in self.nested())


@dataclass(frozen=True, slots=True)
class Function:
    """A kernel: the names of its arguments, their types, and its body."""

    arguments: tuple[tuple[str, str], ...]
    body: tuple[Op, ...]


@lru_cache(maxsize=128)
def parse(ttir: str) -> Function:
    """The kernel in a TTIR module; `TtirError` where it cannot be read."""
    function: Function | None = None
    root: list[Op] = []
    stack: list[list[Op]] = []
    ops = 0
    for line in _lines(ttir):
        if _FUNCTION.match(line):
            function = Function(_arguments(line), ())
            stack = [root]
        elif line.startswith("}") and len(stack) > 1:
            _close(stack, line)
        elif stack and not line.startswith(("}", "^")):
            op = _op(line)
            stack[-1].append(op)
            ops += 1
            if line.endswith("{"):
                op.regions.append([])
                stack.append(op.regions[-1])
        if ops > MAX_OPS or len(stack) > MAX_DEPTH:
            raise TtirError("more operations, or deeper ones, than a kernel has")
    if function is None:
        raise TtirError("no tt.func in the text")
    return Function(function.arguments, tuple(root))


def tile(kind: str) -> tuple[tuple[int, ...], str]:
    """Shape and element of a type: ``tensor<128x64xf16>`` is ((128, 64), ``f16``); of pointers, what they point to."""
    found = _TENSOR.search(kind)
    shape, element = (found[1], found[2]) if found else ("", kind.strip())
    pointee = re.search(r"!tt\.ptr<(?:tensor<((?:\d+x)*)(\w+)|(\w+))", element)
    if pointee:
        shape, element = shape or pointee[1] or "", pointee[2] or pointee[3]
    return tuple(int(size) for size in shape.split("x") if size), element


def tile_bytes(kind: str) -> int:
    """Bytes of a tile of that type; of pointers, the bytes pointed to."""
    shape, element = tile(kind)
    return prod(shape) * element_bytes(element)


def element_bytes(element: str) -> int:
    """Bytes of an element type by its MLIR name; any eight-bit float is one byte."""
    return 1 if element.startswith("f8") else _ELEMENT_BYTES.get(element, 4)


def _lines(ttir: str) -> list[str]:
    if any(len(line) > MAX_LINE for line in ttir.splitlines()):
        raise TtirError(f"a line of over {MAX_LINE} characters")
    lines = (line.strip() for line in ttir.splitlines() if not _LOC_TABLE.match(line))
    return [_without_locations(line) for line in lines if line and not line.startswith(("//", "module"))]


def _without_locations(line: str) -> str:
    return line if _FUNCTION.match(line) else _LOC.sub("", line).strip()


def _arguments(header: str) -> tuple[tuple[str, str], ...]:
    inside = header.split("(", 1)[1]
    return tuple((name, kind.strip()) for name, kind in _ARGUMENT.findall(inside))


def _close(stack: list[list[Op]], line: str) -> None:
    stack.pop()
    owner = stack[-1][-1]
    if line.endswith("{"):
        owner.regions.append([])
        stack.append(owner.regions[-1])
    elif " : " in line:
        owner.text += line.lstrip("})")


def _op(line: str) -> Op:
    results: tuple[str, ...] = ()
    if assigned := _RESULTS.match(line):
        results, line = _result_names(assigned[1]), assigned[2]
    name = _NAME.match(line)
    if name is None:
        return Op("unknown", results, line)
    return Op(name[1], results, line[name.end() :].strip())


def _result_names(text: str) -> tuple[str, ...]:
    names: list[str] = []
    for part in text.split(","):
        name, _, count = part.strip().partition(":")
        names += [f"{name}#{i}" for i in range(min(int(count), 256))] if count else [name]
    return tuple(names)
