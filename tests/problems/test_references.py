"""What a reference makes and computes, held against computations that share no code with it."""

import math

import numpy as np
import pytest
import torch

from problems import load
from problems.load import _case_module, folder
from tests.problems.references import PROBLEMS, draw, reference

SMALL = {
    "amd/fp8-mm": {"m": 5, "n": 130, "k": 256},
    "pmpp/matmul": {"m": 3, "n": 8, "k": 40},
    "pmpp/vectoradd": {"size": 9},
}
EVERY_FILL = [(name, fill) for name in PROBLEMS for fill in _case_module(folder(load(name)) / "cases.py").FILLS]


def fnuz(code: int) -> float:
    """e4m3fnuz by its definition: bias 8, subnormals of 2^-10, 0x80 the only NaN."""
    sign, exponent, mantissa = code >> 7, (code >> 3) & 15, code & 7
    if code == 0x80:
        return math.nan
    value = mantissa * 2.0**-10 if exponent == 0 else (8 + mantissa) * 2.0 ** (exponent - 11)
    return -value if sign else value


FNUZ = np.array([fnuz(code) for code in range(256)])


def codes(tensor: torch.Tensor) -> np.ndarray:
    return FNUZ[tensor.contiguous().view(torch.uint8).numpy()]


def layout(data: tuple[torch.Tensor, ...]) -> list[tuple[torch.dtype, tuple[int, ...], tuple[int, ...]]]:
    return [(tensor.dtype, tuple(tensor.shape), tensor.stride()) for tensor in data]


def test_fp8_layouts() -> None:
    data = draw("amd/fp8-mm", {"m": 96, "n": 200, "k": 384})
    assert layout(data) == [
        (torch.float8_e4m3fnuz, (96, 384), (1, 96)),
        (torch.float8_e4m3fnuz, (200, 384), (1, 200)),
        (torch.float32, (96, 3), (1, 96)),
        (torch.float32, (2, 3), (1, 2)),
        (torch.bfloat16, (96, 200), (200, 1)),
    ]
    assert not data[4].any()
    assert (data[2] < 0).any() and (data[3] < 0).any()


def test_pmpp_layouts() -> None:
    half = torch.float16
    assert layout(draw("pmpp/vectoradd", {"size": 7})) == [(half, (7, 7), (7, 1))] * 3
    data = draw("pmpp/matmul", {"m": 5, "n": 8, "k": 16})
    assert layout(data) == [(half, (5, 16), (16, 1)), (half, (16, 8), (8, 1)), (half, (5, 8), (8, 1))]
    a, b, _ = draw("pmpp/matmul", {"m": 300, "n": 8, "k": 256})
    assert 0 <= a.min() < 0.01 and 0.99 < a.max() <= 1 and abs(float(b.mean()) - 0.5) < 0.03


def test_published_values_are_drawn_in_the_boards_order() -> None:
    def normal(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        return torch.randn(shape, generator=g, dtype=dtype)

    g = torch.Generator("cpu").manual_seed(3)
    a, b, a_scale, b_scale, _ = draw("amd/fp8-mm", {"m": 33, "n": 130, "k": 256})
    for tensor, rows in ((a, 33), (b, 130)):
        wanted = normal((256, rows), torch.bfloat16).to(torch.float8_e4m3fnuz).float()
        assert torch.equal(tensor.float(), wanted.T)
    assert torch.equal(a_scale, normal((2, 33), torch.float32).T)
    assert torch.equal(b_scale, normal((2, 2), torch.float32).T)
    g.manual_seed(3)
    first, second, _ = draw("pmpp/vectoradd", {"size": 20})
    assert torch.equal(first, normal((20, 20), torch.float16)) and torch.equal(second, normal((20, 20), torch.float16))


@pytest.mark.parametrize(("name", "fill"), EVERY_FILL)
def test_every_fill_keeps_the_layout_and_needs_no_memory_on_meta(name: str, fill: str) -> None:
    module, params = reference(name), SMALL[name]
    data, shapes = draw(name, params, fill), module.make_inputs(params, fill, None, "meta")
    assert layout(data) == layout(shapes) == layout(draw(name, params))
    assert all(tensor.device.type == "meta" for tensor in shapes)
    assert [tuple(tensor.shape) for tensor in module.exact(shapes)] == [tuple(data[-1].shape)] * 2


@pytest.mark.parametrize(("name", "fill"), EVERY_FILL)
def test_every_fill_has_a_finite_result_and_depends_on_the_seed(name: str, fill: str) -> None:
    params = SMALL[name]
    data, again, other = (draw(name, params, fill, seed) for seed in (3, 3, 4))
    inputs = range(len(data) - 1)
    assert all(torch.equal(data[i].float(), again[i].float()) for i in inputs)
    assert fill == "ones" or any(not torch.equal(data[i].float(), other[i].float()) for i in inputs)
    result, _ = reference(name).exact(data)
    rounded = result.to(data[-1].dtype)
    assert torch.isfinite(rounded).all() and rounded.any()


@pytest.mark.parametrize("fill", ["published", "wide", "cancelling", "scales", "spikes"])
def test_fp8_exact_by_its_definition(fill: str) -> None:
    data = draw("amd/fp8-mm", {"m": 4, "n": 131, "k": 384}, fill)
    a, b = codes(data[0]), codes(data[1])
    a_scale, b_scale = data[2].numpy().astype(np.float64), data[3].numpy().astype(np.float64)
    result, terms = reference("amd/fp8-mm").exact(data)
    for i, j in [(0, 0), (1, 127), (2, 128), (3, 130)]:
        parts = [a[i, k] * a_scale[i, k // 128] * b[j, k] * b_scale[j // 128, k // 128] for k in range(384)]
        magnitude = math.fsum(abs(part) for part in parts)
        assert abs(float(result[i, j]) - math.fsum(parts)) <= 1e-13 * magnitude
        assert float(terms[i, j]) == pytest.approx(magnitude, rel=1e-13)


def test_fp8_codes_are_all_used_by_the_wide_fill() -> None:
    a, b, *_ = draw("amd/fp8-mm", {"m": 128, "n": 128, "k": 256}, "wide")
    used = set(a.contiguous().view(torch.uint8).flatten().tolist())
    assert used == set(range(256)) - {0x80}
    assert float(codes(b).max()) == 240.0 == -float(codes(b).min())


def test_matmul_exact_by_its_definition() -> None:
    data = draw("pmpp/matmul", {"m": 6, "n": 16, "k": 72}, "normal")
    a, b = data[0].numpy().astype(np.float64), data[1].numpy().astype(np.float64)
    result, terms = reference("pmpp/matmul").exact(data)
    for i, j in [(0, 0), (5, 15), (2, 9)]:
        parts = [a[i, k] * b[k, j] for k in range(72)]
        assert float(result[i, j]) == pytest.approx(math.fsum(parts), abs=1e-14)
        assert float(terms[i, j]) == pytest.approx(math.fsum(map(abs, parts)))


@pytest.mark.parametrize("fill", ["published", "wide", "cancelling", "spikes"])
def test_vectoradd_exact_by_its_definition(fill: str) -> None:
    a, b, out = draw("pmpp/vectoradd", {"size": 50}, fill)
    result, terms = reference("pmpp/vectoradd").exact((a, b, out))
    first, second = a.numpy().astype(np.float64), b.numpy().astype(np.float64)
    assert np.array_equal(result.numpy(), first + second)
    assert np.array_equal(terms.numpy(), np.abs(first) + np.abs(second))


def test_vectoradds_wide_fill_reaches_both_ends_of_fp16() -> None:
    a, b, _ = draw("pmpp/vectoradd", {"size": 300}, "wide")
    assert float(a.abs().max()) > 30_000 and torch.isfinite(a + b).all()
    assert ((a != 0) & (a.abs() < 2**-14)).any() and (a < 0).any()


def test_the_boards_matmul_hangs_on_a_library_that_a_cpu_lacks() -> None:
    assert reference("pmpp/matmul").board_expected(draw("pmpp/matmul", SMALL["pmpp/matmul"])) is None


def test_reference_leaves_its_inputs_alone() -> None:
    for name in PROBLEMS:
        data, again = (draw(name, SMALL[name]) for _ in range(2))
        reference(name).exact(data)
        reference(name).board_expected(data)
        assert all(torch.equal(x.float(), y.float()) for x, y in zip(data[:-1], again[:-1], strict=True))
