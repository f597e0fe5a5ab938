"""Judging without a GPU: values under Triton's interpreter, code by Triton's AMD backend, times by estimate.

Two guests: one runs small cases and compiles what it launches; the other gets the published benchmark cases as shapes
alone, so that the launches of the real sizes are known without running them.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from problems.chips import Chip
from problems.spec import Case
from sandbox.checker.cases import check, drawn, judge_cases
from sandbox.checker.guest import FAULTS, Died, Guest, Late, Raised
from sandbox.checker.outcome import Outcome, Progress, Request
from sandbox.checker.reader import reader
from sandbox.checker.reading import Asked
from sandbox.checker.task import Task
from sandbox.checker.trial import call_shapes
from sandbox.runner import Mode, Unsupported
from sandbox.verdict import BuildFailed, Passed, Role, Verdict

TARGETS = ("gfx942", "gfx950")
NO_EVIDENCE = b'{"kernels": [], "launches": []}'


@dataclass(slots=True)
class Captured:
    """Launches of the published sizes: `faults` says why a case has none, by its place in the benchmarks."""

    evidence: bytes = b""
    faults: dict[int, str] = field(default_factory=dict)
    unbuilt: BuildFailed | None = None
    """A kernel that does not build for the chip in a published size, though it may in a small one."""


def modes(mode: Mode) -> tuple[str, ...]:
    """The guests that this mode needs."""
    return ("emulate",) if mode is Mode.TEST else ("emulate", "capture")


def judge(task: Task, request: Request, guests: Sequence[Guest], chip: Chip, progress: Progress) -> Outcome:
    """Judge one candidate in the guests that `modes` names; they run side by side."""
    emulator, *others = guests
    with ThreadPoolExecutor(1, "capture") as side:
        capturing = [side.submit(_capture, task, request, other) for other in others]
        try:
            outcome = _emulate(task, request, emulator, progress)
        except Unsupported:
            _kill(others)
            raise
        if not isinstance(outcome.verdict, Passed):
            _kill(others)
        captured = [future.result() for future in capturing]
    if not captured or not isinstance(outcome.verdict, Passed):
        return _read(outcome.verdict, outcome.evidence, progress)
    if captured[0].unbuilt is not None:
        return _read(captured[0].unbuilt, [*outcome.evidence, captured[0].evidence], progress)
    asked = Asked(problem=task.problem.name, root=str(task.root), chip=chip.name, faults=captured[0].faults)
    return _read(outcome.verdict, [*outcome.evidence, captured[0].evidence], progress, asked)


@dataclass(frozen=True, slots=True)
class _Emulated:
    verdict: Verdict
    evidence: list[bytes]


def _read(verdict: Verdict, payloads: list[bytes], progress: Progress, asked: Asked | None = None) -> Outcome:
    """The outcome with what the evidence says beside it: the kernels and, where asked for, the estimates."""
    if not payloads:
        return Outcome(verdict)
    reading = reader().read([payload or NO_EVIDENCE for payload in payloads], asked)
    progress.flags += reading.flags
    if isinstance(verdict, Passed) and asked is not None:
        verdict = verdict.model_copy(update={"timings": reading.timings})
    return Outcome(verdict, reading.records)


def _emulate(task: Task, request: Request, guest: Guest, progress: Progress) -> _Emulated:
    recorded: list[bytes] = []

    def run() -> None:
        small: list[tuple[Role, Case]] = [("small", case) for case in task.problem.small]
        hidden: list[tuple[Role, Case]] = [("hidden", case) for case in drawn(task, "small")]
        check(task, guest, small + hidden, progress)
        recorded.append(guest.kernels())

    verdict = judge_cases(request, progress, guest, run)
    return _Emulated(verdict or Passed(cases=tuple(progress.checks)), recorded)


def _capture(task: Task, request: Request, guest: Guest) -> Captured:
    """Call once on the shapes of each benchmark case. Its faults cost the estimate, never the verdict."""
    captured, benchmarks = Captured(), task.problem.benchmarks
    try:
        guest.load(request.source, request.deadline_s)
        for index, case in enumerate(benchmarks):
            _capture_case(task, case, guest, captured, index)
        captured.evidence = guest.kernels()
    except (*FAULTS, Unsupported) as fault:
        for index in range(len(benchmarks)):
            captured.faults.setdefault(index, f"not captured: {fault}")
    return captured


def _kill(guests: Sequence[Guest]) -> None:
    """End what is no longer wanted; whoever waits for it is told that it died."""
    for guest in guests:
        guest.kill()


def _capture_case(task: Task, case: Case, guest: Guest, captured: Captured, index: int) -> None:
    try:
        call_shapes(task, case, guest)
    except (Died, Late):
        raise
    except FAULTS as fault:
        captured.faults[index] = f"not captured: {fault.reason}"
        if isinstance(fault, Raised) and fault.build:
            captured.unbuilt = captured.unbuilt or BuildFailed(reason=f"{case.label()}: {fault.reason}", log=fault.log)
