"""``kernelwright dataset``: the attempts of all runs as a data set."""

from __future__ import annotations

import typer

app = typer.Typer(no_args_is_help=True, help="The attempts of all runs as Parquet, and on the Hugging Face Hub.")
