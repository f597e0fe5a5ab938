"""Our references and generators against GPU MODE's own: the same inputs through both, and the same structure from both.

``python -m tests.bench.upstream --sets DIR [--problem NAME] [--device cpu|cuda] [--out FILE]``

DIR is a checkout of gpu-mode/reference-kernels. Inputs come from its generator; its reference's answer is held against
our float64 result by our tolerance. Before its last rounding it may use a tenth of that: so their reference also runs
on the inputs in float64, where it takes them; where it does not, 99.9 % of its answer must be within one step of the
numbers of its dtype. On a CPU only small cases run.
"""

from __future__ import annotations

import argparse
import copy
import platform
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from problems import load, names
from problems.load import ROOT, work
from problems.made import Made
from problems.spec import Case, Problem
from sandbox.checker.rule import compare
from sandbox.checker.task import Task, open_task
from tests.bench.place import leave
from tests.bench.upstream_sets import folder_of, loaded, on

MOST = {"cpu": (4e9, 6e7, 4), "cuda": (4e12, 8e9, 100)}
"""Operations and bytes of a case, at most, and cases of a problem."""
SEED = 4242
TENTH, SHARE = 0.1, 0.999


@dataclass(frozen=True, slots=True)
class Row:
    """What one case showed; `said` is empty where all is well."""

    problem: str
    case: str
    worst_ratio: float
    """Largest error of their answer over what our tolerance allows."""
    within_step: float
    """Share of elements within one step of the result's dtype."""
    unrounded_ratio: float | None
    """As `worst_ratio`, by their reference on the inputs in float64; None where it does not take or return them."""
    said: str

    @property
    def agrees(self) -> bool:
        """Whether their answer is ours as far as its dtype can tell."""
        before = self.worst_ratio if self.unrounded_ratio is None else self.unrounded_ratio
        return self.worst_ratio <= 1 and (before <= TENTH or self.within_step >= SHARE)


def main() -> None:
    """Print a table, a line for each problem."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=Path, required=True)
    parser.add_argument("--problem", choices=names(), action="append", help="all, if left out")
    parser.add_argument("--device", choices=sorted(MOST), default="cpu")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    print("| problem | cases | worst error over tolerance | in float64 | within one step | structure | remarks |")
    print("|---|---|---|---|---|---|---|")
    rows: list[Row] = []
    for name in options.problem or names():
        found, remark = of_problem(load(name), options.sets, options.device)
        rows += found
        print(line(name, found, remark), flush=True)
    machine = {"torch": torch.__version__, "device": options.device, "processor": platform.processor()}
    if options.device == "cuda":
        machine["device"] = torch.cuda.get_device_name()
    print(f"\n{len(rows)} cases; {machine}")
    leave(options.out, {"machine": machine, "rows": [asdict(row) for row in rows]})


def line(name: str, rows: list[Row], remark: str) -> str:
    """One problem's row of the table."""
    if not rows:
        return f"| {name} | 0 | | | | | {remark} |"
    said = "; ".join(dict.fromkeys([remark, *(row.said for row in rows)])).strip("; ")
    wrong = "" if all(row.agrees for row in rows) else " **disagrees**"
    worst, near = max(row.worst_ratio for row in rows), min(row.within_step for row in rows)
    wide = [row.unrounded_ratio for row in rows if row.unrounded_ratio is not None]
    figures = f"{worst:.2g}{wrong} | {f'{max(wide):.1g}' if wide else ''} | {near:.3%}"
    return f"| {name} | {len(rows)} | {figures} | {'differs' if any(row.said for row in rows) else 'equal'} | {said} |"


def of_problem(problem: Problem, sets: Path, device: str) -> tuple[list[Row], str]:
    """A row for each case that the device can run, and a remark on the whole."""
    if problem.world_size > 1:
        return [], "not run: needs a process for each GPU"
    folder = folder_of(problem, sets)
    if folder is None:
        return [], "not run: not one of theirs"
    task = open_task(problem.name, ROOT, device)
    remark = "" if device != "cpu" or not problem.name.startswith("nvidia/") else "torch._scaled_mm is a stand-in"
    try:
        with loaded(folder) as theirs:
            return [of_case(task, theirs, case, device) for case in chosen(problem, device)], remark
    except ModuleNotFoundError as error:
        return [], f"not run: needs {error.name}"


def chosen(problem: Problem, device: str) -> list[Case]:
    """The largest published cases that the device can run, and our small ones, as the board draws them."""
    flops, moved, count = MOST[device]

    def cost(case: Case) -> tuple[float, float]:
        needed = work(problem, case)
        return sum(needed.flops.values()), needed.bytes

    every = (*problem.small, *problem.tests, *problem.benchmarks)
    drawn = {case.spec(): case for case in every if case.fill == "published"}
    small = [case for case in drawn.values() if cost(case)[0] <= flops and cost(case)[1] <= moved]
    return sorted(small, key=cost)[-count:]


def of_case(task: Task, theirs: ModuleType, case: Case, device: str) -> Row:
    """One case through both."""
    torch.manual_seed(SEED)
    with on(device):
        data = theirs.generate_input(**case.params, seed=case.seed or SEED)
        answer = theirs.ref_kernel(copy.deepcopy(data))
    ours = task.inputs(case, SEED)
    exact = task.exact(taken_as(data, ours))
    worst, near = held(task, answer, exact)
    said = "; ".join(differences(data, ours, "data"))
    return Row(task.problem.name, case.spec(), worst, near, unrounded(task, theirs, data, exact, device), said)


def held(task: Task, answer: Any, exact: list[tuple[torch.Tensor, torch.Tensor]]) -> tuple[float, float]:
    """(largest error over what our rule allows, least share within a step) of the tensors in `answer`."""
    parts = list(answer) if isinstance(answer, list | tuple) else [answer]
    rules = task.tolerances(len(exact))
    figures = [compare(part, *pair, rule) for part, pair, rule in zip(parts, exact, rules, strict=True)]
    shares = [within_step(part, pair[0]) for part, pair in zip(parts, exact, strict=True)]
    return max(each.worst_ratio for each in figures), min(shares)


def unrounded(
    task: Task, theirs: ModuleType, data: Any, exact: list[tuple[torch.Tensor, torch.Tensor]], device: str
) -> float | None:
    """The first of `held`, by their reference on the inputs in float64; None where it does not compute in that."""
    try:
        with on(device):
            answer = theirs.ref_kernel(widened(copy.deepcopy(data)))
    except (RuntimeError, TypeError, NotImplementedError):
        return None
    first = answer[0] if isinstance(answer, list | tuple) else answer
    narrow = first.to(task.output_dtype).double()
    # Some round on the way, or write into what they make themselves.
    taken = first.dtype == torch.float64 and not (first == narrow).all()
    return held(task, answer, exact)[0] if taken else None


def widened(data: Any) -> Any:
    """The tensors of 16 and 32 bits as float64; fp8 and fp4 are codes, not numbers to compute with."""
    match data:
        case torch.Tensor() if data.dtype in (torch.float16, torch.bfloat16, torch.float32):
            return data.double()
        case dict():
            return {key: widened(value) for key, value in data.items()}
        case list() | tuple():
            return type(data)(widened(value) for value in data)
        case _:
            return data


def within_step(out: torch.Tensor, exact: torch.Tensor) -> float:
    """Share of elements that are `exact` rounded to `out`'s dtype, or its neighbour."""
    return float(((_place(out) - _place(exact.to(out.dtype).reshape(out.shape))).abs() <= 1).double().mean())


def _place(values: torch.Tensor) -> torch.Tensor:
    """Each value's place among the numbers of its dtype, int64; neighbours differ by 1."""
    if not values.is_floating_point():
        return values.long()
    width = {2: torch.int16, 4: torch.int32, 8: torch.int64}[values.element_size()]
    bits = values.contiguous().view(width).long()
    return torch.where(bits < 0, -(bits & torch.iinfo(width).max), bits)


def taken_as(theirs: Any, ours: Any) -> Any:
    """Their inputs in the form of ours: an object of theirs as the `Made` that stands for it."""
    match ours:
        case Made(kind=kind, fields=fields):
            return Made(kind, {name: taken_as(getattr(theirs, name), field) for name, field in fields.items()})
        case dict():
            return {key: taken_as(theirs[key], value) for key, value in ours.items()}
        case list() | tuple():
            return type(ours)(taken_as(one, other) for one, other in zip(theirs, ours, strict=True))
        case _:
            return theirs


def differences(theirs: Any, ours: Any, at: str) -> Iterable[str]:
    """Where types, dtypes, shapes, strides, devices, keys or plain values are not the same."""
    match ours:
        case Made(fields=fields):
            for name, field in fields.items():
                yield from differences(getattr(theirs, name), field, f"{at}.{name}")
        case torch.Tensor():
            if facts(theirs) != facts(ours):
                yield f"{at}: theirs {facts(theirs)}, ours {facts(ours)}"
        case dict() if isinstance(theirs, dict) and set(theirs) == set(ours):
            for key, value in ours.items():
                yield from differences(theirs[key], value, f"{at}[{key!r}]")
        case list() | tuple() if type(theirs) is type(ours) and len(theirs) == len(ours):
            for index, pair in enumerate(zip(theirs, ours, strict=True)):
                yield from differences(*pair, f"{at}[{index}]")
        case _ if type(theirs) is not type(ours) or theirs != ours:
            yield f"{at}: theirs {theirs!r:.60}, ours {ours!r:.60}"


def facts(value: Any) -> tuple[object, ...]:
    """What two tensors must have in common; a bare type for anything else."""
    if not isinstance(value, torch.Tensor):
        return (type(value).__name__,)
    return value.dtype, tuple(value.shape), value.stride(), value.device.type


if __name__ == "__main__":
    main()
