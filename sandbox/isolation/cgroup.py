"""Caps on a guest as a whole, by cgroup version 1 or 2, where this process may make one.

Resource limits count one process's memory and one user's processes; a cgroup counts all that a guest ever starts,
its private tmpfs too, and names them all when it must end.
"""

from __future__ import annotations

import contextlib
import functools
import os
import secrets
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sandbox.isolation.program import Limits

ROOT = Path("/sys/fs/cgroup")
_PREFIX = "kernelwright-"
_OWN_PROCESSES = 16
"""What a sandbox needs beside the guest's own processes."""
_EMPTY_S = 5.0


@dataclass(frozen=True, slots=True)
class Cage:
    """The cgroups of one guest: one folder in version 2, one for each controller in version 1. May be none."""

    folders: tuple[Path, ...] = ()

    def round(self, argv: Sequence[str]) -> list[str]:
        """`argv`, started inside."""
        if not self.folders:
            return list(argv)
        files = [str(folder / "cgroup.procs") for folder in self.folders]
        enter = 'n=$1; shift; while [ $n -gt 0 ]; do echo 0 > "$1" || exit 125; shift; n=$((n-1)); done; exec "$@"'
        return ["/bin/sh", "-c", enter, "sh", str(len(files)), *files, *argv]

    def remove(self) -> None:
        """End whatever is left inside, and give the folders back."""
        until_s = time.monotonic() + _EMPTY_S
        for folder in self.folders:
            while not _removed(folder) and time.monotonic() < until_s:
                _end(folder)
                time.sleep(0.005)


def cage(limits: Limits) -> Cage:
    """New cgroups that cap memory, without swap, and the number of processes; no folders where none can be made here.

    `OSError` where they can be made, and now could not.
    """
    found = _parents()
    return _made(found, limits) if found else Cage()


def _made(found: Sequence[tuple[Path, str]], limits: Limits) -> Cage:
    name = f"{_PREFIX}{os.getpid()}-{secrets.token_hex(4)}"
    made = Cage(tuple(dict.fromkeys(parent / name for parent, _ in found)))
    try:
        for folder in made.folders:
            folder.mkdir()
        for parent, kind in found:
            _cap(parent / name, kind, limits)
    except OSError:
        made.remove()
        raise
    return made


def works() -> bool:
    """Whether guests are capped as a whole on this machine."""
    return bool(_parents())


def _cap(folder: Path, kind: str, limits: Limits) -> None:
    memory_bytes = limits.address_bytes or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    match kind:
        case "v1 pids" | "v2 pids":
            (folder / "pids.max").write_text(str(limits.processes + _OWN_PROCESSES))
        case "v1 memory":
            (folder / "memory.limit_in_bytes").write_text(str(memory_bytes))
            with contextlib.suppress(OSError):  # kernels without swap accounting lack it
                (folder / "memory.memsw.limit_in_bytes").write_text(str(memory_bytes))
        case _:
            (folder / "memory.max").write_text(str(memory_bytes))
            with contextlib.suppress(OSError):
                (folder / "memory.swap.max").write_text("0")


@functools.cache
def _parents() -> tuple[tuple[Path, str], ...]:
    """Where a guest's cgroups can be made: both controllers, or nothing. Removes what killed checkers left."""
    for found in (_second(), _first()):
        if len(found) == 2 and all(os.access(parent, os.W_OK) for parent, _ in found):
            for parent in {parent for parent, _ in found}:
                _sweep(parent)
            if _tried(found):
                return found
    return ()


def _tried(found: Sequence[tuple[Path, str]]) -> bool:
    """Whether a process really gets into such cgroups: folders may be made where none may be entered."""
    try:
        made = _made(found, Limits())
    except OSError:
        return False
    entered = subprocess.run(made.round(["/bin/true"]), capture_output=True, check=False)
    made.remove()
    return entered.returncode == 0


def _second() -> tuple[tuple[Path, str], ...]:
    """Version 2: at our own place or above it, where both controllers are handed down."""
    own = _own_places().get("")
    if own is None:
        return ()
    place = ROOT / own.lstrip("/")
    for parent in (place, *place.parents):
        with contextlib.suppress(OSError):
            if {"memory", "pids"} <= set((parent / "cgroup.subtree_control").read_text().split()):
                return (parent, "v2 memory"), (parent, "v2 pids")
        if parent == ROOT:
            break
    return ()


def _first() -> tuple[tuple[Path, str], ...]:
    """Version 1: below our own place, so that whatever caps us caps a guest; at the top where nothing does."""
    own = _own_places()
    found = []
    for controller, limit in (("memory", "memory.limit_in_bytes"), ("pids", "pids.max")):
        if controller not in own:
            return ()
        top = ROOT / controller
        place = top / own[controller].lstrip("/")
        parent = top if _unlimited(place, top, limit) else place
        found.append((parent, f"v1 {controller}"))
    return tuple(found)


def _unlimited(place: Path, top: Path, limit: str) -> bool:
    for folder in (place, *place.parents):
        if folder == top:
            return True
        try:
            told = (folder / limit).read_text().strip()
        except OSError:
            return False
        if told != "max" and int(told) < 1 << 60:
            return False
    return False


def _own_places() -> dict[str, str]:
    """Our path in each hierarchy, by controller; version 2's is called by the empty name."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return {}
    fields = [line.split(":", 2) for line in lines]
    return {name: path for _, names, path in fields for name in names.split(",")}


def _sweep(parent: Path) -> None:
    for folder in parent.glob(f"{_PREFIX}*"):
        pid = folder.name.removeprefix(_PREFIX).split("-")[0]
        if not Path(f"/proc/{pid}").exists():
            _end(folder)
            _removed(folder)


def _removed(folder: Path) -> bool:
    try:
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _end(folder: Path) -> None:
    with contextlib.suppress(OSError, ValueError):
        for pid in (folder / "cgroup.procs").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
