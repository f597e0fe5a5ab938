"""Reads AMDGCN assembly: the registers and accesses of a kernel, and the loops of its instruction stream."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

from problems.chips import CHIPS, Chip
from sandbox.evidence import RecordedKernel
from sandbox.occupancy import occupancy
from sandbox.pipes import Cost, cost, modifiers_of, pipe
from sandbox.verdict import IsaReport

_INSTRUCTION = re.compile(r"^\s+((?:s|v|ds|buffer|global|flat|scratch|tbuffer)_[a-z0-9_]+)\s*([^;\n]*)")
_LABEL = re.compile(r"^(\.L\w+):")
_BRANCH = re.compile(r"s_c?branch")
MAX_INSTRUCTIONS = 200_000
MAX_LOOPS = 200


class IsaError(Exception):
    """The text is not the assembly of a kernel: no metadata, or no instruction."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """One line of the stream."""

    mnemonic: str
    operands: str


@dataclass(frozen=True, slots=True)
class Loop:
    """Instructions `first` to `last`, closed by a backward branch at `last`."""

    first: int
    last: int
    parent: int | None
    """Index of the loop round it, or None."""
    own: Cost
    """One pass over its instructions, inner loops left out."""


@dataclass(frozen=True, slots=True)
class Stream:
    """A kernel's instructions, split into what runs once and loops, in the order of their first instruction."""

    straight: Cost
    loops: tuple[Loop, ...]


@dataclass(frozen=True, slots=True)
class Registers:
    """What the assembler's metadata says a wave holds."""

    vgpr: int
    agpr: int
    total: int
    """VGPRs and AGPRs together: one file on gfx90a and later."""
    sgpr: int
    vgpr_spills: int
    sgpr_spills: int
    scratch_bytes: int
    """Private memory per lane."""


def chip_for(target: str) -> Chip:
    """The chip whose sizes stand for an AMD compile target; `IsaError` for any other."""
    for chip in CHIPS.values():
        if chip.arch == target and chip.vendor == "amd":
            return chip
    raise IsaError(f"no reader for the assembly of {target}")


def report(kernel: RecordedKernel) -> IsaReport:
    """What the compiler made of `kernel`; `IsaError` where its assembly cannot be read."""
    chip = chip_for(kernel.target)
    registers = read_registers(kernel.amdgcn)
    instructions, _ = read_instructions(kernel.amdgcn)
    resident = occupancy(chip, registers.total, kernel.shared_bytes, kernel.num_warps)
    by_pipe = Counter(pipe(instruction.mnemonic) for instruction in instructions)
    names = Counter(instruction.mnemonic for instruction in instructions)
    return IsaReport(
        kernel=kernel.name,
        target=kernel.target,
        vgpr=registers.vgpr,
        agpr=registers.agpr,
        sgpr=registers.sgpr,
        vgpr_spills=registers.vgpr_spills,
        sgpr_spills=registers.sgpr_spills,
        scratch_bytes=registers.scratch_bytes,
        lds_bytes=kernel.shared_bytes,
        waves_per_workgroup=kernel.num_warps,
        occupancy_waves=resident.waves_per_simd,
        occupancy_limit=resident.limit,
        mfma={name: count for name, count in sorted(names.items()) if pipe(name) == "mfma"},
        memory={name: count for name, count in sorted(names.items()) if pipe(name) in ("vmem", "lds")},
        waits=by_pipe["wait"],
        barriers=by_pipe["barrier"],
        instructions=len(instructions),
        code_bytes=_number(kernel.amdgcn, r"; codeLenInByte = (\d+)"),
    )


def read_registers(asm: str) -> Registers:
    """The register counts of the metadata block at the end of the text."""
    total, agpr = _number(asm, r"\.vgpr_count:\s+(\d+)"), _number(asm, r"\.agpr_count:\s+(\d+)", 0)
    return Registers(
        # With AGPRs the total is rounded to where they start, so it says more than VGPRs plus AGPRs.
        vgpr=_number(asm, r"; NumVgprs: (\d+)", total - agpr),
        agpr=agpr,
        total=total,
        sgpr=_number(asm, r"\.sgpr_count:\s+(\d+)"),
        vgpr_spills=_number(asm, r"\.vgpr_spill_count:\s+(\d+)", 0),
        sgpr_spills=_number(asm, r"\.sgpr_spill_count:\s+(\d+)", 0),
        scratch_bytes=_number(asm, r"\.private_segment_fixed_size:\s+(\d+)", 0),
    )


@lru_cache(maxsize=32)
def read_instructions(asm: str) -> tuple[tuple[Instruction, ...], dict[str, int]]:
    """The stream, and for each label the index of the instruction after it; `IsaError` where there is none."""
    found: list[Instruction] = []
    labels: dict[str, int] = {}
    for line in asm.splitlines():
        if label := _LABEL.match(line):
            labels[label[1]] = len(found)
        elif instruction := _INSTRUCTION.match(line):
            found.append(Instruction(instruction[1], instruction[2].strip()))
    if not 0 < len(found) <= MAX_INSTRUCTIONS:
        raise IsaError(f"{len(found)} instructions in the assembly")
    return tuple(found), labels


def stream(kernel: RecordedKernel) -> Stream:
    """The loops of `kernel` and what each pass over them costs one wave; `IsaError` where it cannot be read."""
    chip_for(kernel.target)
    return _stream(kernel.amdgcn, kernel.target)


@lru_cache(maxsize=32)
def _stream(asm: str, target: str) -> Stream:
    instructions, labels = read_instructions(asm)
    spans = _loop_spans(instructions, labels)
    straight = Cost()
    own = [Cost()] * len(spans)
    for index, instruction in enumerate(instructions):
        item = cost(instruction.mnemonic, modifiers_of(instruction.mnemonic, instruction.operands), target)
        inner = _innermost(spans, index)
        if inner is None:
            straight += item
        else:
            own[inner] += item
    loops = tuple(Loop(first, last, _parent(spans, i), own[i]) for i, (first, last) in enumerate(spans))
    return Stream(straight, loops)


def _loop_spans(instructions: tuple[Instruction, ...], labels: dict[str, int]) -> list[tuple[int, int]]:
    """Spans closed by backward branches, one a head, outer before inner."""
    ends: dict[int, int] = {}
    for index, instruction in enumerate(instructions):
        if _BRANCH.match(instruction.mnemonic):
            head = labels.get(instruction.operands, index + 1)
            if head <= index:
                ends[head] = max(ends.get(head, index), index)
    if len(ends) > MAX_LOOPS:
        raise IsaError(f"{len(ends)} loops in the assembly")
    return sorted(ends.items(), key=lambda span: (span[0], -span[1]))


def _innermost(spans: list[tuple[int, int]], index: int) -> int | None:
    holding = [i for i, (first, last) in enumerate(spans) if first <= index <= last]
    return min(holding, key=lambda i: spans[i][1] - spans[i][0], default=None)


def _parent(spans: list[tuple[int, int]], inner: int) -> int | None:
    first, last = spans[inner]
    holding = [i for i, (a, b) in enumerate(spans) if i != inner and a <= first and last <= b]
    return min(holding, key=lambda i: spans[i][1] - spans[i][0], default=None)


def _number(asm: str, pattern: str, default: int | None = None) -> int:
    found = re.search(pattern, asm)
    if found is not None:
        return int(found[1][:9])
    if default is None:
        raise IsaError(f"the assembly has no {pattern.split(':')[0]}")
    return default
