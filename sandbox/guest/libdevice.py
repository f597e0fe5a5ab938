"""`triton.language.extra.libdevice` for interpreted kernels: Triton's interpreter has no device library.

A function named here is computed by torch in the dtype of its arguments. One that is missing (Bessel functions, bit
counts, the rest) raises in the interpreter; compiled code has them all.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import triton.language as tl
from triton.runtime import interpreter

_MODULES = ("triton.language.extra.libdevice", "triton.language.extra.hip.libdevice")
_RENAMED: dict[str, Callable[..., torch.Tensor]] = {
    "fast_expf": torch.exp,
    "fast_tanhf": torch.tanh,
    "fast_dividef": torch.div,
    "rint": torch.round,
    "nearbyint": torch.round,
    "fma": lambda x, y, z: torch.addcmul(z.double(), x.double(), y.double()).to(x.dtype),
    "isnan": torch.isnan,
    "isinf": torch.isinf,
    "finitef": torch.isfinite,
    "isfinited": torch.isfinite,
    # Half away from zero, as C rounds; torch's goes to even.
    "round": lambda x: torch.copysign((x.abs() + 0.5).floor(), x),
}
_SAME = (
    *("abs", "floor", "ceil", "trunc", "rsqrt", "sqrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p"),
    *("sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan", "asinh", "acosh", "atanh", "atan2"),
    *("erf", "erfc", "erfinv", "lgamma", "hypot", "copysign", "nextafter", "fmod", "pow"),
)


def _lifted(function: Callable[..., torch.Tensor]) -> Callable[..., Any]:
    """`function` over the interpreter's tensors, which broadcast as Triton's do."""

    def call(*arguments: Any, _semantic: Any = None) -> Any:
        tensors = [interpreter.interpreter_semantic.to_tensor(argument) for argument in arguments]
        wide = np.broadcast_arrays(*(tensor.handle.data for tensor in tensors))
        out = function(*(torch.from_numpy(np.array(values)) for values in wide)).numpy()
        kind = tl.int1 if out.dtype == np.bool_ else tensors[0].dtype
        blocks = [tensor for tensor in tensors if tensor.type.is_block()]
        handle = interpreter.TensorHandle(out, kind)
        return tl.core.tensor(handle, tl.block_type(kind, list(out.shape)) if blocks else kind)

    return call


FUNCTIONS = {name: _lifted(function) for name, function in _RENAMED.items()} | {
    name: _lifted(getattr(torch, name)) for name in _SAME
}


def patch(scope: Any) -> None:
    """Put these in place of the device library, in its modules and where the candidate imported them by name."""
    for name in _MODULES:
        module = importlib.import_module(name)
        for function in FUNCTIONS.keys() & vars(module).keys():
            scope.set_attr(module, function, FUNCTIONS[function])
    candidate = sys.modules.get("submission")
    for name, value in list(vars(candidate).items()) if candidate else ():
        function = getattr(value, "__name__", "")
        if getattr(value, "__module__", "") in _MODULES and function in FUNCTIONS:
            scope.set_attr(candidate, name, FUNCTIONS[function])
