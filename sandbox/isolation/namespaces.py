"""Confinement by util-linux's ``unshare``, where bubblewrap is not installed.

Covers: no network, own pid, ipc, uts, mount and user namespaces, no capabilities, a root that holds only the system,
the Python environment and the guest's package, read-only, a private /tmp with a size.
The guest is user 65534 where root starts it and may make namespaces itself; else the starting user, in a user
namespace, with /proc/sys and its like read-only. System calls and what the guest as a whole may use as in `bubblewrap`.
Does not cover: as in `bubblewrap`.
"""

from __future__ import annotations

import base64
import dataclasses
import functools
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from sandbox.isolation import syscalls
from sandbox.isolation.cgroup import cage
from sandbox.isolation.program import TRIAL, Limits, Program, limited, start, tried
from sandbox.isolation.view import CODE, view

_ENTER = Path(__file__).parent / "enter.py"
_FLAGS = ("--pid", "--fork", "--net", "--ipc", "--uts", "--mount", "--kill-child")
_AS_USER = ("--user", "--map-root-user")


class Namespaces:
    """Starts programs in fresh namespaces."""

    name = "namespaces"

    def start(self, argv: Sequence[str], env: Mapping[str, str], limits: Limits, gpu: bool = False) -> Program:
        """Start `argv` confined; its folder of ours is on its path. `OSError` where unshare is not installed."""
        return _start(argv, env, limits, gpu, as_root=os.geteuid() == 0 and _root_may(gpu))


def _start(argv: Sequence[str], env: Mapping[str, str], limits: Limits, gpu: bool, as_root: bool) -> Program:
    plan = {"view": dataclasses.asdict(view(gpu)), "tmp_bytes": limits.tmp_bytes, "nobody": as_root}
    plan["filter"] = base64.b64encode(syscalls.filter_program(loopback=limits.loopback)).decode()
    plan["loopback"] = limits.loopback
    whole = cage(limits)
    inner = limited(argv, limits, count_processes=not whole.folders)
    enter = [sys.executable, "-I", "-S", str(_ENTER), json.dumps(plan), *inner]
    # `unshare` alone would outlive this process: the kernel's parent-death signal ends it, and it ends the rest.
    outer = ["setpriv", "--pdeathsig", "KILL", "unshare", *_FLAGS, *(() if as_root else _AS_USER)]
    return start(whole.round([*outer, *enter]), {**env, "PYTHONPATH": str(CODE)}, whole.remove)


@functools.cache
def _root_may(gpu: bool) -> bool:
    """Whether root may do all this here without a user namespace round it, and user 65534 then reaches the GPU."""
    program = _start([sys.executable, "-I", "-S", "-c", TRIAL], {"PATH": "/usr/bin:/bin"}, Limits(), gpu, as_root=True)
    return tried(program)
