"""``kernelwright problems audit``: what a problem would let through, before anyone works on it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernelwright.commands.faults import told
from kernelwright.console import escape, note, result_console, say, say_json, table
from kernelwright.options import AsJson, IsolationName, RunnerName
from kernelwright.runners import RunnerKind, place_of
from kernelwright.status import Status
from problems.spec import Problem

if TYPE_CHECKING:
    from sandbox.audit import Audited


def audit(
    names: Annotated[list[str] | None, typer.Argument(help="Problems; none: all of this project's own.")] = None,
    imported: Annotated[bool, typer.Option("--imported", help="All imported problems as well.")] = False,
    runner: RunnerName = "auto",
    isolation: IsolationName = None,
    as_json: AsJson = False,
) -> None:
    """Screen problems: zeros or a constant pass, an input does not matter, an answer never varies or never repeats.

    One case of each is looked at; on a CPU imported ones may be at reduced sizes, and then say so. Exit status: 0
    nothing was found that our rule lets through, 1 something was, 2 usage, 3 a problem could not be screened here.
    """
    with told(as_json, lambda kind, message: {"audited": [], "error": {"kind": kind, "message": message}}):
        raise typer.Exit(_audit(names or [], imported, runner, isolation, as_json))


def _audit(names: list[str], imported: bool, runner: RunnerKind, isolation: str | None, as_json: bool) -> Status:
    from problems import load
    from problems import names as own
    from problems.elsewhere import pointers

    wanted = [*(names or own()), *(pointers.names() if imported else ())]
    problems = [load(name) for name in dict.fromkeys(wanted)]
    found: list[Audited] = []
    for audited in _audited(problems, place_of(runner), isolation):
        note(f"{len(found) + 1} of {len(problems)}: {audited.name}: {_words(audited)}")
        found.append(audited)
    if as_json:
        say_json({"audited": [_row(audited) for audited in found]})
    else:
        _show(found)
    return _status(found)


def _audited(problems: list[Problem], place: str, isolation: str | None) -> Iterator[Audited]:
    from sandbox.cpu import CpuRunner
    from sandbox.gpu import GpuRunner

    runner = CpuRunner(isolation=isolation) if place == "cpu" else GpuRunner(isolation)
    try:
        for problem in problems:
            yield runner.audit(problem)
    finally:
        runner.close()


def _row(audited: Audited) -> dict[str, Any]:
    return {**audited.model_dump(mode="json"), "sound": audited.sound}


def _words(audited: Audited) -> str:
    if audited.reason:
        return f"not screened: {audited.reason}"
    return "; ".join(weakness.message for weakness in audited.weaknesses) or "nothing found"


def _show(found: list[Audited]) -> None:
    shown = table("", "problem", "case", "what", "whose rule", "detail")
    for audited in found:
        case = audited.case.spec() if audited.case else ""
        if audited.reason or not audited.weaknesses:
            shown.add_row(*map(escape, (audited.name, case, "", "", _words(audited))))
        for weakness in audited.weaknesses:
            shown.add_row(*map(escape, (audited.name, case, weakness.kind, weakness.rule, weakness.message)))
    result_console().print(shown)
    for text in sorted({said for audited in found for said in audited.notes if not audited.reason}):
        say(f"note: {text}", "dim")


def _status(found: list[Audited]) -> Status:
    """What the board's rule alone lets through is no fault of ours: ours refuses it."""
    if any(weakness.rule != "board" for audited in found for weakness in audited.weaknesses):
        return Status.NOT_ACCEPTED
    return Status.MACHINE if any(audited.reason for audited in found) else Status.ACCEPTED
