"""A problem from elsewhere in a guest of its own: its files, its inputs, its answers. Untrusted, like a candidate.

Beside the frames in `wire` a guest that was given a problem's files answers these:

=======  ================================================  ===================================================
op       checker sends                                     guest answers
=======  ================================================  ===================================================
problem  ``kind``, ``files``: [[name, bytes]], ``run``;    ``{"op": "problem"}`` or ``failed``
         payload: the files, one after the other
weights  ``params``, ``seed``                              ``{"op": "held", "bytes": n}``: what a model is made from
make     ``params``, ``seed``                              ``held``: the inputs
answer   ``data``, ``exact``, ``seed``                     ``held``: the reference's answer on them
take     nothing, after a buffer of that size              ``{"op": "taken", "tree": tree}``
check    ``data``, ``output``                              ``{"op": "checked", "passed": bool, "message": text}``
shrink   ``params``, ``bytes``, ``flops``: limits          ``{"op": "sized", ...}``, see `foreign_sizes`
build    ``data``: what ``weights`` gave                   ``{"op": "built"}``: a candidate's ModelNew is made
=======  ================================================  ===================================================
"""

from __future__ import annotations

import contextlib
import copy
import importlib
import inspect
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from . import foreign_sizes
from .foreign_values import Plan, decode
from .memory import Buffer
from .mode import GuestMode
from .upstream import set_seed

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


class Foreign:
    """One problem's files, in the guest that runs its reference or in the one that runs a candidate."""

    def __init__(self, mode: GuestMode, folder: Path, kind: str, files: Mapping[str, bytes]) -> None:
        for name, content in files.items():
            (folder / Path(name).name).write_bytes(content)
        self.kind = kind
        self._mode, self._folder = mode, folder
        self._modules = tuple(Path(name).stem for name in files if name.endswith(".py"))
        for name in self._modules:
            # The stand-ins for a set's shared modules must give way to its own.
            sys.modules.pop(name, None)
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
        if mode.device_type == "cpu":
            _map_generators()
        if kind == "kernelbench":
            # Declared is fp32, and cuDNN would take TF32 for it.
            torch.backends.cudnn.allow_tf32 = False
        self._held: Plan | None = None
        self._model: torch.nn.Module | None = None
        self._exact: torch.nn.Module | None = None

    def prepare(self) -> None:
        """Import the reference."""
        if self.kind == "gpu-mode":
            with self._mode.running():
                importlib.import_module("reference")

    def answer(self, header: Mapping[str, Any], buffers: Mapping[int, Buffer]) -> dict[str, Any]:
        """One frame's answer; raises whatever the problem's code raises."""
        data = self.decoded(header["data"], buffers) if "data" in header else None
        output = self.decoded(header["output"], buffers) if "output" in header else None
        if header["op"] == "take":
            return self._take(buffers[0])
        with torch.no_grad(), self._mode.running():
            match header["op"]:
                case "weights":
                    value = self._weights(header["params"], header["seed"])
                case "make":
                    value = self._inputs(header["params"], header["seed"])
                case "answer":
                    value = self._answer(data, header["exact"], header["seed"])
                case "check":
                    return self._check(data, output)
                case "shrink":
                    return {"op": "sized", **foreign_sizes.shrink(self._problem, header)}
                case other:
                    raise ValueError(f"unknown op {other!r}")
        self._held = Plan(value, self._modules)
        return {"op": "held", "bytes": self._held.bytes}

    def decoded(self, tree: Mapping[str, Any], buffers: Mapping[int, Buffer]) -> Any:
        """A value as its author's code knows it."""
        return decode(tree, buffers, "cuda" if self._mode.device_type == "cuda" else "cpu")

    def built(self, model: Callable[..., Any], data: Mapping[str, Any]) -> Callable[[Any], Any]:
        """A candidate's model as a kernel: seeded as the reference's was, then given its weights where names match."""
        with torch.no_grad(), self._mode.running():
            set_seed(data["seed"])
            made = self._placed(model(*data["init"]))
            own = made.state_dict()
            same = {name: value for name, value in data["state"].items() if _fits(own.get(name), value)}
            made.load_state_dict(same, strict=False)

        def kernel(inputs: Any) -> Any:
            set_seed(data["seed"])
            with torch.no_grad():
                return made(*inputs)

        return kernel

    def simple(self, result: Any) -> Any:
        """A result with its named tuples, such as `torch.linalg.qr` gives, as plain ones."""
        if isinstance(result, tuple):
            return tuple(self.simple(part) for part in result)
        return [self.simple(part) for part in result] if isinstance(result, list) else result

    def _problem(self, params: Mapping[str, Any]) -> dict[str, Any]:
        return foreign_sizes.executed((self._folder / "problem.py").read_text(), params)

    def _weights(self, params: Mapping[str, Any], seed: int) -> dict[str, Any]:
        names = self._names = self._problem(params)
        set_seed(seed)
        init = list(names["get_init_inputs"]())
        set_seed(seed)
        self._model, self._exact = self._placed(names["Model"](*init)), None
        return {"seed": seed, "init": init, "state": dict(self._model.state_dict())}

    def _placed(self, model: Any) -> Any:
        return model.to("cuda") if self._mode.device_type == "cuda" else model

    def _inputs(self, params: Mapping[str, Any], seed: int) -> Any:
        set_seed(seed)
        if self.kind == "kernelbench":
            return tuple(self._single(value) for value in self._names["get_inputs"]())
        generate = importlib.import_module("reference").generate_input
        given = {name: tuple(value) if isinstance(value, list) else value for name, value in params.items()}
        accepted = inspect.signature(generate).parameters
        return generate(**given, **({"seed": seed} if "seed" in accepted else {}))

    def _single(self, value: Any) -> Any:
        """KernelBench runs its problems in fp32 on the device."""
        if not isinstance(value, torch.Tensor):
            return value
        value = value.float() if value.is_floating_point() else value
        return value.to("cuda") if self._mode.device_type == "cuda" else value

    def _answer(self, data: Any, exact: bool, seed: int) -> Any:
        if self.kind == "gpu-mode":
            return importlib.import_module("reference").ref_kernel(data)
        assert self._model is not None
        set_seed(seed)
        if not exact:
            return self._model(*data)
        if self._exact is None:
            self._exact = _doubled(copy.deepcopy(self._model))
        with _default(torch.float64):
            return self._exact(*(_double(value) for value in data))

    def _take(self, buffer: Buffer) -> dict[str, Any]:
        if self._held is None:
            raise ValueError("nothing was made to be taken")
        held, self._held = self._held, None
        held.write(buffer.memory)
        buffer.publish()
        self._mode.settle()
        return {"op": "taken", "tree": held.tree}

    def _check(self, data: Any, output: Any) -> dict[str, Any]:
        said = importlib.import_module("reference").check_implementation(data, output)
        # Three generations of checkers: (right, message), right, or the message alone, empty where it is right.
        right, message = said if isinstance(said, tuple) else (said == "" if isinstance(said, str) else said, said)
        return {"op": "checked", "passed": bool(right), "message": str(message)[:2000]}


def _fits(own: Any, value: Any) -> bool:
    return isinstance(own, torch.Tensor) and isinstance(value, torch.Tensor) and own.shape == value.shape


def _double(value: Any) -> Any:
    return value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value


def _doubled(model: torch.nn.Module) -> torch.nn.Module:
    """In float64, with tensors that are plain attributes, which `Module.double` leaves alone."""
    for module in model.double().modules():
        for name, value in list(vars(module).items()):
            if isinstance(value, torch.Tensor):
                setattr(module, name, _double(value))
    return model


@contextlib.contextmanager
def _default(dtype: torch.dtype) -> Any:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


class _Generator(torch.Generator):
    """`torch.Generator(device="cuda")` where there is no GPU: the CPU's."""

    def __new__(cls, device: Any = "cpu") -> _Generator:
        return super().__new__(cls, "cpu")


def _map_generators() -> None:
    torch.Generator = _Generator
