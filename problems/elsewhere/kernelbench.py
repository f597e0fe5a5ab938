"""KernelBench's problem files: a class ``Model``, what it is built from, and what it is called on. Read, never run.

Format as read in ScalingIntelligence/KernelBench@423217d.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

from problems.elsewhere.needs import missing
from problems.spec import BoardCheck, BoardTiming, Case, Origin, ParamValue, Problem, ProblemError, Tolerance

NEEDED = ("Model", "get_inputs", "get_init_inputs")
RTOL_NOW, RTOL_FIRST = 1e-4, 1e-2
"""Its absolute and relative tolerance for fp32: as of 423217d, and in versions 0 and 0.1."""
EXACT = Tolerance(
    rtol=2.0**-19,
    term_rtol=0.0,
    reason="Against the same Model in float64, weights and inputs converted. An element may be off by the larger of "
    "16 steps of fp32 (2^-19) and 16 times what the Model itself is off at its worst in fp32 (2^-10 at most), times "
    "|exact| plus the root mean square of the result: another order of sums passes, TF32, fp16 or a lost term do not.",
)
_SMALLEST_SIZE = 2
_LARGEST_SIZE = 1 << 40


_ACTS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Mult: lambda one, other: one * other,
    ast.Add: lambda one, other: one + other,
    ast.Sub: lambda one, other: one - other,
    ast.LShift: lambda one, other: one << other if 0 <= other < 64 else 0,
    ast.Pow: lambda one, other: one**other if 0 <= other < 64 else 0,
}


def read(path: Path, name: str) -> Problem:
    """The problem in a KernelBench file, called `name`; `ProblemError` names file, field and cure."""
    try:
        tree = ast.parse(path.read_bytes())
    except OSError as error:
        raise ProblemError(f"{path}: cannot be read: {error.strerror}; give a KernelBench file") from error
    except (SyntaxError, ValueError) as error:
        raise ProblemError(f"{path}: does not parse: {error}; complete or correct it") from error
    lacking = [needed for needed in NEEDED if needed not in defined(tree)]
    if lacking:
        raise ProblemError(f"{path}: does not define {', '.join(lacking)}; a KernelBench file defines all three")
    case = Case(params=sizes(tree))
    return Problem(
        name=name,
        title=path.stem.partition("_")[2].strip("_").replace("_", " ") or path.stem,
        board=f"KernelBench {path.parent.name}",
        chips=("any GPU",),
        inputs="what get_inputs() gives, as float32 where it is floating point",
        returns="what Model(*get_init_inputs())(*get_inputs()) returns; define a class ModelNew that is used alike",
        output_dtype="float32",
        tests=(case,),
        benchmarks=(case,),
        small=(case,),
        tolerance=EXACT,
        board_check=BoardCheck(
            rtol=RTOL_NOW,
            atol=RTOL_NOW,
            difference="promoted",
            source="ScalingIntelligence/KernelBench@423217d src/kernelbench/eval.py: torch.allclose in fp32",
        ),
        board_timing=BoardTiming(
            evaluator="KernelBench's timing.py", clock="event", flush_l2=True, ranked_by="mean", source=str(path)
        ),
        flops={},
        bytes="0",
        origin=Origin(
            kind="kernelbench", path=str(path), sources={"problem.py": str(path)}, matched=True, unmet=_unmet(tree)
        ),
    )


def sizes(tree: ast.Module) -> dict[str, ParamValue]:
    """The file's whole numbers at module level, and rows of them, by name: sizes that a smaller run may change."""
    found: dict[str, ParamValue] = {}
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                number = _number(value)
                if number is not None and _SMALLEST_SIZE <= number < _LARGEST_SIZE:
                    found[name] = number
                elif isinstance(value, ast.Tuple | ast.List) and value.elts:
                    several = [_number(item) for item in value.elts]
                    if all(each is not None and 0 <= each < _LARGEST_SIZE for each in several):
                        found[name] = tuple(each for each in several if each is not None)
    return found


def _number(node: ast.expr) -> int | None:
    """A whole number written out, or a product, sum, difference, shift or power of such."""
    match node:
        case ast.Constant(value=bool()):
            return None
        case ast.Constant(value=int(number)):
            return number
        case ast.BinOp(left=left, op=op, right=right) if (act := _ACTS.get(type(op))) is not None:
            one, other = _number(left), _number(right)
            return None if one is None or other is None or max(one, other) > _LARGEST_SIZE else act(one, other)
        case _:
            return None


def defined(tree: ast.Module) -> set[str]:
    """Names of the classes and functions at module level."""
    return {node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)}


def _unmet(tree: ast.Module) -> str:
    froms = {node.module for node in tree.body if isinstance(node, ast.ImportFrom) and node.module}
    if "transformers" in froms:
        return "downloads a Hugging Face model by name; a reference's guest has no network, nor transformers"
    return missing(tree, set())
