"""Both forms of every Triton kernel at once: the compiled one for the targets, the interpreted one for the numbers.

`TRITON_INTERPRET=1` would swap the compiler out for the whole process. Here `JITFunction` stays, and learns two things:
a launch on the stand-in driver also compiles for the other targets, and a device function called from interpreted code
runs its own interpreted form. The driver's launcher then interprets the kernel with the grid Triton worked out.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

import triton
import triton.language as tl
import triton.testing
from triton.runtime import driver as active_driver
from triton.runtime import interpreter
from triton.runtime.cache import triton_key
from triton.runtime.jit import JITFunction

from . import floats, libdevice
from .cuda_driver import CudaDriver
from .hip_driver import HipDriver, Launch
from .other_targets import OtherTargets
from .record import Record, describe_source

_KEPT_NAMES = ("interpreter_semantic", "_InterpreterComparison")
"""What rewritten kernels refer to; the interpreter's other globals are taken out of the candidate's module again."""

_depth = 0


def install(
    targets: tuple[str, ...], record: Record, interpret: bool, told: dict[str, Any] | None = None
) -> OtherTargets:
    """Make Triton compile for `targets`, launch as the first of them, note all in `record`, and maybe interpret.

    `told`: the figures of the first target, where it is a real GPU.
    """

    def on_launch(source: Any, metadata: Any, grid: tuple[int, int, int], arguments: tuple[Any, ...]) -> None:
        function = getattr(source, "fn", None)
        if function is None:
            raise RuntimeError("a kernel given as IR has no source to interpret")
        named = dict(zip(function.arg_names, arguments, strict=False))
        record.launched(record.index_of(targets[0], metadata.hash), grid, _runtime_only(function, named))
        if interpret and not record.tuning:
            run_interpreted(function, grid, arguments)

    driver = driver_for(targets, on_launch, record.as_tuning, told)
    active_driver.set_active(driver)
    _watch_compiles(driver, record)
    others = OtherTargets(driver, record, JITFunction.run)
    _launch_and_want(record, others, JITFunction.run)
    replace_benchmarks(driver)
    if interpret:
        _let_device_functions_run()
    # Hashes the whole of Triton, once: before a candidate's time runs.
    triton_key()
    return others


def driver_for(
    targets: tuple[str, ...], on_launch: Launch, as_tuning: Callable[[], Any], told: dict[str, Any] | None
) -> HipDriver:
    """A driver for AMD's chips, or for the NVIDIA one that `targets` names."""
    kind = CudaDriver if targets[0].startswith("sm_") else HipDriver
    return kind(targets, on_launch, as_tuning, told)


def run_interpreted(function: Any, grid: tuple[int, int, int], arguments: tuple[Any, ...]) -> None:
    """Run one launch of a `JITFunction` in Triton's interpreter, on CPU tensors."""
    form = _form(function)
    interpreter.GridExecutor(form.rewrite(), function.arg_names, grid)(*arguments)


def _runtime_only(function: Any, named: dict[str, Any]) -> dict[str, Any]:
    fixed = {parameter.name for parameter in function.params if parameter.is_constexpr}
    return {name: value for name, value in named.items() if name not in fixed}


def _watch_compiles(driver: HipDriver, record: Record) -> None:
    compile_one = JITFunction._do_compile

    def compile_noted(self: Any, key: Any, signature: Any, device: int, constexprs: Any, *rest: Any) -> Any:
        target = driver.targets[device]
        # Triton keeps no failures: without this a kernel that one target cannot build is tried at every launch.
        failed = vars(self).setdefault("failed_builds", {})
        if (device, key) in failed:
            raise failed[device, key]
        try:
            kernel = compile_one(self, key, signature, device, constexprs, *rest)
        except BaseException as fault:
            failed[device, key] = fault
            source = self.ASTSource(self, signature, constexprs, rest[1])
            record.failed(fault, target, name=self.__name__, **describe_source(source))
            raise
        record.compiled(kernel, target)
        if not rest[-1] or device:
            _fit(kernel, target, record)
        return kernel

    JITFunction._do_compile = compile_noted


def _fit(kernel: Any, target: str, record: Record) -> None:
    """Check the device's limits now, as a launch would, so that a kernel that does not fit is noted as such."""
    try:
        kernel._init_handles()
    except BaseException as fault:
        record.failed(fault, target, kernel)
        raise


def _launch_and_want(record: Record, others: OtherTargets, launch_one: Callable[..., Any]) -> None:
    def run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        kernel = launch_one(self, *args, grid=grid, warmup=warmup, **dict(kwargs))
        if not record.tuning and hasattr(kernel, "metadata"):
            others.want(kernel, self, args, kwargs)
        return kernel

    JITFunction.run = run


def replace_benchmarks(driver: HipDriver) -> None:
    """Let `triton.testing` run what it is to time once, and call it a millisecond."""
    benchmark = driver.get_benchmarker()

    def do_bench(fn: Callable[[], Any], *_: Any, quantiles: Any = None, return_mode: str = "mean", **__: Any) -> Any:
        time_ms = benchmark(fn, quantiles=quantiles)
        return [time_ms] if return_mode == "all" and not quantiles else time_ms

    triton.testing.do_bench = do_bench
    triton.testing.do_bench_cudagraph = do_bench


def _let_device_functions_run() -> None:
    patch_language = interpreter._patch_lang
    both_languages = FunctionType((lambda: None).__code__, {"tl": tl, "core": tl.core})

    class Scope:
        """One patch of `triton.language` for a whole launch: nested device functions find it in place."""

        def __init__(self) -> None:
            global _depth
            self._patched = patch_language(both_languages) if _depth == 0 else None
            if self._patched is not None:
                _bind_members(self._patched)
                libdevice.patch(self._patched)
            _depth += 1

        def restore(self) -> None:
            global _depth
            _depth -= 1
            if self._patched is not None:
                self._patched.restore()

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if _depth == 0:
            raise RuntimeError("Cannot call @triton.jit'd outside of the scope of a kernel")
        return _form(self).rewrite()(*args, **kwargs)

    interpreter._patch_lang = lambda _: Scope()
    JITFunction.__call__ = call


def _bind_members(scope: Any) -> None:
    """Let `x.sum()` pass x: the compiler binds such members itself, a plain class attribute would not."""
    members = [(name, member) for name, member in vars(tl.tensor).items() if isinstance(member, JITFunction)]
    for name, member in members:

        def bound(self: Any, *args: Any, member: Any = member, **kwargs: Any) -> Any:
            return member(self, *args, **kwargs)

        scope.set_attr(tl.tensor, name, bound)
    # Triton 3.6 calls int() on one-element arrays here, which NumPy 2.4 refuses.
    scope.set_attr(tl.tensor, "__index__", lambda self: int(self.handle.data.squeeze()))
    # And does not know AMD's own fp8 formats by name.
    to_ir = tl.dtype.to_ir
    scope.set_attr(tl.dtype, "to_ir", lambda self, builder: floats.builder_type(self, builder) or to_ir(self, builder))


def _form(function: Any) -> Any:
    """The interpreted form of a `JITFunction`, made once."""
    if "interpreted_form" not in vars(function):
        form = interpreter.InterpretedFunction(function.fn)
        names = function.fn.__globals__
        before = set(names)
        if function.fn.__closure__:
            # Rewriting compiles the function anew at module level, where it would lose what it closes over.
            form.rewritten_fn[function.fn] = function.fn
        form.rewrite()
        for name in set(names) - before - set(_KEPT_NAMES):
            del names[name]
        function.interpreted_form = form
    return function.interpreted_form
