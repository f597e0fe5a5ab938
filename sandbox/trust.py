"""How far an estimate can be trusted: what `tests/bench/trust.py` found on kernels whose times were published.

The figures stand in `sandbox/trust.toml` alone; the page about them is docs/estimate-trust.md.
"""

from __future__ import annotations

import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Literal

from problems.spec import Frozen
from sandbox.verdict import Judgement

PAGE = "docs/estimate-trust.md"
PROVEN = 0.7
"""Rank correlation within one task from which a ranking by estimates is said to hold."""


class Trust(Frozen):
    """Estimates held against published times of one language's kernels on one chip."""

    language: str
    chip: str
    kernels: int
    """Kernels or versions of kernels."""
    pairs: int
    """Published times, each of one kernel at one size."""
    tasks: int
    """Sizes at which several kernels were timed: each gives a rank correlation of its own."""
    within: float
    """Spearman's rank correlation within one task: the mean over the tasks."""
    within_least: float
    within_faster_half: float
    """The same among the faster half of each task's kernels, where a search spends its time."""
    overall: float
    """Over all pairs; sizes alone bring much of it."""
    worst_ratio: float
    """Estimate over published time of the pair that is furthest off."""
    date: str
    commit: str

    @property
    def proven(self) -> bool:
        """Whether ranking kernels of one task by their estimates was shown to hold."""
        return self.within >= PROVEN


@lru_cache(maxsize=1)
def held() -> tuple[Trust, ...]:
    """All that was compared."""
    text = (Path(__file__).parent / "trust.toml").read_text(encoding="utf-8")
    return tuple(Trust.model_validate(entry) for entry in tomllib.loads(text)["trust"])


def trust(chip: str, language: str) -> Trust | None:
    """What was found for kernels of `language` on `chip`; None where no published time was found."""
    return next((one for one in held() if (one.chip, one.language) == (chip, language)), None)


def words(judgement: Judgement) -> str:
    """A sentence to stand beside estimated times; empty where there are none."""
    if judgement.time_kind != "estimated":
        return ""
    chip, language = judgement.machine.chip, language_of(judgement)
    found = trust(chip, language)
    if found is None:
        what = f"the order of estimates of {_NAMES[language]} kernels for {chip}"
        return f"{what} was never held against published times ({PAGE})"
    return (
        f"estimates of {_NAMES[language]} kernels for {chip}: rank correlation with published times {found.within:.2f} "
        f"within one task, {found.within_faster_half:.2f} among its faster half ({found.kernels} kernels, "
        f"{found.tasks} tasks; {PAGE})"
    )


def ranking_words(judgement: Judgement) -> str:
    """What to say of a ranking that rests on estimates alone; empty where it was shown to hold, and for other times."""
    if judgement.time_kind != "estimated":
        return ""
    found = trust(judgement.machine.chip, language_of(judgement))
    if found is None or not found.proven:
        return "the ranking of these candidates is not proven: their times are estimated"
    if found.within_faster_half < PROVEN:
        return "the ranking of these candidates tells good from bad; among the good ones it is not proven"
    return ""


def language_of(judgement: Judgement) -> Literal["triton", "hip"]:
    """What its kernels are written in; where there are both, the one less is known of."""
    found = {record.isa.language for record in judgement.kernels if record.isa is not None and record.launches}
    return "hip" if found == {"hip"} else "triton"


_NAMES = {"triton": "Triton", "hip": "HIP"}
