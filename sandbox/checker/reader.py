"""The checker's end of `reading`: evidence is read within a time and a memory, or not at all."""

from __future__ import annotations

import functools
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from problems.load import load
from sandbox.checker.reading import Asked, Reading, header
from sandbox.guest import wire
from sandbox.isolation.program import Program, start
from sandbox.verdict import Untimed

READ_S = 20.0
"""An honest candidate's evidence of ten cases takes well under a second."""
MEMORY_BYTES = 8 << 30


class Reader:
    """One reading process, started when first asked and again after it had to be killed."""

    def __init__(self) -> None:
        self._program: Program | None = None

    def read(self, payloads: Sequence[bytes], asked: Asked | None = None) -> Reading:
        """What `payloads` say; a flag and no times where that could not be found out in time. Raises `OSError`."""
        if not payloads:
            return Reading()
        program = self._started()
        until_s = time.monotonic() + READ_S
        try:
            for payload in payloads:
                wire.send(program.sock, {"op": "evidence"}, payload, until_s=until_s)
            wire.send(program.sock, header(asked), until_s=until_s)
            return Reading.model_validate_json(wire.receive(program.sock, until_s, accept_fds=False).payload)
        except (wire.WireError, ValueError) as error:
            self.close()
            return _unread(asked, f"kernel evidence unreadable within {READ_S:g} s: {type(error).__name__}: {error}")

    def close(self) -> None:
        """End its process."""
        program, self._program = self._program, None
        if program is not None:
            program.close()

    def _started(self) -> Program:
        if self._program is None or not self._program.alive:
            self.close()
            limits = ["prlimit", f"--as={MEMORY_BYTES}", "--core=0:0"]
            argv = ["setpriv", "--pdeathsig", "KILL", *limits, sys.executable, "-m", "sandbox.checker.reading"]
            self._program = start(argv, dict(os.environ))
        return self._program


@functools.cache
def reader() -> Reader:
    """This process's reader."""
    return Reader()


def _unread(asked: Asked | None, why: str) -> Reading:
    if asked is None:
        return Reading(flags=(why,))
    problem = load(asked.problem, Path(asked.root))
    timings = tuple(Untimed(case=case, reason=why) for case in problem.benchmarks)
    return Reading(timings=timings, flags=(why,))
