"""What came of judging one candidate, and how a fault of its process becomes a verdict."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import assert_never

from problems.spec import Case
from sandbox.checker.guest import Died, Fault, Forgery, Late, Raised
from sandbox.runner import Mode
from sandbox.verdict import (
    BuildFailed,
    CaseCheck,
    Cheated,
    Crashed,
    KernelRecord,
    Profile,
    TimedOut,
    Verdict,
    WrongAnswer,
)


@dataclass(frozen=True, slots=True)
class Request:
    """One candidate to judge."""

    source: str
    mode: Mode
    deadline_s: float
    following: str | None = None
    """The source that is judged next on this problem, where that is known."""
    stock: bytes = b""
    """What was compiled ahead of this candidate: for its own guest alone."""


@dataclass(slots=True)
class Progress:
    """How far a judging has come."""

    loaded: bool = False
    case: Case | None = None
    checks: list[CaseCheck] = field(default_factory=list)
    seeds: list[int] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)
    ended: bool = False
    """Whether the candidate's process died or hung: then somebody must say who is to blame."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A verdict with the evidence beside it."""

    verdict: Verdict
    kernels: tuple[KernelRecord, ...] = ()
    profiles: tuple[Profile, ...] = ()


class Refuted(Exception):
    """A case whose answer is wrong. Ends the judging; the checks so far, this one last, are in its progress."""


def verdict_of(fault: Fault, progress: Progress, deadline_s: float) -> Verdict:
    """The verdict that a fault of the candidate's process is."""
    match fault:
        case Raised() if not progress.loaded or fault.build:
            return BuildFailed(reason=fault.reason, log=fault.log)
        case Raised() | Died():
            return Crashed(reason=fault.reason, case=progress.case, log=fault.log)
        case Late():
            return TimedOut(reason=f"{fault.reason} ({deadline_s:g} s)", deadline_s=deadline_s, case=progress.case)
        case Forgery():
            return Cheated(reason=f"forged an answer: {fault.reason}", evidence=fault.log or fault.reason)
        case _:
            assert_never(fault)


def wrong(progress: Progress, reason: str) -> WrongAnswer:
    """The verdict on an answer that broke our rule."""
    return WrongAnswer(reason=reason, cases=tuple(progress.checks))
