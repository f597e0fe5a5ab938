"""Milliseconds per attempt on everything but drafting and judging: ``python -m tests.agent.bench_overhead``

Three figures: a fresh run of `search`, the same with 100,000 attempts in the journal, and a scripted run of `refine`.
The fake runner and the script answer in no time, so wall time over attempts is the overhead, journal's writes included.
"""

import argparse
import statistics
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from agent.interrupt import Interrupt
from agent.knobs import SeedKernel
from agent.model import ScriptedModel
from agent.progress import AttemptDone, Event
from agent.run import resume, start
from agent.settings import RunSettings
from dataset.attempt import Attempt, Judged, MoveRecord
from dataset.journal import Journal
from sandbox.candidate import Candidate
from sandbox.verdict import score_us
from tests.agent.places import PROBLEM, CountingRunner, kernel_reply, knob_source, knobs, law, script, seed_folder

# 1.7 million settings, so that 100,000 attempts do not exhaust them.
KNOBS = knobs(8, 6)
SOURCE = knob_source(KNOBS)


@dataclass
class Clock:
    """Takes the time between two attempts."""

    at_s: float = 0.0
    taken_ms: list[float] = field(default_factory=list)

    def show(self, event: Event) -> None:
        if isinstance(event, AttemptDone):
            now_s = time.perf_counter()
            if self.at_s:
                self.taken_ms.append((now_s - self.at_s) * 1e3)
            self.at_s = now_s

    def line(self, what: str) -> str:
        taken = sorted(self.taken_ms)
        median, p95 = statistics.median(taken), taken[int(len(taken) * 0.95)]
        return f"{what}: median {median:.2f} ms, p95 {p95:.2f} ms, n = {len(taken)}"


def settings(attempts: int, strategy: str = "search") -> RunSettings:
    return RunSettings(problem="amd/fp8-mm", strategy=strategy, script="script.jsonl", attempts=attempts, seed=1)


def lengthen(folder: Path, first: int, count: int) -> None:
    """Append `count` judged attempts with settings of their own, as an earlier session would have left them."""
    seed = SeedKernel("amd/fp8-mm/wide", SOURCE, KNOBS, ())
    said = law(PROBLEM, Candidate(source=SOURCE))
    outcome = Judged(judgement=said, score_us=score_us(PROBLEM, said))
    with Journal.open(folder) as journal:
        for seq in range(first, first + count):
            knobs = seed.setting(seq * 7 % seed.settings)
            attempt = Attempt(
                attempt_id=f"{folder.name}.{seq}", run_id=folder.name, seq=seq, problem=PROBLEM.name,
                parents=(f"{folder.name}.1",), move=MoveRecord(kind="tune", knobs=knobs, seed_kernel=seed.name),
                hypothesis="", model_call=None, candidate_sha256=f"{seq:064x}", language="triton",
                outcome=outcome.model_copy(update={"score_us": 200.0 + seq % 977}), licence="Apache-2.0",
                derived_from=(), started="2026-11-21T09:00:00.000+00:00",
                ended="2026-11-21T09:00:00.100+00:00", overhead_s=0.004,
            )  # fmt: skip
            journal.append(attempt, durable=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--attempts", type=int, default=300)
    parser.add_argument("--history", type=int, default=100_000)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        root = Path(made)
        seeds = seed_folder(root, KNOBS)
        clock = Clock()
        start(settings(asked.attempts), root / "runs", CountingRunner(), progress=clock, seed_kernels=seeds)
        print(clock.line("search, fresh run"))
        print(long_run(root, seeds, asked.attempts, asked.history).line(f"search, after {asked.history} attempts"))
        clock, replies = Clock(), [kernel_reply(n) for n in range(asked.attempts)]
        model = ScriptedModel(script(root, replies))
        start(settings(asked.attempts, "refine"), root / "runs", CountingRunner(), model, clock, seed_kernels=seeds)
        print(clock.line("refine, fresh run"))


def long_run(root: Path, seeds: Path, attempts: int, history: int) -> Clock:
    interrupt, clock = Interrupt(), Clock()
    begun = start(
        settings(history + attempts), root / "runs", CountingRunner(lambda candidate: interrupt.request()),
        interrupt=interrupt, seed_kernels=seeds,
    )  # fmt: skip
    lengthen(begun.folder, 2, history - 1)
    resume(begun.folder, CountingRunner(), progress=clock, seed_kernels=seeds)
    return clock


if __name__ == "__main__":
    main()
