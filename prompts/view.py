"""What a prompt shows of a judgement: the verdict, the errors, the times with their kind, the compiled code.

Seeds and samples are left out, and so is everything about the judge's machine but the chip's name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import assert_never

from sandbox.trust import words
from sandbox.verdict import (
    BuildFailed,
    CaseCheck,
    Cheated,
    Crashed,
    Estimated,
    Finding,
    IsaReport,
    Judgement,
    Measured,
    Passed,
    Rejected,
    TimedOut,
    Timing,
    Untimed,
    Verdict,
    WrongAnswer,
)

# Where a library is installed tells a model nothing.
_PACKAGES = re.compile(r'File "[^"\n]*/site-packages/')
FAILED_CASES, LOG_LINES, LOG_CHARACTERS = 6, 60, 4000
LOOPS, ADVICE = 2, 6


@dataclass(frozen=True, slots=True)
class Kernel:
    """A candidate's source with what the judge said; `score_us` is the board's score, or None."""

    source: str
    judgement: Judgement
    score_us: float | None


@dataclass(frozen=True, slots=True)
class Note:
    """One earlier attempt in a line."""

    number: int
    move: str
    hypothesis: str
    outcome: str


@dataclass(frozen=True, slots=True)
class TimeRow:
    """One case's time, and what limits it or how far it may fall."""

    case: str
    us: float
    note: str


@dataclass(frozen=True, slots=True)
class View:
    """A judgement as the templates read it."""

    verdict: str
    reason: str
    case: str
    failed: tuple[CaseCheck, ...]
    more_failed: int
    findings: tuple[Finding, ...]
    log: str
    flags: tuple[str, ...]
    chip: str
    time_kind: str
    times: tuple[TimeRow, ...]
    untimed: str
    score_us: float | None
    kernels: tuple[IsaReport, ...]
    compile_errors: tuple[tuple[str, str], ...]
    remarks: tuple[str, ...]
    """Of the costliest loops, and advice on the compiled code; for the judged chip's target alone."""
    trust: str
    """How far estimated times can be trusted; empty for measured ones."""


def view(kernel: Kernel, bounds_us: dict[str, float]) -> View:
    """What to show of a kernel's judgement; `bounds_us` maps a case's spec to the chip's bound."""
    said = kernel.judgement
    failed = _failed(said.verdict)
    timings = said.verdict.timings if isinstance(said.verdict, Passed) else ()
    return View(
        verdict=said.verdict.kind.replace("_", " "),
        reason="" if isinstance(said.verdict, Passed) else said.verdict.reason,
        case=_case(said.verdict),
        failed=failed[:FAILED_CASES],
        more_failed=len(failed[FAILED_CASES:]),
        findings=said.verdict.findings if isinstance(said.verdict, Rejected) else (),
        log=trimmed(said.verdict.log) if isinstance(said.verdict, BuildFailed | Crashed) else "",
        flags=said.flags,
        chip=said.machine.chip,
        time_kind=said.time_kind,
        times=tuple(row for timing in timings if (row := _row(timing, bounds_us)) is not None),
        untimed=next((timing.reason for timing in timings if isinstance(timing, Untimed)), ""),
        score_us=kernel.score_us,
        kernels=tuple(record.isa for record in said.kernels if record.isa is not None),
        compile_errors=tuple(
            (record.name, trimmed(record.error)) for record in said.kernels if record.error is not None
        ),
        remarks=tuple(
            remark
            for record in said.kernels
            if record.isa is not None and record.target == said.machine.arch
            for remark in _remarks(record.isa)
        ),
        trust=words(said),
    )


def _remarks(isa: IsaReport) -> Iterator[str]:
    """What a kernel engineer would say of one kernel, a line each."""
    for loop in isa.loops[:LOOPS]:
        cycles = ", ".join(f"{name} {count:.4g}" for name, count in loop.cycles.items() if count)
        yield f"{isa.kernel}: loop {loop.label}, cycles an iteration by pipe: {cycles}; {loop.binding} binds"
    for advice in isa.advice[:ADVICE]:
        where = f" (`{advice.instruction}`)" if advice.instruction else ""
        yield f"{isa.kernel}: {advice.message}{where}; {advice.remedy}"


def trimmed(log: str) -> str:
    """The end of a log, where the error stands: whole lines, at most `LOG_LINES` and `LOG_CHARACTERS`."""
    lines = _PACKAGES.sub('File "', log).strip().splitlines()
    kept = lines[-LOG_LINES:]
    while len(kept) > 1 and sum(len(line) + 1 for line in kept) > LOG_CHARACTERS:
        kept = kept[1:]
    # A fence inside a log would end the prompt's own.
    text = "\n".join(kept)[-LOG_CHARACTERS:].replace("```", "'''")
    return text if len(kept) == len(lines) else f"({len(lines) - len(kept)} lines before these)\n{text}"


def _failed(verdict: Verdict) -> tuple[CaseCheck, ...]:
    return tuple(check for check in verdict.cases if not check.passed) if isinstance(verdict, WrongAnswer) else ()


def _case(verdict: Verdict) -> str:
    match verdict:
        case Crashed(case=case) | TimedOut(case=case):
            return case.label() if case else ""
        case Rejected() | BuildFailed() | WrongAnswer() | Cheated() | Passed():
            return ""
        case _:
            assert_never(verdict)


def _row(timing: Timing, bounds_us: dict[str, float]) -> TimeRow | None:
    match timing:
        case Measured():
            bound = bounds_us.get(timing.case.spec())
            return TimeRow(timing.case.spec(), timing.us, f"{bound:.4g}" if bound is not None else "")
        case Estimated():
            return TimeRow(timing.case.spec(), timing.us, timing.bound)
        case Untimed():
            return None
        case _:
            assert_never(timing)
