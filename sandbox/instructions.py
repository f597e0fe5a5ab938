"""The instruction stream of an assembly text, and where its loops are."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from sandbox.listing import IsaError

_INSTRUCTION = re.compile(r"^\s+((?:s|v|ds|buffer|global|flat|scratch|tbuffer)_[a-z0-9_]+)\s*([^;\n]*)")
_LABEL = re.compile(r"^(\.L\w+):")
_BRANCH = re.compile(r"s_c?branch")
MAX_INSTRUCTIONS = 200_000
MAX_LOOPS = 200


@dataclass(frozen=True, slots=True)
class Instruction:
    """One line of the stream."""

    mnemonic: str
    operands: str
    line: int = 0
    """Of the text it was read from, from 1."""


@dataclass(frozen=True, slots=True)
class Span:
    """Instructions `first` to `last`, closed by a backward branch at `last`."""

    first: int
    last: int
    label: str
    """Of its head."""


@lru_cache(maxsize=64)
def read_instructions(asm: str) -> tuple[tuple[Instruction, ...], dict[str, int]]:
    """The stream, and for each label the index of the instruction after it; `IsaError` where there is none."""
    found: list[Instruction] = []
    labels: dict[str, int] = {}
    for number, line in enumerate(asm.splitlines(), 1):
        if label := _LABEL.match(line):
            labels[label[1]] = len(found)
        elif instruction := _INSTRUCTION.match(line):
            found.append(Instruction(instruction[1], instruction[2].strip(), number))
    if not 0 < len(found) <= MAX_INSTRUCTIONS:
        raise IsaError(f"{len(found)} instructions in the assembly")
    return tuple(found), labels


def loop_spans(instructions: tuple[Instruction, ...], labels: dict[str, int]) -> tuple[Span, ...]:
    """Spans closed by backward branches, one a head, outer before inner.

    A branch back to code that never comes to the branch again is no loop: clang lays out shared endings so.
    """
    jumps = {i: labels[item.operands] for i, item in enumerate(instructions) if _jumps(item, labels)}
    ends: dict[int, tuple[int, str]] = {}
    for index, head in jumps.items():
        if head <= index:
            ends[head] = max(ends.get(head, (index, "")), (index, instructions[index].operands))
    if len(ends) > MAX_LOOPS:
        raise IsaError(f"{len(ends)} loops in the assembly")
    spans = [
        Span(head, end, label) for head, (end, label) in ends.items() if _comes_back(instructions, jumps, head, end)
    ]
    return tuple(sorted(spans, key=lambda span: (span.first, -span.last)))


def _jumps(instruction: Instruction, labels: dict[str, int]) -> bool:
    return bool(_BRANCH.match(instruction.mnemonic)) and instruction.operands in labels


def _comes_back(instructions: tuple[Instruction, ...], jumps: dict[int, int], head: int, end: int) -> bool:
    """Whether instruction `end` can run after `head`."""
    seen, left = set[int](), [head]
    while left:
        at = left.pop()
        while at < len(instructions) and at not in seen:
            seen.add(at)
            if at == end:
                return True
            name = instructions[at].mnemonic
            if at in jumps:
                left.append(jumps[at])
            if name in ("s_endpgm", "s_branch", "s_setpc_b64"):
                break
            at += 1
    return False


def innermost(spans: tuple[Span, ...], index: int) -> int | None:
    """Number of the smallest span that holds instruction `index`."""
    holding = [i for i, span in enumerate(spans) if span.first <= index <= span.last]
    return min(holding, key=lambda i: spans[i].last - spans[i].first, default=None)


def parent(spans: tuple[Span, ...], inner: int) -> int | None:
    """Number of the smallest span round another."""
    own = spans[inner]
    holding = [i for i, span in enumerate(spans) if i != inner and span.first <= own.first and own.last <= span.last]
    return min(holding, key=lambda i: spans[i].last - spans[i].first, default=None)
