"""Starts `impostor.py`, a guest that lies, in place of a real guest."""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from problems.load import ROOT
from sandbox.checker.guest import Guest
from sandbox.isolation import Limits, Program
from sandbox.isolation.program import limited, start

SCRIPT = Path(__file__).with_name("impostor.py")


class Impostors:
    """A sandbox whose programs all are the script, behaving as told."""

    name = "impostors"

    def __init__(self, behaviour: str) -> None:
        self._behaviour = behaviour

    def start(self, argv: Sequence[str], env: Mapping[str, str], limits: Limits, gpu: bool = False) -> Program:
        command = limited([sys.executable, "-S", str(SCRIPT), self._behaviour], limits, count_processes=False)
        return start(command, {**env, "PYTHONPATH": str(ROOT.parent / "sandbox"), "PATH": os.environ["PATH"]})


def impostor(behaviour: str) -> Guest:
    guest = Guest("emulate", ("gfx942",), Impostors(behaviour), {}, Limits())
    guest.behaviour = behaviour  # for a test's clock
    return guest
