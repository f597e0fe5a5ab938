"""Profiling after the verdict, in fresh guests, within its own deadline. Nothing of it reaches a verdict."""

from __future__ import annotations

import shutil
from collections.abc import Sequence

import torch

from problems.spec import Case
from sandbox.checker.device import Device
from sandbox.checker.guest import FAULTS, Guest, NotReady
from sandbox.checker.memory import HostMemory
from sandbox.checker.outcome import Request
from sandbox.checker.pool import Pool
from sandbox.checker.task import Task
from sandbox.checker.trial import Bench
from sandbox.profile import Profile, absent, ncu, rocprof, told
from sandbox.runner import RunnerError
from sandbox.verdict import KernelRecord

DEADLINE_S = 60.0
"""For one tool, its guest's candidate included."""
NO_DEVICE = (
    "no device to profile on this machine: nothing ran on a GPU; here is what the compiler says of the code, "
    "and the ISA reports of the kernels have the rest"
)
_NCU = (
    *("ncu", "--csv", "--page", "raw", "--clock-control", "none", "--target-processes", "all", "--set", "basic"),
    *("--launch-count", "40"),
)
_ROCPROF = (
    *("/bin/sh", "-c", '"$@"; cat /tmp/profile/*counter_collection.csv 2>&1', "sh", "rocprofv3"),
    *("--pmc", "SQ_WAVES", "SQ_INSTS_VALU", "SQ_INSTS_LDS", "SQ_BUSY_CYCLES", "-f", "csv", "-d", "/tmp/profile"),
    *("-o", "p", "--"),
)
_FAILURES = (*FAULTS, NotReady, RunnerError, OSError, RuntimeError, MemoryError, ValueError)
"""What a candidate, a tool or a full GPU can do to a profile: it becomes a note."""


def compiled(records: Sequence[KernelRecord]) -> tuple[Profile, ...]:
    """The profile of a machine without a device: the compiler's figures."""
    counters: dict[str, float] = {}
    for number, record in enumerate(records):
        if record.isa is not None:
            figures = {
                "vgpr": record.isa.vgpr,
                "vgpr_spills": record.isa.vgpr_spills,
                "lds_bytes": record.isa.lds_bytes,
                "occupancy_waves": record.isa.occupancy_waves,
                "mfma": sum(record.isa.mfma.values()),
                "instructions": record.isa.instructions,
            }
            counters |= {
                f"{number} {record.name} {record.target}: {name}": float(value) for name, value in figures.items()
            }
    return (Profile(tool="compiler", counters=counters, notes=(NO_DEVICE,)),)


def take(task: Task, request: Request, pool: Pool, device: Device) -> tuple[Profile, ...]:
    """Every tool there is, on the last benchmark case; call it while no other candidate has the GPU."""
    case = task.problem.benchmarks[-1]
    try:
        with pool.lend(("device",)) as [guest]:
            found = told(_profiled(task, case, request, guest, device), case)
    except _FAILURES as error:
        found = (absent("torch.profiler", f"not taken: {error}"),)
    return (*found, _counted(task, case, request, pool, device))


def _counted(task: Task, case: Case, request: Request, pool: Pool, device: Device) -> Profile:
    """Hardware counters, by a tool that a guest of its own runs under."""
    tool, prefix, read = ("rocprofv3", _ROCPROF, rocprof) if torch.version.hip else ("ncu", _NCU, ncu)
    if shutil.which(tool) is None:
        return absent(tool, f"{tool} is not installed on this machine")
    try:
        guest = pool.apart("device", prefix)
    except _FAILURES as error:
        return absent(tool, f"not started: {error}")
    try:
        guest.await_ready()
        _called(task, case, request, guest, device)
        guest.leave(DEADLINE_S)
        return read(guest.output(), case)
    except _FAILURES as error:
        return absent(tool, f"not taken: {error}", guest.output()[-500:])
    finally:
        guest.close()


def _profiled(task: Task, case: Case, request: Request, guest: Guest, device: Device) -> bytes:
    bench = _bench(task, case, request, guest, device)
    try:
        bench.run(before=device.settle)
        return guest.profile(bench.tree)
    finally:
        bench.close()


def _called(task: Task, case: Case, request: Request, guest: Guest, device: Device) -> None:
    bench = _bench(task, case, request, guest, device)
    try:
        bench.run(before=device.settle)
    finally:
        bench.close()


def _bench(task: Task, case: Case, request: Request, guest: Guest, device: Device) -> Bench:
    guest.load(request.source, min(request.deadline_s, DEADLINE_S))
    return Bench(task, case, "benchmark", guest, device.share or HostMemory)
