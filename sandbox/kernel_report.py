"""The report on one compiled kernel: counts, occupancy, the cost of its loops, and advice."""

from __future__ import annotations

from collections import Counter

from sandbox.advice import advise
from sandbox.evidence import RecordedKernel
from sandbox.isa import Stream, chip_for, instructions_of, lds_of, number, read_registers, section, stream
from sandbox.loops import loop_costs
from sandbox.occupancy import occupancy
from sandbox.pipes import pipe
from sandbox.verdict import IsaReport


def report(kernel: RecordedKernel) -> IsaReport:
    """What the compiler made of `kernel`; `IsaError` where its assembly cannot be read."""
    chip = chip_for(kernel.target)
    registers, lds = read_registers(kernel), lds_of(kernel)
    instructions, code = instructions_of(kernel), stream(kernel)
    resident = occupancy(chip, registers.total, lds, kernel.num_warps)
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
        lds_bytes=lds,
        waves_per_workgroup=kernel.num_warps,
        occupancy_waves=resident.waves_per_simd,
        occupancy_limit=resident.limit,
        mfma={name: count for name, count in sorted(names.items()) if pipe(name) == "mfma"},
        memory={name: count for name, count in sorted(names.items()) if pipe(name) in ("vmem", "lds")},
        waits=by_pipe["wait"],
        barriers=by_pipe["barrier"],
        instructions=len(instructions),
        code_bytes=number(section(kernel).counts, r"; codeLenInByte = (\d+)"),
        language="triton" if kernel.ttir else "hip",
        threads=kernel.block[0] * kernel.block[1] * kernel.block[2],
        bank_conflict=_bank_conflict(code),
        loops=loop_costs(chip, code, resident, kernel.num_warps),
        advice=advise(kernel, registers, resident, code),
    )


def _bank_conflict(code: Stream) -> float:
    """The mean over the LDS accesses whose addresses can be followed."""
    known = code.conflicts.values()
    return round(sum(known) / len(known), 2) if known else 1.0
