"""``python -m sandbox.checker.reading``: reads kernel evidence for the checker, and may be killed over it.

Evidence is a guest's text of up to 128 MiB. Reading it is bounded by this process's end, not by what it says. Over the
socket on standard input come ``evidence`` frames, one payload each and unanswered, then a ``read`` frame; the payload
of its answer is a `Reading` about them. No torch here: it starts in a fraction of a second.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

from pydantic import Field

from problems.chips import chip as chip_named
from problems.load import load, work
from problems.spec import Frozen
from sandbox.checker.kernels import UNREADABLE, read, records
from sandbox.estimate import estimate
from sandbox.evidence import Evidence
from sandbox.guest import wire
from sandbox.verdict import KernelRecord, Timing, Untimed


class Reading(Frozen):
    """What came of some evidence: a record a kernel, and a time for each benchmark case that was asked for."""

    records: tuple[KernelRecord, ...] = ()
    timings: tuple[Timing, ...] = ()
    flags: tuple[str, ...] = ()


class Asked(Frozen):
    """Estimates wanted from the last evidence: of which problem, for which chip; `faults` are cases without any."""

    problem: str
    root: str
    chip: str
    faults: dict[int, str] = Field(default_factory=dict)


def main() -> None:
    """Serve until the other side hangs up."""
    sock = socket.socket(fileno=os.dup(0))
    payloads: list[bytes] = []
    while True:
        try:
            frame = wire.receive(sock, accept_fds=False)
        except wire.WireError:
            return
        if frame.op == "evidence":
            payloads.append(frame.payload)
            continue
        answer = reading(payloads, Asked.model_validate(frame.header["asked"]) if frame.header["asked"] else None)
        payloads = []
        wire.send(sock, {"op": "read"}, answer.model_dump_json().encode())


def reading(payloads: list[bytes], asked: Asked | None) -> Reading:
    """Read it all."""
    flags: list[str] = []
    evidences = [read(payload, flags) for payload in payloads]
    timings = _timings(evidences[-1], asked) if asked else ()
    return Reading(records=records(*evidences), timings=timings, flags=tuple(flags))


def _timings(evidence: Evidence, asked: Asked) -> tuple[Timing, ...]:
    problem, chip = load(asked.problem, Path(asked.root)), chip_named(asked.chip)

    def timing(index: int) -> Timing:
        case = problem.benchmarks[index]
        if index in asked.faults:
            return Untimed(case=case, reason=asked.faults[index])
        launches = [launch for launch in evidence.launches if launch.call == index]
        try:
            return estimate(chip, case, work(problem, case), launches, evidence.kernels)
        except UNREADABLE as error:
            return Untimed(case=case, reason=f"the recorded code cannot be read: {error!r}"[:500])

    return tuple(timing(index) for index in range(len(problem.benchmarks)))


def header(asked: Asked | None) -> dict[str, Any]:
    """The ``read`` frame's header."""
    return {"op": "read", "asked": asked.model_dump(mode="json") if asked else None}


if __name__ == "__main__":
    main()
