"""What a sandbox's name does not say: which further measures were in force on this machine."""

from __future__ import annotations

from sandbox.isolation import cgroup, syscalls

_OWN_FILTER = ("bubblewrap", "namespaces")
_OWN_CAPS = ("bubblewrap", "namespaces", "process")


def in_force(name: str) -> str:
    """The sandbox as a record names it: ``bubblewrap+seccomp+cgroup``. A container's engine has both by itself."""
    words = [name]
    words += ["seccomp"] if name in _OWN_FILTER and syscalls.known() else []
    words += ["cgroup"] if name in _OWN_CAPS and cgroup.works() else []
    return "+".join(words)
