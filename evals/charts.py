"""What the report's drawings show: best so far over attempts, and cases against their chip's roofline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dataset.attempt import Attempt, Judged
from evals.axes import Axis, linear, logarithmic
from evals.bound import RooflinePoint, roofline_points
from evals.compare import ranked_timings
from evals.lineage import verdict_of
from problems import chip, work
from problems.spec import Problem
from sandbox.verdict import Estimated, Judgement, Measured

WIDTH, HEIGHT = 720.0, 300.0
LEFT, RIGHT, TOP, BOTTOM = 78.0, 700.0, 16.0, 252.0
MAX_MARKS = 1500
"""More points than that on 622 pixels hide each other; the line is drawn from all of them."""


@dataclass(frozen=True, slots=True)
class Mark:
    """One point with its tooltip; `kind` names its verdict or its series."""

    x: float
    y: float
    kind: str
    title: str


@dataclass(frozen=True, slots=True)
class Progress:
    """Scores over attempts, and the step line of the best so far that the board would take."""

    x: Axis
    y: Axis
    marks: tuple[Mark, ...]
    step: str
    """Points of the polyline, as SVG writes them; empty where nothing has a score."""
    time_kind: str


@dataclass(frozen=True, slots=True)
class Roofline:
    """One chip's roof and the cases under it."""

    chip: str
    x: Axis
    y: Axis
    roof: str
    marks: tuple[Mark, ...]
    time_kind: str
    peak: str
    """What the roof's two parts are, in words."""


def progress(attempts: Sequence[Attempt]) -> Progress:
    """Time over attempts: lower is better. Attempts without a score stand on the lower edge, by verdict."""
    scores = {a.seq: _score(a) for a in attempts}
    known = [score for score in scores.values() if score is not None]
    x, y = linear(scores, LEFT, RIGHT), logarithmic(known, BOTTOM - 14, TOP)
    every = -(-len(attempts) // MAX_MARKS) or 1
    marks = tuple(_attempt_mark(attempt, scores[attempt.seq], x, y) for attempt in attempts[::every])
    usable = {a.seq: scores[a.seq] for a in attempts if not _refused(a)}
    return Progress(x, y, marks, _steps(usable, x, y), _kind_of(attempts))


def _score(attempt: Attempt) -> float | None:
    return attempt.outcome.score_us if isinstance(attempt.outcome, Judged) else None


def _kind_of(attempts: Sequence[Attempt]) -> str:
    kinds = {a.outcome.judgement.time_kind for a in attempts if isinstance(a.outcome, Judged)} - {"none"}
    return " and ".join(sorted(kinds)) or "none"


def _attempt_mark(attempt: Attempt, score: float | None, x: Axis, y: Axis) -> Mark:
    verdict = verdict_of(attempt)
    what = f"attempt {attempt.seq}, {attempt.move.kind}: {verdict.replace('_', ' ')}"
    if score is None or not isinstance(attempt.outcome, Judged):
        return Mark(x.at(attempt.seq), BOTTOM, verdict, what)
    kind = attempt.outcome.judgement.time_kind
    title = f"{what}, {score:.4g} us {kind}"
    if _refused(attempt):
        return Mark(x.at(attempt.seq), y.at(score), "refused", f"{title}; the board's own check refuses it")
    return Mark(x.at(attempt.seq), y.at(score), verdict, title)


def _refused(attempt: Attempt) -> bool:
    return isinstance(attempt.outcome, Judged) and attempt.outcome.judgement.board_accepts is False


def _steps(scores: dict[int, float | None], x: Axis, y: Axis) -> str:
    points: list[tuple[float, float]] = []
    best: float | None = None
    for seq, score in scores.items():
        if score is None or (best is not None and score >= best):
            continue
        if best is not None:
            points.append((x.at(seq), y.at(best)))
        best = score
        points.append((x.at(seq), y.at(best)))
    if best is not None:
        points.append((x.end, y.at(best)))
    return " ".join(f"{px:g},{py:g}" for px, py in points)


def roofline(problem: Problem, best: Judgement, seed: Judgement | None) -> Roofline | None:
    """The ranked cases of the best candidate, and of the seed where it ran on the same chip.

    None without times, and for a problem that computes nothing: a copy has no place on a logarithmic axis.
    """
    timings = ranked_timings(problem, best)
    if not timings or not work(problem, timings[0].case).flops:
        return None
    where = timings[0].chip
    series = {"best": roofline_points(problem, timings)}
    before = ranked_timings(problem, seed) if seed is not None else ()
    if before and before[0].chip == where and before[0].kind == timings[0].kind:
        series = {"seed": roofline_points(problem, before)} | series
    return _roofline(problem, timings[0], series)


def _roofline(problem: Problem, timing: Measured | Estimated, series: dict[str, tuple[RooflinePoint, ...]]) -> Roofline:
    where, flops = chip(timing.chip), work(problem, timing.case).flops
    dtype = max(flops, key=lambda name: flops[name])
    peak, bandwidth = where.flops_per_s(dtype), where.hbm_bytes_per_s
    points = [point for group in series.values() for point in group]
    ridge = peak / bandwidth
    x = logarithmic([*(p.intensity for p in points), ridge / 4, ridge * 4], LEFT, RIGHT)
    y = logarithmic([*(p.flops_per_s for p in points), peak], BOTTOM, TOP)
    corners = [(at, min(peak, at * bandwidth)) for at in (max(x.low, y.low / bandwidth), ridge, x.high)]
    return Roofline(
        chip=where.name,
        x=x,
        y=y,
        roof=" ".join(f"{x.at(a):g},{y.at(b):g}" for a, b in corners),
        marks=tuple(_case_mark(name, point, x, y, timing.kind) for name, group in series.items() for point in group),
        time_kind=timing.kind,
        peak=f"{peak / 1e12:,.4g} TFLOP/s {dtype}, {bandwidth / 1e12:.3g} TB/s HBM (data sheet)",
    )


def _case_mark(series: str, point: RooflinePoint, x: Axis, y: Axis, kind: str) -> Mark:
    title = f"{series}, {point.label}: {point.us:.4g} us {kind}, bound {point.bound_us:.4g} us"
    return Mark(x.at(point.intensity), y.at(point.flops_per_s), series, title)
