"""Confinement by util-linux's ``unshare``, where bubblewrap is not installed.

Covers: no network, own pid, ipc, uts, mount and user namespaces, no capabilities, a root that holds only the system,
the Python environment and the guest's package, read-only, a private /tmp with a size.
The guest is user 65534 where root starts it and may make namespaces itself; else the starting user, in a user
namespace, with /proc/sys and its like read-only.
Does not cover: new user namespaces may be made inside; else as in `bubblewrap`.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from sandbox.isolation.program import Limits, Program, limited, start
from sandbox.isolation.view import CODE, view

_ENTER = Path(__file__).parent / "enter.py"
_FLAGS = ("--pid", "--fork", "--net", "--ipc", "--uts", "--mount", "--kill-child")
_AS_USER = ("--user", "--map-root-user")


class Namespaces:
    """Starts programs in fresh namespaces."""

    name = "namespaces"

    def start(self, argv: Sequence[str], env: Mapping[str, str], limits: Limits, gpu: bool = False) -> Program:
        """Start `argv` confined; its folder of ours is on its path. `OSError` where unshare is not installed."""
        root = _root_may()
        plan = json.dumps({"view": dataclasses.asdict(view(gpu)), "tmp_bytes": limits.tmp_bytes, "nobody": root})
        enter = [sys.executable, "-I", "-S", str(_ENTER), plan, *limited(argv, limits)]
        # `unshare` alone would outlive this process: the kernel's parent-death signal ends it, and it ends the rest.
        outer = ["setpriv", "--pdeathsig", "KILL", "unshare", *_FLAGS, *(() if root else _AS_USER)]
        return start([*outer, *enter], {**env, "PYTHONPATH": str(CODE)})


@functools.cache
def _root_may() -> bool:
    """Whether this is root, and with the right to make namespaces without a user namespace round them."""
    if os.geteuid() != 0:
        return False
    return subprocess.run(["unshare", *_FLAGS, "true"], capture_output=True, check=False).returncode == 0
