"""The page and the file of an evaluation."""

from __future__ import annotations

from pathlib import Path

from dataset.disk import record_error
from evals.pages import render
from evals.play import Evaluation

PAGE_NAME, FILE_NAME = "eval.html", "eval.json"


def write(evaluation: Evaluation, out: Path) -> tuple[Path, Path]:
    """Write ``eval.html`` and ``eval.json`` into `out`; `RecordError` where that cannot be done."""
    page, file = out / PAGE_NAME, out / FILE_NAME
    try:
        page.write_text(render("eval.html.j2", evaluation=evaluation), encoding="utf-8", errors="replace")
        file.write_text(evaluation.model_dump_json(indent=1), encoding="utf-8", errors="replace")
    except OSError as error:
        raise record_error("write the evaluation in", out, error) from error
    return page, file
