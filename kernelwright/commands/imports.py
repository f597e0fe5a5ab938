"""``kernelwright problems import``: problems from elsewhere, judged where they lie."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from kernelwright.commands.faults import told
from kernelwright.console import escape, fail, result_console, say, say_json, table
from kernelwright.options import AsJson
from kernelwright.status import Status
from problems.spec import Problem, ProblemError


def import_problems(
    path: Annotated[Path, typer.Argument(help="A GPU MODE task.yml, a KernelBench file, or a folder of either.")],
    into: Annotated[
        Path | None, typer.Option(help="Where the records go; set KERNELWRIGHT_IMPORTS to it for the other commands.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make problems from elsewhere judgeable as from/<set>/<name>, without copying them or running any of their code.

    Importing a problem again accepts what has changed in its files. Exit status: 0 all imported, 1 some could not be
    read, 2 usage.
    """
    with told(
        as_json, lambda kind, message: {"imported": [], "broken": [], "error": {"kind": kind, "message": message}}
    ):
        raise typer.Exit(_import(path, into, as_json))


def _import(path: Path, into: Path | None, as_json: bool) -> Status:
    from problems.elsewhere import pointers

    imported: list[Problem] = []
    broken: list[str] = []
    for file in pointers.found(path):
        try:
            pointer, problem = pointers.describe(file)
            pointers.keep(pointer, into)
            imported.append(problem)
        except ProblemError as error:
            broken.append(str(error))
        except OSError as error:
            raise ProblemError(f"{error.filename}: cannot be written: {error.strerror}; give another --into") from error
    if not imported and not broken:
        raise ProblemError(
            f"{path} holds no task.yml and no folder level1, level2, ... of KernelBench; give one that does"
        )
    _show(imported, broken, str(into or pointers.home()), as_json)
    return Status.NOT_ACCEPTED if broken else Status.ACCEPTED


def _show(imported: list[Problem], broken: list[str], folder: str, as_json: bool) -> None:
    if as_json:
        return say_json({"imported": [_row(problem) for problem in imported], "broken": broken, "records": folder})
    shown = table("", "problem", "from", "cases", "cannot be judged")
    for problem in imported:
        row = _row(problem)
        shown.add_row(*map(escape, (row["name"], row["kind"], str(row["cases"]), row["unmet"])))
    result_console().print(shown)
    for message in broken:
        fail(message)
    return say(f"{len(imported)} imported, {len(broken)} not; records in {folder}")


def _row(problem: Problem) -> dict[str, Any]:
    origin = problem.origin
    assert origin is not None
    cases = len(problem.tests) + sum(case not in problem.tests for case in problem.benchmarks)
    return {"name": problem.name, "kind": origin.kind, "path": origin.path, "cases": cases, "unmet": origin.unmet}
