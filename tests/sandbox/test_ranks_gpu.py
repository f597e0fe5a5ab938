"""Candidates on several GPUs, over NCCL or RCCL, on as many of the board's ranks as this machine has GPUs for."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from evals.players import reference
from problems.load import load
from sandbox.candidate import Candidate
from sandbox.gpu import GpuRunner
from sandbox.runner import Mode
from sandbox.verdict import Measured, Passed, TimedOut, Verdict, WrongAnswer
from tests.sandbox.test_ranks import ALONE, gemm_rs

VISIBLE = os.environ.get("CUDA_VISIBLE_DEVICES") or os.environ.get("HIP_VISIBLE_DEVICES")
THERE = len(list(Path("/dev").glob("nvidia[0-9]*"))) or len(list(Path("/dev/dri").glob("renderD*")))
GPUS = len(VISIBLE.split(",")) if VISIBLE else THERE
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(GPUS < 2, reason=f"several ranks need 2 GPUs or more, there are {GPUS} here"),
]
DEADLINE_S = 400.0


@pytest.fixture(scope="module")
def runner() -> Iterator[GpuRunner]:
    made = GpuRunner(gpus=8)
    yield made
    made.close()


def verdict(runner: GpuRunner, name: str, source: str, deadline_s: float = DEADLINE_S) -> Verdict:
    return runner.judge(load(name), Candidate(source=source), Mode.TEST, deadline_s).verdict


def test_a_library_call_is_measured_on_the_ranks_there_are(runner: GpuRunner) -> None:
    problem = load("amd/all2all")
    found = reference(problem)
    assert found is not None
    judgement = runner.judge(problem, found, Mode.LEADERBOARD, DEADLINE_S)
    assert isinstance(judgement.verdict, Passed), judgement.verdict
    assert any(f"judged on {2 if GPUS < 4 else 4} ranks" in flag for flag in judgement.flags) or GPUS >= 8
    assert len(judgement.verdict.timings) == len(judgement.verdict.board_us) == len(problem.benchmarks)
    for timing in judgement.verdict.timings:
        assert isinstance(timing, Measured) and 0 < timing.us < min(timing.wall_us)
        assert len(timing.empty_us) == len(timing.samples_us) and "slowest rank" in timing.clock


@pytest.mark.parametrize("name", ["amd/gemm-rs", "amd/ag-gemm", "amd/all2all-strict"])
def test_library_calls_pass(runner: GpuRunner, name: str) -> None:
    found = reference(load(name))
    assert found is not None
    assert isinstance(verdict(runner, name, found.source), Passed)


def test_wrong_ones_do_not(runner: GpuRunner) -> None:
    alone = verdict(runner, "amd/all2all", ALONE.format(before="pass"))
    assert isinstance(alone, WrongAnswer) and "do not exchange" in alone.reason
    once = gemm_rs("bias = bias if rank == 0 else None")
    assert isinstance(verdict(runner, "amd/gemm-rs", once), WrongAnswer)


def test_a_rank_that_hangs_is_killed_with_the_others_and_the_next_passes(runner: GpuRunner) -> None:
    assert isinstance(verdict(runner, "amd/gemm-rs", gemm_rs("while rank == 1: pass"), 30.0), TimedOut)
    found = reference(load("amd/all2all"))
    assert found is not None and isinstance(verdict(runner, "amd/all2all", found.source), Passed)
