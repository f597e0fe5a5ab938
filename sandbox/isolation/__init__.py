"""Where untrusted programs run: one protocol, three siblings, and the choice of what really works on this machine."""

from __future__ import annotations

import functools
import sys
from collections.abc import Mapping, Sequence
from typing import Protocol

from sandbox.isolation.bubblewrap import Bubblewrap
from sandbox.isolation.namespaces import Namespaces
from sandbox.isolation.process import Process
from sandbox.isolation.program import TRIAL, Limits, Program, tried

__all__ = ["KINDS", "Limits", "Program", "Sandbox", "choose", "works"]


class Sandbox(Protocol):
    """A way to start a program confined, with a socket on descriptor 3."""

    name: str

    def start(self, argv: Sequence[str], env: Mapping[str, str], limits: Limits, gpu: bool = False) -> Program:
        """Start `argv`; `OSError` where the means are missing. `gpu` shows it the GPU's devices and driver."""


KINDS: dict[str, Sandbox] = {"bubblewrap": Bubblewrap(), "namespaces": Namespaces(), "process": Process()}
"""From the strongest to the last resort."""


@functools.cache
def works(name: str, gpu: bool = False) -> bool:
    """Whether this kind of sandbox really starts a program here, and shows it the GPU's devices; tried once."""
    argv = [sys.executable, "-I", "-S", "-c", TRIAL]
    try:
        return tried(KINDS[name].start(argv, {"PATH": "/usr/bin:/bin"}, Limits(), gpu))
    except OSError:
        return False


def choose(gpu: bool = False) -> Sandbox:
    """The strongest sandbox that works on this machine."""
    return KINDS[next(name for name in KINDS if name == "process" or works(name, gpu))]
