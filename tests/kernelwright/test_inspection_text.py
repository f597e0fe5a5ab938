"""A kernel's loops stand side by side for both targets, and each piece of advice is said once."""

import io

from rich.console import Console

from kernelwright.inspection_text import advice, loops
from sandbox.kernel_report import report
from tests.sandbox.recorded import evidence


def test_loops_side_by_side() -> None:
    reports = [report(evidence(target).kernels[1]) for target in ("gfx942", "gfx950")]
    page = io.StringIO()
    Console(file=page, width=200).print(loops([*reports, *reports]))
    rows = [line for line in page.getvalue().splitlines() if line.startswith("matmul")]
    assert len(rows) == 1
    assert "mfma 1024 (" in rows[0] and "mfma 512 (" in rows[0]


def test_advice_is_said_once() -> None:
    spilled = report(evidence().kernels[3])
    told = list(advice([spilled, spilled]))
    assert len(told) == len(spilled.advice)
    assert told[0].startswith("matmul, gfx942: 82 registers are spilled") and told[0].endswith("(spill, 2 times)")
