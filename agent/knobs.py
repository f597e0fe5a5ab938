"""Seed kernels and their knobs: ``NAME = literal  # knob`` in the source, what each may be in ``knobs.toml`` beside it.

::

    [knobs.BLOCK_M]
    values = [32, 64, 128]
    default = 64
    why = "Rows of the output tile of one program."

    [[constraints]]
    expression = "BLOCK_M * BLOCK_K * 2 * NUM_STAGES <= lds_bytes"
    why = "The operand tiles of every stage lie in LDS."

A knob may name the Triton backends it matters to (``targets = ["hip"]``); on another it keeps its default.
"""

from __future__ import annotations

import ast
import math
import re
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from agent.move import Assignment, Knob
from problems.expression import ExpressionError, holds, variables
from problems.spec import Frozen, ProblemError

_LINE = re.compile(
    r"^(?P<head>(?P<name>[A-Za-z_]\w*)\s*(?::[^=#]+)?=\s*)(?P<literal>[^#\n]+?)(?P<tail>\s*#\s*knob\b.*)$"
)
LDS_BYTES = "lds_bytes"
Backend = Literal["hip", "cuda"]


class KnobError(ProblemError):
    """A seed kernel's knobs are not declared rightly, or an assignment does not fit them. Names file and cure."""


class KnobSpec(Frozen):
    """What one knob may be."""

    values: tuple[bool | int | str, ...] = Field(min_length=1)
    default: bool | int | str
    why: str
    targets: tuple[Backend, ...] = ("hip", "cuda")


class ConstraintSpec(Frozen):
    """A condition between knobs and the chip's `lds_bytes`."""

    expression: str
    why: str = ""


class SpaceSpec(Frozen):
    """A whole ``knobs.toml``."""

    knobs: dict[str, KnobSpec] = Field(default={})
    constraints: tuple[ConstraintSpec, ...] = ()
    architectures: tuple[str, ...] = ()
    """``gfx942``: those that the kernel is written for; every one, where none is named."""


@dataclass(frozen=True, slots=True)
class SeedKernel:
    """A handwritten kernel, its knobs, and the conditions between them."""

    name: str
    """``amd/fp8-mm/block_scaled``: its folder under ``seed_kernels/``."""
    source: str
    knobs: dict[str, KnobSpec]
    constraints: tuple[str, ...]
    """Expressions over the knobs and `lds_bytes`."""
    architectures: tuple[str, ...] = ()
    """Those that the kernel is written for; every one, where none is named."""

    @property
    def settings(self) -> int:
        """Number of assignments, those against the constraints counted too."""
        return math.prod(len(knob.values) for knob in self.knobs.values())

    @property
    def defaults(self) -> Assignment:
        """Every knob at its default."""
        return {name: knob.default for name, knob in self.knobs.items()}

    def on(self, backend: Backend) -> SeedKernel:
        """The same kernel with the knobs that do not matter to `backend` held at their defaults."""
        knobs = {
            name: knob if backend in knob.targets else knob.model_copy(update={"values": (knob.default,)})
            for name, knob in self.knobs.items()
        }
        return replace(self, knobs=knobs)

    def allows(self, knobs: Assignment, lds_bytes: int) -> bool:
        """Whether an assignment meets every constraint on a chip with `lds_bytes` of LDS per compute unit."""
        values = {**knobs, LDS_BYTES: lds_bytes}
        return all(holds(constraint, values) for constraint in self.constraints)

    def setting(self, index: int) -> Assignment:
        """The assignment of that number, from 0 to `settings` - 1, in the mixed radix of the knobs."""
        knobs: Assignment = {}
        for name, knob in self.knobs.items():
            index, digit = divmod(index, len(knob.values))
            knobs[name] = knob.values[digit]
        return knobs


def load_seed(folder: Path, name: str) -> SeedKernel:
    """The seed kernel in `folder`; `KnobError` where a file is missing or source and declaration do not agree."""
    source, spec = _read(folder / "submission.py"), _spec(folder / "knobs.toml")
    marked = declared(source)
    for knob in spec.knobs:
        if knob not in marked:
            raise KnobError(f"{folder}/knobs.toml: {knob} has no line `{knob} = ...  # knob` in submission.py; add one")
        _check(folder, knob, spec.knobs[knob], marked[knob])
    if missing := sorted(set(marked) - set(spec.knobs)):
        raise KnobError(f"{folder}/submission.py marks {', '.join(missing)}: add [knobs.{missing[0]}] to knobs.toml")
    constraints = tuple(_constraint(folder, constraint.expression, spec) for constraint in spec.constraints)
    return SeedKernel(name, source, spec.knobs, constraints, spec.architectures)


def load_seeds(root: Path, problem: str, architecture: str | None = None) -> tuple[SeedKernel, ...]:
    """Every seed kernel of a problem under `root` (the folder ``seed_kernels``), by name; none where it has none.

    With an `architecture` (``gfx942``, ``sm_90``), only those that are written for it.
    """
    folders = sorted(path.parent for path in (root / problem).glob("*/submission.py"))
    seeds = (load_seed(folder, folder.relative_to(root).as_posix()) for folder in folders)
    return tuple(seed for seed in seeds if architecture in (None, *(seed.architectures or (architecture,))))


def declared(source: str) -> Assignment:
    """The knobs that a source marks, with their values there; `KnobError` for a mark that cannot be read."""
    found: Assignment = {}
    for number, line in enumerate(source.splitlines(), 1):
        match = _LINE.match(line)
        if match is None:
            continue
        if match["name"] in found:
            raise KnobError(f"line {number}: knob {match['name']} is marked twice; keep one")
        found[match["name"]] = _literal(match["literal"], number, match["name"])
    return found


def apply(source: str, knobs: Assignment) -> str:
    """The source with its knobs set: exact edits of the marked lines, every other byte as it was.

    `KnobError` for a knob that the source does not mark.
    """
    marked = declared(source)
    if unknown := sorted(set(knobs) - set(marked)):
        raise KnobError(f"no knob {', '.join(unknown)} in this source; it marks {', '.join(marked) or 'none'}")
    return "".join(_edited(line, knobs, marked) for line in source.splitlines(keepends=True))


def _edited(line: str, knobs: Assignment, marked: Assignment) -> str:
    body = line.rstrip("\r\n")
    match = _LINE.match(body)
    if match is None or match["name"] not in knobs or _same(knobs[match["name"]], marked[match["name"]]):
        return line
    value = knobs[match["name"]]
    text = f'"{value}"' if isinstance(value, str) else repr(value)
    return match["head"] + text + match["tail"] + line[len(body) :]


def _literal(text: str, number: int, name: str) -> Knob:
    try:
        value = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError) as error:
        raise KnobError(f"line {number}: knob {name} must be a plain literal, not {text.strip()!r}") from error
    if isinstance(value, int | str):
        return value
    raise KnobError(f"line {number}: knob {name} must be a whole number, a text or a truth value, not {text.strip()!r}")


def _constraint(folder: Path, expr: str, spec: SpaceSpec) -> str:
    try:
        if unknown := sorted(variables(expr) - {*spec.knobs, LDS_BYTES}):
            raise ExpressionError(f"{', '.join(unknown)} is no knob of {', '.join(spec.knobs)}, nor {LDS_BYTES}")
        holds(expr, {**{name: knob.default for name, knob in spec.knobs.items()}, LDS_BYTES: 65536})
    except ExpressionError as error:
        raise KnobError(f"{folder}/knobs.toml: constraint {expr!r}: {error}; correct it") from error
    return expr


def _check(folder: Path, name: str, knob: KnobSpec, in_source: Knob) -> None:
    if not any(_same(knob.default, value) for value in knob.values):
        raise KnobError(f"{folder}/knobs.toml: the default of {name} ({knob.default!r}) is not among its values")
    if not _same(knob.default, in_source):
        raise KnobError(
            f"{folder}: {name} is {in_source!r} in submission.py and {knob.default!r} in knobs.toml; make them the same"
        )
    if len({(type(value), value) for value in knob.values}) < len(knob.values):
        raise KnobError(f"{folder}/knobs.toml: {name} lists a value twice")


def _same(one: Knob, other: Knob) -> bool:
    return type(one) is type(other) and one == other


def _spec(path: Path) -> SpaceSpec:
    try:
        content: dict[str, Any] = tomllib.loads(_read(path))
        return SpaceSpec.model_validate(content, strict=False)
    except tomllib.TOMLDecodeError as error:
        raise KnobError(f"{path} is not TOML: {error}") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise KnobError(f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise KnobError(f"cannot read {path}: {error}; a seed kernel needs submission.py and knobs.toml") from error
