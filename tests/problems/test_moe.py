"""The mixture of experts: what is made, what is computed, whom a doubtful token lets pass, and who is refused."""

import random
from functools import cache

import numpy as np
import pytest
import torch

from evals.players import reference as library_call
from problems import load
from problems.load import _case_module, folder, work
from sandbox.candidate import Candidate
from sandbox.checker.rule import compare
from sandbox.cpu import CpuRunner
from sandbox.runner import Mode
from sandbox.verdict import Passed, WrongAnswer
from tests.problems.fp4 import layout, same
from tests.problems.mixtures import RIGHT, WRONG, Data, Mixture, Way
from tests.problems.references import draw, reference

MOE = "amd/moe"
SMALL = {
    "dhidden": 64,
    "dexpert": 64,
    "nroutedexperts": 5,
    "nsharedexperts": 2,
    "nexpertspertoken": 2,
    "bs": 2,
    "seqlen": 3,
}
LARGE = {
    "dhidden": 512,
    "dexpert": 256,
    "nroutedexperts": 16,
    "nsharedexperts": 1,
    "nexpertspertoken": 4,
    "bs": 1,
    "seqlen": 48,
}
FILLS = _case_module(folder(load(MOE)) / "cases.py").FILLS


@cache
def judged(fill: str) -> tuple[Data, tuple[torch.Tensor, torch.Tensor]]:
    """A case of size LARGE, and what its answers are held against."""
    data = draw(MOE, LARGE, fill)
    return data, reference(MOE).exact(data)


def ratio(data: Data, way: Way, truth: tuple[torch.Tensor, torch.Tensor] | None = None) -> float:
    exact, terms = truth or reference(MOE).exact(data)
    return compare(way(data).half(), exact, terms, load(MOE).tolerance).worst_ratio


def test_layouts_and_the_boards_order_of_draws() -> None:
    x, weights, config = draw(MOE, SMALL)
    g = torch.Generator("cpu").manual_seed(3)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=g, dtype=torch.float16)

    assert torch.equal(x, normal(2, 3, 64))
    shapes = {"router.weight": (5, 64)}
    for i in range(5):
        shapes |= {
            f"experts.{i}.0.weight": (64, 64),
            f"experts.{i}.1.weight": (64, 64),
            f"experts.{i}.2.weight": (64, 64),
        }
    shapes |= {f"shared_experts.{part}.weight": shape for part, shape in enumerate([(64, 128), (64, 128), (128, 64)])}
    assert list(weights) == list(shapes)
    for name, shape in shapes.items():
        assert torch.equal(weights[name], normal(*shape) / (shape[1] ** 0.5 if name != "router.weight" else 8.0))
    assert config == {
        "d_hidden": 64,
        "d_expert": 64,
        "n_routed_experts": 5,
        "n_shared_experts": 2,
        "n_experts_per_token": 2,
        "batch_size": 2,
        "seq_len": 3,
    }


@pytest.mark.slow
@pytest.mark.parametrize("fill", FILLS)
def test_every_fill(fill: str) -> None:
    module = reference(MOE)
    data, again, other = (draw(MOE, SMALL, fill, seed) for seed in (3, 3, 4))
    assert same(data, again) and not same(data, other)
    shapes = module.make_inputs(SMALL, fill, None, "meta")
    assert layout(data) == layout(shapes) and data[2] == shapes[2]
    result, terms = module.exact(data)
    assert [tuple(part.shape) for part in module.exact(shapes)] == [(2, 3, 64)] * 2 == [tuple(result.shape)] * 2
    assert torch.isfinite(result.half()).all() and result.any() and (terms > 0).all()
    module.board_expected(data)
    assert same(data, again)


def test_exact_by_its_definition() -> None:
    x, weights, _ = data = draw(MOE, SMALL)
    found = reference(MOE).exact(data)[0].numpy().reshape(6, 64)
    w = {name: tensor.numpy().astype(np.float64) for name, tensor in weights.items()}

    def expert(token: np.ndarray, name: str) -> np.ndarray:
        gate, up = token @ w[f"{name}.0.weight"], token @ w[f"{name}.1.weight"]
        answer: np.ndarray = (gate / (1 + np.exp(-gate)) * up) @ w[f"{name}.2.weight"]
        return answer

    for index, token in enumerate(x.numpy().astype(np.float64).reshape(6, 64)):
        share = np.exp(w["router.weight"] @ token)
        share /= share.sum()
        best = np.argsort(share)[-2:]
        wanted = expert(token, "shared_experts") + sum(share[e] * expert(token, f"experts.{e}") for e in best)
        assert np.allclose(found[index], wanted, rtol=1e-9, atol=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize("fill", FILLS)
def test_right_ways_pass_with_room(fill: str) -> None:
    data, truth = judged(fill)
    assert ratio(data, reference(MOE).board_expected, truth) <= 0.4
    for how, way in RIGHT.items():
        assert ratio(data, way, truth) <= (0.95 if "bf16" in how else 0.4), how


@pytest.mark.slow
@pytest.mark.parametrize("how", WRONG)
def test_wrong_ways_are_refused(how: str) -> None:
    for fill in ("published", "skewed"):
        data, truth = judged(fill)
        assert ratio(data, WRONG[how], truth) > (1.0 if how == "bf16 between steps" else 4), fill


def level(data: Data, first: int, second: int, apart: float = 0.0) -> Data:
    """`data` with two experts whose logits are level for every token, or `apart` from one another."""
    x, weights, config = data
    router = weights["router.weight"].clone()
    router[second] = router[first]
    router[second, 0] += apart
    x = x.clone()
    x[..., 0] = 1.0
    return x, weights | {"router.weight": router}, config


def other_way(first: int, second: int) -> Way:
    """Takes `second` wherever it would take `first` and not `second`, for the same probability."""

    class Swapped(Mixture):
        def routed(self, *arguments: object) -> tuple[torch.Tensor, ...]:
            share, chosen = super().routed(*arguments)  # type: ignore[arg-type]
            alone = ~(chosen == second).any(-1, keepdim=True)
            return share, torch.where((chosen == first) & alone, second, chosen)

    return Swapped()


def test_a_doubtful_token_may_go_either_way_and_no_further() -> None:
    params = SMALL | {"nroutedexperts": 6, "seqlen": 20}
    for apart in (0.0, 2.0**-10):
        data = level(draw(MOE, params), 1, 4, apart)
        module, tokens = reference(MOE), data[0].reshape(-1, 64).double()
        _, chosen, doubtful = module._routed(tokens, data[1]["router.weight"], 2)
        between = chosen[:, 1] != chosen[:, 4]
        assert between.any() and not between.all()
        assert bool((doubtful[between][:, [1, 4]]).all())
        for way in (Mixture(), other_way(1, 4), other_way(4, 1)):
            assert ratio(data, way) <= 1
        assert ratio(data, Mixture(first=1)) > 4 and ratio(data, other_way(1, 5)) > 4
    # Far apart, nobody may choose the other one.
    data = level(draw(MOE, params), 1, 4, 0.05)
    assert ratio(data, Mixture()) <= 0.4 and ratio(data, other_way(4, 1)) > 1


def test_few_published_tokens_are_doubtful_and_none_where_all_experts_are_taken() -> None:
    g = torch.Generator("cpu").manual_seed(5)
    tokens = torch.randn((2000, 128), generator=g, dtype=torch.float64)
    router = torch.randn((32, 128), generator=g, dtype=torch.float64) / 128**0.5
    _, chosen, doubtful = reference(MOE)._routed(tokens, router, 4)
    assert bool((chosen.sum(1) == 4).all()) and 0.005 < float(doubtful.any(1).double().mean()) < 0.06
    assert not reference(MOE)._routed(tokens, router, 32)[2].any()


def test_what_is_added_at_doubtful_tokens_counts_in_whole() -> None:
    tolerance = load(MOE).tolerance
    assert tolerance.term_rtol == reference(MOE).TERM_RTOL and tolerance.rtol == 0


def test_cases() -> None:
    problem, module = load(MOE), _case_module(folder(load(MOE)) / "cases.py")
    assert (len(problem.tests), len(problem.benchmarks)) == (3, 2)
    assert tuple(reference(MOE)._FILLS) == FILLS
    for seed in range(50):
        for size in ("small", "full"):
            cases = module.hidden(random.Random(seed), size)
            assert cases == module.hidden(random.Random(seed), size) and cases[0].fill == "published"
            for case in cases:
                assert module.fits(case.params) and case.fill in FILLS and work(problem, case).bytes > 0
                assert set(case.params) == set(problem.small[0].params)


SPOILT = {
    "zeros": ("return total.view(x.shape)", "return torch.zeros_like(x)"),
    "half the experts": ('topk(config["n_experts_per_token"])', 'topk((config["n_experts_per_token"] + 1) // 2)'),
    "normalised": ("    total = ", "    share = share / share.sum(-1, keepdim=True)\n    total = "),
}


@pytest.mark.slow
def test_the_library_call_is_accepted_and_spoilt_ones_are_not() -> None:
    found, runner = library_call(load(MOE)), CpuRunner()
    assert found is not None
    try:
        judgement = runner.judge(load(MOE), found, Mode.TEST)
        assert isinstance(judgement.verdict, Passed), judgement.verdict
        for how, change in SPOILT.items():
            spoilt = Candidate(source=found.source.replace(*change))
            assert spoilt != found
            assert isinstance(runner.judge(load(MOE), spoilt, Mode.TEST).verdict, WrongAnswer), how
    finally:
        runner.close()
