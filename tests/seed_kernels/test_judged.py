"""Seed kernels judged as any candidate: interpreted, compiled for CDNA3 and CDNA4, estimated."""

from collections.abc import Iterator

import pytest

from agent.knobs import SeedKernel, apply
from agent.move import Assignment
from problems import load
from sandbox.candidate import Candidate
from sandbox.cpu import CpuRunner
from sandbox.runner import Mode
from sandbox.verdict import Judgement
from tests.seed_kernels.test_declarations import SEEDS, problem_of

pytestmark = pytest.mark.slow
BY_NAME = {seed.name: seed for seed in SEEDS}
ALONE = [seed for seed in SEEDS if load(problem_of(seed)).world_size == 1]


@pytest.fixture(scope="module")
def mi300x() -> Iterator[CpuRunner]:
    runner = CpuRunner(chip="MI300X")
    yield runner
    runner.close()


def judged(runner: CpuRunner, seed: SeedKernel, mode: Mode, knobs: Assignment | None = None) -> Judgement:
    return runner.judge(load(problem_of(seed)), Candidate(source=apply(seed.source, knobs or {})), mode)


def instructions(judgement: Judgement, kernel: str, target: str) -> set[str]:
    named = [record for record in judgement.kernels if record.name.split("(")[0] == kernel]
    reports = [record.isa for record in named if record.target == target]
    assert reports and all(report is not None for report in reports)
    return {name for report in reports if report for name in (*report.mfma, *report.memory)}


def test_ranks_pass_and_have_no_estimate(mi300x: CpuRunner) -> None:
    judgement = judged(mi300x, BY_NAME["amd/all2all/flags_hip"], Mode.TEST)
    assert judgement.accepted and judgement.board_accepts, judgement.verdict
    assert {check.role for check in judgement.verdict.cases} == {"small", "hidden"}  # type: ignore[union-attr]


@pytest.mark.parametrize("seed", ALONE, ids=lambda seed: seed.name)
def test_it_passes_and_has_an_estimate_for_every_published_case(mi300x: CpuRunner, seed: SeedKernel) -> None:
    judgement = judged(mi300x, seed, Mode.BENCHMARK)
    assert judgement.accepted, judgement.verdict
    assert judgement.time_kind == "estimated" and judgement.geomean_us is not None
    roles = {check.role for check in judgement.verdict.cases if check.error.worst_ratio <= 0.51}  # type: ignore[union-attr]
    assert roles == {"small", "hidden"}
    built = [record.isa for record in judgement.kernels if record.target == "gfx942"]
    assert all(report is not None and report.vgpr_spills == report.scratch_bytes == 0 for report in built)
    match seed.name:
        case "amd/fp8-mm/block_scaled":
            # e4m3fnuz goes to the matrix units as it is, and no operand is read byte by byte.
            found = instructions(judgement, "fp8_mm_fnuz", "gfx942")
            assert "v_mfma_f32_16x16x32_fp8_fp8" in found and "ds_read_u8" not in found
            assert judgement.board_accepts
        case "amd/fp8-mm/mfma_hip":
            assert "v_mfma_f32_32x32x16_fp8_fp8" in instructions(judgement, "fp8_mm", "gfx942")
            assert judgement.board_accepts
        case "pmpp/matmul/grouped":
            assert any(name.startswith("v_mfma_f32_") for name in instructions(judgement, "matmul_pointers", "gfx942"))
        case "pmpp/vectoradd/flat":
            assert {"buffer_load_dwordx4", "buffer_store_dwordx4"} <= instructions(judgement, "vector_add", "gfx942")
            assert judgement.board_accepts
        case _:
            assert judgement.board_accepts


SETTINGS: list[tuple[str, Assignment]] = [
    ("amd/fp8-mm/block_scaled", {"BLOCK_N": 256, "BLOCK_M": 64, "BLOCK_K": 32, "SPLIT_PROGRAMS": 608, "XCDS": 1}),
    (
        "amd/fp8-mm/block_scaled",
        {"BLOCK_M": 32, "BLOCK_N": 64, "NUM_WARPS": 4, "TRANSPOSE_FROM": 1000000, "GROUP_M": 1},
    ),
    (
        "pmpp/matmul/grouped",
        {"BLOCK_M": 64, "BLOCK_N": 32, "NUM_WARPS": 4, "XCDS": 8, "GROUP_M": 1, "MATRIX_INSTR": 16},
    ),
    (
        "pmpp/vectoradd/flat",
        {"BLOCK": 1024, "NUM_WARPS": 1, "PROGRAMS_PER_CU": 2, "LOAD_CACHE": ".cg", "STORE_CACHE": ".cs"},
    ),
    ("pmpp/histogram/two_pass", {"BLOCK": 1024, "NUM_WARPS": 4, "PROGRAMS": 1024, "BINS_PER_PROGRAM": 4}),
    ("pmpp/prefixsum/three_pass", {"TILE": 1024, "NUM_WARPS": 8, "CARRIES": 1024}),
]


@pytest.mark.parametrize(("name", "knobs"), SETTINGS, ids=[f"{name}-{i}" for i, (name, _) in enumerate(SETTINGS)])
def test_it_stays_right_far_from_its_defaults(mi300x: CpuRunner, name: str, knobs: Assignment) -> None:
    seed = BY_NAME[name]
    setting = {**seed.defaults, **knobs}
    assert seed.allows(setting, 65536) and all(value in seed.knobs[knob].values for knob, value in setting.items())
    judgement = judged(mi300x, seed, Mode.TEST, knobs)
    assert judgement.accepted, judgement.verdict


def test_fp8_decodes_on_a_chip_whose_triton_lacks_the_type() -> None:
    runner = CpuRunner(chip="MI355X")
    try:
        judgement = judged(runner, BY_NAME["amd/fp8-mm/block_scaled"], Mode.TEST)
    finally:
        runner.close()
    assert judgement.accepted, judgement.verdict
    names = {record.name for record in judgement.kernels if record.launches}
    assert "fp8_mm_upcast" in names and "fp8_mm_fnuz" not in names
    assert "v_mfma_f32_16x16x32_f16" in instructions(judgement, "fp8_mm_upcast", "gfx950")
