"""``kernelwright redteam``: the attack corpus against a runner, and against weaker judges beside it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernelwright.console import note, say
from kernelwright.options import RunnerName
from kernelwright.runners import Place, place_of
from kernelwright.status import Status, UsageError

if TYPE_CHECKING:
    from evals.redteam import Setting
    from evals.redteam_report import Report
    from sandbox.defences import Defences
    from sandbox.runner import Runner

CORPUS = Path(__file__).parents[2] / "tests/exploits"


def redteam(
    runner: RunnerName = "auto",
    corpus: Annotated[Path, typer.Option(help="Its folders: attacks, honest.")] = CORPUS,
    only: Annotated[str, typer.Option(help="Names or classes to take, * and ? allowed, with commas.")] = "*",
    advise_only: Annotated[bool, typer.Option("--advise-only", help="What the screen sees convicts nobody.")] = False,
    without: Annotated[list[str] | None, typer.Option(help="Also try the attacks on one defence, without it.")] = None,
    ablate: Annotated[bool, typer.Option("--ablate", help="Also take down every defence, one by one.")] = False,
    eval_dir: Annotated[Path | None, typer.Option(help="GPU MODE's eval.py, one folder a problem, beside us.")] = None,
    weak: Annotated[bool, typer.Option("--weak/--no-weak", help="Whether weak judges prove that attacks work.")] = True,
    jobs: Annotated[int, typer.Option(min=0, help="Files judged side by side; 0 for one a core, on a GPU one.")] = 0,
    deadline_s: Annotated[float, typer.Option(min=1.0, help="Seconds until a candidate is killed.")] = 30.0,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write everything to this file.")] = None,
    record: Annotated[Path | None, typer.Option(help="Write the table of proofs to this Markdown file.")] = None,
) -> None:
    """Judge every attack and every honest control of the corpus.

    Exit status: 0 no attack got in and no honest file was refused, 1 not, 2 usage, 3 machine fault.
    """
    place = place_of(runner)
    given: dict[str, Any] = {"place": place, "jobs": jobs or _jobs(place), "deadline_s": deadline_s}
    given |= {"screen": not advise_only, "evaluators": eval_dir, "weak": weak}
    report, setting = _played(given, corpus, only, _defences(without or [], ablate))
    _write(report, setting, json_file, record)
    raise typer.Exit(_status(report))


def _played(given: dict[str, Any], folder: Path, only: str, off: tuple[str, ...]) -> tuple[Report, Setting]:
    from evals import redteam as team
    from evals.redteam_corpus import corpus
    from evals.redteam_report import Report

    specimens = corpus(folder, only)
    with _problems(given["place"], {one.problem for one in specimens}) as root:
        setting = team.Setting.model_validate(given | {"root": root})
        results = team.play(setting, specimens, lambda up, at: _runner(setting.place, up, at), note)
        table = team.ablate(setting, specimens, lambda up, at: _runner(setting.place, up, at), off, note)
    machine = _machine(setting.place)
    return Report(place=setting.place, machine=machine, results=results, ablation=table, screen=setting.screen), setting


@contextmanager
def _problems(place: Place, names: set[str]) -> Iterator[Path]:
    from evals.redteam_problems import one_benchmark_each
    from problems.load import ROOT

    if place == "cpu":
        yield ROOT
        return
    with one_benchmark_each(names) as root:
        yield root


def _runner(place: Place, defences: Defences, root: Path) -> Runner:
    if place == "cpu":
        from sandbox.cpu import CpuRunner

        return CpuRunner(root=root, defences=defences)
    from sandbox.gpu import GpuRunner

    return GpuRunner(root=root, defences=defences)


def _machine(place: Place) -> str:
    from problems.load import ROOT
    from sandbox.defences import Defences

    runner = _runner(place, Defences(), ROOT)
    try:
        seen = runner.machine()
    finally:
        runner.close()
    chip = f"emulating {seen.chip}" if seen.kind == "cpu-emulation" else seen.chip
    return f"{chip}, torch {seen.torch}, triton {seen.triton}, harness {seen.harness[:12]}"


def _defences(named: list[str], every: bool) -> tuple[str, ...]:
    from sandbox.defences import Defences

    known = tuple(Defences.model_fields)
    for name in named:
        if name not in known:
            raise UsageError(f"there is no defence {name!r}; there are {', '.join(known)}")
    return known if every else tuple(named)


def _jobs(place: Place) -> int:
    """One at a time where times are taken."""
    return 1 if place == "gpu" else min(8, os.cpu_count() or 1)


def _write(report: Report, setting: Setting, json_file: Path | None, record: Path | None) -> None:
    from evals.redteam_report import as_json, as_markdown, lines

    said = lines(report)
    for text in said:
        say(text)
    if json_file is not None:
        json_file.write_text(json.dumps(as_json(report, setting), indent=1))
        note(f"wrote {json_file}")
    if record is not None:
        record.write_text(as_markdown(report, said))
        note(f"wrote {record}")


def _status(report: Report) -> Status:
    """A file that the place failed to judge leaves the run incomplete."""
    if any(result.kind == "fault" for result in report.results):
        return Status.MACHINE
    return Status.ACCEPTED if report.clean else Status.NOT_ACCEPTED
