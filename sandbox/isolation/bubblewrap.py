"""Confinement by bubblewrap.

Covers: no network, own pid, ipc, uts and user namespaces, no capabilities, no new user namespaces, a root that holds
only the system, the Python environment and the guest's package, all read-only, a private /tmp with a size, uid 65534.
Does not cover: faults of the kernel and of the GPU's driver, memory beyond the limits of one process, side channels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sandbox.isolation.program import Limits, Program, limited, start
from sandbox.isolation.view import CODE, View, view

_NOBODY = "65534"
_FLAGS = (
    *("--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
    *("--disable-userns", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--hostname", "guest"),
    *("--uid", _NOBODY, "--gid", _NOBODY, "--proc", "/proc", "--dev", "/dev"),
)


class Bubblewrap:
    """Starts programs under ``bwrap``."""

    name = "bubblewrap"

    def start(self, argv: Sequence[str], env: Mapping[str, str], limits: Limits, gpu: bool = False) -> Program:
        """Start `argv` confined; its folder of ours is on its path. `OSError` where bwrap is not installed."""
        inner = limited(argv, limits)
        env = {**env, "PYTHONPATH": str(CODE)}
        return start(["bwrap", *_FLAGS, *_mounts(view(gpu), limits), "--chdir", "/tmp", *inner], env)


def _mounts(shown: View, limits: Limits) -> list[str]:
    arguments: list[str] = []
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
        arguments += ["--size", str(limits.tmp_bytes), "--tmpfs", path]
    return [*arguments, "--remount-ro", "/"]
