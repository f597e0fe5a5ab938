"""The MXFP4 mixture: what is made, what is computed, which neighbouring codes pass, and who is refused."""

import math
import random
from functools import cache

import pytest
import torch

from evals.players import reference as library_call
from problems import load
from problems.formats import E2M1, E8M0, shuffled_scale_offset, shuffled_weight_offset
from problems.fp4.reference import FP4, SCALE, quantised
from problems.load import _case_module, folder, work
from sandbox.candidate import Candidate
from sandbox.checker.rule import compare
from sandbox.cpu import CpuRunner
from sandbox.runner import Mode
from sandbox.verdict import Passed, WrongAnswer
from tests.problems.fp4 import layout, same
from tests.problems.fp4_mixtures import RIGHT, WRONG, Data, Way
from tests.problems.references import draw, reference

MOE = "amd/moe-mxfp4"
SMALL = {
    "dhidden": 256,
    "dexpert": 256,
    "nroutedexperts": 3,
    "nexpertspertoken": 2,
    "nsharedexperts": 1,
    "bs": 4,
}
LARGE = SMALL | {"dhidden": 512, "nroutedexperts": 8, "nexpertspertoken": 4, "bs": 24}
FILLS = _case_module(folder(load(MOE)) / "cases.py").FILLS
Truth = tuple[torch.Tensor, torch.Tensor]


@cache
def judged(fill: str) -> tuple[Data, Truth]:
    """A case of size LARGE, and what its answers are held against."""
    data = draw(MOE, LARGE, fill)
    return data, reference(MOE).exact(data)


def ratio(data: Data, way: Way, truth: Truth) -> float:
    return compare(way(data).bfloat16(), *truth, load(MOE).tolerance).worst_ratio


def test_layouts_and_routing() -> None:
    data = draw(MOE, SMALL)
    assert layout(data[:11]) == [
        (torch.bfloat16, (4, 256), (256, 1)),
        *[(FP4, (4, 512, 128), (65536, 128, 1)), (FP4, (4, 256, 128), (32768, 128, 1))],
        *[(SCALE, (2048, 8), (8, 1)), (SCALE, (1024, 8), (8, 1))],
        *[(FP4, (4, 512, 128), (65536, 128, 1)), (FP4, (4, 256, 128), (32768, 128, 1))],
        *[(SCALE, (2048, 8), (8, 1)), (SCALE, (1024, 8), (8, 1))],
        (torch.float32, (4, 3), (3, 1)),
        (torch.int32, (4, 3), (3, 1)),
    ]
    share, ids, config = data[9:]
    assert (ids[:, 2] == 3).all() and (share[:, 2] == 1).all() and (ids[:, :2] < 3).all()
    assert (ids[:, 0] != ids[:, 1]).all() and (share[:, :2].sum(-1) < 1).all()
    assert {config["d_hidden"], config["d_hidden_pad"], config["d_expert"], config["d_expert_pad"]} == {256}
    assert (config["total_top_k"], config["n_experts_per_token"], config["bs"]) == (3, 2, 4)


@pytest.mark.slow
@pytest.mark.parametrize("fill", FILLS)
def test_every_fill(fill: str) -> None:
    module = reference(MOE)
    data, again, other = (draw(MOE, SMALL, fill, seed) for seed in (3, 3, 4))
    assert same(data, again) and not same(data, other)
    shapes = module.make_inputs(SMALL, fill, None, "meta")
    assert layout(data) == layout(shapes) and data[11] == shapes[11]
    result, terms = module.exact(data)
    assert [tuple(part.shape) for part in module.exact(shapes)] == [(4, 256)] * 2 == [tuple(result.shape)] * 2
    assert torch.isfinite(result.bfloat16()).all() and result.any() and (terms > 0).all()
    module.board_expected(data)
    assert same(data, again) and same(module.repeated(data), data)
    assert all(len(set(row)) == 3 and max(row[:2]) < 3 for row in data[10].tolist())


@pytest.mark.slow
def test_exact_by_its_definition() -> None:
    """From the shuffled weights and scales, so that a wrong order would show."""
    data = draw(MOE, SMALL, "weighted")
    found = reference(MOE).exact(data)[0]
    gate_up, down, gate_up_scale, down_scale = (part.view(torch.uint8).flatten().tolist() for part in data[5:9])

    def element(codes: list[int], scales: list[int], expert: int, rows: int, row: int, k: int) -> float:
        byte = codes[expert * rows * 128 + shuffled_weight_offset(row, k // 2, 128)]
        return E2M1[byte >> 4 * (k % 2) & 15] * E8M0[scales[shuffled_scale_offset(expert * rows + row, k // 32, 8)]]

    def again(row: list[float]) -> list[float]:
        codes, scale = quantised(torch.tensor([row], dtype=torch.float64))
        pairs, steps = codes.view(torch.uint8)[0].tolist(), scale.view(torch.uint8)[0].tolist()
        return [E2M1[pairs[k // 2] >> 4 * (k % 2) & 15] * E8M0[steps[k // 32]] for k in range(len(row))]

    token = again(data[0][1].tolist())
    wanted = dict.fromkeys((0, 7, 200), 0.0)
    for share, expert in zip(data[9][1].tolist(), data[10][1].tolist(), strict=True):
        rows = [
            math.fsum(x * element(gate_up, gate_up_scale, expert, 512, row, k) for k, x in enumerate(token))
            for row in range(512)
        ]
        inner = again([gate / (1 + math.exp(-gate)) * up for gate, up in zip(rows[:256], rows[256:], strict=True)])
        for n in wanted:
            parts = [h * element(down, down_scale, expert, 256, n, k) for k, h in enumerate(inner)]
            wanted[n] += share * math.fsum(parts)
    for n, value in wanted.items():
        assert float(found[1, n]) == pytest.approx(value, rel=1e-9, abs=1e-11)


def test_a_code_in_doubt_may_go_to_its_neighbour_and_no_further() -> None:
    # A block whose scale is 1 (largest 5, within 4 x 1.75): 2.5 and 3.5 lie on ties, 2.2 does not.
    inner = torch.zeros((1, 32), dtype=torch.float64)
    inner[0, :4] = torch.tensor([5.5, 2.5, 3.499, 2.2])
    nominal, doubt = reference(MOE)._requantised(inner, inner * reference(MOE).NARROW)
    assert nominal[0, :4].tolist() == [6.0, 2.0, 3.0, 2.0] and doubt[0, :4].tolist() == [0.0, 1.0, 1.0, 0.0]
    # A largest element at 7 = 1.75 x 4, where the scale steps from 1 to 2: what is no multiple of two is in doubt.
    inner[0, :4] = torch.tensor([7.0, 3.0, 1.0, 0.6])
    nominal, doubt = reference(MOE)._requantised(inner, inner * reference(MOE).NARROW)
    assert nominal[0, :4].tolist() == [8.0, 3.0, 1.0, 1.0] and doubt[0, :4].tolist() == [2.0, 0.0, 0.0, 0.5]


@pytest.mark.slow
@pytest.mark.parametrize("fill", FILLS)
def test_right_ways_pass_with_room(fill: str) -> None:
    data, truth = judged(fill)
    for how, way in {**RIGHT, "the board's": reference(MOE).board_expected}.items():
        assert ratio(data, way, truth) <= 0.75, how


@pytest.mark.slow
@pytest.mark.parametrize("how", WRONG)
def test_wrong_ways_are_refused(how: str) -> None:
    for fill in ("published", "weighted", "wide"):
        assert ratio(judged(fill)[0], WRONG[how], judged(fill)[1]) > 1.5, fill


def test_cases_and_what_the_reference_repeats_of_the_tolerance() -> None:
    problem, module = load(MOE), _case_module(folder(load(MOE)) / "cases.py")
    assert (len(problem.tests), len(problem.benchmarks)) == (3, 7)
    assert problem.tolerance.term_rtol == reference(MOE).TERM_RTOL
    assert tuple(reference(MOE)._FILLS) == FILLS
    for seed in range(50):
        for size in ("small", "full"):
            cases = module.hidden(random.Random(seed), size)
            assert cases == module.hidden(random.Random(seed), size) and cases[1].fill == "weighted"
            for case in cases:
                assert module.fits(case.params) and case.fill in FILLS and work(problem, case).bytes > 0
                assert set(case.params) == set(problem.small[0].params)


SPOILT = {
    "zeros": ("return total.bfloat16()", "return torch.zeros_like(data[0])"),
    "half the experts": ("for index in range(", "for index in range(1, "),
    "inner not quantised": ("return quantised((silu(gate) * up).bfloat16())", "return (silu(gate) * up)"),
}


@pytest.mark.slow
def test_the_library_call_is_accepted_and_spoilt_ones_are_not() -> None:
    found, runner = library_call(load(MOE)), CpuRunner(chip="MI355X")
    assert found is not None
    try:
        judgement = runner.judge(load(MOE), found, Mode.TEST)
        assert isinstance(judgement.verdict, Passed), judgement.verdict
        assert judgement.board_accepts
        for how, change in SPOILT.items():
            spoilt = Candidate(source=found.source.replace(*change))
            assert spoilt != found
            assert isinstance(runner.judge(load(MOE), spoilt, Mode.TEST).verdict, WrongAnswer), how
    finally:
        runner.close()
