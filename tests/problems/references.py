"""A problem with its reference, loaded by path as the checker does."""

import importlib.util
from functools import cache
from types import ModuleType

import torch

from problems import load
from problems.load import folder

PROBLEMS = ("amd/fp8-mm", "pmpp/matmul", "pmpp/vectoradd")


@cache
def reference(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"tested_{name}", folder(load(name)) / "reference.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def draw(name: str, params: dict[str, int], fill: str = "published", seed: int = 3) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator("cpu").manual_seed(seed)
    data: tuple[torch.Tensor, ...] = reference(name).make_inputs(params, fill, generator, "cpu")
    return data
