"""A small run as its journal would hold it: a seed, tuned and repaired descendants, failures, and hostile text."""

from __future__ import annotations

from pathlib import Path

from agent.header import with_header
from dataset.attempt import Attempt, Judged, MoveRecord, RunEnded, RunStarted
from dataset.blobs import Blobs
from dataset.journal import Journal
from problems.load import load
from sandbox.verdict import Judgement, KernelRecord, Machine, Measured, Passed, score_us
from tests.agent.places import build_failed, check, passed, wrong

PROBLEM = load("amd/fp8-mm")
RUN_ID = "20261121-142301-amd-fp8-mm-3f2a"
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)> \u202e\ufffe 世界 &amp; " + "long " * 400
EMULATED = Machine(
    kind="cpu-emulation", chip="MI300X", arch="gfx942", driver="none", runtime="none", torch="2.13.0", triton="3.9.0",
    python="3.11", harness="0" * 64,
)  # fmt: skip
H200 = EMULATED.model_copy(update={"kind": "gpu", "chip": "H200", "arch": "sm_90", "runtime": "cuda 13.0"})
MI300X = H200.model_copy(update={"chip": "MI300X", "arch": "gfx942", "runtime": "rocm 7.1"})


def source(block: int) -> str:
    return with_header(
        f"import torch\n\nBLOCK = {block}\n# {HOSTILE}\n\n\ndef custom_kernel(data):\n    return data[4]\n", PROBLEM
    )


def emulated(judgement: Judgement) -> Judgement:
    failed = KernelRecord(name="mm", target="gfx950", launches=1, error=f"no such op {HOSTILE}")
    return judgement.model_copy(
        update={"machine": EMULATED, "kernels": (*judgement.kernels, failed), "flags": (HOSTILE,)}
    )


def measured(us: float, machine: Machine = H200, board_accepts: bool = True, spread_us: float = 0.1) -> Judgement:
    """A pass with five samples a case, `us` in the middle of each."""
    samples = tuple(us + spread_us * step for step in (-2, -1, 0, 1, 2))
    times = tuple(
        Measured(case=case, chip=machine.chip, clock="event", samples_us=samples, wall_us=samples, warmup_calls=2)
        for case in PROBLEM.benchmarks
    )
    verdict = Passed(cases=(check(PROBLEM, True, board_accepts),), timings=times)
    return Judgement(verdict=verdict, machine=machine, sandbox="namespaces", seeds=(1,), wall_s=1.0)


JUDGEMENTS = (
    (0, "seed", passed(PROBLEM, 120.0)),
    (1, "tune", passed(PROBLEM, 90.0)),
    (1, "tune", build_failed(PROBLEM, HOSTILE)),
    (2, "optimise", wrong(PROBLEM)),
    (4, "repair", passed(PROBLEM, 60.0)),
    (1, "tune", passed(PROBLEM, 50.0, board_accepts=False)),
)
"""Parent's number (0 for none), move and judgement of attempts 1 to 6; 5 is the best that the board would take."""


def attempts(blobs: Blobs) -> list[Attempt]:
    return [_attempt(seq, *entry, blobs) for seq, entry in enumerate(JUDGEMENTS, 1)]


def make_run(root: Path, ended: bool = True, only: range = range(1, 7)) -> Path:
    """The run in a folder under `root`; `only` those attempts."""
    folder = root / RUN_ID
    folder.mkdir(parents=True)
    with Journal.open(folder) as journal:
        journal.append(
            RunStarted(
                run_id=RUN_ID, problem=PROBLEM.name, problem_sha256="cd" * 32, strategy="refine",
                settings={"attempts": 6, "model": HOSTILE, "target_us": None}, seed=7, commit="0d65c18",
                started="2026-11-21T14:23:01+00:00",
            )
        )  # fmt: skip
        for attempt in attempts(Blobs(folder)):
            if attempt.seq in only:
                journal.append(attempt)
        if ended:
            reason = "budget of 6 attempts spent"
            journal.append(RunEnded(reason=reason, best_attempt_id=f"{RUN_ID}.5", ended="2026-11-21T15:00:00+00:00"))
    return folder


def _attempt(seq: int, parent: int, kind: str, judgement: Judgement, blobs: Blobs) -> Attempt:
    said = emulated(judgement)
    return Attempt(
        attempt_id=f"{RUN_ID}.{seq}",
        run_id=RUN_ID,
        seq=seq,
        problem=PROBLEM.name,
        parents=(f"{RUN_ID}.{parent}",) if parent else (),
        move=MoveRecord.model_validate({"kind": kind, "knobs": {"BLOCK": 32 * seq} if kind == "tune" else {}}),
        hypothesis=HOSTILE,
        model_call=None,
        candidate_sha256=blobs.put(source(32 * seq)),
        language="triton",
        outcome=Judged(judgement=said, score_us=score_us(PROBLEM, said)),
        licence="Apache-2.0",
        derived_from=(),
        started="2026-11-21T14:23:02+00:00",
        ended="2026-11-21T14:23:05+00:00",
        overhead_s=0.004,
    )
