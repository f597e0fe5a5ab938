"""Both pages in a real browser: no console message, nothing fetched, drawings and tables there."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from evals import report
from evals.page import PAGE_NAME, write
from tests.evals.evaluation import EVALUATION
from tests.evals.recorded_run import make_run

BROWSER = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason="no chromium here; add it with: apt-get install chromium"),
]


def opened(page: Path, profile: Path) -> tuple[str, list[str]]:
    """The document as the browser holds it, and what it said on its console."""
    assert BROWSER is not None
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
    command = [
        BROWSER,
        *flags,
        f"--user-data-dir={profile}",
        "--enable-logging=stderr",
        "--v=0",
        "--dump-dom",
        page.as_uri(),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def test_the_console_is_heard(tmp_path: Path) -> None:
    page = tmp_path / "loud.html"
    page.write_text("<!doctype html><title>x</title><script>console.error('heard')</script>")
    assert any("heard" in line for line in opened(page, tmp_path / "profile")[1])


def test_the_run_page_opens_without_a_message(tmp_path: Path) -> None:
    page, _ = report.write(make_run(tmp_path / "runs"))
    document, console = opened(page, tmp_path / "profile")
    assert console == []
    assert document.count("<svg") == 3
    assert "alert(1)" in document
    assert "<script" not in document


def test_the_eval_page_opens_without_a_message(tmp_path: Path) -> None:
    write(EVALUATION, tmp_path)
    document, console = opened(tmp_path / PAGE_NAME, tmp_path / "profile")
    assert console == []
    assert document.count("<table") >= 3
    assert "<script" not in document
