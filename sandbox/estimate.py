"""Estimates how long a candidate's launches take on an AMD chip that is not here. A model: it ranks, it proves nothing.

What it counts, what it leaves out and where its figures come from: docs/decisions/estimate-model.md.
"""

from __future__ import annotations

from collections.abc import Sequence

from problems.chips import Chip
from problems.spec import Case, Work
from sandbox.evidence import RecordedKernel, RecordedLaunch
from sandbox.isa import IsaError
from sandbox.launch import LaunchTime, NoEstimate, launch_time
from sandbox.shares import shares
from sandbox.verdict import Estimated, Untimed

MIN_COVERED = 0.5
"""Below this share of the case's least bytes or operations, the launches seen cannot be all that it does."""
MAX_LAUNCHES = 512
"""Different launches of one call; each costs the reader milliseconds."""
UNREADABLE = (ArithmeticError, LookupError, ValueError, TypeError, RecursionError)
"""What reading text that no compiler wrote can end in. The evidence is a guest's: it may say anything."""


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
    return Estimated(case=case, chip=chip.name, us=round(total, 3), bound=slowest.bound, parts_us=rounded)


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
    return (kernel.name, kernel.signature, kernel.constants, kernel.num_warps, kernel.num_stages, kernel.block, options)


def _launch_times(
    chip: Chip, work: Work, launches: Sequence[RecordedLaunch], kernels: Sequence[RecordedKernel]
) -> list[LaunchTime]:
    """The time of each launch, equal ones worked out once. An autotuned one takes its best configuration's time."""
    if chip.vendor != "amd":
        raise NoEstimate(f"no estimate model for {chip.name} ({chip.arch}); it has to be measured")
    found: dict[tuple[object, ...], LaunchTime] = {}
    own = [launch for launch in launches if not launch.tuning]
    works = shares(work, [(kernel_for(chip, launch, kernels), launch) for launch in own])

    def time_of(launch: RecordedLaunch, part: Work) -> LaunchTime:
        key = (launch.kernel, launch.grid, tuple(launch.args.items()))
        if key not in found:
            if len(found) >= MAX_LAUNCHES:
                raise NoEstimate(f"over {MAX_LAUNCHES} different launches in one call")
            found[key] = launch_time(chip, part, kernel_for(chip, launch, kernels), launch)
        return found[key]

    tried = [launch for launch in launches if launch.tuning]
    return [
        min((time_of(one, part) for one in (launch, *tried) if _tunes(one, launch, kernels)), key=lambda time: time.us)
        for launch, part in zip(own, works, strict=True)
    ]


def _tunes(one: RecordedLaunch, launch: RecordedLaunch, kernels: Sequence[RecordedKernel]) -> bool:
    """Whether `one` is the launch itself, or a configuration its autotuner tried and could have taken."""
    same_kernel = kernels[one.kernel].name == kernels[launch.kernel].name and one.args == launch.args
    return one is launch or (same_kernel and kernels[one.kernel].error is None)


def _check_covered(work: Work, times: Sequence[LaunchTime]) -> None:
    if not times:
        raise NoEstimate("no kernel launch was recorded")
    asked, needed = sum(time.asked_bytes for time in times), sum(work.flops.values())
    possible = sum(time.possible_flops for time in times)
    if asked < MIN_COVERED * work.bytes:
        raise NoEstimate(
            f"its kernels ask for {asked:.3g} bytes of the case's {work.bytes:.3g}: work is done elsewhere"
        )
    if possible < MIN_COVERED * needed:
        raise NoEstimate(f"its kernels compute at most {possible:.3g} of the case's {needed:.3g} operations")
