"""A problem opened for judging: its spec and its reference, loaded by path."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

import torch

from problems.load import folder, load
from problems.spec import Case, Problem, ProblemError, Tolerance
from sandbox.checker.answer import Part, Wanted
from sandbox.checker.layout import Layout, Rights, lay_out
from sandbox.checker.places import Pattern
from sandbox.defences import ALL_UP, Defences

Exact = tuple[torch.Tensor, torch.Tensor]


class Reference(Protocol):
    """What a problem's ``reference.py`` defines. Trusted: it is part of this project."""

    def make_inputs(
        self, params: dict[str, Any], fill: str, generator: torch.Generator | None, device: str
    ) -> tuple[Any, ...]:
        """What `custom_kernel` gets; on the meta device, with no generator, the same shapes without memory."""

    def exact(self, data: tuple[Any, ...]) -> Exact | list[Exact]:
        """The float64 result, and the sum of the magnitudes of its terms, of one shape; a list of such pairs where
        several tensors are to be returned."""

    def board_expected(self, data: tuple[Any, ...]) -> torch.Tensor | list[torch.Tensor] | None:
        """What the board's reference returns; None where that hangs on a library this device does not have.

        Two names more are optional: `REPEATED`, patterns (`sandbox.checker.places`) of the inputs that hold once more
        what others hold, and ``repeated(data)``, which makes these anew, for data in which another has changed.
        """


@dataclass(frozen=True, slots=True)
class Task:
    """One problem with its reference, on the device the checker computes on, and the defences that are up."""

    problem: Problem
    reference: Reference
    device: str
    root: Path
    defences: Defences = ALL_UP

    def inputs(self, case: Case, seed: int) -> tuple[Any, ...]:
        """Fresh inputs of `case`."""
        generator = torch.Generator(self.device).manual_seed(seed)
        return self.reference.make_inputs(dict(case.params), case.fill, generator, self.device)

    def shapes(self, case: Case) -> tuple[Any, ...]:
        """The inputs' shapes and strides, without memory."""
        return self.reference.make_inputs(dict(case.params), case.fill, None, "meta")

    @property
    def repeating(self) -> tuple[Pattern, ...]:
        """The inputs that hold once more what others hold: they change with these, never alone."""
        return tuple(getattr(self.reference, "REPEATED", ()))

    def repeated(self, data: tuple[Any, ...]) -> tuple[Any, ...]:
        """`data` with these inputs made anew from the others."""
        remake = getattr(self.reference, "repeated", None)
        return data if remake is None else cast(tuple[Any, ...], remake(data))

    def exact(self, data: tuple[Any, ...]) -> list[Exact]:
        """What each returned tensor is held against; one where a single tensor is to be returned."""
        found = self.reference.exact(data)
        return found if isinstance(found, list) else [found]

    def board_expected(self, data: tuple[Any, ...]) -> list[torch.Tensor] | None:
        """As `exact`, by the board's reference."""
        found = self.reference.board_expected(data)
        return [found] if isinstance(found, torch.Tensor) else found

    def wanted(self, case: Case) -> Wanted:
        """What is to be returned on `case`."""
        found = self.reference.exact(self.shapes(case))
        shapes = [tuple(exact.shape) for exact, _ in (found if isinstance(found, list) else [found])]
        dtypes = self.problem.part_dtypes or (self.problem.output_dtype,) * len(shapes)
        parts = zip((getattr(torch, name) for name in dtypes), shapes, strict=True)
        return Wanted(tuple(Part(*part) for part in parts), isinstance(found, list))

    def tolerances(self, count: int) -> tuple[Tolerance, ...]:
        """The rule of each of `count` returned tensors."""
        return self.problem.part_tolerances or (self.problem.tolerance,) * count

    def lay_out(self, data: tuple[Any, ...], in_memory: bool = True) -> Layout:
        """`data` placed in the shared buffers, as the problem says what may be written and what lies on the host."""
        problem = self.problem
        return lay_out(data, Rights(problem.writable, problem.updated, problem.on_host), in_memory)

    @property
    def output_dtype(self) -> torch.dtype:
        """The dtype the problem asks for."""
        return cast(torch.dtype, getattr(torch, self.problem.output_dtype))


def open_task(
    name: str,
    root: Path,
    device: str,
    defences: Defences = ALL_UP,
) -> Task:
    """Load problem and reference; `ProblemError` where either is broken."""
    problem = load(name, root)
    path = folder(problem, root) / "reference.py"
    spec = importlib.util.spec_from_file_location(f"reference_{problem.name}", path)
    if spec is None or spec.loader is None:
        raise ProblemError(f"{path}: cannot be loaded; every problem folder needs it")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return Task(problem, cast(Reference, module), device, root, defences)
