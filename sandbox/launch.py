"""The time of one kernel launch on an AMD chip, from its code, its occupancy and its traffic.

What it counts, what it leaves out and where its figures come from: docs/decisions/estimate-model.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from problems.chips import Chip
from problems.spec import DType, Work
from sandbox.evidence import RecordedKernel, RecordedLaunch
from sandbox.isa import instructions_of, lds_of, read_registers, stream
from sandbox.occupancy import occupancy
from sandbox.pipes import LANES, mfma_tile
from sandbox.programs import trace
from sandbox.queues import residence, waiting
from sandbox.traffic import Traffic, assembly_traffic, sample, traffic
from sandbox.ttir import TtirError
from sandbox.waves import ProgramWork, WaveWork, computes, program_work, wave_work

# Share of a memory level's peak that kernels reach: about 81 % of 5.3 TB/s on MI300X, and the same is taken for caches
# (Ambati et al., "AMD MI300X GPU performance analysis", 2025).
MEMORY_SHARE = 0.81
# Cycles at the highest clock, rounded; see the decision page for what they rest on.
HBM_LATENCY = 1500
L2_LATENCY = 500
LDS_LATENCY = 128
ISSUE_CYCLES = 4
"""A wave issues at most one instruction in this many cycles."""
BARRIER_CYCLES = 40
WAVE_START_CYCLES = 600
"""Dispatch, register set-up and the first scalar loads of a wave's arguments."""
MEMORY_CHANNELS = 128
"""HBM channels of MI300X, over which addresses are interleaved; its L2s and Infinity Cache have as many slices."""
DENSE_UTILISATION = 0.94
"""Of the matrix units, at the clocks in `Chip.matrix_clock_hz` (AMD, "Measuring Max-Achievable FLOPs, part 2")."""
CLOCK_STEPS = 6
"""Steps to settle clock and utilisation, which depend on one another."""
MAX_PROGRAMS = 1 << 40


class NoEstimate(Exception):
    """No honest estimate can be made; the message is the reason an `Untimed` carries."""


@dataclass(frozen=True, slots=True)
class LaunchTime:
    """One launch: its time, the term that sets it, and every term, in microseconds."""

    us: float
    bound: str
    parts_us: dict[str, float]
    asked_bytes: float
    """What its programs ask of memory, to see whether the launches cover the case's work."""
    possible_flops: float
    """The most its instructions can compute, for the same purpose."""


@dataclass(frozen=True, slots=True)
class Pipes:
    """What one wave asks of its SIMD's pipes and of those its compute unit shares, and waits besides. Seconds."""

    simd: dict[str, float]
    shared: dict[str, float]
    delay: float
    waves: int
    """Of one workgroup."""
    imbalance: float
    """The busiest workgroup's time over the mean one's."""


def launch_time(chip: Chip, work: Work, kernel: RecordedKernel, launch: RecordedLaunch) -> LaunchTime:
    """Time of one launch of `kernel`; `work` stands in where its Triton code cannot be followed.

    Raises `NoEstimate` where it cannot run, `IsaError` where its assembly cannot be read.
    """
    registers = read_registers(kernel)
    held = occupancy(chip, registers.total, lds_of(kernel), kernel.num_warps)
    programs = math.prod(launch.grid)
    if held.workgroups_per_cu == 0:
        raise NoEstimate(f"a workgroup of {kernel.name} does not fit on a compute unit ({held.limit})")
    if programs > MAX_PROGRAMS:
        raise NoEstimate(f"{programs} workgroups in one launch")
    if not kernel.ttir and any(item.mnemonic == "s_swappc_b64" for item in instructions_of(kernel)):
        raise NoEstimate(f"{kernel.name} calls functions that are not inlined")
    if programs == 0:
        return LaunchTime(chip.launch_floor_us, "launch", {"launch": chip.launch_floor_us}, 0.0, 0.0)
    share, moved = work_of(chip, work, kernel, launch, held.workgroups_per_cu)
    code = stream(kernel)
    wave = wave_work(code, share, kernel)
    if not kernel.ttir:
        moved = assembly_traffic(chip, work, wave, programs * kernel.num_warps, held.workgroups_per_cu)
    memory = _memory_us(chip, moved)
    clock_hz = chip.clock_hz
    for _ in range(CLOCK_STEPS):
        pipes = pipes_of(kernel, share, wave, moved, clock_hz)
        compute, total = _rounds_us(chip, pipes, max(memory.values()), programs, held.workgroups_per_cu)
        spread = pipes.simd["mfma"] * programs * pipes.waves / (chip.compute_units * chip.simds_per_cu) * 1e6
        clock_hz = (clock_hz + engine_clock_hz(chip, share.dtype, spread / total)) / 2
    busy = _busy_us(chip, pipes, programs)
    parts = {"launch": chip.launch_floor_us, **busy, "latency": max(0.0, compute - max(busy.values())), **memory}
    return LaunchTime(
        us=chip.launch_floor_us + total,
        bound=_bound(parts, compute, memory),
        parts_us=parts,
        asked_bytes=moved.l2_bytes if not kernel.ttir else (share.load_bytes + share.store_bytes) * programs,
        # A packed multiply-add is four operations a lane.
        possible_flops=(wave.total.mfma_flops + 4 * LANES * wave.total.valu) * kernel.num_warps * programs,
    )


def work_of(
    chip: Chip, work: Work, kernel: RecordedKernel, launch: RecordedLaunch, per_cu: int
) -> tuple[ProgramWork, Traffic]:
    """A program's share and the launch's traffic, from its Triton code; else the case's work divided over the grid."""
    programs = math.prod(launch.grid)
    tile = max((mfma_tile(item.mnemonic) for item in instructions_of(kernel)), default=(0, 0))
    try:
        found = trace(kernel.ttir, launch.args, launch.grid, sample(programs))
        return program_work(found, kernel, tile), traffic(chip, kernel, launch, found, per_cu)
    except TtirError:
        flops = sum(work.flops.values()) if tile != (0, 0) or computes(stream(kernel)) else 0.0
        dtype = max(work.flops, key=lambda name: work.flops[name], default=None)
        share = ProgramWork(flops / programs, dtype, work.bytes / programs, 0.0, (), kernel.num_warps)
        return share, Traffic(work.bytes, work.bytes, work.bytes)


def engine_clock_hz(chip: Chip, dtype: DType | None, utilisation: float) -> float:
    """The clock that power allows while the matrix units are busy for that share of the time.

    Published is one point, a dense product at 94 %. Dynamic power goes as activity times the cube of the clock.
    """
    held = chip.matrix_clock_hz.get(dtype) if dtype else None
    if held is None or utilisation <= 0:
        return chip.clock_hz
    return float(min(chip.clock_hz, held * (DENSE_UTILISATION / utilisation) ** (1 / 3)))


def pipes_of(kernel: RecordedKernel, share: ProgramWork, wave: WaveWork, moved: Traffic, clock_hz: float) -> Pipes:
    """One wave's demands at an engine clock."""
    total = wave.total
    others = total.instructions - total.mfma - total.valu
    return Pipes(
        simd={"mfma": total.mfma_cycles / clock_hz, "valu": total.valu_cycles / clock_hz},
        shared={"lds": total.lds_cycles / clock_hz, "vmem": total.vmem_cycles / clock_hz},
        delay=(others * ISSUE_CYCLES + _waiting_cycles(kernel, wave, moved)) / clock_hz,
        waves=kernel.num_warps,
        imbalance=share.imbalance,
    )


def _waiting_cycles(kernel: RecordedKernel, wave: WaveWork, moved: Traffic) -> float:
    """Cycles a wave alone would stand still: memory not hidden by pipelining, LDS, barriers, its start."""
    latency = moved.l2_hit_rate * L2_LATENCY + (1 - moved.l2_hit_rate) * HBM_LATENCY
    cycles = float(WAVE_START_CYCLES + (HBM_LATENCY if wave.straight.loads else 0))
    cycles += LDS_LATENCY * min(wave.straight.lds, wave.straight.waits)
    cycles += BARRIER_CYCLES * wave.total.barriers
    for loop in wave.loops:
        body = loop.body
        busy = body.mfma_cycles + body.valu_cycles + ISSUE_CYCLES * (body.instructions - body.mfma - body.valu)
        hidden = busy * max(0, kernel.num_stages - 1) if loop.pipelined else loop.covered_cycles
        cycles += loop.runs * max(0.0, latency - hidden) * (1 if body.loads else 0)
        cycles += loop.runs * LDS_LATENCY * (1 if body.lds else 0)
        # What the waves of a unit spill does not fit into its L1: a spilled register comes back from L2.
        cycles += loop.runs * L2_LATENCY * loop.reloads
    return cycles


def _rounds_us(chip: Chip, pipes: Pipes, memory_us: float, programs: int, per_cu: int) -> tuple[float, float]:
    """Full rounds of resident workgroups on one XCD, and a last one of what is left: computing alone, and in all.

    The waves of a round share the slowest memory level: its queues fill what its waits and pipes leave idle.
    """
    cus = chip.compute_units // chip.xcds
    on_xcd = -(-programs // chip.xcds)
    full, left = divmod(on_xcd, cus * per_cu)
    rounds = [(full, per_cu, cus * per_cu)] if full else []
    rounds += [(1, -(-left // cus), left)] if left else []
    # One round ends with its busiest workgroup; over many, whoever is free takes the next.
    uneven = 1 + (pipes.imbalance - 1) / sum(count for count, _, _ in rounds)
    demand = memory_us / (on_xcd * chip.xcds * pipes.waves)
    fill = (WAVE_START_CYCLES + HBM_LATENCY) / chip.clock_hz * 1e6
    compute = total = late = 0.0
    for count, workgroups, resident in rounds:
        alone = _round_s(chip, pipes, workgroups) * uneven * 1e6
        queued = waiting(MEMORY_CHANNELS, demand, alone, resident * chip.xcds * pipes.waves)
        compute += count * alone
        total += count * (alone + queued)
        # Memory stands still until the first waves ask: a latency that no round hides where memory is the bound.
        late = late or fill * queued / (alone + queued)
    return compute, total + late


def _round_s(chip: Chip, pipes: Pipes, workgroups: int) -> float:
    """Time until `workgroups` that start together on one compute unit have ended."""
    waves = workgroups * pipes.waves
    simds = min(chip.simds_per_cu, waves)
    demands = pipes.simd | {name: demand * simds for name, demand in pipes.shared.items()}
    return residence(demands, pipes.delay, -(-waves // chip.simds_per_cu))


def _busy_us(chip: Chip, pipes: Pipes, programs: int) -> dict[str, float]:
    """Time each pipe is busy if the work is spread over the whole chip, whole workgroups at a time."""
    per_cu = -(-programs // chip.compute_units)
    simd_waves = max(1.0, per_cu * pipes.waves / chip.simds_per_cu)
    busy = {name: demand * simd_waves * 1e6 for name, demand in pipes.simd.items()}
    return busy | {name: demand * per_cu * pipes.waves * 1e6 for name, demand in pipes.shared.items()}


def _memory_us(chip: Chip, moved: Traffic) -> dict[str, float]:
    return {
        "l2": moved.l2_bytes / (chip.l2_bytes_per_s * MEMORY_SHARE) * 1e6,
        "mall": moved.fabric_bytes / (chip.mall_bytes_per_s * MEMORY_SHARE) * 1e6,
        "hbm": moved.hbm_bytes / (chip.hbm_bytes_per_s * MEMORY_SHARE) * 1e6,
    }


def _bound(parts: dict[str, float], compute: float, memory: dict[str, float]) -> str:
    """The largest term; `latency` only where waiting outweighs every pipe."""
    slowest = max(memory, key=lambda name: memory[name])
    if parts["launch"] > max(compute, memory[slowest]):
        return "launch"
    if memory[slowest] >= compute:
        return slowest
    return max(("mfma", "valu", "lds", "vmem", "latency"), key=lambda name: parts[name])
