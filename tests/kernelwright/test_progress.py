from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console

from agent.limits import Limits
from agent.move import Seed
from agent.progress import AttemptDone, Began, BestChanged, Faulted, Working
from agent.state import RunState
from dataset.blobs import Blobs
from kernelwright.progress import TerminalProgress, budget_words
from tests.evals.recorded_run import RUN_ID, attempts


def shown(tmp_path: Path, terminal: bool) -> str:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=terminal, width=160, color_system=None)
    limits, state = Limits(attempts=8, tokens=1000, usd=2.0, wall_s=60.0), RunState()
    with TerminalProgress(console) as progress:
        progress.show(Began(RUN_ID, tmp_path, limits, state))
        progress.show(Working(1, Seed("amd/fp8-mm/block_scaled", {}), "judging"))
        for attempt in attempts(Blobs(tmp_path)):
            before, state = state.best, state.after(attempt)
            progress.show(AttemptDone(attempt, state))
            if state.best is not before and state.best:
                progress.show(BestChanged(state.best, before))
        progress.show(Faulted(7, "lost the [checker]", 2))
    return stream.getvalue()


def test_lines_without_a_terminal(tmp_path: Path) -> None:
    text = shown(tmp_path, terminal=False)
    assert "\x1b" not in text
    assert "   1 seed      passed, 120 us estimated for MI300X; 7 attempts left, " in text
    assert "1000 tokens left, 2.00 USD left" in text
    assert "best so far: 60 us estimated for MI300X" in text
    assert "   3 tune      build failed: a kernel did not compile" in text
    assert "the machine failed, 2 tries left: lost the [checker]" in text
    assert "measured" not in text


def test_the_panel_is_taken_down_on_a_terminal(tmp_path: Path) -> None:
    text = shown(tmp_path, terminal=True)
    assert "\x1b" in text
    assert "best so far: 60 us estimated for MI300X" in text


def test_budgets_without_a_limit_are_not_told() -> None:
    assert budget_words(Limits(attempts=3), RunState()) == "3 attempts left"
    assert budget_words(None, RunState()) == "no budget known"
