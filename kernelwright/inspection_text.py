"""Compiled kernels for a reader at a terminal: registers, occupancy, what each loop costs on each target, advice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rich.table import Table

from kernelwright.console import escape, result_console, say, table
from sandbox.inspection import LoopCost
from sandbox.verdict import IsaReport, KernelRecord

LOOPS = 3
"""Loops shown of each kernel, costliest first."""


def show(records: tuple[KernelRecord, ...]) -> None:
    """The kernels, their loops on all targets side by side, and the advice."""
    result_console().print(kernels(records))
    reports = [record.isa for record in records if record.isa is not None]
    if any(report.loops for report in reports):
        result_console().print(loops(reports))
    for line in advice(reports):
        say(f"  {line}")


def kernels(records: tuple[KernelRecord, ...]) -> Table:
    """Registers, LDS, spills, occupancy and MFMA of each compiled kernel."""
    shown = table("", "kernel", "target", "VGPR", "AGPR", "SGPR", "spills", "LDS B", "occupancy", "MFMA")
    for record in records:
        isa = record.isa
        if isa is None:
            shown.add_row(escape(_short(record.name)), record.target, escape(record.error or "no report"))
            continue
        mfma = ", ".join(f"{name} x{count}" for name, count in isa.mfma.items()) or "none"
        figures = (isa.vgpr, isa.agpr, isa.sgpr, isa.vgpr_spills + isa.sgpr_spills, isa.lds_bytes)
        occupancy = f"{isa.occupancy_waves} ({isa.occupancy_limit})"
        shown.add_row(escape(_short(record.name)), record.target, *map(str, figures), occupancy, escape(mfma))
    return shown


def loops(reports: list[IsaReport]) -> Table:
    """Cycles an iteration by pipe, the binding one first: a row a loop, a column a target."""
    targets = sorted({report.target for report in reports})
    shown = table("cycles of one iteration, by pipe", "kernel", "loop", *targets)
    rows: dict[tuple[str, ...], None] = {}
    for by_target in _specialisations(reports):
        name = next(iter(by_target.values())).kernel
        for index in range(min(LOOPS, max(len(report.loops) for report in by_target.values()))):
            found = [by_target[target].loops[index : index + 1] if target in by_target else () for target in targets]
            rows[escape(_short(name)), str(index + 1), *(_cycles(cell[0]) if cell else "" for cell in found)] = None
    for row in rows:
        shown.add_row(*row)
    return shown


def advice(reports: list[IsaReport]) -> Iterator[str]:
    """One line for each thing to look at: where several specialisations show it, the first of them."""
    told: dict[tuple[str, str, str], tuple[str, int]] = {}
    for report in reports:
        for item in report.advice:
            where = f" (line {item.line}: {item.instruction})" if item.line else ""
            key = (report.kernel, report.target, item.rule)
            text, count = told.get(key, (f"{item.message}{where}; {item.remedy}", 0))
            told[key] = text, count + 1
    for (kernel, target, rule), (text, count) in told.items():
        yield f"{_short(kernel)}, {target}: {text} ({rule}{f', {count} times' if count > 1 else ''})"


def _short(name: str) -> str:
    """A C++ kernel without its parameters, which would push every figure off the screen."""
    return name.partition("(")[0] or name


def _specialisations(reports: list[IsaReport]) -> Iterator[dict[str, IsaReport]]:
    """The reports of each kernel by target; where one name was compiled several times, the first with the first."""
    found: dict[tuple[str, int], dict[str, IsaReport]] = {}
    seen: Counter[tuple[str, str]] = Counter()
    for report in reports:
        found.setdefault((report.kernel, seen[report.kernel, report.target]), {})[report.target] = report
        seen[report.kernel, report.target] += 1
    yield from found.values()


def _cycles(loop: LoopCost) -> str:
    others = ", ".join(f"{name} {count:.4g}" for name, count in loop.cycles.items() if name != loop.binding and count)
    return f"{loop.binding} {loop.cycles_per_iteration:.4g}" + (f" ({others})" if others else "")
