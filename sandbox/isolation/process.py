"""No confinement but a process group, a clean environment and resource limits: the last resort.

Where this process may make cgroups, memory and processes of the guest as a whole are capped, and all that it started
ends with it.
Does not cover: the file system (references are readable), the network, other processes of the same user, system calls;
without cgroups, a child that leaves the process group. It is never chosen silently: its use is a flag on every
judgement made with it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from sandbox.isolation.cgroup import cage
from sandbox.isolation.program import Limits, Program, limited, start
from sandbox.isolation.view import GUEST


class Process:
    """Starts programs as plain processes."""

    name = "process"

    def start(self, argv: Sequence[str], env: Mapping[str, str], limits: Limits, gpu: bool = False) -> Program:
        """Start `argv` in a folder of its own, deleted at its end."""
        folder = tempfile.TemporaryDirectory(prefix="kernelwright-guest-")
        code = Path(folder.name) / "code"
        code.mkdir()
        (code / "guest").symlink_to(GUEST)
        env = {**env, "PYTHONPATH": str(code), "HOME": folder.name, "TMPDIR": folder.name}
        env["TRITON_CACHE_DIR"] = str(Path(folder.name) / "triton")
        whole = cage(limits)

        def clean_up() -> None:
            whole.remove()
            folder.cleanup()

        inner = ["setpriv", "--pdeathsig", "KILL", *limited(argv, limits, count_processes=False)]
        return start(whole.round(inner), env, clean_up)
