"""Where untrusted programs run: one protocol, four siblings, and the choice of what really works on this machine."""

from __future__ import annotations

import functools
import sys
from collections.abc import Mapping, Sequence
from typing import Protocol

from sandbox.isolation.bubblewrap import Bubblewrap
from sandbox.isolation.docker import Docker
from sandbox.isolation.namespaces import Namespaces
from sandbox.isolation.process import Process
from sandbox.isolation.program import TRIAL, Limits, Program, tried
from sandbox.isolation.running import Running

__all__ = ["KINDS", "Limits", "Program", "Running", "Sandbox", "choose", "sandbox_named", "works"]


class Sandbox(Protocol):
    """A way to start a program confined, with a socket on descriptor 3."""

    name: str

    def start(self, argv: Sequence[str], env: Mapping[str, str], limits: Limits, gpu: bool = False) -> Running:
        """Start `argv`; `OSError` where the means are missing. `gpu` shows it the GPU's devices and driver."""


KINDS: dict[str, Sandbox] = {
    "bubblewrap": Bubblewrap(),
    "namespaces": Namespaces(),
    "docker": Docker(),
    "process": Process(),
}
"""In the order of choice. Docker confines as well, but needs a daemon with root's rights, and starts more slowly."""


@functools.cache
def works(name: str, gpu: bool = False) -> bool:
    """Whether this kind of sandbox really starts a program here, and shows it the GPU's devices; tried once."""
    argv = [sys.executable, "-I", "-S", "-c", TRIAL]
    try:
        return tried(KINDS[name].start(argv, {"PATH": "/usr/bin:/bin"}, Limits(), gpu))
    except OSError:
        return False


def sandbox_named(name: str) -> Sandbox:
    """One of `KINDS`, or ``docker:IMAGE`` for containers of that image; `KeyError` for any other name."""
    kind, _, image = name.partition(":")
    return Docker(image) if kind == "docker" and image else KINDS[name]


def choose(gpu: bool = False) -> Sandbox:
    """The strongest sandbox that works on this machine."""
    return KINDS[next(name for name in KINDS if name == "process" or works(name, gpu))]
