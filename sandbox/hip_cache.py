"""What every guest needs to run HIP on the CPU, compiled once on a machine by this process, read-only to guests.

It is our own code alone: the emulation's runtime, and our headers. What a candidate brings is compiled in its guest.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import platform
import subprocess
from pathlib import Path

from sandbox.guest.hip import toolchain
from sandbox.guest.hip.emulated import build

VARIABLE = build.CACHE
"""How a guest is told where it is."""


def place() -> Path:
    """The folder, one for each kind of processor: what is in it is compiled for this one."""
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    with contextlib.suppress(OSError):
        flags = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith(("flags", "model"))]
        kind = hashlib.sha256("\n".join(sorted(set(flags))).encode()).hexdigest()[:12]
        return Path(home) / "kernelwright" / "hip" / kind
    return Path(home) / "kernelwright" / "hip" / platform.machine()


def shown() -> Path | None:
    """The folder as guests are to see it, made if need be; None where this user can make none."""
    with contextlib.suppress(OSError, RuntimeError):
        folder = place()
        folder.mkdir(parents=True, exist_ok=True)
        return folder
    return None


def prepare() -> None:
    """Compile what is missing; some seconds once. Where it cannot, every guest does it for itself."""
    folder = shown()
    if folder is None:
        return
    with (
        contextlib.suppress(OSError, build.CompilerFault, subprocess.SubprocessError),
        (folder / "lock").open("w") as held,
    ):
        fcntl.flock(held, fcntl.LOCK_EX)
        build.runtime(folder)
        toolchain.precompile(folder)
