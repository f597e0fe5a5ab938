"""A tolerance must let every honest fp32 sum through with room to spare, and stop the cheap ones."""

from collections.abc import Iterable

import pytest
import torch

from problems import load
from tests.problems.references import draw, reference

pytestmark = pytest.mark.slow

MARGIN = 4
MATMUL = ("pmpp/matmul", {"m": 48, "n": 48, "k": 4096})
FP8 = ("amd/fp8-mm", {"m": 32, "n": 136, "k": 7168})
LONG = [(*MATMUL, fill) for fill in ("published", "normal", "spikes", "cancelling")]
LONG += [(*FP8, fill) for fill in ("published", "wide", "spikes", "cancelling", "scales")]


def operands(name: str, data: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, torch.Tensor]:
    """Both factors in float64, [m, k] and [n, k], with their scales."""
    if name == "pmpp/matmul":
        return data[0].double(), data[1].double().T
    a, b = data[0].float().double(), data[1].float().double()
    columns = torch.arange(b.shape[0]) // 128
    a *= data[2].double().repeat_interleave(128, dim=1)
    b *= data[3].double()[columns].repeat_interleave(128, dim=1)
    return a, b


def partial_sums(a: torch.Tensor, b: torch.Tensor, step: int) -> list[torch.Tensor]:
    return [x @ y.T for x, y in zip(a.split(step, dim=1), b.split(step, dim=1), strict=True)]


def summed(parts: Iterable[torch.Tensor], dtype: torch.dtype = torch.float32) -> torch.Tensor:
    total = torch.zeros((), dtype=torch.float64)
    for part in parts:
        total = (total + part).to(dtype).double()
    return total


def truncated(parts: list[torch.Tensor]) -> torch.Tensor:
    """Each partial sum cut to fp32 towards zero, as a matrix unit that drops what does not fit."""
    total = torch.zeros((), dtype=torch.float64)
    for part in parts:
        exact = total + part
        near = exact.float()
        over = near.double().abs() > exact.abs()
        total = torch.where(over, torch.nextafter(near, torch.zeros_like(near)), near).double()
    return total


def worst(name: str, data: tuple[torch.Tensor, ...], total: torch.Tensor) -> float:
    """Largest error over its allowance, after rounding to the output's dtype; NaN counts as infinite."""
    problem = load(name)
    exact, terms = reference(name).exact(data)
    allowed = problem.tolerance.rtol * exact.abs() + problem.tolerance.term_rtol * terms
    error = (total.to(getattr(torch, problem.output_dtype)).double() - exact).abs()
    ratio = torch.where(error == 0, 0.0, error / allowed)
    return float(torch.nan_to_num(ratio, nan=torch.inf).max())


def room(name: str, data: tuple[torch.Tensor, ...], total: torch.Tensor) -> float:
    """How many times larger the sum's own error could be beside a full rounding of the output."""
    tolerance = load(name).tolerance
    exact, terms = reference(name).exact(data)
    left = tolerance.rtol / 2 * exact.abs() + tolerance.term_rtol * terms
    return float((left / (total - exact).abs().clamp_min(1e-300)).min())


@pytest.mark.parametrize(("name", "params", "fill"), LONG)
def test_honest_fp32_sums_pass_with_room(name: str, params: dict[str, int], fill: str) -> None:
    data = draw(name, params, fill)
    a, b = operands(name, data)
    fine, coarse = partial_sums(a, b, 16), partial_sums(a, b, 128)
    quarter = len(coarse) // 4
    honest = {
        "16 at a time": summed(fine),
        "128 at a time": summed(coarse),
        "backwards": summed(reversed(fine)),
        "k split in four": summed(summed(coarse[i * quarter : (i + 1) * quarter]) for i in range(4)),
        "truncated": truncated(fine),
    }
    for how, total in honest.items():
        assert worst(name, data, total) <= 0.5 + 1e-2, how
        assert room(name, data, total) >= MARGIN, how


@pytest.mark.parametrize(("name", "params", "fill"), LONG)
def test_lost_work_fails(name: str, params: dict[str, int], fill: str) -> None:
    data = draw(name, params, fill)
    a, b = operands(name, data)
    parts, half = partial_sums(a, b, 32), params["k"] // 64
    assert worst(name, data, summed(parts[:half])) > 100
    assert worst(name, data, summed(parts[:half] + parts[half + 1 :])) > 2
    assert worst(name, data, torch.zeros_like(parts[0])) > 100


@pytest.mark.parametrize(("name", "params", "fill"), LONG)
def test_cheaper_sums_fail(name: str, params: dict[str, int], fill: str) -> None:
    data = draw(name, params, fill)
    parts = partial_sums(*operands(name, data), 128)
    assert worst(name, data, summed(parts, torch.float16)) > 1.5
    assert worst(name, data, summed(parts, torch.bfloat16)) > 10
    assert worst(name, data, summed(part.bfloat16().double() for part in parts)) > 1.2


@pytest.mark.parametrize("fill", ["normal", "spikes", "cancelling"])
def test_fp16_partial_sums_fail_where_the_values_are_signed(fill: str) -> None:
    name, params = MATMUL
    data = draw(name, params, fill)
    parts = partial_sums(*operands(name, data), 128)
    assert worst(name, data, summed(part.half().double() for part in parts)) > 1.2


@pytest.mark.parametrize("fill", ["published", "wide", "scales"])
def test_another_blocks_scale_fails(fill: str) -> None:
    name, params = FP8
    data = draw(name, params, fill)
    for side in (2, 3):
        wrong = list(data)
        wrong[side] = data[side].roll(1, dims=1)
        assert worst(name, data, summed(partial_sums(*operands(name, tuple(wrong)), 128))) > 100
        wrong[side] = data[side].abs()
        assert worst(name, data, summed(partial_sums(*operands(name, tuple(wrong)), 128))) > 100


@pytest.mark.parametrize("fill", ["published", "wide", "scales"])
def test_operands_scaled_into_fp16_fail(fill: str) -> None:
    name, params = FP8
    data = draw(name, params, fill)
    a, b = (operand.half().double() for operand in operands(name, data))
    assert worst(name, data, a @ b.T) > 1.2


def test_fp8_output_truncated_to_bfloat16_still_passes() -> None:
    name, params = FP8
    data = draw(name, params)
    total = summed(partial_sums(*operands(name, data), 128)).float()
    cut = (total.view(torch.int32) & -0x10000).view(torch.float32)
    assert worst(name, data, cut.double()) <= 1


@pytest.mark.parametrize("fill", ["published", "spikes", "cancelling", "wide"])
def test_vectoradd_takes_one_step_and_no_narrower_dtype(fill: str) -> None:
    data = draw("pmpp/vectoradd", {"size": 200}, fill)
    right = data[0] + data[1]
    assert worst("pmpp/vectoradd", data, right.double()) <= 0.5
    assert worst("pmpp/vectoradd", data, (data[0].float() + data[1].float()).double()) <= 0.5
    assert worst("pmpp/vectoradd", data, (data[0].bfloat16() + data[1].bfloat16()).double()) > 1
    assert worst("pmpp/vectoradd", data, torch.zeros_like(right).double()) > 100


@pytest.mark.parametrize("name", ["amd/fp8-mm", "pmpp/vectoradd"])
def test_the_boards_answer_passes_our_rule(name: str) -> None:
    for case in load(name).small:
        data = draw(name, dict(case.params), case.fill)
        assert worst(name, data, reference(name).board_expected(data).double()) <= 0.6
