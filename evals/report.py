"""The report of one run: a self-contained page and a short text."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path

import problems
from dataset.attempt import Attempt, RecordError
from dataset.disk import record_error
from evals import charts, lineage
from evals.again import remeasured_words
from evals.bound import of_bound
from evals.compare import over, ranked_timings
from evals.pages import render
from evals.recorded import RecordedRun, load
from evals.score import Comparison, NotComparable, Standing
from problems.spec import Problem
from sandbox.verdict import Judgement, Passed, score_us

REPORT_NAME, SUMMARY_NAME = "report.html", "summary.txt"
LISTED = 1000
"""Rows of the attempts table; a longer run's latest are shown, the journal holds all."""


@dataclass(frozen=True, slots=True)
class Best:
    """The candidate that a run would submit, with what it is compared to."""

    attempt: Attempt
    judgement: Judgement
    score_us: float | None
    readiness: str
    over_seed: Standing
    of_bound: Standing

    @property
    def chip(self) -> str:
        """The chip its times are for; the machine's where it has none."""
        verdict = self.judgement.verdict
        chips = [t.chip for t in verdict.timings if t.kind != "none"] if isinstance(verdict, Passed) else []
        return chips[0] if chips else self.judgement.machine.chip


def readiness(judgement: Judgement) -> str:
    """Whether the file is ready to submit, in words: only where our rule and the board's check both accept it."""
    match judgement.accepted, judgement.board_accepts:
        case True, True:
            return "ready: our rule and the board's own check both accept it"
        case True, False:
            return "not ready: our rule accepts it, the board's own check does not"
        case True, None:
            return "not shown ready: our rule accepts it, the board's own check was not run"
        case False, True:
            return "not ready: the board's own check would accept it, our rule does not"
        case _:
            return "not ready: our rule does not accept it"


def write(folder: Path) -> tuple[Path, Path]:
    """Write ``report.html`` and ``summary.txt`` into a run's folder; `RecordError` where that cannot be done."""
    run = load(folder)
    problem = problems.load(run.started.problem)
    page, summary = folder / REPORT_NAME, folder / SUMMARY_NAME
    try:
        page.write_text(html(run, problem), encoding="utf-8", errors="replace")
        summary.write_text(text(run, problem), encoding="utf-8", errors="replace")
    except OSError as error:
        raise record_error("write the report in", folder, error) from error
    return page, summary


def html(run: RecordedRun, problem: Problem) -> str:
    """The page, whole: styles and drawings are in it, nothing is loaded from elsewhere."""
    best = best_of(run, problem)
    seed = run.judgement(run.seed)
    return render(
        "run.html.j2",
        run=run,
        problem=problem,
        best=best,
        progress=charts.progress(run.attempts) if run.attempts else None,
        roofline=charts.roofline(problem, best.judgement, seed) if best else None,
        lineage=lineage.draw(run.attempts, best.attempt.attempt_id if best else None) if run.attempts else None,
        diff=_diff(run, best),
        source=_source(run, best.attempt) if best else "",
        timings=ranked_timings(problem, best.judgement) if best else (),
        listed=run.attempts[-LISTED:],
        verdict_of=lineage.verdict_of,
        again=remeasured_words(run),
    )


def text(run: RecordedRun, problem: Problem) -> str:
    """The summary: what was asked, what came of it, and where every figure comes from."""
    words = render(
        "summary.txt.j2",
        run=run,
        problem=problem,
        best=best_of(run, problem),
        words=standing_words,
        again=remeasured_words(run),
    )
    return words.strip() + "\n"


def best_of(run: RecordedRun, problem: Problem) -> Best | None:
    """The run's best attempt with its comparisons; None where nothing was accepted."""
    attempt = run.best
    said = run.judgement(attempt)
    if attempt is None or said is None:
        return None
    seed = run.judgement(run.seed)
    nothing = NotComparable(baseline="seed kernel", reason="this run judged no seed kernel")
    return Best(
        attempt=attempt,
        judgement=said,
        score_us=score_us(problem, said),
        readiness=readiness(said),
        over_seed=over(problem, "seed kernel", seed, [said]) if seed else nothing,
        of_bound=of_bound(problem, said),
    )


def standing_words(standing: Standing) -> str:
    """A comparison in one line."""
    match standing:
        case NotComparable(reason=reason):
            return f"not comparable: {reason}"
        case Comparison(ratio=ratio, interval=interval, time_kind=kind, chip=chip):
            spread = f" [{interval.low:.3f}, {interval.high:.3f}]" if interval else ""
            return (
                f"{ratio:.3f}{spread}, {kind} on {chip}"
                if kind == "measured"
                else f"{ratio:.3f}{spread}, {kind} for {chip}"
            )


def _diff(run: RecordedRun, best: Best | None) -> list[tuple[str, str]]:
    """Unified diff from the seed to the best, each line with its style; empty where there is no seed or no change."""
    if best is None or run.seed is None:
        return []
    before, after = _source(run, run.seed), _source(run, best.attempt)
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), "seed", "best", lineterm="")
    return [(_style(line), line) for line in lines]


def _style(line: str) -> str:
    return {"+": "add", "-": "del", "@": "hunk"}.get(line[:1], "same")


def _source(run: RecordedRun, attempt: Attempt) -> str:
    try:
        return run.source(attempt)
    except RecordError as error:
        return f"(the source is lost: {error})"
