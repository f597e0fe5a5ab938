"""Stand-ins for the modules `task` and `utils` that lie beside a submission on GPU MODE's boards.

Honest submissions import their names (types for annotations, comparison helpers they carry along but do not need). The
judge compares in another process; what these comparisons answer is used by nobody but the submission.
"""

from __future__ import annotations

import contextlib
import random
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, TypedDict, TypeVar

import numpy as np
import torch


class TestSpec(TypedDict, total=False):
    """A case's parameters; every problem has its own."""

    seed: int


def set_seed(seed: int = 42) -> None:
    """Seed every generator of this process."""
    random.seed(seed)
    np.random.seed(seed % (1 << 32))
    torch.manual_seed(seed)


def get_device(use_cuda: bool = True) -> torch.device:
    """The device the boards run on."""
    return torch.device("cuda" if use_cuda else "cpu")


def verbose_allclose(
    received: torch.Tensor, expected: torch.Tensor, rtol: float = 1e-5, atol: float = 1e-8, max_print: int = 5
) -> tuple[bool, list[str]]:
    """Whether all elements are close, and what is wrong where they are not."""
    if received.shape != expected.shape:
        return False, [f"shape {tuple(received.shape)}, expected {tuple(expected.shape)}"]
    close = torch.isclose(received.float(), expected.float(), rtol=rtol, atol=atol, equal_nan=True)
    return _first_wrong(close, received, expected, max_print)


def verbose_allequal(received: torch.Tensor, expected: torch.Tensor, max_print: int = 5) -> tuple[bool, list[str]]:
    """Whether all elements are equal, and what is wrong where they are not."""
    if received.shape != expected.shape:
        return False, [f"shape {tuple(received.shape)}, expected {tuple(expected.shape)}"]
    return _first_wrong(received == expected, received, expected, max_print)


def _first_wrong(good: Any, received: Any, expected: Any, max_print: int) -> tuple[bool, list[str]]:
    wrong = (~good).nonzero()[:max_print].tolist()
    lines = [f"{place}: {received[tuple(place)].item()}, expected {expected[tuple(place)].item()}" for place in wrong]
    return not wrong, lines


def match_reference(
    data: Any, output: Any, reference: Callable[[Any], Any], rtol: float = 1e-5, atol: float = 1e-8
) -> tuple[bool, str]:
    """Compare `output` with ``reference(data)``."""
    good, lines = verbose_allclose(output, reference(data), rtol=rtol, atol=atol)
    return good, "\n".join(lines)


def make_match_reference(reference: Callable[[Any], Any], **tolerances: Any) -> Callable[[Any, Any], tuple[bool, str]]:
    """A checker that compares with `reference`."""
    return lambda data, output: match_reference(data, output, reference, **tolerances)


class DeterministicContext(contextlib.ContextDecorator):
    """Ask torch for deterministic algorithms while entered."""

    def __enter__(self) -> DeterministicContext:
        """Switch them on."""
        self._before = torch.are_deterministic_algorithms_enabled()
        torch.use_deterministic_algorithms(True, warn_only=True)
        return self

    def __exit__(self, *_: object) -> None:
        """As it was before."""
        torch.use_deterministic_algorithms(self._before)


class DisableCuDNNTF32(contextlib.ContextDecorator):
    """Keep cuDNN from computing fp32 in TF32 while entered."""

    def __enter__(self) -> DisableCuDNNTF32:
        """Switch it off."""
        self._before = torch.backends.cudnn.allow_tf32
        torch.backends.cudnn.allow_tf32 = False
        return self

    def __exit__(self, *_: object) -> None:
        """As it was before."""
        torch.backends.cudnn.allow_tf32 = self._before


def clear_l2_cache() -> None:
    """The judge flushes; a submission's own flush does nothing."""


def install() -> None:
    """Make ``import task`` and ``import utils`` find these."""
    task, utilities = ModuleType("task"), ModuleType("utils")
    task.__dict__.update(input_t=TypeVar("input_t"), output_t=TypeVar("output_t"), TestSpec=TestSpec)
    shared = (set_seed, get_device, verbose_allclose, verbose_allequal, match_reference, make_match_reference)
    for thing in (*shared, DeterministicContext, DisableCuDNNTF32, clear_l2_cache):
        setattr(utilities, thing.__name__, thing)
    utilities.__dict__["clear_l2_cache_large"] = clear_l2_cache
    sys.modules.update(task=task, utils=utilities)
