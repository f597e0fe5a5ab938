"""``kernelwright dataset``: the attempts of all runs as a data set."""

from __future__ import annotations

import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from kernelwright.commands.runs import RUNS
from kernelwright.console import note, say, say_json
from kernelwright.options import AsJson, RunsDir

app = typer.Typer(no_args_is_help=True, help="The attempts of all runs as Parquet, and on the Hugging Face Hub.")


@app.command("export")
def export_runs(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A new folder for the data set.")],
    runs_dir: RunsDir = RUNS,
    redact: Annotated[bool, typer.Option("--redact", help="Mask secrets and home paths instead of refusing.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier export.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write every run's attempts as Parquet that plain datasets.load_dataset reads."""
    from dataset.export import export

    made = export(runs_dir, folder, redact=redact, overwrite=overwrite)
    if as_json:
        return say_json({**asdict(made), "out_dir": str(made.out_dir)})
    tables = ", ".join(f"{count} {name}" for name, count in made.rows.items())
    say(f"{made.out_dir}: {made.runs} runs, {tables}, {made.size_bytes} bytes, licence {made.licence}")
    if made.duplicates:
        note(f"{made.duplicates} attempts were met twice and kept once")
    if made.redactions:
        note(f"{made.redactions} places were masked", "yellow")
    return None


@app.command("publish")
def publish_runs(
    repository: Annotated[str, typer.Argument(metavar="ORG/NAME", help="The data set's repository on the Hub.")],
    folder: Annotated[Path | None, typer.Option("--from", help="An export made before; else made now.")] = None,
    runs_dir: RunsDir = RUNS,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be pushed; touch no network.")] = False,
    private: Annotated[bool, typer.Option("--private", help="Make the repository private if it is new.")] = False,
    contact: Annotated[str | None, typer.Option(help="Whom to write to for a removal.")] = None,
    redact: Annotated[bool, typer.Option("--redact", help="Mask secrets and home paths instead of refusing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Push the attempts with a card to the Hugging Face Hub; the token comes from HF_TOKEN or `hf auth login`."""
    from dataset.export import export
    from dataset.publish import publish

    with tempfile.TemporaryDirectory(prefix="kernelwright-export-") as scratch:
        source = folder or export(runs_dir, Path(scratch) / "export", redact=redact).out_dir
        done = publish(source, repository, dry_run=dry_run, private=private, contact=contact)
    if as_json:
        return say_json(asdict(done))
    say(f"{'would push to' if done.dry_run else 'pushed to'} {done.url} (licence {done.licence}):")
    for file in done.files:
        say(f"  {file.path}  {file.size_bytes} bytes")
    return None
