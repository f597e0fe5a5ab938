"""The MXFP4 product: what is made, what is computed, and which wrong answers are refused."""

import math
import random
from collections.abc import Callable

import pytest
import torch

from problems.formats import E2M1, E8M0, shuffled_scale_offset, shuffled_weight_offset
from problems.fp4.reference import FP4, SCALE, quantised, scaled, unpacked
from tests.problems.fp4 import Data, case_module, draw, drawn, layout, problem, reference, same, truth, worst

MM = "amd/mxfp4-mm"
SMALL = {"m": 5, "n": 48, "k": 192}
LONG = (("m", 24), ("n", 96), ("k", 4096))
FILLS = case_module(MM).FILLS


def test_layouts() -> None:
    assert layout(draw(MM, {"m": 7, "n": 272, "k": 576})) == [
        (torch.bfloat16, (7, 576), (576, 1)),
        (torch.bfloat16, (272, 576), (576, 1)),
        (FP4, (272, 288), (288, 1)),
        (FP4, (272, 288), (288, 1)),
        (SCALE, (512, 24), (24, 1)),
    ]


@pytest.mark.parametrize("fill", FILLS)
def test_every_fill(fill: str) -> None:
    module = reference(MM)
    data, again, other = (draw(MM, SMALL, fill, seed) for seed in (3, 3, 4))
    assert same(data, again) and (fill == "ones" or not same(data, other))
    shapes = module.make_inputs(SMALL, fill, None, "meta")
    assert layout(data) == layout(shapes)
    result, _ = module.exact(data)
    assert [tuple(part.shape) for part in module.exact(shapes)] == [(5, 48)] * 2 == [tuple(result.shape)] * 2
    assert torch.isfinite(result.bfloat16()).all() and result.any() and same(data, again)
    assert same(module.repeated(data), data)


@pytest.mark.parametrize("fill", FILLS)
def test_exact_by_its_definition(fill: str) -> None:
    """From the shuffled weights and scales, so that a wrong order would show."""
    data = draw(MM, SMALL, fill)
    result, terms = reference(MM).exact(data)
    weights, scales = (part.view(torch.uint8).flatten().tolist() for part in data[3:])
    codes, a_scales = quantised(data[0])
    for i, j in [(0, 0), (4, 47), (2, 17)]:
        parts = []
        for k in range(192):
            byte = weights[shuffled_weight_offset(j, k // 2, 96)]
            scale = E8M0[scales[shuffled_scale_offset(j, k // 32, 6)]]
            a = E2M1[int(codes.view(torch.uint8)[i, k // 2]) >> 4 * (k % 2) & 15] * float(a_scales[i, k // 32])
            parts.append(a * E2M1[byte >> 4 * (k % 2) & 15] * scale)
        assert float(result[i, j]) == pytest.approx(math.fsum(parts), rel=1e-12, abs=1e-12)
        assert float(terms[i, j]) == pytest.approx(math.fsum(map(abs, parts)), rel=1e-12)


def test_repeated_follows_b() -> None:
    data = list(draw(MM, SMALL))
    data[1] = data[1].clone()
    data[1][0, 0] = 100.0
    remade = reference(MM).repeated(tuple(data))
    assert not same(remade[2:], tuple(data[2:])) and same(remade[:2], tuple(data[:2]))
    assert all(not same((remade[place],), (data[place],)) for place in reference(MM).REPEATED)


def values(codes: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return scaled(unpacked(codes), scale)


def operands(data: Data) -> tuple[torch.Tensor, torch.Tensor]:
    """Both factors in float64, [m, k] and [n, k]."""
    return values(*quantised(data[0])), values(data[2], quantised(data[1])[1])


def summed(a: torch.Tensor, b: torch.Tensor, step: int, dtype: torch.dtype) -> torch.Tensor:
    total = torch.zeros((), dtype=dtype)
    for left, right in zip(a.split(step, -1), b.split(step, -1), strict=True):
        total = (total.double() + left @ right.T).to(dtype)
    return total.double()


def nibbles_swapped(part: torch.Tensor) -> torch.Tensor:
    codes = part.view(torch.uint8)
    return ((codes >> 4) | (codes << 4)).view(FP4)


def times(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a @ b.T


def read_as_plain(data: Data) -> torch.Tensor:
    """b by its shuffled scales as if they lay row by row."""
    rows, columns = data[1].shape[0], data[1].shape[1] // 32
    return values(data[2], data[4].view(torch.uint8)[:rows, :columns].contiguous().view(SCALE))


def truncating(x: torch.Tensor) -> torch.Tensor:
    """A quantiser whose scale is the floor of the largest magnitude's exponent, as OCP's text has it."""
    blocks = x.double().unflatten(-1, (-1, 32))
    power = torch.frexp(blocks.abs().amax(-1))[1] - 1
    steps = torch.tensor(E2M1[:8], dtype=torch.float64)
    ratio = (blocks / torch.exp2(power.double() - 2).unsqueeze(-1)).abs()
    nearest = (ratio.unsqueeze(-1) - steps).abs().argmin(-1)
    return (steps[nearest] * blocks.sign() * torch.exp2(power.double() - 2).unsqueeze(-1)).flatten(-2)


WRONG: dict[str, Callable[[Data], torch.Tensor]] = {
    "zeros": lambda data: torch.zeros((24, 96)),
    "half of k": lambda data: times(*(x[:, :2048] for x in operands(data))),
    "last 32 of k lost": lambda data: times(*(x[:, :-32] for x in operands(data))),
    "a not quantised": lambda data: times(data[0].double(), operands(data)[1]),
    "b not quantised": lambda data: times(operands(data)[0], data[1].double()),
    "nibbles of b swapped": lambda data: times(
        operands(data)[0], values(nibbles_swapped(data[2]), quantised(data[1])[1])
    ),
    "weights left shuffled": lambda data: times(operands(data)[0], values(data[3], quantised(data[1])[1])),
    "scales left shuffled": lambda data: times(operands(data)[0], read_as_plain(data)),
    "next block's scale": lambda data: times(
        operands(data)[0], values(data[2], quantised(data[1])[1].view(torch.uint8).roll(1, 1).view(SCALE))
    ),
    "scale one step low": lambda data: times(*operands(data)) / 2,
    "scale's exponent cut, not rounded": lambda data: times(truncating(data[0]), operands(data)[1]),
    "fp16 accumulation per 128": lambda data: summed(*operands(data), 128, torch.float16),
    "bf16 accumulation per 128": lambda data: summed(*operands(data), 128, torch.bfloat16),
    "NaN tail": lambda data: torch.cat((times(*operands(data))[:-1], torch.full((1, 96), torch.nan).double())),
}


@pytest.mark.parametrize("how", WRONG)
def test_wrong_answers_are_refused(how: str) -> None:
    for fill in ("published", "wide"):
        data = drawn(MM, LONG, fill)
        assert worst(MM, data, WRONG[how](data)) > 1.2, fill


@pytest.mark.parametrize("fill", FILLS)
def test_honest_sums_pass_with_room(fill: str) -> None:
    data = drawn(MM, LONG, fill)
    exact, terms = truth(MM, data)
    for step in (32, 128):
        total = summed(*operands(data), step, torch.float32)
        assert worst(MM, data, total) <= 0.501
        assert bool((4 * (total - exact).abs() <= 2**-8 * exact.abs() + 1e-5 * terms).all())
    assert worst(MM, data, reference(MM).board_expected(data)) <= 0.501


def test_cases() -> None:
    assert (len(problem(MM).tests), len(problem(MM).benchmarks)) == (4, 6)
    assert {baseline.kind for baseline in problem(MM).baselines} == {"vendor", "human"}
    for seed in range(50):
        for size in ("small", "full"):
            for case in case_module(MM).hidden(random.Random(seed), size):
                assert case_module(MM).fits(case.params) and case.fill in reference(MM)._FILLS
