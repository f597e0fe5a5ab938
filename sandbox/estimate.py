"""Estimates how long a candidate's launches take on an AMD chip that is not here. A model: it ranks, it proves nothing.

What it counts, what it leaves out and where its figures come from: docs/decisions/estimate-model.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from problems.chips import Chip
from problems.spec import Case, Work
from sandbox.evidence import RecordedKernel, RecordedLaunch
from sandbox.isa import IsaError, read_instructions, read_registers, stream
from sandbox.occupancy import occupancy
from sandbox.pipes import mfma_tile
from sandbox.programs import trace
from sandbox.queues import residence
from sandbox.traffic import Traffic, sample, traffic
from sandbox.ttir import TtirError
from sandbox.verdict import Estimated, Untimed
from sandbox.waves import ProgramWork, WaveWork, program_work, wave_work

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
MIN_COVERED = 0.5
"""Below this share of the case's least traffic, the launches seen cannot be all that the candidate does."""


MAX_LAUNCHES = 512
"""Different launches of one call; each costs the reader milliseconds."""
MAX_PROGRAMS = 1 << 40
UNREADABLE = (ArithmeticError, LookupError, ValueError, TypeError, RecursionError)
"""What reading text that no compiler wrote can end in. The evidence is a guest's: it may say anything."""


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


def estimate(
    chip: Chip, case: Case, work: Work, launches: Sequence[RecordedLaunch], kernels: Sequence[RecordedKernel]
) -> Estimated | Untimed:
    """Time of one call on `chip`: the sum over its launches, never below the roofline of `work`."""
    try:
        times = _launch_times(chip, work, launches, kernels)
        _check_covered(work, times)
    except (NoEstimate, IsaError) as error:
        return Untimed(case=case, reason=str(error))
    except UNREADABLE as error:
        return Untimed(case=case, reason=f"its recorded code could not be read: {type(error).__name__}: {error}")
    parts: dict[str, float] = {}
    for time in times:
        for name, value in time.parts_us.items():
            parts[name] = parts.get(name, 0.0) + value
    slowest = max(times, key=lambda time: time.us)
    floor = chip.roofline_us(work.flops, work.bytes)
    total = max(floor, sum(time.us for time in times))
    rounded = {name: round(value, 3) for name, value in parts.items()} | {"roofline": round(floor, 3)}
    return Estimated(case=case, chip=chip.name, us=total, bound=slowest.bound, parts_us=rounded)


def _launch_times(
    chip: Chip, work: Work, launches: Sequence[RecordedLaunch], kernels: Sequence[RecordedKernel]
) -> list[LaunchTime]:
    """The time of each launch, equal ones worked out once. An autotuned one takes its best configuration's time."""
    found: dict[tuple[object, ...], LaunchTime] = {}

    def time(launch: RecordedLaunch) -> LaunchTime:
        key = (launch.kernel, launch.grid, tuple(launch.args.items()))
        if key not in found:
            if len(found) >= MAX_LAUNCHES:
                raise NoEstimate(f"over {MAX_LAUNCHES} different launches in one call")
            found[key] = _launch_time(chip, work, launch, kernels)
        return found[key]

    tried = [launch for launch in launches if launch.tuning]
    return [
        min([time(launch), *(time(other) for other in tried if _tunes(other, launch, kernels))], key=lambda t: t.us)
        for launch in launches
        if not launch.tuning
    ]


def _tunes(other: RecordedLaunch, launch: RecordedLaunch, kernels: Sequence[RecordedKernel]) -> bool:
    same_kernel = kernels[other.kernel].name == kernels[launch.kernel].name
    return same_kernel and other.args == launch.args and kernels[other.kernel].error is None


def _check_covered(work: Work, times: Sequence[LaunchTime]) -> None:
    if not times:
        raise NoEstimate("no kernel launch was recorded")
    asked = sum(time.asked_bytes for time in times)
    if asked < MIN_COVERED * work.bytes:
        raise NoEstimate(
            f"its kernels ask for {asked:.3g} bytes of the case's {work.bytes:.3g}: work is done elsewhere"
        )


def _launch_time(chip: Chip, work: Work, launch: RecordedLaunch, kernels: Sequence[RecordedKernel]) -> LaunchTime:
    if chip.vendor != "amd":
        raise NoEstimate(f"no estimate model for {chip.name} ({chip.arch}); it has to be measured")
    kernel = kernel_for(chip, launch, kernels)
    code = stream(kernel)
    registers = read_registers(kernel.amdgcn)
    held = occupancy(chip, registers.total, kernel.shared_bytes, kernel.num_warps)
    if held.workgroups_per_cu == 0:
        raise NoEstimate(f"a workgroup of {kernel.name} does not fit on a compute unit ({held.limit})")
    programs = math.prod(launch.grid)
    if programs > MAX_PROGRAMS:
        raise NoEstimate(f"{programs} workgroups in one launch")
    if programs == 0:
        return LaunchTime(chip.launch_floor_us, "launch", {"launch": chip.launch_floor_us}, 0.0)
    share, moved = _work_of(chip, work, kernel, launch, held.workgroups_per_cu)
    wave = wave_work(code, share, kernel)
    pipes = _Pipes.of(chip, kernel, share, wave, moved)
    compute = _rounds_us(chip, pipes, programs, held.workgroups_per_cu)
    memory = _memory_us(chip, moved)
    busy = _busy_us(chip, pipes, programs)
    parts = {"launch": chip.launch_floor_us, **busy, "latency": max(0.0, compute - max(busy.values())), **memory}
    return LaunchTime(
        us=chip.launch_floor_us + max(compute, *memory.values()),
        bound=_bound(parts, compute, memory),
        parts_us=parts,
        asked_bytes=(share.load_bytes + share.store_bytes) * programs,
    )


def kernel_for(chip: Chip, launch: RecordedLaunch, kernels: Sequence[RecordedKernel]) -> RecordedKernel:
    """The launched kernel as compiled for the chip's target; `NoEstimate` where there is none."""
    launched = kernels[launch.kernel]
    same = [
        kernel
        for kernel in (launched, *kernels)
        if kernel.target == chip.arch and _identity(kernel) == _identity(launched)
    ]
    if not same:
        raise NoEstimate(f"{launched.name} was not compiled for {chip.name} ({chip.arch})")
    if same[0].error is not None:
        raise NoEstimate(f"{launched.name} did not compile for {chip.arch}")
    return same[0]


def _identity(kernel: RecordedKernel) -> tuple[object, ...]:
    options = {name: value for name, value in kernel.options.items() if name != "arch"}
    return (kernel.name, kernel.signature, kernel.constants, kernel.num_warps, kernel.num_stages, options)


def _work_of(
    chip: Chip, work: Work, kernel: RecordedKernel, launch: RecordedLaunch, per_cu: int
) -> tuple[ProgramWork, Traffic]:
    """A program's share and the launch's traffic, from its Triton code; else the case's work divided over the grid."""
    programs = math.prod(launch.grid)
    tile = max((mfma_tile(item.mnemonic) for item in read_instructions(kernel.amdgcn)[0]), default=(0, 0))
    try:
        found = trace(kernel.ttir, launch.args, launch.grid, sample(programs))
        return program_work(found, kernel, tile), traffic(chip, kernel, launch, found, per_cu)
    except TtirError:
        flops = sum(work.flops.values()) if tile != (0, 0) else 0.0
        dtype = max(work.flops, key=lambda name: work.flops[name], default=None)
        share = ProgramWork(flops / programs, dtype, work.bytes / programs, 0.0, (), kernel.num_warps)
        return share, Traffic(work.bytes, work.bytes, work.bytes)


@dataclass(frozen=True, slots=True)
class _Pipes:
    """What one wave asks of its SIMD's pipes and of those its compute unit shares, and waits besides. Seconds."""

    simd: dict[str, float]
    shared: dict[str, float]
    delay: float
    waves: int
    """Of one workgroup."""

    @classmethod
    def of(cls, chip: Chip, kernel: RecordedKernel, share: ProgramWork, wave: WaveWork, moved: Traffic) -> _Pipes:
        total, clock = wave.total, chip.clock_hz
        matrix_clock = chip.matrix_clock_hz.get(share.dtype, clock) if share.dtype else clock
        others = total.instructions - total.mfma - total.valu
        return cls(
            simd={"mfma": total.mfma_cycles / matrix_clock, "valu": total.valu_cycles / clock},
            shared={"lds": total.lds_cycles / clock, "vmem": total.vmem_cycles / clock},
            delay=(others * ISSUE_CYCLES + _waiting_cycles(kernel, wave, moved)) / clock,
            waves=kernel.num_warps,
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
        hidden = busy * max(0, kernel.num_stages - 1) if loop.pipelined else 0.0
        cycles += loop.runs * max(0.0, latency - hidden) * (1 if body.loads else 0)
        cycles += loop.runs * LDS_LATENCY * (1 if body.lds else 0)
        # A spilled register comes back through L1; each reload in a loop is waited for.
        cycles += loop.runs * L2_LATENCY * (1 if body.scratch_bytes else 0)
    return cycles


def _rounds_us(chip: Chip, pipes: _Pipes, programs: int, per_cu: int) -> float:
    """Full rounds of resident workgroups on one XCD, and the last one with what is left over."""
    cus = chip.compute_units // chip.xcds
    on_xcd = -(-programs // chip.xcds)
    full, left = divmod(on_xcd, cus * per_cu)
    seconds = full * _round_s(chip, pipes, per_cu)
    if left:
        seconds += _round_s(chip, pipes, -(-left // cus))
    return seconds * 1e6


def _round_s(chip: Chip, pipes: _Pipes, workgroups: int) -> float:
    """Time until `workgroups` that start together on one compute unit have ended."""
    waves = workgroups * pipes.waves
    simds = min(chip.simds_per_cu, waves)
    demands = pipes.simd | {name: demand * simds for name, demand in pipes.shared.items()}
    return residence(demands, pipes.delay, -(-waves // chip.simds_per_cu))


def _busy_us(chip: Chip, pipes: _Pipes, programs: int) -> dict[str, float]:
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
    if parts["launch"] > max(compute, *memory.values()):
        return "launch"
    slowest = max(memory, key=lambda name: memory[name])
    if memory[slowest] >= compute:
        return slowest
    return max(("mfma", "valu", "lds", "vmem", "latency"), key=lambda name: parts[name])
