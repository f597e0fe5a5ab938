"""Where the commands get a runner from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from kernelwright.status import UsageError
from problems.chips import chip as chip_named
from problems.spec import Problem, ProblemError
from sandbox.runner import Runner

RunnerKind = Literal["auto", "cpu", "gpu"]
Place = Literal["cpu", "gpu"]
_GPU_NODES = ("/dev/kfd", "/dev/nvidiactl", "/dev/dxg")
_EMULATED = "MI300X"


def place_of(kind: RunnerKind) -> Place:
    """Where to judge: ``auto`` is the GPU where torch sees one, else the CPU. `RunnerError` where torch cannot say."""
    if kind != "auto":
        return kind
    if not has_gpu_driver():
        return "cpu"  # torch takes seconds to import, and need not be asked
    from sandbox.probe import toolchain

    return "gpu" if toolchain().devices else "cpu"


def has_gpu_driver() -> bool:
    """Whether a GPU driver's device file is there."""
    return any(Path(node).exists() for node in _GPU_NODES)


@contextmanager
def open_runner(
    kind: RunnerKind, problem: Problem, chip: str | None = None, isolation: str | None = None, racecheck: bool = False
) -> Iterator[Runner]:
    """A runner for a problem, closed at the end.

    On the CPU, `chip` is whose code is compiled and estimated; the problem's first AMD chip where it is None. On a GPU
    it can only be the GPU's own. `isolation` names a sandbox instead of the strongest that works here. `RunnerError`
    where there is no such place of work. `racecheck` is the emulation's, on a CPU.
    """
    runner = _open(place_of(kind), problem, chip, isolation, racecheck)
    try:
        yield runner
    finally:
        runner.close()


def emulated_chip(problem: Problem, asked: str | None) -> str:
    """The AMD chip that the CPU runner works for: Triton's other backends cannot be captured without a GPU."""
    if asked is None:
        return next((name for name in problem.chips if _is_amd(name)), _EMULATED)
    if not _is_amd(asked):
        raise UsageError(f"the CPU runner compiles for AMD chips only, not {asked}: give --chip MI300X or MI355X")
    return chip_named(asked).name


def _is_amd(name: str) -> bool:
    try:
        return chip_named(name).vendor == "amd"
    except ProblemError:
        return False


def _open(place: Place, problem: Problem, chip: str | None, isolation: str | None, racecheck: bool) -> Runner:
    if place == "cpu":
        from sandbox.cpu import CpuRunner

        return CpuRunner(emulated_chip(problem, chip), isolation, racecheck=racecheck)
    if racecheck:
        raise UsageError("races are looked for where HIP kernels are emulated: add --runner cpu")
    from sandbox.gpu import GpuRunner

    runner = GpuRunner(isolation, gpus=problem.world_size)
    if chip is not None and (seen := runner.machine().chip) != chip_named(chip).name:
        runner.close()
        raise UsageError(f"this machine's GPU is a {seen}, not a {chip}; leave --chip out, or take --runner cpu")
    return runner
