"""Which Triton kernels a call on a real device launched."""

from __future__ import annotations

import inspect
from typing import Any

from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction

from .record import Record


class LaunchWatch:
    """While entered, every launch through `JITFunction.run` is noted; outside, Triton runs untouched.

    Wrapping `run` needs nothing of Triton's internals, which differ between versions, and costs a timed call nothing,
    because timed calls are made outside. Kernels started another way (HIP, a `CompiledKernel` itself) are not seen.
    """

    def __init__(self, record: Record, target: str) -> None:
        self._record = record
        self._target = target
        self._run = JITFunction.run
        self._bench = Autotuner._bench

    def __enter__(self) -> LaunchWatch:
        """Start noting."""
        launch, note = self._run, self._note

        def run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
            kernel = launch(self, *args, grid=grid, warmup=warmup, **kwargs)
            if not warmup and hasattr(kernel, "metadata"):
                note(self, kernel, args, grid, kwargs)
            return kernel

        bench, record = self._bench, self._record

        def bench_as_tuning(self: Any, *args: Any, **kwargs: Any) -> Any:
            with record.as_tuning():
                return bench(self, *args, **kwargs)

        JITFunction.run, Autotuner._bench = run, bench_as_tuning
        return self

    def __exit__(self, *_: object) -> None:
        """Stop noting."""
        JITFunction.run, Autotuner._bench = self._run, self._bench

    def _note(self, function: Any, kernel: Any, args: tuple[Any, ...], grid: Any, kwargs: dict[str, Any]) -> None:
        index = self._record.compiled(kernel, self._target)
        if self._record.tuning:
            # An autotuner starts each configuration hundreds of times.
            return
        signature = inspect.signature(function.fn)
        bound = signature.bind_partial(*args, **{k: v for k, v in kwargs.items() if k in signature.parameters})
        bound.apply_defaults()
        sizes = grid(dict(bound.arguments)) if callable(grid) else grid
        x, y, z = (*map(int, sizes), 1, 1)[:3]
        fixed = {parameter.name for parameter in function.params if parameter.is_constexpr}
        arguments = {name: value for name, value in bound.arguments.items() if name not in fixed}
        self._record.launched(index, (x, y, z), arguments)
