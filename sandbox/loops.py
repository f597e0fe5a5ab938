"""What a loop of a kernel costs by pipe, from the table in `sandbox.pipes`: static, nothing is run."""

from __future__ import annotations

from problems.chips import Chip
from sandbox.inspection import LoopCost
from sandbox.isa import Loop, Stream
from sandbox.occupancy import Occupancy
from sandbox.pipes import Cost

ISSUE_CYCLES = 4
MAX_LOOPS = 16


def loop_costs(chip: Chip, code: Stream, held: Occupancy, waves_per_workgroup: int) -> tuple[LoopCost, ...]:
    """The kernel's loops, costliest first, at most `MAX_LOOPS`; `held` is what a compute unit holds of it."""
    sharing = min(chip.simds_per_cu, max(1, held.workgroups_per_cu) * waves_per_workgroup)
    found = [_cost(code.loops, i, sharing, max(1, held.waves_per_simd)) for i in range(len(code.loops))]
    return tuple(sorted(found, key=lambda loop: -loop.cycles_per_iteration)[:MAX_LOOPS])


def cycles_by_pipe(body: Cost, sharing: int) -> dict[str, float]:
    """Cycles of one wave on each of `sharing` SIMDs of a compute unit."""
    return {
        "mfma": body.mfma_cycles,
        "valu": body.valu_cycles,
        "lds": body.lds_cycles * sharing,
        "vmem": body.vmem_cycles * sharing,
        "issue": body.instructions * ISSUE_CYCLES,
    }


def _cost(loops: tuple[Loop, ...], index: int, sharing: int, waves: int) -> LoopCost:
    loop = loops[index]
    cycles = {name: round(value, 1) for name, value in cycles_by_pipe(loop.own, sharing).items()}
    pipes = [name for name in cycles if name != "issue" or waves == 1]
    depth, outer = 1, loop.parent
    while outer is not None:
        depth, outer = depth + 1, loops[outer].parent
    return LoopCost(
        label=loop.label[:64],
        line=loop.line,
        depth=depth,
        instructions=int(loop.own.instructions),
        cycles=cycles,
        binding=max(pipes, key=lambda name: cycles[name]),
        waves_per_simd=waves,
    )
