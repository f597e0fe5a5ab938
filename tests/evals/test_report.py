from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from dataset.attempt import RecordError
from dataset.blobs import Blobs
from evals import report
from evals.pages import figure, render, short, time_text
from evals.recorded import load
from evals.visible import visible
from tests.evals.evaluation import EVALUATION
from tests.evals.recorded_run import PROBLEM, make_run, measured


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("runs"))


def pages(folder: Path) -> list[str]:
    return [report.html(load(folder), PROBLEM), render("eval.html.j2", evaluation=EVALUATION)]


def test_the_best_is_the_fastest_that_the_board_takes(folder: Path) -> None:
    run = load(folder)
    best = report.best_of(run, PROBLEM)
    assert best is not None
    assert best.attempt.seq == 5
    assert best.readiness.startswith("ready: ")
    assert run.seed is not None
    assert run.seed.seq == 1
    assert run.verdicts == {"passed": 4, "build_failed": 1, "wrong_answer": 1}


def test_hostile_text_never_becomes_markup(folder: Path) -> None:
    for page in pages(folder):
        assert "<script" not in page.lower()
        assert "<img" not in page.lower()
        assert "onerror=alert" in page  # as text: the case is not empty
        assert "&lt;/script&gt;" in page


def test_what_cannot_be_seen_is_written_out(folder: Path) -> None:
    assert visible("a\x1b[2J\u202eb\ud800\tc\n") == "a\\u001b[2J\\u202eb\\ud800\tc\n"
    for page in pages(folder):
        assert "\u202e" not in page
        assert "\\u202e" in page


def test_pages_load_nothing(folder: Path) -> None:
    for page in pages(folder):
        assert not re.findall(r"""(?:src|href|action|data)\s*=\s*["'](?!data:,)""", page.replace("onerror", ""))
        assert not re.findall(r"@import|url\(", page)


def test_an_emulated_run_says_so_and_every_time_has_its_kind(folder: Path) -> None:
    page, text = report.html(load(folder), PROBLEM), report.text(load(folder), PROBLEM)
    assert "No GPU ran any of this" in page
    assert "60 µs estimated, MI300X" in page
    assert "60 µs estimated, MI300X" in text
    assert "emulation on a CPU" in text
    assert "measured" not in re.sub(r"not measured|nothing was measured|not measurements", "", text)


def test_a_run_without_an_end_says_how_to_go_on(tmp_path: Path) -> None:
    text = report.text(load(make_run(tmp_path, ended=False)), PROBLEM)
    assert "kernelwright runs resume 20261121-142301-amd-fp8-mm-3f2a" in text


@pytest.mark.parametrize("only", [range(0), range(3, 5)], ids=["no attempts", "none accepted"])
def test_a_run_with_nothing_accepted_has_a_page(tmp_path: Path, only: range) -> None:
    page, summary = report.write(make_run(tmp_path, only=only))
    assert "nothing accepted" in page.read_text()
    assert "best: nothing was accepted" in summary.read_text()


def test_a_lost_source_is_told_and_the_rest_is_drawn(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    blobs = Blobs(run)
    lost = load(run).attempts[4].candidate_sha256
    assert lost is not None
    blobs.path(lost).unlink()
    page, summary = report.write(run)
    assert "the source is lost" in page.read_text()
    assert "attempt 5" in summary.read_text()


@pytest.mark.slow
def test_a_long_run_has_a_page_of_bounded_size(folder: Path) -> None:
    run = load(folder)
    first = run.attempts[0]
    many = tuple(first.model_copy(update={"seq": seq, "attempt_id": f"r.{seq}"}) for seq in range(1, 12_001))
    page = report.html(replace(run, attempts=many), PROBLEM)
    assert "12000 attempts, the latest 1000 of them listed" in page
    assert len(page) < 20_000_000
    assert page.count("<circle") < 2500


def test_writing_where_nothing_can_be_written_is_a_record_error(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    (run / report.REPORT_NAME).mkdir()
    with pytest.raises(RecordError, match=r"report"):
        report.write(run)


@pytest.mark.parametrize(
    ("accepted", "board", "words"),
    [
        (True, True, "ready: our rule and the board's own check both accept it"),
        (True, False, "not ready: our rule accepts it, the board's own check does not"),
        (True, None, "not shown ready: our rule accepts it, the board's own check was not run"),
    ],
)
def test_ready_only_when_both_hold(accepted: bool, board: bool | None, words: str) -> None:
    judgement = measured(60.0)
    assert judgement.accepted is accepted
    checks = tuple(check.model_copy(update={"board_accepts": board}) for check in judgement.verdict.cases)  # type: ignore[union-attr]
    verdict = judgement.verdict.model_copy(update={"cases": checks})
    assert report.readiness(judgement.model_copy(update={"verdict": verdict})) == words


def test_figures() -> None:
    assert [figure(value) for value in (0.0, 0.01234567, 12.3456, 999.96, 12345.6)] == [
        "0", "0.01235", "12.35", "1000", "12,346",
    ]  # fmt: skip
    assert [short(value) for value in (0.5, 2000.0, 2e12, 5e15)] == ["0.5", "2k", "2T", "5P"]
    assert time_text(None, "measured") == "no time"
    assert time_text(3.0, "measured", "H200") == "3 µs measured, H200"
