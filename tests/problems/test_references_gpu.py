"""The largest published cases on a GPU: what a reference needs there, and how the board's own answer fares."""

import pytest
import torch

from problems import load
from sandbox.checker.rule import compare
from tests.problems.references import PROBLEMS, reference

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU")]
MOST_BYTES = 24 << 30


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_boards_answer_passes_our_rule_at_full_size(name: str) -> None:
    problem, module = load(name), reference(name)
    largest = max(
        problem.benchmarks, key=lambda case: sum(value for value in case.params.values() if isinstance(value, int))
    )
    torch.cuda.reset_peak_memory_stats()
    data = module.make_inputs(largest.params, "published", torch.Generator("cuda").manual_seed(5), "cuda")
    figures = compare(module.board_expected(data), *module.exact(data), problem.tolerance)
    assert figures.mismatches == 0 and figures.worst_ratio <= 0.6
    assert torch.cuda.max_memory_allocated() <= MOST_BYTES


@pytest.mark.parametrize("name", PROBLEMS)
def test_inputs_have_the_same_layout_on_a_gpu(name: str) -> None:
    module, params = reference(name), dict(load(name).small[1].params)
    for fill in module._FILLS:
        there = module.make_inputs(params, fill, torch.Generator("cuda").manual_seed(5), "cuda")
        shapes = module.make_inputs(params, fill, None, "meta")
        assert [(x.dtype, x.shape, x.stride()) for x in there] == [(x.dtype, x.shape, x.stride()) for x in shapes]
