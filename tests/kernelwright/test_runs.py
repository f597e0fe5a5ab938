"""Whole runs from the command line, with the fake runner in the judge's place and recorded replies for a model."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest

from kernelwright import runners
from problems.spec import Problem
from sandbox.runner import FakeRunner, Runner
from tests.agent.places import MACHINE, replies, script, wrong
from tests.kernelwright.test_commands import fresh_consoles, judge, ran

__all__ = ["fresh_consoles", "judge"]
pytestmark = pytest.mark.slow  # langgraph and the model client take seconds to import


def refine(folder: Path, said: list[str], attempts: int) -> tuple[object, ...]:
    recorded = script(folder, said)
    options = ("--strategy", "refine", "--script", recorded, "--attempts", attempts, "--runner", "cpu")
    return ("run", "fp8-mm", *options, "--runs-dir", folder / "runs")


def test_search_ends_with_a_submission_and_its_summary(
    capsys: pytest.CaptureFixture[str], judge: list[Exception], tmp_path: Path
) -> None:
    runs = tmp_path / "runs"
    options = ("--attempts", 5, "--seed", 3, "--runner", "cpu", "--runs-dir", runs)
    status, out, err = ran(capsys, "run", "fp8-mm", *options)
    assert status == 0, err
    (folder,) = runs.iterdir()
    assert {"submission.py", "report.html", "summary.txt"} <= {path.name for path in folder.iterdir()}
    assert "5 attempts" in out
    assert "us estimated for MI300X; 4 attempts left" in err
    status, out, _ = ran(capsys, "dataset", "export", tmp_path / "set", "--runs-dir", runs, "--json")
    assert (status, json.loads(out)["rows"]["attempts"]) == (0, 5)
    status, out, _ = ran(capsys, "dataset", "publish", "org/name", "--dry-run", "--from", tmp_path / "set", "--json")
    assert (status, json.loads(out)["dry_run"]) == (0, True)


def test_refine_tells_attempts_without_code(
    capsys: pytest.CaptureFixture[str], judge: list[Exception], tmp_path: Path
) -> None:
    status, out, err = ran(capsys, *refine(tmp_path, replies(6), 6))
    assert status == 0, err
    assert "unusable: the reply holds no code block" in err
    assert "6 attempts" in out


def test_nothing_accepted_is_status_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def opened(kind: str, problem: Problem, chip: str | None = None) -> AbstractContextManager[Runner]:
        return nullcontext(FakeRunner(lambda problem, candidate: wrong(problem), MACHINE))

    monkeypatch.setattr(runners, "open_runner", opened)
    options = ("--attempts", 3, "--runner", "cpu", "--runs-dir", tmp_path)
    status, out, err = ran(capsys, "run", "fp8-mm", *options)
    assert status == 1, err
    assert "best: nothing was accepted" in out
    assert not list(tmp_path.rglob("submission.py"))


def test_a_model_that_gives_up_is_status_3_and_can_be_resumed(
    capsys: pytest.CaptureFixture[str], judge: list[Exception], tmp_path: Path
) -> None:
    status, out, err = ran(capsys, *refine(tmp_path, replies(2), 6))
    assert status == 3
    assert "holds 2 replies and reply 3 was asked for" in err
    assert "go on with: kernelwright runs resume" in err
    script(tmp_path, replies(6))
    status, out, err = ran(capsys, "runs", "resume", "fp8-mm", "--runs-dir", tmp_path / "runs")
    assert status == 0, err
    assert "resumed after attempt" in err
    assert "6 attempts" in out
