"""Confinement by bubblewrap.

Covers: no network, own pid, ipc and uts namespaces, no capabilities, a root that holds only the system, the Python
environment and the guest's package, all read-only, a private /tmp with a size. Started by root, the guest is user 65534
for the kernel too: in a user namespace it would still be root to /proc/sys, whose files ask for no capability. Started
by anyone else, it is that user in a user namespace. System calls are filtered (`syscalls`); memory and processes of
the guest as a whole are capped by cgroup where this process may make one (`cgroup`), else one process's memory and one
user's processes by resource limits.
Does not cover: faults of the kernel and of the GPU's driver, side channels.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from sandbox.isolation import syscalls
from sandbox.isolation.cgroup import cage
from sandbox.isolation.program import NOBODY, Limits, Program, as_nobody, limited, start
from sandbox.isolation.view import CODE, View, view

_FLAGS = (
    *("--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
    *("--die-with-parent", "--new-session", "--cap-drop", "ALL", "--hostname", "guest"),
    *("--proc", "/proc", "--dev", "/dev"),
)
_AS_ROOT = ("--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--cap-add", "CAP_SETPCAP")
_AS_USER = ("--unshare-user", "--disable-userns", "--uid", str(NOBODY), "--gid", str(NOBODY))


class Bubblewrap:
    """Starts programs under ``bwrap``."""

    name = "bubblewrap"

    def start(self, argv: Sequence[str], env: Mapping[str, str], limits: Limits, gpu: bool = False) -> Program:
        """Start `argv` confined; its folder of ours is on its path. `OSError` where bwrap is not installed."""
        shown, whole, own = view(gpu), cage(limits), _AS_USER
        # Root's guests are one user to the kernel: where a cgroup counts, one guest's processes are not another's.
        inner = limited(argv, limits, count_processes=not whole.folders)
        if os.geteuid() == 0:
            inner, own = [*as_nobody(shown.groups), *inner], _AS_ROOT
        env = {**env, "PYTHONPATH": str(CODE)}
        calls = syscalls.filter_file(limits.loopback)
        try:
            outer = ["bwrap", *_FLAGS, *own, *(["--seccomp", str(calls)] if syscalls.known() else [])]
            command = whole.round([*outer, *_mounts(shown, limits), "--chdir", "/tmp", *inner])
            return start(command, env, whole.remove, keep=[calls])
        finally:
            os.close(calls)


def _mounts(shown: View, limits: Limits) -> list[str]:
    # Left to itself it makes the folders above a mount for their owner alone, and that is not the guest.
    targets = (*shown.read_only, *shown.devices, shown.code[1])
    above = {str(parent) for path in targets for parent in Path(path).parents} - {"/", "/dev"}
    arguments = [word for path in sorted(above) for word in ("--perms", "0755", "--dir", path)]
    for path in shown.read_only:
        arguments += ["--ro-bind", path, path]
    for target, link in shown.links:
        arguments += ["--symlink", target, link]
    for path in shown.covered:
        arguments += ["--tmpfs", path, "--remount-ro", path]
    for path in shown.devices:
        arguments += ["--dev-bind", path, path]
    arguments += ["--ro-bind", *shown.code]
    for path in ("/tmp", "/dev/shm"):
        arguments += ["--perms", "1777", "--size", str(limits.tmp_bytes), "--tmpfs", path]
    return [*arguments, "--remount-ro", "/"]
