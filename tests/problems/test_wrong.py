"""Right answers pass the rule, wrong ones are refused on every draw of hidden cases, and some by the judge."""

import random
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
import torch

from problems import load
from problems.load import ROOT, hidden_cases, names
from problems.made import Made
from problems.spec import Case
from sandbox.candidate import Candidate
from sandbox.checker.layout import bits
from sandbox.checker.rule import compare
from sandbox.checker.task import Task, open_task
from sandbox.cpu import CpuRunner
from sandbox.guest.objects import make
from sandbox.runner import Mode
from sandbox.verdict import WrongAnswer
from tests.problems.wrong import FEWEST, named, sources

pytestmark = pytest.mark.slow
DRAWS = 2
LISTED = tuple(name for name in named() if name in names())
JUDGED = ("nvidia/nvfp4-group-gemm", "amd/moe", "amd/mixed-mla", "pmpp/vectorsum")
"""Lists, dicts, values beside tensors, a scalar. All of them, every variant: ``python -m tests.bench.variants``."""
each = pytest.mark.parametrize("name", [name for name in LISTED if load(name).world_size == 1])


def kernel(source: str) -> Callable[[Any], Any]:
    space: dict[str, Any] = {}
    exec(source, space)
    found: Callable[[Any], Any] = space["custom_kernel"]
    return found


def copied(data: Any) -> Any:
    """Tensors of their own, with the strides they had, and the objects that a guest makes."""
    match data:
        case Made():
            return make(data.kind, {name: copied(value) for name, value in data.fields.items()})
        case torch.Tensor():
            own = torch.empty_strided(data.shape, data.stride(), dtype=data.dtype)
            bits(own).copy_(bits(data))
            return own
        case dict():
            return {key: copied(value) for key, value in data.items()}
        case list() | tuple():
            return type(data)(copied(part) for part in data)
    return data


def together(found: Any) -> list[Any]:
    return list(found) if isinstance(found, list | tuple) else [found]


def refused(out: Any, exact: Any, task: Task) -> bool:
    """Whether an answer is of another form than asked for, or too far off; `exact` as a reference gives it."""
    pairs = exact if isinstance(exact, list) else [exact]
    outs = together(out)
    if len(outs) != len(pairs):
        return True
    return any(
        one.shape != result.shape
        or one.dtype != task.output_dtype
        or compare(one, result, terms, task.problem.tolerance).mismatches > 0
        for one, (result, terms) in zip(outs, pairs, strict=True)
    )


def cases(name: str, draw: int) -> list[Case]:
    """What a GPU sees, but small: published values, and one draw of hidden cases."""
    problem = load(name)
    hidden = hidden_cases(problem, random.Random(draw), "small")
    return [case for case in problem.small if case.fill == "published"] + list(hidden)


@cache
def opened(name: str) -> Task:
    return open_task(name, ROOT, "cpu")


@each
def test_the_rule_refuses_each_on_every_draw_and_passes_the_right_ones(name: str) -> None:
    task, texts = opened(name), sources(name)
    kernels = {what: kernel(text) for what, text in (texts.right | texts.wrong).items()}
    assert len(texts.wrong) >= FEWEST and len(set(texts.wrong.values())) == len(texts.wrong) and texts.right
    for draw in range(DRAWS):
        left = set(texts.wrong)
        for index, case in enumerate(cases(name, draw)):
            data = task.inputs(case, 100 * draw + index + 1)
            exact = task.reference.exact(data)
            for what in sorted(left | set(texts.right)):
                if refused(kernels[what](copied(data)), exact, task):
                    assert what in texts.wrong, f"{what} is refused on {case.label()}"
                    left.discard(what)
        assert not left, f"draw {draw}: these pass"


def test_the_judge_refuses_one_of_each_kind_of_interface_for_its_answer() -> None:
    runner = CpuRunner()
    try:
        for name in JUDGED:
            what, text = list(sources(name).wrong.items())[-1]
            judgement = runner.judge(load(name), Candidate(source=text, language="torch"), Mode.TEST)
            assert isinstance(judgement.verdict, WrongAnswer), (name, what, judgement.verdict)
    finally:
        runner.close()
