"""GPU MODE's own generators and references, loaded at run time from a checkout that stays outside this project.

Without a GPU what they put on ``cuda`` lands on the CPU, and `torch._scaled_mm` of fp4 operands, which no CPU has, is a
stand-in of ours in float64, rounded once: what is compared then is their packing and layout, not their library's sums.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from problems.fp4.reference import scaled, unpacked
from problems.spec import Problem

OWN = ("task", "utils", "reference")
"""Modules of the same names in every folder there."""


def folder_of(problem: Problem, sets: Path) -> Path | None:
    """Where the problem's ``reference.py`` lies in the checkout: beside or below its evaluator, or None."""
    above = (sets / problem.board_timing.evaluator).parent
    name = problem.name.split("/")[-1]
    for folder in (above / name, above / f"{name}_py", above / name.replace("-", "_"), above):
        if (folder / "reference.py").is_file():
            return folder
    return None


@contextmanager
def loaded(folder: Path) -> Iterator[ModuleType]:
    """The folder's ``reference`` module; `ImportError` where it needs a library that is not here."""
    before = list(sys.path)
    sys.path[:0] = [str(folder), str(folder.parent)]
    try:
        yield importlib.import_module("reference")
    finally:
        sys.path[:] = before
        for name in OWN:
            sys.modules.pop(name, None)


@contextmanager
def on(device: str) -> Iterator[None]:
    """While entered, ``cuda`` means `device`: nothing changes where that is a GPU."""
    if device != "cpu":
        yield
        return
    kept = torch.Generator, torch._scaled_mm
    torch.Generator, torch._scaled_mm = _CpuGenerator, scaled_mm
    try:
        with _OnCpu():
            yield
    finally:
        torch.Generator, torch._scaled_mm = kept


class _CpuGenerator(torch.Generator):
    def __new__(cls, device: object = "cpu") -> _CpuGenerator:
        return super().__new__(cls, "cpu")


class _OnCpu(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = dict(kwargs or {})
        if func is torch.Tensor.cuda:
            return args[0]
        if _is_cuda(given.get("device")):
            given["device"] = "cpu"
        if func is torch.Tensor.to:
            args = tuple("cpu" if _is_cuda(arg) else arg for arg in args)
        return func(*args, **given)


def _is_cuda(value: object) -> bool:
    return isinstance(value, str | torch.device) and str(value).startswith("cuda")


def scaled_mm(
    a: torch.Tensor, b: torch.Tensor, scale_a: torch.Tensor, scale_b: torch.Tensor, bias: None, out_dtype: torch.dtype
) -> torch.Tensor:
    """a fp4x2 [m, k/2] times b fp4x2 [k/2, n], scales e4m3fn in cuBLAS's blocks of 128 x 4, flat; [m, n]."""
    sides = ((a, scale_a), (b.transpose(0, 1), scale_b))
    left, right = (scaled(unpacked(codes), unblocked(scale, *codes.shape)) for codes, scale in sides)
    return (left @ right.T).to(out_dtype)


def unblocked(scale: torch.Tensor, rows: int, packed: int) -> torch.Tensor:
    """Scales [rows, packed/8] out of blocks of 128 rows by 4 columns, where rows i, i+32, i+64, i+96 lie together."""
    columns = packed // 8
    down, across = -(-rows // 128), -(-columns // 4)
    blocks = scale.view(torch.uint8).view(down, across, 32, 4, 4).permute(0, 3, 2, 1, 4)
    return blocks.reshape(down * 128, across * 4)[:rows, :columns].contiguous().view(torch.float8_e4m3fn)
