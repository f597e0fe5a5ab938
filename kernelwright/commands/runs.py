"""``kernelwright runs`` and ``kernelwright report``: past runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from kernelwright.console import escape, note, result_console, say, say_json, table
from kernelwright.options import AsJson, RunsDir

app = typer.Typer(no_args_is_help=True, help="Past runs; an interrupted one can go on.")
RunName = Annotated[str, typer.Argument(help="The run's id, or a part of it that only this run has.")]
RUNS = Path("runs")


@app.command("list")
def list_all(runs_dir: RunsDir = RUNS, as_json: AsJson = False) -> None:
    """Every run, oldest first."""
    from dataset.runs import Run, list_runs

    def row(run: Run) -> dict[str, Any]:
        started, ended = run.started, run.ended
        return {
            "run_id": run.run_id,
            "state": run.state,
            "problem": started.problem if started else None,
            "strategy": started.strategy if started else None,
            "attempts": run.attempts,
            "best_attempt_id": ended.best_attempt_id if ended else None,
            "note": run.note or (ended.reason if ended else ""),
        }

    rows = [row(run) for run in list_runs(runs_dir)]
    if as_json:
        return say_json({"runs": rows})
    if not rows:
        return say(f"no runs in {runs_dir}; start one with: kernelwright run PROBLEM")
    shown = table("", "run", "state", "problem", "strategy", "attempts", "note")
    for found in rows:
        named = (found[key] for key in ("run_id", "state", "problem", "strategy", "attempts", "note"))
        shown.add_row(*(escape(str(value if value is not None else "")) for value in named))
    return result_console().print(shown)


@app.command("show")
def show_one(run: RunName, runs_dir: RunsDir = RUNS) -> None:
    """One run: its summary, and every attempt in a line."""
    from dataset.runs import find
    from evals import recorded, report
    from evals.lineage import verdict_of
    from evals.pages import time_text
    from problems import load

    found = recorded.load(find(runs_dir, run))
    say(report.text(found, load(found.started.problem)).rstrip())
    shown = table("", "no.", "move", "verdict", "score", "knobs or hypothesis")
    for attempt in found.attempts:
        said = found.judgement(attempt)
        score = time_text(getattr(attempt.outcome, "score_us", None), said.time_kind if said else "none")
        what = " ".join(f"{name}={value}" for name, value in attempt.move.knobs.items()) or attempt.hypothesis
        shown.add_row(str(attempt.seq), attempt.move.kind, verdict_of(attempt).replace("_", " "), score, escape(what))
    result_console().print(shown)


def report_run(run: RunName, runs_dir: RunsDir = RUNS) -> None:
    """Draw a run's page and summary anew from its journal."""
    from dataset.runs import find
    from evals import report

    page, summary = report.write(find(runs_dir, run))
    say(summary.read_text(encoding="utf-8").rstrip())
    note(f"wrote {page} and {summary}")
