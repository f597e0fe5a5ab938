"""A run's live progress: a panel on a terminal, plain lines elsewhere. Times always say measured or estimated."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self, assert_never

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from agent.limits import Limits
from agent.progress import AttemptDone, Began, BestChanged, Event, Faulted, Working
from agent.state import RunState, judgement, score_us, time_kind
from dataset.attempt import Attempt
from evals.visible import visible


class TerminalProgress:
    """Shows a run's events on `console`; a context, so that the panel is taken down whatever happens."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._began: Began | None = None
        self._state = RunState()
        self._doing = "starting"
        self._since_s = time.monotonic()
        self._live = Live(get_renderable=self._panel, console=console, transient=True, refresh_per_second=4)

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._live.stop()

    def show(self, event: Event) -> None:
        """Take one event: lines that stay for what happened, the panel for what is happening."""
        match event:
            case Began():
                self._began, self._state = event, event.state
                resumed = f", resumed after attempt {event.state.attempts}" if event.state.attempts else ""
                self._line(f"run {event.run_id}{resumed}, records in {event.folder}")
            case Working(seq=seq, move=move, stage=stage):
                self._doing = f"attempt {seq}: {stage} ({type(move).__name__.lower()})"
            case Faulted(seq=seq, message=message, tries_left=left):
                self._line(f"attempt {seq}: the machine failed, {left} tries left: {message}", "yellow")
            case AttemptDone(attempt=attempt, state=state):
                self._state, self._doing = state, "deciding"
                self._line(f"{attempt_words(attempt)}; {budget_words(self._limits, state)}")
            case BestChanged(attempt=attempt):
                self._line(f"  best so far: {score_text(attempt)}", "green")
            case _:
                assert_never(event)

    @property
    def _limits(self) -> Limits | None:
        return self._began.limits if self._began else None

    def _line(self, text: str, style: str | None = None) -> None:
        self._console.print(visible(text), style=style, markup=False, emoji=False)

    def _panel(self) -> Table:
        best, state = self._state.best, self._state
        shown = Table.grid(padding=(0, 2))
        shown.add_row("now", Text(f"{self._doing}, {time.monotonic() - self._since_s:.0f} s since the start"))
        shown.add_row("attempts", Text(f"{state.attempts}, {state.accepted} accepted"))
        shown.add_row("best", Text(f"{score_text(best)} (attempt {best.seq})" if best else "none yet"))
        shown.add_row("left", Text(budget_words(self._limits, state)))
        return shown


def attempt_words(attempt: Attempt) -> str:
    """One attempt in a line: its move, what came of it, its score."""
    said = judgement(attempt)
    if said is None:
        reason = getattr(attempt.outcome, "reason", "")
        return f"{attempt.seq:>4} {attempt.move.kind:<9} unusable: {_short(reason)}"
    reason = getattr(said.verdict, "reason", "")
    detail = f": {_short(reason)}" if reason else f", {score_text(attempt)}"
    return f"{attempt.seq:>4} {attempt.move.kind:<9} {said.verdict.kind.replace('_', ' ')}{detail}"


def score_text(attempt: Attempt) -> str:
    """The board's score with its kind and chip: ``93.2 us estimated for MI300X``."""
    us, said = score_us(attempt), judgement(attempt)
    if us is None or said is None:
        return "no time"
    kind = time_kind(attempt)
    return f"{us:.4g} us {kind} {'on' if kind == 'measured' else 'for'} {said.machine.chip}"


def budget_words(limits: Limits | None, state: RunState) -> str:
    """What is left of each budget that has a limit."""
    if limits is None:
        return "no budget known"
    spent = state.spent
    left = [f"{max(0, limits.attempts - state.attempts)} attempts left"]
    if limits.wall_s is not None:
        left.append(f"{max(0.0, limits.wall_s - spent.busy_s):.0f} s left")
    if limits.tokens is not None:
        left.append(f"{max(0, limits.tokens - spent.tokens)} tokens left")
    if limits.usd is not None:
        left.append(f"{max(0.0, limits.usd - spent.cost_usd):.2f} USD left")
    if spent.possibly_paid:
        left.append(f"{spent.possibly_paid} calls possibly paid without a reply")
    return ", ".join(left)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 120 else line[:117] + "..."
