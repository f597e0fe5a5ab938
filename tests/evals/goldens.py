"""Golden files of the pages: their outline without figures, and the summary word for word."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

from evals import report
from evals.pages import render
from evals.recorded import load
from tests.evals.evaluation import EVALUATION
from tests.evals.recorded_run import HOSTILE, PROBLEM, make_run

FOLDER = Path(__file__).parent / "golden"
SHOWN = {"h1", "h2", "h3", "caption", "th", "dt", "summary"}
COUNTED = {"svg", "circle", "rect", "path", "polyline", "tr", "pre", "script", "img", "link"}


class Outline(HTMLParser):
    """Headings, captions and column heads in order, and how many of each drawn or listed thing follow."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self._inside: list[str] = []
        self._counts: dict[str, int] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in COUNTED:
            self._counts[tag] = self._counts.get(tag, 0) + 1
        if tag in SHOWN:
            self.flush()
            self._inside.append(tag)
            self.lines.append(f"{tag}:")

    def handle_endtag(self, tag: str) -> None:
        if self._inside and self._inside[-1] == tag:
            self._inside.pop()

    def handle_data(self, data: str) -> None:
        if self._inside and data.strip():
            self.lines[-1] += " " + re.sub(r"\d+(\.\d+)?", "#", " ".join(data.replace(HOSTILE, "HOSTILE").split()))

    def flush(self) -> None:
        self.lines += [f"  {count} {tag}" for tag, count in self._counts.items()]
        self._counts = {}


def outline(page: str) -> str:
    parser = Outline()
    parser.feed(page)
    parser.close()
    parser.flush()
    return "\n".join(parser.lines) + "\n"


def run_outline() -> str:
    return _of_run(lambda run: outline(report.html(load(run), PROBLEM)))


def run_summary() -> str:
    return _of_run(lambda run: report.text(load(run), PROBLEM))


def eval_outline() -> str:
    return outline(render("eval.html.j2", evaluation=EVALUATION))


def _of_run(make: Callable[[Path], str]) -> str:
    with tempfile.TemporaryDirectory() as root:
        return make(make_run(Path(root)))


GOLDENS = (
    (FOLDER / "run_page.txt", run_outline),
    (FOLDER / "run_summary.txt", run_summary),
    (FOLDER / "eval_page.txt", eval_outline),
)
