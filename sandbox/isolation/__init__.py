"""Where untrusted programs run: one protocol, three siblings, and the choice of what really works on this machine."""

from __future__ import annotations

import functools
import sys
from collections.abc import Mapping, Sequence
from typing import Protocol

from sandbox.isolation.bubblewrap import Bubblewrap
from sandbox.isolation.namespaces import Namespaces
from sandbox.isolation.process import Process
from sandbox.isolation.program import Limits, Program

__all__ = ["KINDS", "Limits", "Program", "Sandbox", "choose", "works"]

_TRIAL_S = 20.0
_TRIAL = """
import glob, os
for path in (*glob.glob("/dev/nvidia[0-9]*"), *glob.glob("/dev/nvidiactl"), *glob.glob("/dev/kfd")):
    os.close(os.open(path, os.O_RDWR))
os.write(3, b"right")
"""


class Sandbox(Protocol):
    """A way to start a program confined, with a socket on descriptor 3."""

    name: str

    def start(self, argv: Sequence[str], env: Mapping[str, str], limits: Limits, gpu: bool = False) -> Program:
        """Start `argv`; `OSError` where the means are missing. `gpu` shows it the GPU's devices and driver."""


KINDS: dict[str, Sandbox] = {"bubblewrap": Bubblewrap(), "namespaces": Namespaces(), "process": Process()}
"""From the strongest to the last resort."""


@functools.cache
def works(name: str, gpu: bool = False) -> bool:
    """Whether this kind of sandbox really starts a program here; tried once."""
    try:
        program = KINDS[name].start(
            [sys.executable, "-I", "-S", "-c", _TRIAL], {"PATH": "/usr/bin:/bin"}, Limits(), gpu
        )
    except OSError:
        return False
    try:
        program.sock.settimeout(_TRIAL_S)
        return program.sock.recv(16) == b"right"
    except OSError:
        return False
    finally:
        program.close()


def choose(gpu: bool = False) -> Sandbox:
    """The strongest sandbox that works on this machine."""
    return KINDS[next(name for name in KINDS if name == "process" or works(name, gpu))]
