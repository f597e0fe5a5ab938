"""The group of NVFP4 products: what is made, what is computed, and which wrong answers are refused."""

import importlib.util
import math
import random
from functools import cache
from types import ModuleType
from typing import Any

import pytest
import torch

from problems.formats import E2M1, E4M3FN
from problems.fp4.reference import FP4, NV_SCALE, nv_values
from problems.load import ROOT, work
from sandbox.checker.rule import compare
from tests.problems.fp4 import Data, layout, problem, same

SIZES = {"m": (40, 132), "n": (128, 256), "k": (512, 256), "g": 2}
GROUP = "nvidia/nvfp4-group-gemm"
RULE = problem(GROUP).tolerance


@cache
def module(file: str) -> ModuleType:
    path = ROOT / "nvidia/nvfp4-group-gemm" / file
    spec = importlib.util.spec_from_file_location(f"group_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


@cache
def draw(fill: str, seed: int = 3) -> Data:
    made: Data = module("reference.py").make_inputs(SIZES, fill, torch.Generator("cpu").manual_seed(seed), "cpu")
    return made


def worst(answers: list[torch.Tensor], data: Data) -> float:
    pairs = zip(answers, module("reference.py").exact(data), strict=True)
    return max(compare(answer.half(), *truth, RULE).worst_ratio for answer, truth in pairs)


def products(data: Data) -> list[torch.Tensor]:
    return [
        (nv_values(a, sfa) @ nv_values(b, sfb).mT).permute(1, 2, 0)
        for (a, b, _), (sfa, sfb) in zip(data[0], data[1], strict=True)
    ]


@pytest.mark.parametrize("fill", ["published", "wide", "ones"])
def test_layouts_and_fills(fill: str) -> None:
    data = draw(fill)
    assert layout(data)[:6] == [
        (FP4, (40, 256, 1), (256, 1, 10240)),
        (FP4, (128, 256, 1), (256, 1, 32768)),
        (torch.float16, (40, 128, 1), (128, 1, 5120)),
        (FP4, (132, 128, 1), (128, 1, 16896)),
        (FP4, (256, 128, 1), (128, 1, 32768)),
        (torch.float16, (132, 256, 1), (256, 1, 33792)),
    ]
    assert data[2][1][0].shape == (32, 4, 2, 4, 4, 1) and data[2][1][0].dtype == NV_SCALE
    assert data[3] == [(40, 128, 512, 1), (132, 256, 256, 1)]
    assert layout(module("reference.py").make_inputs(SIZES, fill, None, "meta")) == layout(data)
    assert same(module("reference.py").repeated(data), data)
    assert worst(products(data), data) <= 0.5
    assert worst(module("reference.py").board_expected(data), data) <= 0.5


@pytest.mark.parametrize("fill", ["published", "wide"])
def test_exact_by_its_definition(fill: str) -> None:
    data = draw(fill)
    results = module("reference.py").exact(data)
    for group, i, j in [(0, 39, 127), (1, 131, 2), (1, 5, 255)]:
        (a, b, _), permuted = data[0][group], data[2][group]
        parts = []
        for k in range(data[3][group][2]):
            at = [(row % 32, row % 128 // 32, row // 128, k // 16 % 4, k // 64, 0) for row in (i, j)]
            scale = [E4M3FN[int(part.view(torch.uint8)[place])] for part, place in zip(permuted, at, strict=True)]
            codes = [int(part.view(torch.uint8)[row, k // 2, 0]) >> 4 * (k % 2) & 15 for part, row in ((a, i), (b, j))]
            parts.append(E2M1[codes[0]] * E2M1[codes[1]] * scale[0] * scale[1])
        assert float(results[group][0][i, j, 0]) == pytest.approx(math.fsum(parts), rel=1e-12, abs=1e-12)
        assert float(results[group][1][i, j, 0]) == pytest.approx(math.fsum(map(abs, parts)), rel=1e-12)


def swapped(part: Any) -> Any:
    codes = part.view(torch.uint8)
    return ((codes >> 4) | (codes << 4)).view(FP4)


def test_wrong_answers_are_refused() -> None:
    data = draw("published")
    right = products(data)
    assert worst([torch.zeros_like(part) for part in right], data) > 100
    assert worst([right[0], torch.zeros_like(right[1])], data) > 100
    assert worst([part.roll(1, 0) for part in right], data) > 100
    ragged = right[1].clone()
    ragged[128:] = torch.nan
    assert worst([right[0], ragged], data) == math.inf
    mixed = ([(swapped(a), b, c) for a, b, c in data[0]], *data[1:])
    assert worst(products(mixed), data) > 100
    rolled = [(sfa, sfb.view(torch.uint8).roll(1, 1).view(NV_SCALE)) for sfa, sfb in data[1]]
    assert worst(products((data[0], rolled, *data[2:])), data) > 100
    assert worst([part.bfloat16() for part in right], data) > 1.2


def test_hidden_cases_are_ragged_and_fit() -> None:
    cases = module("cases.py")
    for seed in range(50):
        for size in ("small", "full"):
            drawn = cases.hidden(random.Random(seed), size)
            assert [case.fill for case in drawn] == ["published", "wide", "ones"]
            assert all(cases.fits(case.params) for case in drawn)
    assert not cases.fits(SIZES | {"m": (40,)}) and not cases.fits(SIZES | {"k": (512, 100)})


def test_cases_and_their_least_work() -> None:
    here = problem(GROUP)
    assert (len(here.tests), len(here.benchmarks), len(here.baselines)) == (10, 4, 11)
    assert here.tests[0].spec() == "m: [96, 128]; n: [128, 256]; k: [256, 512]; g: 2"
    least = work(here, here.tests[0])
    assert least.flops == {"fp4": 2 * (96 * 128 * 256 + 128 * 256 * 512)}
    assert least.bytes == (96 + 128) * 144 + 2 * 96 * 128 + (128 + 256) * 288 + 2 * 128 * 256
