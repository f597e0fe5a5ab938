"""Candidates on several ranks, judged over gloo on a CPU: the real checker, a real guest for each rank."""

import shutil
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from evals.players import reference
from problems.load import ROOT, load
from problems.spec import ProblemError
from sandbox.candidate import Candidate
from sandbox.checker.rank_judging import fitting, on_ranks
from sandbox.cpu import CpuRunner
from sandbox.isolation import works
from sandbox.runner import Mode, Unsupported
from sandbox.verdict import Crashed, Judgement, Passed, TimedOut, Untimed, Verdict, WrongAnswer

CONFINED = works("bubblewrap") or works("namespaces")
GEMM_RS = """
import os
import socket
import torch
import torch.distributed as dist

def custom_kernel(data):
    x, weight, bias = data
    world, rank = dist.get_world_size(), dist.get_rank()
    product = x.float() @ weight.float().T
    {change}
    product = (product if bias is None else product + bias.float()).bfloat16()
    rows = torch.empty((product.shape[0] // world, product.shape[1]), dtype=x.dtype, device=x.device)
    {exchange}
    return rows
"""
SUM = "dist.reduce_scatter_tensor(rows, product)"
ALONE = """
import torch
import torch.distributed as dist

def custom_kernel(data):
    config, rank_data, rank, world = data
    {before}
    gains = 1 + rank_data.indices // (config.num_experts // world)
    share = (rank_data.weights * gains).sum(1, keepdim=True)
    return (rank_data.x.float() * share).to(config.out_dtype)
"""


def gemm_rs(change: str = "pass", exchange: str = SUM) -> str:
    return GEMM_RS.format(change=change, exchange=exchange)


@pytest.fixture(scope="module")
def runner() -> Iterator[CpuRunner]:
    made = CpuRunner()
    yield made
    made.close()


def judged(runner: CpuRunner, name: str, source: str, mode: Mode = Mode.TEST, deadline_s: float = 60.0) -> Judgement:
    return runner.judge(load(name), Candidate(source=source), mode, deadline_s)


def verdict(runner: CpuRunner, name: str, source: str, deadline_s: float = 60.0) -> Verdict:
    return judged(runner, name, source, deadline_s=deadline_s).verdict


@pytest.mark.slow
@pytest.mark.parametrize("name", ["amd/gemm-rs", "amd/ag-gemm", "amd/all2all", "amd/all2all-strict"])
def test_library_calls_pass_without_a_time(runner: CpuRunner, name: str) -> None:
    found = reference(load(name))
    assert found is not None
    judgement = judged(runner, name, found.source, Mode.BENCHMARK)
    assert isinstance(judgement.verdict, Passed), judgement.verdict
    assert judgement.board_accepts is True and judgement.time_kind == "none"
    assert {case.case.params["world_size"] for case in judgement.verdict.cases} == {2, 4}
    assert all(isinstance(timing, Untimed) and "no estimate" in timing.reason for timing in judgement.verdict.timings)


@pytest.mark.slow
@pytest.mark.parametrize(
    "source",
    [
        gemm_rs(exchange=SUM + "; rows.zero_()"),
        gemm_rs(exchange="rows = product.chunk(world)[rank] * world"),
        gemm_rs(exchange="dist.all_reduce(product); rows = product.chunk(world)[(rank + 1) % world]"),
        gemm_rs("bias = None"),
        gemm_rs("bias = bias if rank == 0 else None"),
    ],
    ids=["zeros", "no exchange", "another rank's rows", "no bias", "bias once"],
)
def test_wrong_sums_are_refused(runner: CpuRunner, source: str) -> None:
    found = verdict(runner, "amd/gemm-rs", source)
    assert isinstance(found, WrongAnswer) and found.cases


@pytest.mark.slow
def test_a_right_answer_without_asking_the_other_ranks_is_refused(runner: CpuRunner) -> None:
    found = verdict(runner, "amd/all2all", ALONE.format(before="pass"))
    assert isinstance(found, WrongAnswer)
    assert "before rank" in found.reason and "do not exchange" in found.reason


@pytest.mark.slow
def test_where_gains_are_secret_a_wait_for_the_others_is_not_enough(runner: CpuRunner) -> None:
    waits = ALONE.format(before="dist.barrier()")
    assert isinstance(verdict(runner, "amd/all2all", waits), Passed)  # what the published contract cannot tell apart
    assert isinstance(verdict(runner, "amd/all2all-strict", waits), WrongAnswer)


@pytest.mark.slow
def test_one_bias_times_the_ranks_is_right(runner: CpuRunner) -> None:
    """The bias is equal on all ranks, in perturbed inputs too."""
    after = "; rows = (rows.float() + world * (0 if data[2] is None else data[2].float())).bfloat16()"
    found = verdict(runner, "amd/gemm-rs", gemm_rs("bias = None", SUM + after))
    assert isinstance(found, Passed), found


@pytest.mark.slow
def test_one_rank_hangs_and_the_next_candidate_passes(runner: CpuRunner) -> None:
    start_s = time.monotonic()
    found = verdict(runner, "amd/gemm-rs", gemm_rs("while rank == 1: pass"), deadline_s=4.0)
    assert isinstance(found, TimedOut) and found.deadline_s == 4.0 and found.case is not None
    assert time.monotonic() - start_s < 60
    assert isinstance(verdict(runner, "amd/gemm-rs", gemm_rs()), Passed)


@pytest.mark.slow
def test_one_rank_dies_or_raises(runner: CpuRunner) -> None:
    died = verdict(runner, "amd/gemm-rs", gemm_rs("os.kill(os.getpid(), 9) if rank == 1 else None"))
    assert isinstance(died, Crashed) and "rank 1 of" in died.reason and "SIGKILL" in died.reason
    raised = verdict(runner, "amd/gemm-rs", gemm_rs("assert rank != 1, 'not here'"))
    assert isinstance(raised, Crashed) and "rank 1 of" in raised.reason and "not here" in raised.log


@pytest.mark.slow
@pytest.mark.skipif(not CONFINED, reason="neither bubblewrap nor namespaces work on this machine")
def test_the_loopback_of_the_ranks_is_their_own(runner: CpuRunner) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        found = verdict(runner, "amd/gemm-rs", gemm_rs(f"socket.create_connection(('127.0.0.1', {port}))"))
    assert isinstance(found, Crashed) and "refused" in found.reason
    out = verdict(runner, "amd/gemm-rs", gemm_rs("socket.create_connection(('192.0.2.1', 80), 2)"))
    assert isinstance(out, Crashed) and "unreachable" in out.reason


@pytest.mark.parametrize("world", ["3", "1", "16", "true"])
def test_a_wrong_number_of_ranks_is_named(tmp_path: Path, world: str) -> None:
    shutil.copytree(ROOT / "amd/gemm-rs", tmp_path / "amd/gemm-rs")
    path = tmp_path / "amd/gemm-rs/problem.toml"
    path.write_text(path.read_text().replace("{ world_size = 2, m = 8,", f"{{ world_size = {world}, m = 8,"))
    with pytest.raises(ProblemError, match=r"small\.0: .*world_size"):
        load("amd/gemm-rs", tmp_path)


def test_fewer_gpus_than_the_board_has() -> None:
    problem = load("amd/gemm-rs")
    assert [fitting(problem, gpus) for gpus in (8, 7, 4, 3, 2)] == [8, 4, 4, 2, 2]
    assert on_ranks(problem.tests[0], 2).params == problem.tests[0].params | {"world_size": 2}
    with pytest.raises(Unsupported, match="at least 2 GPUs"):
        fitting(problem, 1)
