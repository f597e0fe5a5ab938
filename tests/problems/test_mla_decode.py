"""MLA decoding with its projections: what is made and computed, and which wrong answers are refused."""

import math
import random
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest
import torch

from evals.players import reference as library_call
from problems import load, work
from problems.made import Made
from sandbox.candidate import Candidate
from sandbox.checker.rule import compare
from sandbox.cpu import CpuRunner
from sandbox.runner import Mode
from sandbox.verdict import Passed, WrongAnswer
from tests.problems.fp4 import Data, case_module, draw, problem, reference

MLA = "amd/mla-decode"
SMALL = {"batchsize": 2, "dim": 128, "dq": 64, "prefill": 300}
Angles = Callable[[torch.Tensor], torch.Tensor]


@cache
def drawn(fill: str) -> Data:
    return draw(MLA, SMALL, fill)


@cache
def truth(fill: str) -> list[tuple[torch.Tensor, torch.Tensor]]:
    found: list[tuple[torch.Tensor, torch.Tensor]] = reference(MLA).exact(drawn(fill))
    return found


def worst(fill: str, answer: torch.Tensor, part: int = 0) -> float:
    rule = problem(MLA).part_tolerances[part]
    return compare(answer.bfloat16(), *truth(fill)[part], rule).worst_ratio


def boards_angles(position: torch.Tensor) -> torch.Tensor:
    theta = 10000 ** (-torch.arange(32, dtype=torch.bfloat16) / 32)
    return (position.bfloat16()[:, None] * theta).double()


def true_angles(position: torch.Tensor) -> torch.Tensor:
    return position.double()[:, None] * 10000 ** (-torch.arange(32, dtype=torch.float64) / 32)


def turned(part: torch.Tensor, angles: torch.Tensor, neighbours: bool = False) -> torch.Tensor:
    """By complex numbers: d and d + 32 are one, or d and d + 1."""
    pairs = part.unflatten(-1, (32, 2)) if neighbours else part.unflatten(-1, (2, 32)).transpose(-1, -2)
    wave = torch.complex(angles.cos().bfloat16().double(), angles.sin().bfloat16().double())
    got = torch.view_as_real(torch.view_as_complex(pairs.contiguous()) * wave)
    return got.flatten(-2) if neighbours else got.transpose(-1, -2).flatten(-2)


def answer(
    fill: str,
    angles: Angles = boards_angles,
    neighbours: bool = False,
    rows: Callable[[torch.Tensor], torch.Tensor] = lambda rows: rows,
    narrow: Callable[[torch.Tensor], torch.Tensor] = lambda cache: cache,
    scale: float = 192,
) -> torch.Tensor:
    """y in float64 with the keys and values of all heads made, sequence by sequence; `rows` picks which are seen."""
    config, x, cached = drawn(fill)[0].fields, drawn(fill)[1][:, 0].double(), drawn(fill)[2].fields
    weights = {name: value.double() for name, value in config.items() if isinstance(value, torch.Tensor)}
    heads = []
    for index in range(x.shape[0]):
        new = x[index] @ weights["KV_proj_down_weight"].T
        filled = narrow(cached["data"][index, : cached["seq_len"]]).double()
        seen, at = torch.cat((filled, new[None])), torch.arange(len(filled) + 1)
        seen, at = seen[rows(at)], at[rows(at)]
        q = (x[index] @ weights["Q_proj_down_weight"].T @ weights["Q_proj_up_weight"].T).view(128, 192)
        up = (seen[:, :512] @ weights["KV_proj_up_weight"].T).view(-1, 128, 256)
        query = turned(q[:, 128:], angles(torch.tensor([len(filled)])), neighbours)
        keys = turned(seen[:, 512:], angles(at), neighbours)
        scores = torch.einsum("hd,thd->ht", q[:, :128], up[..., :128]) + query @ keys.T
        heads.append(torch.einsum("ht,thd->hd", torch.softmax(scores / scale**0.5, -1), up[..., 128:]).flatten())
    return (torch.stack(heads) @ weights["wo_weight"].T).unsqueeze(1)


def fp8(rows: torch.Tensor) -> torch.Tensor:
    scale = rows.abs().amax() / 448
    return (rows / scale).to(torch.float8_e4m3fn).float() * scale


WRONG: dict[str, tuple[str, Callable[[str], torch.Tensor]]] = {
    "zeros": ("published", lambda fill: 0 * answer(fill)),
    "the cache never read": ("published", lambda fill: answer(fill, rows=lambda at: at[-1:])),
    "the cache read as zeros": ("published", lambda fill: answer(fill, narrow=torch.zeros_like)),
    "half of the cache": ("published", lambda fill: answer(fill, rows=lambda at: at[len(at) // 2 :])),
    "first row lost": ("ends", lambda fill: answer(fill, rows=lambda at: at[1:])),
    "last row lost": ("ends", lambda fill: answer(fill, rows=lambda at: at[at != 299])),
    "angles as they should be": ("rope", lambda fill: answer(fill, angles=true_angles)),
    "no rotation": ("published", lambda fill: answer(fill, angles=lambda at: 0 * true_angles(at))),
    "neighbours paired": ("published", lambda fill: answer(fill, neighbours=True)),
    "scaled by the plain columns": ("published", lambda fill: answer(fill, scale=128)),
    "a cache in fp8": ("ends", lambda fill: answer(fill, narrow=fp8)),
}


@pytest.mark.slow
def test_layouts_and_cases() -> None:
    module = reference(MLA)
    data = module.make_inputs(dict(problem(MLA).benchmarks[-1].params), "published", None, "meta")
    config, x, cached = data[0].fields, data[1], data[2].fields
    assert isinstance(data[0], Made) and (data[0].kind, data[2].kind) == ("config", "kv-cache")
    assert config["Q_proj_up_weight"].shape == (24576, 1536) and config["wo_weight"].shape == (7168, 16384)
    assert (x.shape, cached["data"].shape, cached["seq_len"]) == ((128, 1, 7168), (128, 8192, 576), 6144)
    assert [tuple(part.shape) for part, _ in module.exact(data)] == [(128, 1, 7168), (128, 8192, 576)]
    here = problem(MLA)
    assert (len(here.tests), len(here.benchmarks), [case.params["prefill"] for case in here.ranked()]) == (4, 2, [6144])
    assert work(here, here.ranked()[0]).bytes == pytest.approx(1.28e9, rel=0.01)
    for seed in range(20):
        for size in ("small", "full"):
            for case in case_module(MLA).hidden(random.Random(seed), size):
                assert case_module(MLA).fits(case.params) and case.fill in module._FILLS


@pytest.mark.slow
@pytest.mark.parametrize("fill", case_module(MLA).FILLS)
def test_exact_by_its_definition_and_the_boards_answer_beside_it(fill: str) -> None:
    exact, terms = truth(fill)[0]
    assert float(((answer(fill) - exact).abs() / terms).max()) < 1e-9
    y, filled = reference(MLA).board_expected(drawn(fill))
    assert worst(fill, y) < 0.6 and worst(fill, filled, 1) < 0.6
    assert torch.equal(filled[:, :300], drawn(fill)[2].fields["data"][:, :300]) and not filled[:, 301:].any()


@pytest.mark.slow
@pytest.mark.parametrize("how", WRONG)
def test_wrong_answers_are_refused(how: str) -> None:
    fill, wrong = WRONG[how]
    assert worst(fill, wrong(fill)) > 1.2


@pytest.mark.slow
def test_a_cache_that_changed_elsewhere_is_refused() -> None:
    _, filled = reference(MLA).board_expected(drawn("published"))
    for row, column in ((0, 0), (299, 575), (301, 3), (8191, 0)):
        other = filled.clone()
        other[1, row, column] += 2**-7
        assert worst("published", other, 1) == math.inf
    other = filled.clone()
    other[:, 300] *= 1.02
    assert worst("published", other, 1) > 1.2


SPOILT = [
    ("return y.bfloat16()", "return 0 * y.bfloat16()"),
    ("return y.bfloat16().unsqueeze(1), kv_cache.get_data()", "return y.bfloat16().unsqueeze(1)"),
    ("seen = rows[index].float()", "seen = rows[index].float() * (torch.arange(length) == length - 1)[:, None]"),
    ("kv_cache.get_data()", "kv_cache.get_data().index_fill(1, torch.tensor(length - 1), 0)"),
    (
        "torch.arange(length, device=device).to(torch.bfloat16)[:, None] * theta",
        "torch.arange(length)[:, None].float() * theta.float()",
    ),
]


@pytest.fixture(scope="module")
def runner() -> Iterator[CpuRunner]:
    runner = CpuRunner("MI300X")
    yield runner
    runner.close()


def judged(runner: CpuRunner, old: str = "", new: str = "") -> Any:
    found = library_call(load(MLA))
    assert found is not None and old in found.source
    source = found.source.replace(old, new) if old else found.source
    return runner.judge(problem(MLA), Candidate(source=source, language="torch"), Mode.TEST, 120.0)


@pytest.mark.slow
def test_the_library_call_passes(runner: CpuRunner) -> None:
    judgement = judged(runner)
    assert isinstance(judgement.verdict, Passed), judgement.verdict
    assert judgement.board_accepts


@pytest.mark.slow
@pytest.mark.parametrize(("old", "new"), SPOILT)
def test_spoilt_library_calls_are_refused(runner: CpuRunner, old: str, new: str) -> None:
    assert isinstance(judged(runner, old, new).verdict, WrongAnswer)
