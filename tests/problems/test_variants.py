"""The small problems' rules: every right way passes with room, every wrong one is refused."""

import random
from typing import Any

import numpy as np
import pytest
import torch

from problems import load
from problems.load import _case_module, folder, hidden_cases, work
from sandbox.checker.layout import lay_out
from sandbox.checker.rule import compare
from tests.problems.references import draw, reference
from tests.problems.variants import WAYS, Way

MOST = 0.6
"""Of the allowance, for a right way."""
LEAST = 4.0
"""Times the allowance, for a wrong one."""
each = pytest.mark.parametrize("name", WAYS)


def ratio(name: str, data: tuple[Any, ...], way: Way) -> float:
    problem, (exact, terms) = load(name), reference(name).exact(data)
    out = way(data)
    assert out.shape == exact.shape
    return compare(out.to(getattr(torch, problem.output_dtype)), exact, terms, problem.tolerance).worst_ratio


@pytest.mark.slow
@each
def test_right_ways_pass_with_room(name: str) -> None:
    params, fills, right, _ = WAYS[name]
    assert fills == tuple(_case_module(folder(load(name)) / "cases.py").FILLS)
    for fill in fills:
        data = draw(name, params, fill)
        for how, way in right.items():
            assert ratio(name, data, way) <= MOST, (fill, how)


@each
def test_wrong_ways_are_refused_on_published_values(name: str) -> None:
    params, _, _, wrong = WAYS[name]
    data = draw(name, params)
    passed = {how: ratio(name, data, way) for how, way in wrong.items()}
    assert len(passed) >= 6 and {how for how, found in passed.items() if found < LEAST} == set()


@each
def test_fills_keep_the_layout_the_seed_and_the_inputs(name: str) -> None:
    params, fills, _, _ = WAYS[name]
    module, writable = reference(name), load(name).writable
    for fill in fills:
        data, again = draw(name, params, fill), draw(name, params, fill)
        shapes = module.make_inputs(params, fill, None, "meta")
        assert lay_out(data, writable).tree == lay_out(shapes, writable).tree
        result, terms = module.exact(data)
        module.board_expected(data)
        assert result.shape == terms.shape == module.exact(shapes)[0].shape
        assert torch.isfinite(result).all() and (terms >= 0).all()
        pairs = list(zip(lay_out(data, writable).tensors, lay_out(again, writable).tensors, strict=True))
        inputs = [pair for index, pair in enumerate(pairs) if index not in writable]
        assert all(torch.equal(one, other) for one, other in inputs)


@each
def test_hidden_cases_fit_and_have_work(name: str) -> None:
    problem = load(name)
    module = _case_module(folder(problem) / "cases.py")
    for seed in range(20):
        for size in ("small", "full"):
            cases = hidden_cases(problem, random.Random(seed), size)  # type: ignore[arg-type]
            assert cases == hidden_cases(problem, random.Random(seed), size)  # type: ignore[arg-type]
            assert {case.fill for case in cases} <= set(module.FILLS) and "published" in {case.fill for case in cases}
            assert all(module.fits(case.params) and work(problem, case).bytes > 0 for case in cases)
            assert all(set(case.params) == set(problem.small[0].params) for case in cases)


@each
def test_the_boards_answer_passes_our_rule(name: str) -> None:
    params, _, _, _ = WAYS[name]
    data = draw(name, params)
    theirs = reference(name).board_expected(data)
    assert name == "pmpp/prefixsum" or theirs.dtype == getattr(torch, load(name).output_dtype)
    assert ratio(name, data, lambda _: theirs) <= MOST


def exact(name: str) -> tuple[list[Any], np.ndarray]:
    data = draw(name, WAYS[name][0])
    arrays = [item.numpy() if isinstance(item, torch.Tensor) else item for item in data]
    return arrays, reference(name).exact(data)[0].numpy()


def test_exact_results_by_numpy() -> None:
    (x, _), total = exact("pmpp/vectorsum")
    assert total.shape == () and total == pytest.approx(x.astype(np.float64).sum(), rel=1e-12)
    (image, _), grey = exact("pmpp/grayscale")
    assert np.allclose(grey, image.astype(np.float64) @ [0.2989, 0.5870, 0.1140], rtol=1e-13)
    (values, _), counted = exact("pmpp/histogram")
    assert np.array_equal(counted, np.bincount(values, minlength=256))
    (x, _), scan = exact("pmpp/prefixsum")
    assert np.allclose(scan, np.cumsum(x.astype(np.float64)), rtol=1e-12, atol=1e-10)
    (x, _), ascending = exact("pmpp/sort")
    assert np.array_equal(ascending, np.sort(x))
    (x, _), copy = exact("amd/identity")
    assert np.array_equal(copy, x)


def test_conv2d_exact_by_its_definition() -> None:
    (x, w, _), found = exact("pmpp/conv2d")
    for b, f, i, j in [(0, 0, 0, 0), (1, 15, 7, 7), (1, 3, 2, 5)]:
        patch = x[b, :, i : i + 5, j : j + 5].astype(np.float64)
        assert found[b, f, i, j] == pytest.approx((patch * w[f]).sum(), rel=1e-11)


def normalised(x: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    centred = x - x.mean(-1, keepdims=True)
    found: np.ndarray = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * weight + bias
    return found


def test_trimul_exact_by_its_definition() -> None:
    (x, mask, weights, _), found = exact("bioml/trimul")
    assert mask.dtype == np.int64 and set(mask.flatten().tolist()) == {0, 1}
    w = {name: tensor.numpy().astype(np.float64) for name, tensor in weights.items()}
    z = normalised(x.astype(np.float64), w["norm.weight"], w["norm.bias"])
    gate = {name: 1 / (1 + np.exp(-z @ w[f"{name}_gate.weight"].T)) for name in ("left", "right", "out")}
    left, right = (z @ w[f"{name}_proj.weight"].T * mask[..., None] * gate[name] for name in ("left", "right"))
    for i, j in [(0, 0), (3, 7), (7, 2)]:
        mixed = (left[0, i] * right[0, j]).sum(0)
        out = (normalised(mixed, w["to_out_norm.weight"], w["to_out_norm.bias"]) * gate["out"][0, i, j]) @ w[
            "to_out.weight"
        ].T
        assert np.allclose(found[0, i, j], out, rtol=1e-9, atol=1e-10)


def test_the_mask_is_what_nomask_declares() -> None:
    params = WAYS["bioml/trimul"][0]
    _, mask, *_ = draw("bioml/trimul", params | {"nomask": True})
    assert mask.dtype == torch.float32 and bool((mask == 1).all())
    for case in (*load("bioml/trimul").tests, *load("bioml/trimul").benchmarks):
        assert isinstance(case.params["nomask"], bool)


def test_published_sort_values_keep_their_noise() -> None:
    for seed in (1, 999_999):
        x, _ = draw("pmpp/sort", {"size": 10_000}, seed=seed)
        rows = x.view(100, 100)
        assert float(rows.mean(1).diff().mean()) == pytest.approx(1.0, abs=0.05) and len(rows[0].unique()) > 60
