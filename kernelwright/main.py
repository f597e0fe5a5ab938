"""The command ``kernelwright``: its commands, and how it ends when something known goes wrong."""

from __future__ import annotations

import io
import sys
from typing import Annotated

import typer

from kernelwright.commands import (
    audit,
    check,
    compare,
    compile,
    dataset,
    doctor,
    evaluate,
    imports,
    pack,
    problems,
    redteam,
    run,
    runs,
)
from kernelwright.console import fail
from kernelwright.status import families, status_of

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
app.add_typer(problems.app, name="problems")
problems.app.command("import")(imports.import_problems)
problems.app.command("audit")(audit.audit)
app.command("run")(run.run)
app.command("check")(check.check)
app.command("compare")(compare.compare)
app.command("compile")(compile.compile_file)
app.command("pack")(pack.pack)
app.add_typer(runs.app, name="runs")
runs.app.command("resume")(run.resume)
app.command("report")(runs.report_run)
app.add_typer(dataset.app, name="dataset")
app.command("eval")(evaluate.evaluate)
app.command("redteam")(redteam.redteam)
app.command("doctor")(doctor.doctor)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"kernelwright {version('kernelwright')}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """An agent that writes GPU kernels, and a judge that can prove they are right and fast."""


def main() -> None:
    """Run one command. Every known error is one message on standard error, and the exit status says which kind."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # an ASCII terminal must not end a run over a micro sign
    try:
        app()
    except families() as error:
        fail(str(error))
        sys.exit(status_of(error))
