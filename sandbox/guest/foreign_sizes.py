"""What a KernelBench problem costs, found without running it, and smaller sizes of it for a machine without a GPU."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

MOST_LOOKS = 160
"""Sizes tried in one search."""
LEAST_BATCH = 2
LEAST = 16
"""Smaller numbers are kernels, strides, paddings, layers: halving them makes another problem."""

Run = Callable[[Mapping[str, Any]], dict[str, Any]]


def executed(source: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """The names a problem file defines, its whole numbers at module level set to `params` as they are assigned."""
    tree = ast.parse(source)
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)]) if name in params:
                node.value = ast.copy_location(ast.Constant(params[name]), node.value)
    names: dict[str, Any] = {"__name__": "problem"}
    exec(compile(tree, "problem.py", "exec"), names)
    return names


class _Moved(TorchDispatchMode):
    """Counts the bytes that operations give."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for value in result if isinstance(result, tuple | list) else (result,):
            if isinstance(value, torch.Tensor):
                self.bytes += value.numel() * value.element_size()
        return result


class _Recurrent(TorchFunctionMode):
    """Answers recurrent layers by their shapes alone: on meta torch takes them apart, step by step, for a minute."""

    def __init__(self) -> None:
        super().__init__()
        self.flops = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__name__", "") not in ("lstm", "gru", "rnn_tanh", "rnn_relu") or not isinstance(
            args[2], list
        ):
            return func(*args, **(kwargs or {}))
        data, state, weights, *_, both, _ = args
        last = state[0] if isinstance(state, tuple | list) else state
        steps = data.numel() // data.shape[-1]
        self.flops += 2 * steps * sum(weight.numel() for weight in weights if weight.dim() == 2)
        out = data.new_empty((*data.shape[:-1], last.shape[-1] * (2 if both else 1)))
        return (out, *(state if isinstance(state, tuple | list) else (state,)))


def cost(run: Run, params: Mapping[str, Any]) -> tuple[int, int]:
    """(bytes that its operations give, weights and inputs included; operations of its products), on the meta device."""
    moved, counter, recurrent = _Moved(), FlopCounterMode(display=False), _Recurrent()
    with torch.device("meta"), torch.no_grad(), moved, counter, recurrent:
        names = run(params)
        model = names["Model"](*names["get_init_inputs"]())
        model(*names["get_inputs"]())
    return moved.bytes, int(counter.get_total_flops()) + recurrent.flops


def shrink(run: Run, header: Mapping[str, Any]) -> dict[str, Any]:
    """Sizes within the limits: the given ones, or with the batch halved first, then whatever helps most.

    ``params``: the sizes; ``bytes`` and ``flops``: their cost, of the given sizes too (``full_bytes``);
    ``fits``: whether the limits are kept. -1 and ``why`` where the cost cannot be found without running it.
    """
    params = dict(header["params"])
    try:
        full = cost(run, params)
    except Exception as error:  # noqa: BLE001 - the problem's code may raise anything, meta kernels may be missing
        why = f"{type(error).__name__}: {error}"[:500]
        return {"params": params, "bytes": -1, "flops": -1, "full_bytes": -1, "fits": False, "why": why}
    search = _Search(run, (int(header["bytes"]), int(header["flops"])))
    found, at = search.within(params, full)
    told = {"bytes": at[0], "flops": at[1], "full_bytes": full[0], "why": ""}
    return {"params": found, **told, "fits": search.over(at) <= 1}


class _Search:
    def __init__(self, run: Run, limits: tuple[int, int]) -> None:
        self._run, self._limits, self._looks = run, limits, 0

    def over(self, at: tuple[int, int]) -> float:
        """How many times the limits."""
        return max(at[0] / self._limits[0], at[1] / self._limits[1])

    def within(self, params: dict[str, Any], at: tuple[int, int]) -> tuple[dict[str, Any], tuple[int, int]]:
        """Smaller sizes, halved one at a time while that helps."""
        for name in [name for name in params if "batch" in name.lower()]:
            while self.over(at) > 1 and (found := self._halved(params, name, at)):
                params, at = found
        while self.over(at) > 1 and self._looks < MOST_LOOKS:
            steps = [step for name in params if (step := self._halved(params, name, at))]
            if not steps:
                break
            params, at = min(steps, key=lambda step: self.over(step[1]))
        return params, at

    def _halved(
        self, params: dict[str, Any], name: str, at: tuple[int, int]
    ) -> tuple[dict[str, Any], tuple[int, int]] | None:
        """The sizes with one of them halved and their cost; None where that does not run, or costs no less."""
        self._looks += 1
        least = LEAST_BATCH if "batch" in name.lower() else LEAST
        if not isinstance(params[name], int) or params[name] // 2 < least or self._looks > MOST_LOOKS:
            return None
        smaller = {**params, name: params[name] // 2}
        try:
            costs = cost(self._run, smaller)
        except Exception:  # noqa: BLE001 - sizes that do not go together raise anything
            return None
        return (smaller, costs) if self.over(costs) < self.over(at) * 0.95 else None
