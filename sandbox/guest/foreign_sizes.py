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
                node.value = ast.copy_location(_spelled(params[name], isinstance(node.value, ast.List)), node.value)
    names: dict[str, Any] = {"__name__": "problem"}
    exec(compile(ast.fix_missing_locations(tree), "problem.py", "exec"), names)
    return names


def _spelled(value: Any, listed: bool) -> ast.expr:
    """A number, or several as the list or the tuple they were."""
    if not isinstance(value, list | tuple):
        return ast.Constant(value)
    items: list[ast.expr] = [ast.Constant(each) for each in value]
    return ast.List(items, ast.Load()) if listed else ast.Tuple(items, ast.Load())


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
    -1 and ``why`` where the cost cannot be found without running it.
    """
    params = dict(header["params"])
    try:
        full = cost(run, params)
    except Exception as error:  # noqa: BLE001 - the problem's code may raise anything, meta kernels may be missing
        why = f"{type(error).__name__}: {error}"[:500]
        return {"params": params, "bytes": -1, "flops": -1, "full_bytes": -1, "why": why}
    search = _Search(run, (int(header["bytes"]), int(header["flops"])))
    found, at = search.within(params, full)
    told = {"bytes": at[0], "flops": at[1], "full_bytes": full[0], "why": ""}
    return {"params": found, **told}


class _Search:
    def __init__(self, run: Run, limits: tuple[int, int]) -> None:
        self._run, self._limits, self._looks = run, limits, 0

    def over(self, at: tuple[int, int]) -> float:
        """How many times the limits."""
        return max(at[0] / self._limits[0], at[1] / self._limits[1])

    def within(self, params: dict[str, Any], at: tuple[int, int]) -> tuple[dict[str, Any], tuple[int, int]]:
        """Smaller sizes, halved one at a time while that helps, or all of one size where they must agree."""
        for name in [name for name in params if _batch(name)]:
            while self.over(at) > 1 and (found := self._tried({**params, name: _half(params[name], LEAST_BATCH)}, at)):
                params, at = found
        while self.over(at) > 1 and self._looks < MOST_LOOKS:
            steps = [step for changed in _moves(params) if (step := self._tried({**params, **changed}, at))]
            if not steps:
                break
            params, at = min(steps, key=lambda step: self.over(step[1]))
        return params, at

    def _tried(self, smaller: dict[str, Any], at: tuple[int, int]) -> tuple[dict[str, Any], tuple[int, int]] | None:
        """These sizes and their cost; None where they do not run, or cost no less."""
        self._looks += 1
        if self._looks > MOST_LOOKS:
            return None
        try:
            costs = cost(self._run, smaller)
        except Exception:  # noqa: BLE001 - sizes that do not go together raise anything
            return None
        return (smaller, costs) if self.over(costs) < self.over(at) * 0.95 else None


def _moves(params: dict[str, Any]) -> list[dict[str, Any]]:
    """What may be changed at a time: one name's size, or every occurrence of one number."""
    least = {name: LEAST_BATCH if _batch(name) else LEAST for name in params}
    singly = [{name: _half(value, least[name])} for name, value in params.items()]
    numbers = {number for value in params.values() for number in _numbers(value) if number >= 2 * LEAST}
    jointly = [
        {name: _half(value, least[name], number) for name, value in params.items() if number in _numbers(value)}
        for number in sorted(numbers, reverse=True)
    ]
    moves = [*singly, *(joint for joint in jointly if len(joint) > 1)]
    return [move for move in moves if any(value != params[name] for name, value in move.items())]


def _batch(name: str) -> bool:
    return "batch" in name.lower()


def _numbers(value: Any) -> list[int]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _half(value: Any, least: int, only: int | None = None) -> Any:
    """Halved where it stays at `least` or more; of several, each, or those alone that are `only`."""
    if isinstance(value, list | tuple):
        return [_half(each, least) if only in (None, each) else each for each in value]
    return value // 2 if value // 2 >= least else value
