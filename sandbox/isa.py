"""Reads AMDGCN assembly: the registers and accesses of a kernel, and the loops of its instruction stream.

Triton's text holds one kernel, clang's one or more; a HIP kernel's static LDS is in its metadata.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache

from problems.chips import CHIPS, Chip
from sandbox.banks import conflict, sectors
from sandbox.evidence import RecordedKernel
from sandbox.instructions import Instruction, innermost, loop_spans, parent, read_instructions
from sandbox.lanes import addresses
from sandbox.listing import IsaError as IsaError
from sandbox.listing import Listing, listing
from sandbox.pipes import Cost, cost, modifiers_of, vmem_bytes

_LOADED = re.compile(r"vmcnt\((\d+)\)")


@dataclass(frozen=True, slots=True)
class Loop:
    """Instructions `first` to `last`, closed by a backward branch at `last`."""

    first: int
    last: int
    parent: int | None
    """Index of the loop round it, or None."""
    own: Cost
    """One pass over its instructions, inner loops left out."""
    label: str
    line: int
    """Of its first instruction in the whole text."""
    covered_cycles: float
    """Work of the wave between its last load from memory and the wait for it; 0 without a load."""
    reloads: int
    """Waits of one pass for registers that come back from scratch memory."""


@dataclass(frozen=True, slots=True)
class Stream:
    """A kernel's instructions, split into what runs once and loops, in the order of their first instruction."""

    straight: Cost
    loops: tuple[Loop, ...]
    conflicts: dict[int, float]
    """For each LDS access whose addresses are known, by index: passes it takes over those without bank conflicts."""
    sectors: dict[int, int]
    """For each global access whose addresses are known, by index: 64-byte sectors a wave touches."""


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


def section(kernel: RecordedKernel) -> Listing:
    """The part of the recorded text that is this kernel; `IsaError` where it is not in there."""
    return listing(kernel.amdgcn, kernel.name)


def instructions_of(kernel: RecordedKernel) -> tuple[Instruction, ...]:
    """Its instruction stream."""
    return read_instructions(section(kernel).body)[0]


def lds_of(kernel: RecordedKernel) -> int:
    """LDS of one workgroup in bytes: what the code fixes and what the launch adds."""
    return kernel.shared_bytes + number(section(kernel).metadata, r"\.group_segment_fixed_size:\s+(\d+)", 0)


def read_registers(kernel: RecordedKernel) -> Registers:
    """The register counts of the metadata block at the end of the text."""
    found = section(kernel)
    metadata = found.metadata
    total, agpr = number(metadata, r"\.vgpr_count:\s+(\d+)"), number(metadata, r"\.agpr_count:\s+(\d+)", 0)
    return Registers(
        # With AGPRs the total is rounded to where they start, so it says more than VGPRs plus AGPRs.
        vgpr=number(found.counts, r"; NumVgprs: (\d+)", total - agpr),
        agpr=agpr,
        total=total,
        sgpr=number(metadata, r"\.sgpr_count:\s+(\d+)"),
        vgpr_spills=number(metadata, r"\.vgpr_spill_count:\s+(\d+)", 0),
        sgpr_spills=number(metadata, r"\.sgpr_spill_count:\s+(\d+)", 0),
        scratch_bytes=number(metadata, r"\.private_segment_fixed_size:\s+(\d+)", 0),
    )


def stream(kernel: RecordedKernel) -> Stream:
    """The loops of `kernel` and what each pass over them costs one wave; `IsaError` where it cannot be read."""
    chip_for(kernel.target)
    found = section(kernel)
    return _stream(found.body, found.first_line, kernel.target, kernel.block)


@lru_cache(maxsize=64)
def _stream(body: str, first_line: int, target: str, block: tuple[int, int, int]) -> Stream:
    instructions, labels = read_instructions(body)
    spans = loop_spans(instructions, labels)
    conflicts, wide = _addressing(instructions, target, block)
    costs = [_cost(item, target, conflicts.get(i), wide.get(i)) for i, item in enumerate(instructions)]
    straight, own = Cost(), [Cost()] * len(spans)
    bodies: list[list[int]] = [[] for _ in spans]
    for index, item in enumerate(costs):
        inner = innermost(spans, index)
        if inner is None:
            straight += item
        else:
            own[inner] += item
            bodies[inner].append(index)
    loops = tuple(
        Loop(
            first=span.first,
            last=span.last,
            parent=parent(spans, i),
            own=own[i],
            label=span.label,
            line=instructions[span.first].line + first_line - 1,
            covered_cycles=_covered(instructions, costs, bodies[i]),
            reloads=_reloads([instructions[index] for index in bodies[i]]),
        )
        for i, span in enumerate(spans)
    )
    return Stream(straight, loops, conflicts, wide)


def _addressing(
    instructions: tuple[Instruction, ...], target: str, block: tuple[int, int, int]
) -> tuple[dict[int, float], dict[int, int]]:
    """Bank conflicts of LDS accesses and sectors of global ones, by index, where addresses can be followed."""
    conflicts: dict[int, float] = {}
    wide: dict[int, int] = {}
    for index, parts in addresses(instructions, block).items():
        name = instructions[index].mnemonic
        if "_tr_" in name:
            # Transposing reads of gfx950 exchange data between lanes: which banks go together is not published.
            continue
        if name.startswith("ds_"):
            conflicts[index] = conflict(parts, name, target)
        else:
            wide[index] = sectors(parts[0], vmem_bytes(name))
    return conflicts, wide


def _cost(instruction: Instruction, target: str, conflicts: float | None, wide: int | None) -> Cost:
    """From the table, and longer by what its addresses cost: the vector L1 takes a sector a clock."""
    item = cost(instruction.mnemonic, modifiers_of(instruction.mnemonic, instruction.operands), target)
    if conflicts is not None:
        return replace(item, lds_cycles=item.lds_cycles * conflicts)
    return item if wide is None else replace(item, vmem_cycles=max(item.vmem_cycles, float(wide)))


def _covered(instructions: tuple[Instruction, ...], costs: list[Cost], body: list[int]) -> float:
    """Busy cycles from a loop's last load to the wait that needs it, which may stand in the next pass."""
    loads = [place for place, i in enumerate(body) if costs[i].loads]
    if not loads:
        return 0.0
    busy, later = 0.0, 0
    for i in (body + body)[loads[-1] + 1 : loads[-1] + 1 + len(body)]:
        waited = _LOADED.search(instructions[i].operands) if instructions[i].mnemonic == "s_waitcnt" else None
        if waited and int(waited[1]) <= later:
            break
        later += int(costs[i].loads + (costs[i].store_bytes > 0))
        busy += costs[i].mfma_cycles + costs[i].valu_cycles or 4.0 * costs[i].instructions
    return busy


def _reloads(body: list[Instruction]) -> int:
    """Waits for memory with a load from scratch before them since the last one."""
    waits, loaded = 0, False
    for item in body:
        loaded = loaded or item.mnemonic.startswith("scratch_load")
        if loaded and item.mnemonic == "s_waitcnt" and "vmcnt" in item.operands:
            waits, loaded = waits + 1, False
    return waits


def number(text: str, pattern: str, default: int | None = None) -> int:
    """The whole number that `pattern` finds, else `default`; `IsaError` where there is none."""
    found = re.search(pattern, text)
    if found is not None:
        return int(found[1][:9])
    if default is None:
        raise IsaError(f"the assembly has no {pattern.split(':')[0]}")
    return default
