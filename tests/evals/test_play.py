"""Agents played over a problem, with the fake runner in the judge's place."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent.header import with_header
from dataset.attempt import Judged, RecordError
from evals import page
from evals.play import EvalSettings, Evaluation, play
from evals.players import Directory, Strategy, player, reference
from evals.score import Comparison, Faulted
from evals.tally import tally
from problems.load import load, names
from problems.spec import Problem, ProblemError
from sandbox.candidate import Candidate
from sandbox.runner import Runner, RunnerError
from tests.agent.places import CountingRunner
from tests.evals.evaluation import BASELINES, FILES, SEARCH
from tests.evals.recorded_run import PROBLEM

KERNEL = "import torch\n\n\ndef custom_kernel(data):\n    return data[4]\n"


@contextmanager
def fake(problem: Problem) -> Iterator[Runner]:
    yield CountingRunner()


@contextmanager
def failing(problem: Problem) -> Iterator[Runner]:
    def lose(candidate: Candidate) -> None:
        if "LOST" in candidate.source:
            raise RunnerError("lost the checker")

    yield CountingRunner(lose)


def submissions(folder: Path) -> Path:
    (folder / "amd/fp8-mm").mkdir(parents=True)
    (folder / "right.py").write_text(with_header(KERNEL, PROBLEM))
    (folder / "wrong.py").write_text(with_header(KERNEL + "# WRONG\n", PROBLEM))
    (folder / "lost.py").write_text(with_header(KERNEL + "# LOST\n", PROBLEM))
    (folder / "amd/fp8-mm/by_folder.py").write_text(KERNEL + "# by its folder\n")
    (folder / "other.py").write_text("#!POPCORN leaderboard matmul_v2\n" + KERNEL)
    (folder / "nameless.py").write_text(KERNEL)
    return folder


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[Evaluation, Path]:
    root = tmp_path_factory.mktemp("eval")
    files = submissions(root / "files")
    settings = EvalSettings(agents=("search", f"dir:{files}"), problems=("fp8-mm",), samples=2, attempts=4, seed=5)
    heard: list[str] = []
    evaluation = play(settings, root / "out", failing, {}, heard.append)
    assert len(heard) == 6
    return evaluation, root / "out"


@pytest.mark.slow
def test_strategies_run_and_files_go_to_their_problem(played: tuple[Evaluation, Path]) -> None:
    evaluation, out = played
    search, files = evaluation.scores
    assert (search.n, search.correct, search.faults) == (2, 2, 0)
    assert (files.n, files.correct, files.faults) == (3, 2, 1)
    assert {s.what for s in evaluation.samples[2:]} == {"right.py", "wrong.py", "lost.py", "amd/fp8-mm/by_folder.py"}
    assert files.correct_at[1] == pytest.approx(2 / 3)
    runs = [sample.what for sample in evaluation.samples[:2]]
    assert len(set(runs)) == 2
    assert all((out / "runs" / run / "report.html").is_file() for run in runs)
    assert isinstance(search.over_seed, Comparison)
    assert (search.over_seed.n, search.over_seed.time_kind) == (2, "estimated")


@pytest.mark.slow
def test_page_and_file_are_written_and_read_back(played: tuple[Evaluation, Path], tmp_path: Path) -> None:
    evaluation, _ = played
    html, file = page.write(evaluation, tmp_path)
    assert "Dry run" in html.read_text()
    assert Evaluation.model_validate_json(file.read_text()) == evaluation
    (tmp_path / "taken").write_text("")
    with pytest.raises(RecordError):
        page.write(evaluation, tmp_path / "taken")


def test_faults_count_in_no_figure() -> None:
    score = tally(PROBLEM, "search", SEARCH, BASELINES)
    assert (score.n, score.correct, score.faults) == (4, 2, 1)
    assert score.correct_at[2] == pytest.approx(1 - 1 / 6)
    assert score.best == "run-1"
    assert isinstance(score.over_reference, Comparison)
    assert score.over_reference.ratio == pytest.approx((4 * 3) ** 0.5)
    only = tally(PROBLEM, "search", [SEARCH[-1]], BASELINES)
    assert isinstance(SEARCH[-1].outcome, Faulted)
    assert (only.n, only.correct_at, only.best, only.best_us) == (0, {}, "", None)


def test_what_the_board_refuses_is_not_ready() -> None:
    score = tally(PROBLEM, "dir:files", FILES, BASELINES)
    assert (score.correct, score.ready) == (1, 0)


def test_players(tmp_path: Path) -> None:
    assert player("search") == Strategy("search")
    assert player(f"dir:{tmp_path}") == Directory(f"dir:{tmp_path}", tmp_path)
    for text in ("serch", "dir:", f"dir:{tmp_path}/missing"):
        if text != "dir:":  # the empty path is the current directory
            with pytest.raises(ProblemError, match="give"):
                player(text)


def test_a_file_that_is_not_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_bytes(b"\xff\xfe")
    with pytest.raises(RecordError, match=r"bad\.py"):
        Directory("dir:x", tmp_path).files(PROBLEM)


@pytest.mark.parametrize("name", names())
def test_each_problem_has_a_library_call_for_its_board(name: str) -> None:
    problem = load(name)
    found = reference(problem)
    assert found is not None
    assert f"#!POPCORN leaderboard {problem.board}\n" in found.source
    compile(found.source, name, "exec")


def test_a_judged_sample_keeps_its_judgement() -> None:
    outcome = SEARCH[0].outcome
    assert isinstance(outcome, Judged)
    assert outcome.judgement.verdict.kind == "passed"
