"""A judgement as the one object that ``--json`` prints."""

from __future__ import annotations

from typing import Any, assert_never

from problems.spec import Case, Problem
from sandbox.trust import words
from sandbox.verdict import (
    BuildFailed,
    CaseCheck,
    Cheated,
    Crashed,
    Judgement,
    Passed,
    Rejected,
    TimedOut,
    Timing,
    Verdict,
    WrongAnswer,
    board_score_us,
    score_us,
)

_HOW = {"gpu": "run on the GPU", "cpu-emulation": "emulated on a CPU", "fake": "as a stand-in says"}


def judged(problem: Problem, judgement: Judgement) -> dict[str, Any]:
    """What the judge said, with the keys that a script needs at the top."""
    return {
        "problem": problem.name,
        "verdict": judgement.verdict.kind,
        "accepted": judgement.accepted,
        "board_accepts": judgement.board_accepts,
        "ready": judgement.accepted and judgement.board_accepts is True,
        "reason": reason(judgement),
        "cases": cases(judgement.verdict),
        "geomean_us": judgement.geomean_us,
        "score_us": score_us(problem, judgement),
        "board_score_us": board_score_us(problem, judgement),
        "time_kind": judgement.time_kind,
        "estimate_trust": words(judgement),
        "flags": list(judgement.flags),
        "findings": _findings(judgement.verdict),
        "log": _log(judgement.verdict),
        "kernels": [kernel.model_dump(mode="json") for kernel in judgement.kernels],
        "profiles": [profile.model_dump(mode="json") for profile in judgement.profiles],
        "machine": judgement.machine.model_dump(mode="json"),
        "sandbox": judgement.sandbox,
        "seeds": list(judgement.seeds),
        "wall_s": judgement.wall_s,
    }


def failed(kind: str, message: str) -> dict[str, Any]:
    """The same object where nothing was judged: the place of work failed, or the file cannot be judged here."""
    return {
        "verdict": None,
        "accepted": False,
        "board_accepts": None,
        "ready": False,
        "reason": "",
        "cases": [],
        "geomean_us": None,
        "score_us": None,
        "time_kind": "none",
        "flags": [],
        "machine": None,
        "error": {"kind": kind, "message": message},
    }


def reason(judgement: Judgement) -> str:
    """Why, in one text; a right answer says where it was right."""
    match verdict := judgement.verdict:
        case Passed():
            return f"right on every case, {_HOW[judgement.machine.kind]}"
        case Rejected() | BuildFailed() | Crashed() | TimedOut() | WrongAnswer() | Cheated():
            return verdict.reason
        case _:
            assert_never(verdict)


def cases(verdict: Verdict) -> list[dict[str, Any]]:
    """One entry a case: how it was checked, and its time where it has one."""
    match verdict:
        case Passed(cases=checks, timings=timings):
            left = {timing.case.label(): timing for timing in timings}
            rows = [
                _checked(check, left.pop(check.case.label(), None) if check.role == "benchmark" else None)
                for check in checks
            ]
            return rows + [_row(timing.case, "benchmark", None, timing=timing) for timing in left.values()]
        case WrongAnswer(cases=checks):
            return [_checked(check, None) for check in checks]
        case Crashed(case=case) | TimedOut(case=case):
            return [_row(case, None, verdict.kind)] if case is not None else []
        case Rejected() | BuildFailed() | Cheated():
            return []
        case _:
            assert_never(verdict)


def _checked(check: CaseCheck, timing: Timing | None) -> dict[str, Any]:
    row = _row(check.case, check.role, "passed" if check.passed else "wrong_answer", timing=timing)
    error = check.error.model_dump(mode="json")
    return {**row, "seed": check.seed, "error": error, "board_accepts": check.board_accepts}


def _row(case: Case, role: str | None, verdict: str | None, timing: Timing | None = None) -> dict[str, Any]:
    time = timing.model_dump(mode="json", exclude={"case"}) if timing else None
    if time is not None and timing is not None and timing.kind == "measured":
        time["us"] = timing.us
    return {
        "spec": case.spec(),
        "fill": case.fill,
        "role": role,
        "verdict": verdict,
        "error": None,
        "board_accepts": None,
        "time": time,
    }


def _findings(verdict: Verdict) -> list[dict[str, Any]]:
    return [finding.model_dump(mode="json") for finding in verdict.findings] if isinstance(verdict, Rejected) else []


def _log(verdict: Verdict) -> str:
    match verdict:
        case BuildFailed(log=log) | Crashed(log=log):
            return log
        case Cheated(evidence=evidence):
            return evidence
        case _:
            return ""
