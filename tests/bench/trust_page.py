"""The page on how far estimates can be trusted: sources, rank correlations by task, the worst misses."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sandbox.trust import PROVEN, Trust

if TYPE_CHECKING:
    from tests.bench.trust import Pair

FROZEN = "commit bdc19a8"
HEAD = """# How far an estimate can be trusted

Estimated times (`docs/decisions/estimate-model.md`) held against times that other people measured on an MI300X and
published. Nothing was run here. Written by `python -m tests.bench.trust --write`; every pair is in
`tests/bench/trust.csv`, the sources with their commits in `tests/bench/trust.toml`; their code is not in this
repository. No figure of the model was fitted to these times.
"""


def page(
    sources: Sequence[Mapping[str, Any]],
    found: Sequence[Pair],
    summary: Trust,
    held_out: Trust,
    tasks: Mapping[str, Sequence[Pair]],
) -> str:
    """The whole page, in Markdown."""
    parts = [
        HEAD,
        _summary(summary, held_out),
        _simpler(tasks),
        _tasks(tasks),
        _misses(found),
        _untimed(found),
        _sources(sources),
        FOOT,
    ]
    return "\n".join(parts)


def _summary(summary: Trust, held_out: Trust) -> str:
    verdict = "holds" if summary.proven else "is not proven"
    rows = [
        ("kernels or versions of kernels, all HIP", "kernels", "d"),
        ("published times with an estimate", "pairs", "d"),
        ("tasks: one source at one size", "tasks", "d"),
        ("rank correlation within a task (Spearman), mean", "within", ".2f"),
        ("the same, least of the tasks", "within_least", ".2f"),
        ("the same among the faster half of each task, mean", "within_faster_half", ".2f"),
        ("over all pairs, sizes mixed", "overall", ".2f"),
        ("worst miss, estimate over published time", "worst_ratio", ".2f"),
    ]
    lines = [
        f"| {text} | {getattr(summary, name):{form}} | {getattr(held_out, name):{form}} |" for text, name, form in rows
    ]
    table = "\n".join(["| | all | held out |", "|---|---|---|", *lines])
    return f"""
## Summary

{table}

Estimated {summary.date}, commit {summary.commit}. Held out: kernels that were compiled and estimated only after the
model was frozen ({FROZEN}). At {PROVEN} or more within a task a ranking by estimates is said to hold: for HIP on MI300X
it {verdict}. Among the faster half of a task, whose published times mostly lie within a factor of two, it is
{summary.within_faster_half:.2f}: there an estimate says little, and a run that ranked by estimates says so.

**For Triton kernels, and for MI355X, no published times of several versions of one kernel were found** (tuning tables
give the best setting only), so their ranking is not proven, and the product says so.
"""


def _simpler(tasks: Mapping[str, Sequence[Pair]]) -> str:
    """What ranking by one figure of the compiler's would give, so that the model's worth can be seen."""
    from tests.bench.trust import faster_half, spearman

    def means(figure: Callable[[Pair], float]) -> str:
        told = [[replace(pair, estimate_us=figure(pair)) for pair in pairs] for pairs in tasks.values()]
        known = [pairs for pairs in told if len({pair.estimate_us for pair in faster_half(pairs)}) > 1]
        whole = sum(spearman(pairs) for pairs in known) / len(known)
        return f"{whole:.2f} | {sum(spearman(faster_half(pairs)) for pairs in known) / len(known):.2f}"

    return f"""For scale, ranking the same kernels without a model:

| by | within a task | faster half |
|---|---|---|
| the estimate | {means(lambda pair: pair.estimate_us or 0.0)} |
| registers, fewest first | {means(lambda pair: pair.registers)} |
| waves resident on a SIMD, most first | {means(lambda pair: -pair.waves)} |
"""


def _tasks(tasks: Mapping[str, Sequence[Pair]]) -> str:
    from tests.bench.trust import faster_half, spearman

    lines = ["## By task", "", "| task | n | rank correlation | faster half | median estimate / published |"]
    lines.append("|---|---|---|---|---|")
    for task, pairs in sorted(tasks.items()):
        ratios = sorted((pair.estimate_us or 0) / pair.published_us for pair in pairs)
        half = faster_half(pairs)
        lines.append(
            f"| {task} | {len(pairs)} | {spearman(pairs):.2f} | {spearman(half):.2f} (n {len(half)}) "
            f"| {ratios[len(ratios) // 2]:.2f} |"
        )
    return "\n".join(lines) + "\n"


def _misses(found: Sequence[Pair]) -> str:
    known = [pair for pair in found if pair.estimate_us is not None]
    known.sort(key=lambda pair: -abs(math.log((pair.estimate_us or 0) / pair.published_us)))
    lines = ["## The worst misses", "", "| task | kernel | published, us | estimate, us | ratio | bound |"]
    lines.append("|---|---|---|---|---|---|")
    for pair in known[:6]:
        ours = pair.estimate_us or 0
        ratio = ours / pair.published_us
        lines.append(
            f"| {pair.task} | {pair.kernel} | {pair.published_us:.4g} | {ours:.4g} | {ratio:.2f} | {pair.note} |"
        )
    return "\n".join(lines) + "\n"


def _untimed(found: Sequence[Pair]) -> str:
    reasons: dict[str, set[str]] = {}
    for pair in found:
        if pair.estimate_us is None:
            reasons.setdefault(pair.note, set()).add(f"{pair.source} {pair.kernel}")
    lines = ["## Without an estimate", ""]
    lines += [f"- {', '.join(sorted(kernels))}: {reason}" for reason, kernels in sorted(reasons.items())]
    return "\n".join(lines if reasons else [*lines, "None."]) + "\n"


def _sources(sources: Sequence[Mapping[str, Any]]) -> str:
    lines = ["## Sources", ""]
    for one in sources:
        lines.append(
            f"- **{one['id']}**: {one['url']} at {one['commit'][:12]}, {one['file']}; times from {one['times']}."
        )
        lines.append(f"  {one['task']}. {one['versions']}. Timed: {one['timed']}.")
        if one["remark"]:
            lines.append(f"  Mind: {one['remark']}.")
    return "\n".join(lines) + "\n"


FOOT = """## What this does not show

- Two authors and one kind of kernel, the matrix product. Nothing is shown for attention, reductions or scatters.
- The code was compiled here by clang 22, theirs by the ROCm of their day: registers, spills and pipelining differ.
- Settings that no one would keep (one wave, huge tiles, registers spilled) are easy to rank and raise the correlation;
  the column for the faster half leaves them out. A narrow range of times lowers a correlation by itself.
- Held out are other settings of the same template by the same author: a weaker test than another author's kernel.

## How the model and this table came about

The parts of the model that HIP needed (bank conflicts and sectors read from lanes' addresses, cover read from waits,
L2 traffic counted from the assembly) were written before the first comparison; nothing was fitted. That first one, on
53 kernels, gave 0.86 within a task, 0.50 among the faster half, 0.89 over all and a worst miss of 0.06, the worst
ones all settings that spill registers. It showed that spilled registers come back one wait at a time, where the model
had one latency for all of a pass: that was changed, for Triton's kernels too, and the model frozen. The held-out
kernels were compiled after that. Since then the lanes of 16-byte LDS reads were set from AMD's documentation, and
gfx950's LDS from published measurements: no estimate here changed by it.
"""
