"""The page on how far estimates can be trusted: sources, rank correlations by task, the worst misses."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sandbox.trust import PROVEN, Trust

if TYPE_CHECKING:
    from tests.bench.trust import Pair

HEAD = """# How far an estimate can be trusted

Estimated times (`docs/decisions/estimate-model.md`) held against times that other people measured on an MI300X and
published. Nothing was run here. Written by `python -m tests.bench.trust --write`; every pair is in
`tests/bench/trust.csv`, the sources with their commits in `tests/bench/trust.toml`; their code is not in this
repository. No figure of the model was fitted to these times.
"""


def page(
    sources: Sequence[Mapping[str, Any]], found: Sequence[Pair], summary: Trust, tasks: Mapping[str, Sequence[Pair]]
) -> str:
    """The whole page, in Markdown."""
    parts = [HEAD, _summary(summary), _tasks(tasks), _misses(found), _untimed(found), _sources(sources), FOOT]
    return "\n".join(parts)


def _summary(summary: Trust) -> str:
    verdict = "holds" if summary.proven else "is not proven"
    return f"""
## Summary

| | |
|---|---|
| kernels or versions of kernels, all HIP | {summary.kernels} |
| published times with an estimate | {summary.pairs} |
| tasks: one source at one size | {summary.tasks} |
| rank correlation within a task (Spearman), mean | **{summary.within:.2f}** |
| the same, least of the tasks | {summary.within_least:.2f} |
| the same among the faster half of each task, mean | {summary.within_faster_half:.2f} |
| over all pairs, sizes mixed | {summary.overall:.2f} |
| worst miss, estimate over published time | {summary.worst_ratio:.2f} |

Estimated {summary.date}, commit {summary.commit}. At {PROVEN} or more within a task a ranking by estimates is said to
hold: here it {verdict} for HIP on MI300X. **For Triton kernels and for MI355X nothing was found to hold estimates
against within one task**, so their ranking is not proven, and the product says so.
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
  the column for the faster half leaves them out.
- The model was extended while this was first put together: bank conflicts, sectors and software pipelining read from
  the assembly were added because HIP has no Triton IR to read them from. They were not tuned to these figures, but the
  comparison is not one with a model frozen before the data was seen.
"""
