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
    only: Annotated[
        str, typer.Option(help="Names or classes to take, * and ? allowed, with commas; needs=gpu too.")
    ] = "*",
    advise_only: Annotated[bool, typer.Option("--advise-only", help="What the screen sees convicts nobody.")] = False,
    without: Annotated[list[str] | None, typer.Option(help="Also try the attacks on one defence, without it.")] = None,
    ablate: Annotated[bool, typer.Option("--ablate", help="Also take down every defence, one by one.")] = False,
    eval_dir: Annotated[Path | None, typer.Option(help="GPU MODE's eval.py, one folder a problem, beside us.")] = None,
    weak: Annotated[bool, typer.Option("--weak/--no-weak", help="Whether weak judges prove that attacks work.")] = True,
    jobs: Annotated[int, typer.Option(min=0, help="Files judged side by side; 0 for one a core, on a GPU one.")] = 0,
    deadline_s: Annotated[float, typer.Option(min=1.0, help="Seconds until a candidate is killed.")] = 30.0,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write everything to this file.")] = None,
    record: Annotated[Path | None, typer.Option(help="Write the table of proofs to this Markdown file.")] = None,
    resume: Annotated[Path | None, typer.Option(help="Keep each answer in this file; take up those it holds.")] = None,
    runs: Annotated[list[Path] | None, typer.Option("--from", help="Play nothing: read these --json files.")] = None,
) -> None:
    """Judge every attack and every honest control of the corpus.

    With `--from`, once for each, the runs read are reported together: a CPU's and a GPU's make one table.

    Exit status: 0 no attack got in and no honest file was refused, 1 not, 2 usage, 3 machine fault.
    """
    if runs:
        reports = _read(runs)
    else:
        place = place_of(runner)
        given: dict[str, Any] = {"place": place, "jobs": jobs or _jobs(place), "deadline_s": deadline_s}
        given |= {"screen": not advise_only, "evaluators": eval_dir, "weak": weak}
        report, setting = _played(given, corpus, only, _defences(without or [], ablate), resume)
        _write(report, setting, json_file)
        reports = [report]
    _tell(reports, record)
    raise typer.Exit(_status(reports))


def _read(paths: list[Path]) -> list[Report]:
    from evals.redteam_report import from_json

    return [from_json(path) for path in paths]


def _played(
    given: dict[str, Any], folder: Path, only: str, off: tuple[str, ...], resume: Path | None
) -> tuple[Report, Setting]:
    from evals import redteam as team
    from evals.redteam_corpus import corpus
    from evals.redteam_report import Report
    from evals.redteam_rows import Rows

    specimens = corpus(folder, only)
    with _problems(given["place"], {one.problem for one in specimens}) as root:
        setting = team.Setting.model_validate(given | {"root": root})
        machine = _machine(setting.place)
        rows = Rows(resume, f"{machine}, screen {setting.screen}, deadline {setting.deadline_s:g} s")
        results = team.play(setting, specimens, lambda up, at: _runner(setting.place, up, at), note, rows)
        table = team.ablate(setting, specimens, lambda up, at: _runner(setting.place, up, at), off, note, rows)
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


def _write(report: Report, setting: Setting, json_file: Path | None) -> None:
    from evals.redteam_report import as_json

    if json_file is not None:
        json_file.write_text(json.dumps(as_json(report, setting), indent=1))
        note(f"wrote {json_file}")


def _tell(reports: list[Report], record: Path | None) -> None:
    from evals.redteam_report import lines
    from evals.redteam_table import as_markdown

    for text in (text for report in reports for text in lines(report)):
        say(text)
    if record is not None:
        record.write_text(as_markdown(reports))
        note(f"wrote {record}")


def _status(reports: list[Report]) -> Status:
    """A file that the place failed to judge leaves the run incomplete."""
    if any(report.faults() for report in reports):
        return Status.MACHINE
    return Status.ACCEPTED if all(report.clean for report in reports) else Status.NOT_ACCEPTED
