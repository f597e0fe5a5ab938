"""``kernelwright doctor``: what this machine can do."""

from __future__ import annotations

import os

import typer

from kernelwright.console import escape, result_console, say_json, table
from kernelwright.options import AsJson
from kernelwright.status import Status

_STYLES = {"ok": "green", "missing": "yellow", "broken": "red"}


def doctor(as_json: AsJson = False) -> None:
    """Say what this machine can do, and for each thing missing the one command that adds it.

    Exit status: 0 usable, 3 where something is broken.
    """
    from kernelwright import doctor as examination
    from sandbox.probe import Toolchain, toolchain
    from sandbox.runner import RunnerError

    try:
        tools = toolchain()
    except RunnerError as error:  # a doctor still says what else is wrong
        tools = Toolchain(torch="", torch_build="none", torch_error=str(error), devices=(), triton="", backends=())
    findings = examination.examine(tools, os.environ)
    if as_json:
        say_json(examination.as_json(findings, tools))
    else:
        shown = table("", "what", "state", "seen", "to add or cure it")
        for finding in findings:
            state = f"[{_STYLES[finding.state]}]{finding.state}[/]"
            shown.add_row(escape(finding.what), state, escape(finding.seen), escape(finding.cure))
        result_console().print(shown)
    broken = any(finding.state == "broken" for finding in findings)
    raise typer.Exit(Status.MACHINE if broken else Status.ACCEPTED)
