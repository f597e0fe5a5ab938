"""What a judge leaves on a machine: processes, descriptors, mounts, shared memory, cgroups, files, memory."""

from __future__ import annotations

import contextlib
import os
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
CGROUPS = Path("/sys/fs/cgroup")


def children(pid: int) -> set[int]:
    """Every living process that `pid` started, directly or not."""
    found: set[int] = set()
    with contextlib.suppress(OSError):  # it may end while we look
        for path in Path(f"/proc/{pid}/task").glob("*/children"):
            for child in map(int, _read(path).split()):
                found |= {child} | children(child)
    return found


def checker_of(pid: int) -> int | None:
    """The checker among them."""
    named = [child for child in children(pid) if "sandbox.checker" in _read(Path(f"/proc/{child}/cmdline"))]
    return min(named, default=None)


def foreign_namespaces(pids: Iterable[int]) -> set[str]:
    """Pid namespaces of `pids` that are not our own, those of guests, each with when its first process started.

    The kernel gives a namespace that is gone's number to the next one, somebody else's too.
    """
    born = _births()
    return {f"{name} {born[name]}" for name in {*map(_namespace, pids)} - {_namespace(os.getpid())} if name in born}


def living_in(namespaces: set[str]) -> list[int]:
    """Processes of these namespaces, whoever their parent is by now."""
    born = _births()
    return [pid for pid in _everybody() if f"{_namespace(pid)} {born.get(_namespace(pid))}" in namespaces]


def _births() -> dict[str, str]:
    """When the first process of each pid namespace started, in clock ticks since boot."""
    first = [
        pid
        for pid in _everybody()
        if "\nNSpid:" in (status := _read(Path(f"/proc/{pid}/status")))
        and status.partition("\nNSpid:")[2].split("\n")[0].split()[-1] == "1"
    ]
    stats = {pid: _read(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split() for pid in first}
    # A namespace that cannot be read is none: the machine's first process may hide its own.
    return {name: fields[19] for pid, fields in stats.items() if len(fields) > 19 and (name := _namespace(pid))}


def _everybody() -> list[int]:
    return [int(path.name) for path in Path("/proc").glob("[0-9]*")]


def descriptors(pid: int) -> int:
    """How many it holds."""
    try:
        return len(list(Path(f"/proc/{pid}/fd").iterdir()))
    except OSError:
        return 0


def memory_bytes(pid: int) -> int:
    """Its private memory: what it shares with a candidate's guest comes and goes with the case."""
    fields = _read(Path(f"/proc/{pid}/statm")).split()
    return (int(fields[1]) - int(fields[2])) * PAGE_BYTES if fields else 0


def mounts() -> set[str]:
    """Places where a tmpfs is mounted, as we see them."""
    lines = _read(Path("/proc/self/mountinfo")).splitlines()
    return {line.split()[4] for line in lines if " - tmpfs " in line}


def shared_memory() -> set[str]:
    """Names in /dev/shm, and System V segments."""
    segments = _read(Path("/proc/sysvipc/shm")).splitlines()[1:]
    return {*(path.name for path in Path("/dev/shm").iterdir()), *(f"segment {line.split()[1]}" for line in segments)}


def cgroups(checker: int) -> set[str]:
    """Folders that this checker made for its guests."""
    return {
        str(path) for depth in ("*/", "*/*/", "*/*/*/", "") for path in CGROUPS.glob(f"{depth}kernelwright-{checker}-*")
    }


@dataclass(frozen=True, slots=True)
class Trend:
    """A quantity over the second half of a run."""

    first: float
    last: float
    growth: float
    """Slope times duration: Theil and Sen's, so that single spikes do not count."""


def trend(samples: Sequence[tuple[float, float]]) -> Trend:
    """Of (time, value) pairs, the second half."""
    half = list(samples[len(samples) // 2 :])
    slopes = [(b[1] - a[1]) / (b[0] - a[0]) for i, a in enumerate(half) for b in half[i + 1 :] if b[0] > a[0]]
    slope = statistics.median(slopes) if slopes else 0.0
    return Trend(half[0][1], half[-1][1], slope * (half[-1][0] - half[0][0]))


def _namespace(pid: int) -> str:
    try:
        return str(Path(f"/proc/{pid}/ns/pid").readlink())
    except OSError:
        return ""


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
