"""Bounds that no kernel beats: by hand, against every published figure, and against what people measured."""

from pathlib import Path

import pytest

from problems import load, names, work
from problems.bounds import SAME, case_of, least, of
from problems.chips import CHIPS, Chip, chip
from problems.ranking import ranked_us
from problems.spec import Baseline, BoardTiming, Problem, ProblemError

PUBLISHED = {
    "amd/ag-gemm": 6,
    "amd/all2all": 5,
    "amd/gemm-rs": 6,
    "amd/fp8-mm": 6,
    "amd/mla-decode": 4,
    "amd/moe-mxfp4": 7,
    "amd/mxfp4-mm": 6,
    "nvidia/nvfp4-gemv": 3,
    "nvidia/nvfp4-gemm": 3,
    "nvidia/nvfp4-dual-gemm": 4,
    "nvidia/nvfp4-group-gemm": 4,
}
"""Rows of the boards' tables, gpu-mode/reference-kernels@f83cb92, task.yml."""


def timing(**changes: object) -> BoardTiming:
    return load("pmpp/vectoradd").board_timing.model_copy(update=changes)


@pytest.mark.parametrize("name", names())
def test_every_published_figure_is_the_same_or_explained(name: str) -> None:
    problem, said = load(name), of(load(name))
    assert len(said.published) == PUBLISHED.get(name, 0)
    for row in said.published:
        case = case_of(problem, row)
        assert case is not None, f"{row.case} is no case of {name}"
        ratio = row.us / least(problem, case, chip(row.chip)).us
        assert bool(row.differs) == (abs(ratio - 1) > SAME), f"{row.case}: {ratio:.3f}, differs: {row.differs}"


@pytest.mark.parametrize("name", names())
def test_no_bound_is_above_what_was_measured(name: str) -> None:
    """Low confidence marks records that are known to be bad, such as one above its chip's HBM bandwidth."""
    problem = load(name)
    for row in problem.baselines:
        found = CHIPS.get(row.chip.split()[0])
        if row.kind != "sol" and row.confidence != "low" and found is not None:
            assert bound_us(problem, row, found) <= row.time_us, (
                f"{row.who} on {row.chip}, {row.case}: {row.time_us} us"
            )


def bound_us(problem: Problem, row: Baseline, on: Chip) -> float:
    """Ours for a published time: of its own case, or ranked as the board's score is."""
    if row.case is None:
        all_us = ranked_us(problem.board_timing, [least(problem, case, on).us for case in problem.benchmarks])
        assert all_us is not None
        return all_us
    cases = (*problem.benchmarks, *problem.tests)
    own = [case for case in cases if row.case.items() <= case.params.items()]
    assert own, f"{row.case} is no case of {problem.name}"
    return least(problem, own[0], on).us


def test_memory_by_hand() -> None:
    """16384 x 16384 fp16 on an H100: 1.07 GB read cold, 0.54 GB written of which 50 MiB may stay in L2."""
    problem, on = load("pmpp/vectoradd"), chip("H100")
    read, written, kept = 4 * 16384**2, 2 * 16384**2, 50 * 2**20
    cold = least(problem, problem.benchmarks[-1], on)
    assert (cold.limit, cold.us) == ("HBM", pytest.approx((read + written - kept) / 3.35e6))
    warm = problem.model_copy(update={"board_timing": timing(flush_l2=False)})
    assert least(warm, problem.benchmarks[-1], on).us == pytest.approx((read + written - 2 * kept) / 3.35e6)
    many = problem.model_copy(update={"board_timing": timing(calls_per_sample=50)})
    assert least(many, problem.benchmarks[-1], on).us == pytest.approx((read + written - kept / 50) / 3.35e6)


def test_the_other_limits_by_hand() -> None:
    """Matrix units at the highest clock, fp32 from six fp16 products, links, and a launch where one call is timed."""
    on = chip("H100")
    assert on.highest_flops_per_s("fp16") / 1e12 == pytest.approx(1070.5, rel=1e-3)
    assert on.highest_flops_per_s("fp32") == pytest.approx(on.highest_flops_per_s("fp16") / 6)
    matmul = load("pmpp/matmul")
    big, small = matmul.benchmarks[-1], matmul.benchmarks[0]
    assert least(matmul, big, on).limit == "arithmetic"
    assert (least(matmul, small, on).limit, least(matmul, small, on).us) == ("launch", on.launch_floor_us)
    many = matmul.model_copy(update={"board_timing": timing(calls_per_sample=50)})
    assert least(many, small, on).us < on.launch_floor_us
    linked = matmul.model_copy(update={"link_bytes": "2*m*k"})
    assert work(linked, big).link_bytes == 2 * 4096**2
    assert least(linked, big, chip("MI300X")).parts_us["links"] == pytest.approx(2 * 4096**2 / 448e9 * 1e6)


def test_a_folder_without_bounds_says_so(tmp_path: Path) -> None:
    with pytest.raises(ProblemError, match=r"vectoradd/bounds.toml: cannot be read as TOML"):
        of(load("pmpp/vectoradd"), tmp_path)


def test_how_boards_rank() -> None:
    times = [2.0, 8.0]
    assert ranked_us(timing(ranked_by="geomean"), times) == pytest.approx(4.0)
    assert ranked_us(timing(ranked_by="mean"), times) == 5.0
    assert ranked_us(timing(ranked_by="last"), times) == 8.0
    assert ranked_us(timing(ranked_by="weighted", weights=(3.0, 0.5)), times) == 10.0
    for rule in ("geomean", "mean", "last", "weighted"):
        assert ranked_us(timing(ranked_by=rule, weights=(3.0, 0.5)), [None, 8.0]) is None
