"""Confinement by util-linux's ``unshare``, where bubblewrap is not installed.

Covers: no network, own pid, ipc, uts, mount and user namespaces, no capabilities, a root that holds only the system,
the Python environment and the guest's package, read-only, a private /tmp with a size.
Does not cover: started by root, the guest is root's user id without its capabilities, so files that are shown and
device files count it as their owner; new user namespaces may be made inside; else as in `bubblewrap`.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from sandbox.isolation.program import Limits, Program, limited, start
from sandbox.isolation.view import CODE, view

_ENTER = Path(__file__).parent / "enter.py"
_FLAGS = ("--user", "--map-root-user", "--pid", "--fork", "--net", "--ipc", "--uts", "--mount", "--kill-child")


class Namespaces:
    """Starts programs in fresh namespaces."""

    name = "namespaces"

    def start(self, argv: Sequence[str], env: Mapping[str, str], limits: Limits, gpu: bool = False) -> Program:
        """Start `argv` confined; its folder of ours is on its path. `OSError` where unshare is not installed."""
        plan = json.dumps({"view": dataclasses.asdict(view(gpu)), "tmp_bytes": limits.tmp_bytes})
        enter = [sys.executable, "-I", "-S", str(_ENTER), plan, *limited(argv, limits)]
        # `unshare` alone would outlive this process: the kernel's parent-death signal ends it, and it ends the rest.
        outer = ["setpriv", "--pdeathsig", "KILL", "unshare", *_FLAGS]
        return start([*outer, *enter], {**env, "PYTHONPATH": str(CODE)})
