"""Records as a run would write them: one attempt for every outcome there is."""

from __future__ import annotations

import math
from pathlib import Path

from dataset import runs
from dataset.attempt import (
    Attempt,
    Intent,
    Judged,
    ModelCall,
    MoveRecord,
    Outcome,
    Replied,
    RunEnded,
    RunnerFault,
    RunStarted,
    Source,
    Unusable,
)
from dataset.blobs import Blobs
from dataset.journal import Journal
from problems.spec import Case
from sandbox.verdict import (
    BuildFailed,
    CaseCheck,
    Cheated,
    Crashed,
    ErrorFigures,
    Estimated,
    Finding,
    IsaReport,
    Judgement,
    KernelRecord,
    Machine,
    Measured,
    Passed,
    Rejected,
    TimedOut,
    Untimed,
    Verdict,
    WrongAnswer,
)

SOURCE = """#!POPCORN leaderboard amd-fp8-mm
import triton


def custom_kernel(data):
    return data
"""
SMALL = Case(params={"m": 64, "n": 64, "k": 128})
LARGE = Case(params={"m": 1024, "n": 1536, "k": 7168}, fill="wide", seed=8135)
GPU = Machine(
    kind="gpu",
    chip="H200",
    arch="sm_90",
    driver="580.65",
    runtime="cuda 13.0",
    torch="2.13.0",
    triton="3.9.0",
    python="3.11.7",
    harness="ab" * 32,
)
CPU = GPU.model_copy(update={"kind": "cpu-emulation", "chip": "MI300X", "arch": "gfx942", "runtime": "none"})
FIGURES = ErrorFigures(max_abs=0.25, max_rel=0.001, worst_ratio=0.4, mismatches=0, elements=4096)
NOT_FINITE = ErrorFigures(max_abs=math.inf, max_rel=math.inf, worst_ratio=math.inf, mismatches=7, elements=4096)
CHECKS = tuple(
    CaseCheck(case=case, role=role, seed=seed, passed=True, error=FIGURES, board_accepts=True)
    for case, role, seed in ((SMALL, "small", 11), (LARGE, "benchmark", 12))
)
WRONG = (CHECKS[0], CHECKS[1].model_copy(update={"passed": False, "error": NOT_FINITE, "board_accepts": False}))
ISA = IsaReport(
    kernel="matmul",
    target="gfx942",
    vgpr=128,
    agpr=64,
    sgpr=40,
    vgpr_spills=0,
    sgpr_spills=0,
    scratch_bytes=0,
    lds_bytes=32768,
    waves_per_workgroup=4,
    occupancy_waves=2,
    occupancy_limit="lds",
    mfma={"v_mfma_f32_32x32x16_fp8_fp8": 16},
    memory={"global_load_dwordx4": 8},
    waits=12,
    barriers=2,
    instructions=900,
    code_bytes=7200,
)
KERNELS = (
    KernelRecord(name="matmul", target="gfx942", launches=2, isa=ISA),
    KernelRecord(name="matmul", target="gfx950", launches=2, error="LDS over the limit"),
)


def measured(case: Case, us: float) -> Measured:
    samples = tuple(us + step / 64 for step in range(5))
    wall = tuple(sample + 3 for sample in samples)
    return Measured(case=case, chip="H200", clock="event", samples_us=samples, wall_us=wall, warmup_calls=3)


def estimated(case: Case, us: float) -> Estimated:
    return Estimated(case=case, chip="MI300X", us=us, bound="hbm", parts_us={"hbm": us, "launch": 0.5})


def judged(verdict: Verdict, machine: Machine = GPU, score_us: float | None = None) -> Judged:
    judgement = Judgement(
        verdict=verdict,
        machine=machine,
        sandbox="bubblewrap",
        seeds=(11, 12),
        kernels=KERNELS,
        flags=("f",),
        wall_s=2.5,
    )
    return Judged(judgement=judgement, score_us=score_us)


OUTCOMES: tuple[Outcome, ...] = (
    judged(Passed(cases=CHECKS, timings=(measured(SMALL, 4.0), measured(LARGE, 9.0))), GPU, 6.0),
    judged(Passed(cases=CHECKS, timings=(estimated(SMALL, 5.0), estimated(LARGE, 8.0))), CPU, 6.5),
    judged(Passed(cases=CHECKS, timings=(estimated(SMALL, 5.0), Untimed(case=LARGE, reason="no launch seen"))), CPU),
    judged(Passed(cases=CHECKS)),
    judged(Rejected(reason="no custom_kernel", findings=(Finding(line=3, rule="entry", message="missing"),))),
    judged(BuildFailed(reason="does not compile", log="error: unknown op")),
    judged(Crashed(reason="illegal address", case=SMALL, log="Traceback")),
    judged(Crashed(reason="died", case=None, log="")),
    judged(TimedOut(reason="past its deadline", deadline_s=120.0, case=LARGE)),
    judged(WrongAnswer(reason="1 of 2 cases", cases=WRONG)),
    judged(Cheated(reason="kept an output", evidence="same pointer")),
    Unusable(reason="the reply holds no code block"),
)


def started(run_id: str, problem: str = "amd/fp8-mm") -> RunStarted:
    return RunStarted(
        run_id=run_id,
        problem=problem,
        problem_sha256="cd" * 32,
        strategy="search",
        settings={
            "attempts": 30,
            "runner": "cpu",
            "deadline_s": 120.0,
            "target_us": None,
            "base_url": "http://gpu7:8000/v1",
        },
        seed=7,
        commit="0d65c18",
        started="2026-11-21T14:23:01+00:00",
    )


def model_call(blobs: Blobs, seq: int) -> ModelCall:
    return ModelCall(
        model="open-model-32b",
        base_url="http://127.0.0.1:8000/v1",
        prompt_sha256=blobs.put(f"Write kernel {seq}."),
        reply_sha256=blobs.put(f"Here is kernel {seq}."),
        input_tokens=100 + seq,
        output_tokens=50,
        cost_usd=0.001 if seq % 2 else None,
        latency_s=1.5,
    )


def attempt(run_id: str, seq: int, outcome: Outcome, blobs: Blobs | None = None, source: str = SOURCE) -> Attempt:
    """Attempt `seq`; with `blobs` its texts are stored and it comes from a model, else from a tuned seed."""
    usable = isinstance(outcome, Judged)
    candidate = f"{source}# attempt {seq}\n"
    return Attempt(
        attempt_id=f"{run_id}.{seq}",
        run_id=run_id,
        seq=seq,
        problem="amd/fp8-mm",
        parents=(f"{run_id}.{seq - 1}",) if seq else (),
        move=MoveRecord(kind="draft" if blobs else "tune", knobs={"BLOCK_M": 64, "split": True}),
        hypothesis="larger tiles keep the MFMA pipe busy",
        model_call=model_call(blobs, seq) if blobs else None,
        candidate_sha256=(blobs.put(candidate) if blobs else "ef" * 32) if usable else None,
        language="triton" if usable else None,
        outcome=outcome,
        licence="Apache-2.0",
        derived_from=(Source(what="seed kernel amd/fp8-mm/block_scaled", licence="Apache-2.0"),),
        taint=("provider_terms",) if blobs else (),
        started="2026-11-21T14:23:02+00:00",
        ended="2026-11-21T14:23:05+00:00",
        overhead_s=0.004,
    )


def make_run(root: Path, source: str = SOURCE, ended: bool = True) -> Path:
    """A whole run under `root`: every outcome, with an intent, a reply and a runner fault on the way."""
    folder = runs.create(root, "amd/fp8-mm")
    blobs = Blobs(folder)
    with Journal.open(folder) as journal:
        journal.append(started(folder.name))
        for seq, outcome in enumerate(OUTCOMES):
            record = attempt(folder.name, seq, outcome, blobs, source)
            assert record.model_call is not None
            journal.append(Intent(seq=seq, call="model", about=record.model_call.prompt_sha256), durable=False)
            journal.append(Replied(seq=seq, model_call=record.model_call), durable=False)
            journal.append(RunnerFault(seq=seq, message="checker lost"), durable=False)
            journal.append(record, durable=False)
        if ended:
            journal.append(RunEnded(reason="budget", best_attempt_id=f"{folder.name}.0", ended="2026-11-21T15:00:00Z"))
    return folder
