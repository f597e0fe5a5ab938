"""The NVFP4 problems: what is made, what is computed, and which wrong answers are refused."""

import math
import random
from collections.abc import Callable
from typing import Any

import pytest
import torch

from problems.formats import E2M1, E4M3FN
from problems.fp4.reference import FP4, NV_SCALE, nv_values
from tests.problems.fp4 import Data, case_module, draw, drawn, layout, problem, reference, same, truth, worst

GEMM, GEMV, DUAL = "nvidia/nvfp4-gemm", "nvidia/nvfp4-gemv", "nvidia/nvfp4-dual-gemm"
SIZES: dict[str, dict[str, Any]] = {GEMM: {"m": 128, "n": 128, "k": 256, "l": 2}, GEMV: {"m": 128, "k": 256, "l": 2}}
NAMES = tuple(SIZES)
EVERY_FILL = [(name, fill) for name in NAMES for fill in case_module(name).FILLS]


def test_gemm_layouts() -> None:
    m, n, k, batch = 256, 384, 512, 2
    data = draw(GEMM, {"m": m, "n": n, "k": k, "l": batch})
    half = torch.float16
    assert layout(data) == [
        (FP4, (m, k // 2, batch), (k // 2, 1, m * k // 2)),
        (FP4, (n, k // 2, batch), (k // 2, 1, n * k // 2)),
        (NV_SCALE, (m, k // 16, batch), (k // 16, 1, m * k // 16)),
        (NV_SCALE, (n, k // 16, batch), (k // 16, 1, n * k // 16)),
        (NV_SCALE, (32, 4, 2, 4, 8, batch), (16, 4, 4096, 1, 512, 8192)),
        (NV_SCALE, (32, 4, 3, 4, 8, batch), (16, 4, 4096, 1, 512, 12288)),
        (half, (m, n, batch), (n, 1, m * n)),
    ]
    assert set(data[2].float().unique().tolist()) == {0, 1, 2, 3}
    assert len(data[0].view(torch.uint8).unique()) == 256


@pytest.mark.parametrize(("name", "fill"), EVERY_FILL)
def test_every_fill(name: str, fill: str) -> None:
    module, params = reference(name), SIZES[name]
    data, again, other = (draw(name, params, fill, seed) for seed in (3, 3, 4))
    assert same(data[:-1], again[:-1]) and (fill == "ones" or not same(data[:-1], other[:-1]))
    shapes = module.make_inputs(params, fill, None, "meta")
    assert layout(data) == layout(shapes) == layout(draw(name, params))
    result, terms = module.exact(data)
    assert [tuple(part.shape) for part in module.exact(shapes)] == [tuple(result.shape)] * 2 == [tuple(terms.shape)] * 2
    assert torch.isfinite(result.half()).all() and result.any()
    assert same(data, again if fill == "ones" else data) and same(data[:-1], again[:-1])


@pytest.mark.parametrize("name", NAMES)
def test_repeated_inputs_follow_the_others(name: str) -> None:
    module, data = reference(name), list(draw(name, SIZES[name]))
    assert same(module.repeated(tuple(data)), tuple(data))
    for place in module.REPEATED:
        broken = [*data]
        broken[place] = torch.zeros_like(data[place].view(torch.uint8)).view(data[place].dtype)
        remade = module.repeated(tuple(broken))
        assert same(remade[:place], tuple(data[:place]))
    changed = [*data]
    first = next(i for i, part in enumerate(data) if part.dtype == NV_SCALE)
    changed[first] = data[first].clone()
    changed[first].view(torch.uint8)[5, 3, 0] ^= 0x08
    remade = module.repeated(tuple(changed))
    twin = module.REPEATED[0]
    assert remade[twin].view(torch.uint8)[5, 0, 0, 3, 0, 0] == changed[first].view(torch.uint8)[5, 3, 0]
    differing = remade[twin].view(torch.uint8) != data[twin].view(torch.uint8)
    assert int(differing.sum()) == 1


@pytest.mark.slow
@pytest.mark.parametrize("fill", case_module(GEMM).FILLS)
def test_gemm_exact_by_its_definition(fill: str) -> None:
    """From the permuted scales, so that a wrong permutation would show."""
    data = draw(GEMM, SIZES[GEMM], fill)
    a, b = (part.view(torch.uint8).tolist() for part in data[:2])
    sfa, sfb = (part.view(torch.uint8) for part in data[4:6])
    result, terms = reference(GEMM).exact(data)
    for i, j, batch in [(0, 0, 0), (127, 99, 1)]:
        parts = []
        for k in range(256):
            column, shift = k // 16, 4 * (k % 2)
            value = E2M1[a[i][k // 2][batch] >> shift & 15] * E2M1[b[j][k // 2][batch] >> shift & 15]
            at = [(row % 32, row // 32, 0, column % 4, column // 4, batch) for row in (i, j)]
            parts.append(value * E4M3FN[int(sfa[at[0]])] * E4M3FN[int(sfb[at[1]])])
        assert float(result[i, j, batch]) == pytest.approx(math.fsum(parts), rel=1e-12, abs=1e-12)
        assert float(terms[i, j, batch]) == pytest.approx(math.fsum(map(abs, parts)), rel=1e-12)


def operands(data: Data) -> tuple[torch.Tensor, torch.Tensor]:
    """Both factors in float64, [l, rows, k]."""
    return nv_values(data[0], data[2]), nv_values(data[1], data[3])


def times(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (a @ b.mT).permute(1, 2, 0)


def summed(a: torch.Tensor, b: torch.Tensor, step: int, dtype: torch.dtype, backwards: bool = False) -> torch.Tensor:
    """Partial sums of `step` elements of k, exact, added one by one in `dtype`."""
    parts = list(zip(a.split(step, -1), b.split(step, -1), strict=True))
    total = torch.zeros((), dtype=dtype)
    for left, right in reversed(parts) if backwards else parts:
        total = (total.double() + left @ right.mT).to(dtype)
    return total.double().permute(1, 2, 0)


LONG = (("m", 128), ("n", 128), ("k", 1024), ("l", 1))


@pytest.mark.parametrize("fill", case_module(GEMM).FILLS)
def test_honest_gemm_sums_pass_with_room(fill: str) -> None:
    data = drawn(GEMM, LONG, fill)
    a, b = operands(data)
    for step, backwards in ((16, False), (64, True)):
        assert worst(GEMM, data, summed(a, b, step, torch.float32, backwards)) <= 0.501
    assert worst(GEMM, data, reference(GEMM).board_expected(data)) <= 0.5
    exact, terms = truth(GEMM, data)
    error = (summed(a, b, 16, torch.float32) - exact).abs()
    assert float((4 * error / (terms * 1e-5 + exact.abs() * 2**-11)).max()) <= 1


def test_the_boards_values_sum_exactly_in_fp32() -> None:
    data = drawn(GEMM, LONG, "published")
    exact, _ = truth(GEMM, data)
    assert torch.equal(summed(*operands(data), 16, torch.float32), exact)


def swapped(part: torch.Tensor) -> torch.Tensor:
    codes = part.view(torch.uint8)
    return ((codes >> 4) | (codes << 4)).view(FP4)


def unpermuted(data: Data) -> Data:
    """The scales as they lie in the permuted memory, read as if rows of k/16."""
    raw = [
        part.view(torch.uint8).permute(5, 2, 4, 0, 1, 3).contiguous().view(-1).view(batch, rows, -1).permute(1, 2, 0)
        for part, rows, batch in (
            (data[4], data[2].shape[0], data[2].shape[2]),
            (data[5], data[3].shape[0], data[3].shape[2]),
        )
    ]
    return (*data[:2], *(part.view(NV_SCALE) for part in raw), *data[4:])


def with_part(data: Data, place: int, value: torch.Tensor) -> Data:
    return (*data[:place], value, *data[place + 1 :])


def signless(part: torch.Tensor) -> torch.Tensor:
    return (part.view(torch.uint8) & 0x77).view(FP4)


def nan_tail(answer: torch.Tensor) -> torch.Tensor:
    answer = answer.clone()
    answer[-1, -1] = torch.nan
    return answer


def of(change: Callable[[Data], Data]) -> Callable[[Data], torch.Tensor]:
    return lambda data: times(*operands(change(data)))


WRONG_GEMM: dict[str, Callable[[Data], torch.Tensor]] = {
    "zeros": lambda data: torch.zeros(data[6].shape),
    "noise left in c": lambda data: data[6],
    "half of k": lambda data: times(*(x[..., : x.shape[-1] // 2] for x in operands(data))),
    "last 64 of k lost": lambda data: times(*(x[..., :-64] for x in operands(data))),
    "NaN tail": lambda data: nan_tail(times(*operands(data))),
    "nibbles of a swapped": of(lambda data: with_part(data, 0, swapped(data[0]))),
    "nibbles of b swapped": of(lambda data: with_part(data, 1, swapped(data[1]))),
    "next block's scale": of(lambda data: with_part(data, 2, data[2].view(torch.uint8).roll(1, 1).view(NV_SCALE))),
    "next row's scale": of(lambda data: with_part(data, 3, data[3].view(torch.uint8).roll(1, 0).view(NV_SCALE))),
    "scales not permuted back": of(unpermuted),
    "scales of b left out": of(lambda data: with_part(data, 3, torch.ones(data[3].shape).to(NV_SCALE))),
    "scale per 32 elements": of(
        lambda data: with_part(data, 2, data[2].view(torch.uint8)[:, ::2].repeat_interleave(2, 1).view(NV_SCALE))
    ),
    "signs lost": of(lambda data: with_part(data, 0, signless(data[0]))),
    "codes of b as numbers": lambda data: times(
        operands(data)[0],
        torch.stack((data[1].view(torch.uint8) & 15, data[1].view(torch.uint8) >> 4), 2)
        .flatten(1, 2)
        .permute(2, 0, 1)
        .double(),
    ),
    "rows one tile off": lambda data: times(*operands(data)).roll(64, 0),
    "fp16 accumulation per 64": lambda data: summed(*operands(data), 64, torch.float16),
    "bf16 result": lambda data: times(*operands(data)).bfloat16(),
}


@pytest.mark.parametrize("how", WRONG_GEMM)
def test_wrong_gemms_are_refused(how: str) -> None:
    for fill in ("published", "wide"):
        data = drawn(GEMM, LONG, fill)
        assert worst(GEMM, data, WRONG_GEMM[how](data)) > 1.5, fill


LONG_GEMV = (("m", 128), ("k", 2048), ("l", 2))


def vectors(data: Data) -> tuple[torch.Tensor, torch.Tensor]:
    """Both factors in float64, [l, m, k] and [l, 1, k]."""
    return nv_values(data[0], data[2]), nv_values(data[1], data[3], rows=1)


def by(change: Callable[[Data], Data]) -> Callable[[Data], torch.Tensor]:
    return lambda data: times(*vectors(change(data)))


WRONG_GEMV: dict[str, Callable[[Data], torch.Tensor]] = {
    "zeros": lambda data: torch.zeros(data[6].shape),
    "half of k": lambda data: times(*(x[..., : x.shape[-1] // 2] for x in vectors(data))),
    "last 64 of k lost": lambda data: times(*(x[..., :-64] for x in vectors(data))),
    "NaN tail": lambda data: nan_tail(times(*vectors(data))),
    "nibbles of a swapped": by(lambda data: with_part(data, 0, swapped(data[0]))),
    "low nibbles alone": lambda data: times(*(x[..., ::2] for x in vectors(data))),
    "row 1 of b": lambda data: times(vectors(data)[0], nv_values(data[1], data[3], rows=2)[:, 1:]),
    "all rows of b": lambda data: times(vectors(data)[0], nv_values(data[1], data[3]).sum(1, keepdim=True)),
    "next block's scale": by(lambda data: with_part(data, 2, data[2].view(torch.uint8).roll(1, 1).view(NV_SCALE))),
    "scales not permuted back": by(unpermuted),
    "scales of b left out": by(lambda data: with_part(data, 3, torch.ones(data[3].shape).to(NV_SCALE))),
    "batches swapped": by(lambda data: with_part(data, 0, data[0].view(torch.uint8).flip(2).view(FP4))),
    "rows one tile off": lambda data: times(*vectors(data)).roll(64, 0),
    "fp16 accumulation per 64": lambda data: summed(*vectors(data), 64, torch.float16),
}


@pytest.mark.parametrize("how", WRONG_GEMV)
def test_wrong_gemvs_are_refused(how: str) -> None:
    data = drawn(GEMV, LONG_GEMV, "every")
    assert worst(GEMV, data, WRONG_GEMV[how](data)) > 1.2


def test_the_boards_vectors_do_not_tell_a_kernel_that_skips_odd_k() -> None:
    data = drawn(GEMV, LONG_GEMV, "published")
    assert worst(GEMV, data, WRONG_GEMV["low nibbles alone"](data)) <= 0.5
    assert int(data[0].view(torch.uint8).max()) == 3


@pytest.mark.parametrize("fill", case_module(GEMV).FILLS)
def test_honest_gemv_sums_pass_with_room(fill: str) -> None:
    data = drawn(GEMV, LONG_GEMV, fill)
    assert worst(GEMV, data, summed(*vectors(data), 64, torch.float32)) <= 0.501
    assert worst(GEMV, data, reference(GEMV).board_expected(data)) <= 0.5


def factors(data: Data) -> list[torch.Tensor]:
    """a, b1 and b2 in float64, [l, rows, k]."""
    return [nv_values(data[i], data[i + 3]) for i in range(3)]


def gated(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.silu(gate) * up


def dual(a: torch.Tensor, b1: torch.Tensor, b2: torch.Tensor) -> torch.Tensor:
    return gated(times(a, b1), times(a, b2))


def on(change: Callable[[Data], Data]) -> Callable[[Data], torch.Tensor]:
    return lambda data: dual(*factors(change(data)))


def without_silu(data: Data) -> torch.Tensor:
    a, b1, b2 = factors(data)
    return times(a, b1) * times(a, b2)


def gates_swapped(data: Data) -> torch.Tensor:
    a, b1, b2 = factors(data)
    return dual(a, b2, b1)


def products_in(data: Data, dtype: torch.dtype) -> torch.Tensor:
    a, b1, b2 = factors(data)
    return gated(times(a, b1).to(dtype).double(), times(a, b2).to(dtype).double())


WRONG_DUAL: dict[str, Callable[[Data], torch.Tensor]] = {
    "zeros": lambda data: torch.zeros(data[9].shape),
    "half of k": lambda data: dual(*(x[..., : x.shape[-1] // 2] for x in factors(data))),
    "last 64 of k lost": lambda data: dual(*(x[..., :-64] for x in factors(data))),
    "NaN tail": lambda data: nan_tail(dual(*factors(data))),
    "no silu": without_silu,
    "gate and up swapped": gates_swapped,
    "gate alone": lambda data: gated(times(*factors(data)[:2]), torch.ones(())),
    "b1 for b2": on(lambda data: with_part(with_part(data, 2, data[1]), 5, data[4])),
    "scales of b1 for b2": on(lambda data: with_part(data, 5, data[4])),
    "nibbles of a swapped": on(lambda data: with_part(data, 0, swapped(data[0]))),
    "next block's scale": on(lambda data: with_part(data, 4, data[4].view(torch.uint8).roll(1, 1).view(NV_SCALE))),
    "products in bfloat16": lambda data: products_in(data, torch.bfloat16),
    "products in float16": lambda data: products_in(data, torch.float16),
}


@pytest.mark.parametrize("how", WRONG_DUAL)
def test_wrong_duals_are_refused(how: str) -> None:
    data = drawn(DUAL, LONG, "published")
    assert worst(DUAL, data, WRONG_DUAL[how](data)) > 1.2


@pytest.mark.parametrize("fill", case_module(DUAL).FILLS)
def test_honest_duals_pass_with_room(fill: str) -> None:
    data = drawn(DUAL, LONG, fill)
    a, b1, b2 = factors(data)
    gate, up = (summed(a, b, 64, torch.float32).float() for b in (b1, b2))
    assert worst(DUAL, data, gated(gate, up)) <= 0.51
    assert worst(DUAL, data, gate / (1 + torch.exp(-gate)) * up) <= 0.51
    assert worst(DUAL, data, reference(DUAL).board_expected(data)) <= 0.51


@pytest.mark.parametrize(("name", "cases"), [(GEMM, (10, 3)), (GEMV, (9, 3)), (DUAL, (9, 4))])
def test_cases(name: str, cases: tuple[int, int]) -> None:
    here = problem(name)
    assert (len(here.tests), len(here.benchmarks)) == cases
    assert all(baseline.source for baseline in here.baselines)
    for seed in range(50):
        for size in ("small", "full"):
            for case in case_module(name).hidden(random.Random(seed), size):
                assert case_module(name).fits(case.params) and case.fill in reference(name)._FILLS
