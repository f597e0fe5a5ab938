"""``kernelwright problems``: what there is to work on."""

from __future__ import annotations

from typing import Annotated

import typer

from kernelwright.console import escape, result_console, say, say_json, table
from kernelwright.options import AsJson
from problems.spec import BoardCheck, Problem

app = typer.Typer(no_args_is_help=True, help="The problems: cases, layouts, tolerances, published times.")


@app.command("list")
def list_problems(as_json: AsJson = False) -> None:
    """Every problem in a line."""
    from problems import load, names

    found = [load(name) for name in names()]
    if as_json:
        rows = [{"name": p.name, "title": p.title, "board": p.board, "chips": list(p.chips)} for p in found]
        return say_json({"problems": rows})
    shown = table("", "problem", "title", "board", "chips", "ranked cases")
    for problem in found:
        row = (problem.name, problem.title, problem.board, " ".join(problem.chips), str(len(problem.ranked())))
        shown.add_row(*map(escape, row))
    return result_console().print(shown)


@app.command("show")
def show_problem(
    name: Annotated[str, typer.Argument(help="The problem, by its name or a board's.")], as_json: AsJson = False
) -> None:
    """One problem whole: what it asks for, its cases, its tolerance and the published times."""
    from problems import load

    problem = load(name)
    if as_json:
        say_json(problem.model_dump(mode="json"))
    else:
        _show(problem)


@app.command("bounds")
def show_bounds(
    name: Annotated[
        str | None, typer.Argument(help="The problem, by its name or a board's; all where left out.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """The least time of each case on each chip, beside the bounds that the boards publish."""
    from kernelwright.commands import bounds
    from problems import load, names

    found = [load(name)] if name else [load(each) for each in names()]
    if as_json:
        say_json({"problems": [bounds.as_data(problem) for problem in found]})
    else:
        for problem in found:
            bounds.show(problem)


def _show(problem: Problem) -> None:
    say(f"{problem.name}: {problem.title}", "bold")
    timing, rule = problem.board_timing, problem.tolerance
    lines = {
        "kept in": f"{problem.origin.path}, judged there" if problem.origin else "",
        "cannot be judged": problem.origin.unmet if problem.origin else "",
        "board": f"{problem.board} ({', '.join(problem.chips)}), ranked by {timing.ranked_by}",
        "also called": ", ".join(problem.aliases),
        "input": problem.inputs,
        "returns": problem.returns,
        "our rule": rule.reason
        if problem.origin
        else f"rtol {rule.rtol:g}, and {rule.term_rtol:g} of the terms' magnitudes. {rule.reason}",
        "board's check": problem.board_check.source if problem.origin else _check(problem.board_check),
        "board's clock": f"{timing.clock}, L2 {'flushed' if timing.flush_l2 else 'not flushed'} ({timing.evaluator})",
        "operations": ", ".join(f"{text} in {dtype}" for dtype, text in problem.flops.items()),
        "HBM bytes": "" if problem.origin else problem.bytes,
    }
    for title, text in lines.items():
        if text:
            say(f"{title}: {' '.join(text.split())}")
    for title, cases in (("test", problem.tests), ("benchmark", problem.benchmarks), ("small", problem.small)):
        say(f"{title} cases: {len(cases)}", "bold")
        for case in cases:
            say(f"  {case.label()}{'  (ranked)' if title == 'benchmark' and case in problem.ranked() else ''}")
    _show_baselines(problem)


def _check(check: BoardCheck) -> str:
    scale = f", both times {check.scale}" if check.scale != "1" else ""
    missed = f"; {check.missed_share:.0%} of the elements may miss" if check.missed_share else ""
    return f"rtol {check.rtol:g}, atol {check.atol:g}{scale}{missed}"


def _show_baselines(problem: Problem) -> None:
    if not problem.baselines:
        return say("published times: none")
    shown = table(
        "published times (comparable only on their chip, with their harness)",
        "who",
        "kind",
        "chip",
        "us",
        "case",
        "metric",
        "source",
    )
    for row in problem.baselines:
        case = "; ".join(f"{key}: {value}" for key, value in row.case.items()) if row.case else "all ranked"
        shown.add_row(*map(escape, (row.who, row.kind, row.chip, f"{row.time_us:g}", case, row.metric, row.source)))
    return result_console().print(shown)
