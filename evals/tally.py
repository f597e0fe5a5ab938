"""From the samples of one agent on one problem to its score: pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dataset.attempt import Judged
from evals.bound import BASELINE, of_bound
from evals.compare import over, ranked_timings
from evals.human import distances
from evals.score import Faulted, NotComparable, Sample, Score, Standing, correct_at_k, wilson
from problems.spec import Problem
from sandbox.verdict import Judgement

KS = (1, 2, 3, 5, 10, 20, 50, 100)
REFERENCE = "library call (torch)"


@dataclass(frozen=True, slots=True)
class Baselines:
    """What candidates are held against, judged on the same machine; None where there is none."""

    seed_name: str
    seed: Judgement | None
    reference: Judgement | None


def tally(problem: Problem, agent: str, samples: Sequence[Sample], baselines: Baselines) -> Score:
    """Count, estimate and compare. Samples that met a machine fault are left out of every figure."""
    counted = [sample for sample in samples if not isinstance(sample.outcome, Faulted)]
    right = [(sample, said) for sample in counted if (said := _judgement(sample)) is not None and said.accepted]
    accepted = [said for _, said in right]
    n, best = len(counted), _best(right)
    timings = ranked_timings(problem, best[1]) if best else ()
    return Score(
        agent=agent,
        problem=problem.name,
        n=n,
        correct=len(right),
        ready=sum(said.board_accepts is True for said in accepted),
        faults=len(samples) - n,
        correct_at={k: correct_at_k(n, len(right), k) for k in KS if k <= n},
        correct_at_1_interval=wilson(n, len(right)) if n else None,
        best=best[0].what if best else "",
        best_us=best[0].outcome.score_us if best and isinstance(best[0].outcome, Judged) else None,
        time_kind=best[1].time_kind if best else "none",
        chip=timings[0].chip if timings else "",
        over_seed=_over(problem, baselines.seed_name, baselines.seed, accepted, "no seed kernel was judged"),
        over_reference=_over(problem, REFERENCE, baselines.reference, accepted, "no measured reference here"),
        of_bound=of_bound(problem, best[1])
        if best
        else NotComparable(baseline=BASELINE, reason="no accepted candidate"),
        humans=distances(problem, best[1]) if best else (),
    )


def _judgement(sample: Sample) -> Judgement | None:
    return sample.outcome.judgement if isinstance(sample.outcome, Judged) else None


def _best(right: Sequence[tuple[Sample, Judgement]]) -> tuple[Sample, Judgement] | None:
    """The fastest that the board would take, else the fastest; one without a time comes last."""

    def rank(pair: tuple[Sample, Judgement]) -> tuple[bool, float]:
        outcome = pair[0].outcome
        us = outcome.score_us if isinstance(outcome, Judged) else None
        return pair[1].board_accepts is False, us if us is not None else float("inf")

    return min(right, key=rank, default=None)


def _over(
    problem: Problem, name: str, baseline: Judgement | None, accepted: Sequence[Judgement], without: str
) -> Standing:
    if baseline is None:
        return NotComparable(baseline=name, reason=without)
    return over(problem, name, baseline, accepted)
