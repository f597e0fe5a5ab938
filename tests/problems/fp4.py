"""The fp4 problems with their references, and how far an answer is from what is allowed."""

import importlib.util
from functools import cache
from types import ModuleType
from typing import Any

import torch

from problems import load
from problems.load import ROOT, _case_module
from problems.spec import Problem
from sandbox.checker.rule import compare

Data = tuple[Any, ...]


@cache
def problem(name: str) -> Problem:
    return load(name)


@cache
def reference(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"tested_{name}", ROOT / name / "reference.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def case_module(name: str) -> ModuleType:
    return _case_module(ROOT / name / "cases.py")


def draw(name: str, params: dict[str, Any], fill: str = "published", seed: int = 3) -> Data:
    data: Data = reference(name).make_inputs(params, fill, torch.Generator("cpu").manual_seed(seed), "cpu")
    return data


@cache
def drawn(name: str, sizes: tuple[tuple[str, Any], ...], fill: str) -> Data:
    """As `draw`, once for each case."""
    return draw(name, dict(sizes), fill)


def worst(name: str, data: Data, answer: torch.Tensor) -> float:
    """Largest error over its allowance, `answer` first rounded to the output's dtype; above 1 is refused."""
    here, (exact, terms) = problem(name), truth(name, data)
    return compare(answer.to(getattr(torch, here.output_dtype)), exact, terms, here.tolerance).worst_ratio


def truth(name: str, data: Data) -> tuple[torch.Tensor, torch.Tensor]:
    """The reference's float64 result and terms, computed once for each `data`."""
    if id(data) not in _TRUTHS:
        _TRUTHS[id(data)] = (data, reference(name).exact(data))
    return _TRUTHS[id(data)][1]


_TRUTHS: dict[int, tuple[Data, tuple[torch.Tensor, torch.Tensor]]] = {}
"""By identity; each entry keeps its `data` alive, so that an identity is never used twice."""


def leaves(item: Any) -> list[torch.Tensor]:
    """Every tensor of a tree of tuples, lists and dicts, in order."""
    if isinstance(item, torch.Tensor):
        return [item]
    if isinstance(item, dict):
        item = tuple(item.values())
    return [leaf for part in item for leaf in leaves(part)] if isinstance(item, tuple | list) else []


def layout(data: Data) -> list[tuple[torch.dtype, tuple[int, ...], tuple[int, ...]]]:
    return [(leaf.dtype, tuple(leaf.shape), leaf.stride()) for leaf in leaves(data)]


def same(one: Data, other: Data) -> bool:
    """Whether two trees hold the same bits."""
    pairs = zip(leaves(one), leaves(other), strict=True)
    kinds = {1: torch.uint8, 2: torch.int16, 4: torch.int32}
    return all(torch.equal(x.view(kinds[x.element_size()]), y.view(kinds[y.element_size()])) for x, y in pairs)
