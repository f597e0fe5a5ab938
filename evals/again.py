"""What a run's second measurement says, in words."""

from __future__ import annotations

from evals.recorded import RecordedRun


def remeasured_words(run: RecordedRun) -> list[str]:
    """One line for each thing that a reader of the run's result should know of its second measurement."""
    best, found = run.best, run.remeasured
    said = run.judgement(best)
    if best is None or said is None or run.ended is None:
        return []
    if said.time_kind != "measured":
        return ["an estimate comes out the same again: nothing was measured a second time"]
    if found is None:
        return ["not measured a second time"]
    winner = next((one for one in found.contenders if one.attempt_id == found.winner_attempt_id), None)
    if winner is None or winner.score_us is None:
        return ["measured again on fresh seeds: none of the best was accepted a second time"]
    lines = [f"measured again on fresh seeds: {winner.score_us:.4g} us, the fastest of {len(found.contenders)}"]
    if winner.attempt_id == found.seed_attempt_id:
        return [*lines, "it is the seed kernel itself"]
    if (over := found.over_seed) is not None:
        figures = f"{over.ratio:.3f} times as fast [{over.low:.3f}, {over.high:.3f}], {over.pairs} interleaved pairs"
        lines.append(f"against the seed kernel, in turns with it: {over.outcome}, {figures}")
    return lines
