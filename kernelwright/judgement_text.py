"""A judgement for a reader at a terminal. Every time says whether it was measured or estimated, and for which chip."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from evals.report import readiness
from kernelwright import inspection_text, judgement_json
from kernelwright.console import escape, result_console, say, table
from problems.spec import Problem
from sandbox.verdict import Judgement, Machine, Profile, board_score_us, score_us

LOG_LINES = 40


def show(problem: Problem, judgement: Judgement) -> None:
    """Verdict, readiness, cases, score, kernels and flags."""
    said = judgement_json.judged(problem, judgement)
    say(f"{problem.name}: {words(judgement.verdict.kind)}", "bold green" if judgement.accepted else "bold red")
    say(f"  {said['reason']}")
    say(f"  {readiness(judgement)}")
    if said["log"]:
        say(_tail(said["log"]), "dim")
    for finding in said["findings"]:
        say(f"  line {finding['line']}: {finding['message']} ({finding['rule']})")
    if said["cases"]:
        result_console().print(_cases(said["cases"]))
    say(f"score by the board's ranking: {score_words(problem, judgement)}")
    if said["estimate_trust"]:
        say(f"  {said['estimate_trust']}", "dim")
    if (board_us := board_score_us(problem, judgement)) is not None:
        say(f"timed as on the board: {board_us:.4g} us on {judgement.machine.chip}")
    if judgement.kernels:
        inspection_text.show(judgement.kernels)
    for profile in judgement.profiles:
        _profile(profile)
    for flag in judgement.flags:
        say(f"flag: {flag}", "yellow")
    say(machine_words(judgement.machine) + f"; sandbox {judgement.sandbox}", "dim")


def words(kind: str) -> str:
    """``wrong_answer`` as two words."""
    return kind.replace("_", " ")


def score_words(problem: Problem, judgement: Judgement) -> str:
    """The score with its kind and chip, or that there is none."""
    us = score_us(problem, judgement)
    if us is None:
        return "none"
    chip = judgement.machine.chip
    return (
        f"{us:.4g} us measured on {chip}" if judgement.time_kind == "measured" else f"{us:.4g} us estimated for {chip}"
    )


def machine_words(machine: Machine) -> str:
    """Where it was judged, in one line."""
    match machine.kind:
        case "cpu-emulation":
            place = f"emulated on a CPU, compiled for {machine.chip} ({machine.arch})"
        case "gpu":
            place = f"ran on {machine.chip} ({machine.arch}), {machine.runtime}"
        case "fake":
            place = "a stand-in answered; nothing ran"
    return f"{place}; torch {machine.torch}, triton {machine.triton}"


def _profile(profile: Profile) -> None:
    """Kernels by time, then counters, then what there was not."""
    at = f" on {profile.case.label()}, {profile.calls} calls" if profile.case is not None else ""
    say(f"profile by {profile.tool}{at}", "bold")
    if profile.kernels:
        shown = table("", "kernel", "calls", "us on the device")
        for kernel in profile.kernels:
            shown.add_row(escape(kernel.name), str(kernel.calls), f"{kernel.device_us:.4g}")
        result_console().print(shown)
    for name, value in profile.counters.items():
        say(f"  {name}: {value:g}")
    for note in profile.notes:
        say(f"  {note}", "dim")


def _cases(rows: list[dict[str, Any]]) -> Table:
    shown = table("", "case", "role", "verdict", "worst error / allowed", "board", "time")
    for row in rows:
        error = row["error"]
        worst = f"{float(error['worst_ratio']):.3g}" if error else ""
        board = {True: "accepts", False: "refuses", None: ""}[row["board_accepts"]]
        fill = "" if row["fill"] == "published" else f"; fill: {row['fill']}"
        shown.add_row(
            escape(row["spec"] + fill), row["role"] or "", words(row["verdict"] or ""), worst, board, _time(row["time"])
        )
    return shown


def _time(time: dict[str, Any] | None) -> str:
    match time:
        case {"kind": "measured", "us": us, "chip": chip, "interval_us": [float(low), float(high)]}:
            return escape(f"{us:.4g} us [{low:.4g}, {high:.4g}] measured, {chip}")
        case {"kind": "measured", "us": us, "chip": chip}:
            return f"{us:.4g} us measured, {chip}"
        case {"kind": "estimated", "us": us, "chip": chip, "bound": bound}:
            return f"{us:.4g} us estimated, {chip} ({bound})"
        case {"kind": "none", "reason": reason}:
            return escape(f"none: {reason}")
        case _:
            return ""


def _tail(log: str) -> str:
    lines = log.rstrip().splitlines()
    left_out = [f"... {len(lines) - LOG_LINES} more lines; --json gives all"] if len(lines) > LOG_LINES else []
    return "\n".join(left_out + lines[-LOG_LINES:])
