"""The command line in this process: options, messages and statuses, without a judge."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kernelwright import main as command_line
from kernelwright import runners
from problems.chips import CHIPS
from problems.load import names
from problems.spec import Problem
from sandbox.runner import Runner, RunnerError, Unsupported
from tests.agent.places import CountingRunner
from tests.evals.recorded_run import RUN_ID, make_run

KERNEL = "import torch\n\n\ndef custom_kernel(data):\n    return data[4]\n"


def ran(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of one command."""
    sys.argv = ["kernelwright", *map(str, arguments)]
    with pytest.raises(SystemExit) as ended:
        command_line.main()
    told = capsys.readouterr()
    return int(ended.value.code or 0), told.out, told.err


@pytest.fixture(autouse=True)
def fresh_consoles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rich binds a console to the stream of its day; each test has streams of its own."""
    from kernelwright import console

    console.result_console.cache_clear()
    console.side_console.cache_clear()
    monkeypatch.setattr(sys, "argv", [])


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> list[Exception]:
    """The fake runner in place of a real one; an error put into the list is raised instead of an answer."""
    errors: list[Exception] = []

    @contextmanager
    def opened(kind: str, problem: Problem, *_: object) -> Iterator[Runner]:
        def before(candidate: object) -> None:
            if errors:
                raise errors[0]

        yield CountingRunner(before)

    monkeypatch.setattr(runners, "open_runner", opened)
    return errors


@pytest.fixture
def right(tmp_path: Path) -> Path:
    path = tmp_path / "right.py"
    path.write_text(KERNEL)
    return path


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = ran(capsys, "--help")
    assert status == 0
    for name in ("problems", "run", "check", "compile", "runs", "report", "dataset", "eval", "doctor"):
        assert f" {name} " in out


def test_bounds_stand_beside_what_is_published(capsys: pytest.CaptureFixture[str]) -> None:
    """mla-decode's figures are for two ranked cases and two of the tests; fp8-mm's cover 6 of 18."""
    status, out, _ = ran(capsys, "problems", "bounds", "mla-decode", "--json")
    (found,) = json.loads(out)["problems"]
    assert status == 0
    assert [row["case"]["prefill"] for row in found["cases"]] == [4096, 6144, 512, 2048]
    assert all(set(row["least"]) == set(CHIPS) for row in found["cases"])
    assert found["published"][0]["ratio"] == pytest.approx(54.62 / found["cases"][2]["least"]["MI300X"]["us"])
    status, out, _ = ran(capsys, "problems", "bounds", "fp8-mm")
    assert out.count("(MI300X)") == 6
    assert "warm cache: The figure reads every byte from HBM" in out


def test_problems_are_listed_and_shown(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = ran(capsys, "problems", "list")
    assert status == 0
    assert all(name in out for name in names())
    status, out, _ = ran(capsys, "problems", "list", "--json")
    assert [row["name"] for row in json.loads(out)["problems"]] == list(names())
    status, out, _ = ran(capsys, "problems", "show", "fp8-mm", "--json")
    assert json.loads(out)["name"] == "amd/fp8-mm"
    status, out, _ = ran(capsys, "problems", "show", "amd/fp8-mm")
    assert "m: 1024; n: 1536; k: 7168  (ranked)" in out


def test_an_unknown_problem_is_a_usage_error_with_near_matches(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = ran(capsys, "problems", "show", "amd/fp8-nm")
    assert (status, out) == (2, "")
    assert "did you mean amd/fp8-mm" in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    "arguments", [("check",), ("check", "x.py"), ("run",), ("run", "fp8-mm", "--attempts", "0"), ("chekc",), ("eval",)]
)
def test_wrong_usage_is_status_2(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]) -> None:
    status, out, err = ran(capsys, *arguments)
    assert (status, out) == (2, "")
    assert err


def test_an_accepted_file(capsys: pytest.CaptureFixture[str], judge: list[Exception], right: Path) -> None:
    status, out, err = ran(capsys, "check", right, "--problem", "fp8-mm", "--json")
    assert (status, err) == (0, "")
    said = json.loads(out)
    assert (said["verdict"], said["accepted"], said["board_accepts"], said["time_kind"]) == (
        "passed", True, True, "estimated",
    )  # fmt: skip
    assert said["cases"][0]["error"]["worst_ratio"] == 0.1
    assert said["cases"][1]["time"]["kind"] == "estimated"
    assert "error" not in said
    status, out, _ = ran(capsys, "check", right, "--problem", "fp8-mm")
    assert status == 0
    assert "ready: our rule and the board's own check both accept it" in out
    assert "us estimated for MI300X" in out
    assert "measured" not in out


def test_a_hostile_message_cannot_move_the_terminal(
    capsys: pytest.CaptureFixture[str], judge: list[Exception], right: Path
) -> None:
    judge.append(RunnerError("\x1b[2J\x1b]0;owned\x07 [red]markup[/red] \u202e \ud800"))
    status, out, err = ran(capsys, "check", right, "--problem", "fp8-mm")
    assert (status, out) == (3, "")
    assert "\x1b" not in err
    assert "\\u001b[2J" in err
    assert "[red]markup[/red] \\u202e \\ud800" in err
    status, out, err = ran(capsys, "check", right, "--problem", "fp8-mm", "--json")
    assert out.isascii()
    assert json.loads(out)["error"]["message"].startswith("\x1b[2J")


def test_a_wrong_file(capsys: pytest.CaptureFixture[str], judge: list[Exception], right: Path) -> None:
    right.write_text(KERNEL + "# WRONG\n")
    status, out, _ = ran(capsys, "check", right, "--problem", "fp8-mm", "--json")
    said = json.loads(out)
    assert (status, said["verdict"], said["accepted"], said["geomean_us"]) == (1, "wrong_answer", False, None)
    assert said["cases"][0]["verdict"] == "wrong_answer"
    assert said["cases"][0]["error"]["mismatches"] == 4096


@pytest.mark.parametrize(("error", "kind"), [(RunnerError("lost it"), "machine"), (Unsupported("HIP"), "unsupported")])
def test_a_fault_is_status_3(
    capsys: pytest.CaptureFixture[str], judge: list[Exception], right: Path, error: Exception, kind: str
) -> None:
    judge.append(error)
    status, out, err = ran(capsys, "check", right, "--problem", "fp8-mm", "--json")
    said = json.loads(out)
    assert (status, said["verdict"], said["error"]) == (3, None, {"kind": kind, "message": str(error)})
    status, out, err = ran(capsys, "check", right, "--problem", "fp8-mm")
    assert (status, out) == (3, "")
    assert str(error) in err


@pytest.mark.parametrize(
    ("name", "content", "status", "words"),
    [
        ("missing.py", None, 2, "cannot read"),
        ("text.txt", b"", 3, "must end in"),
        ("kernel.hip", b"__global__ void k() {}", 3, "hip source"),
        ("bytes.py", b"\xff", 3, "not UTF-8"),
        ("large.py", b"#" * 1_000_001, 3, "at most"),
    ],
)
def test_a_file_that_is_no_submission(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str, content: bytes | None, status: int, words: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    got, out, err = ran(capsys, "check", tmp_path / name, "--problem", "fp8-mm", "--json")
    assert got == status
    assert words in json.loads(out)["error"]["message"]
    assert words in err


def test_runs_are_listed_shown_and_drawn(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    folder = make_run(tmp_path)
    status, out, _ = ran(capsys, "runs", "list", "--runs-dir", tmp_path, "--json")
    (row,) = json.loads(out)["runs"]
    assert (row["run_id"], row["state"], row["attempts"]) == (RUN_ID, "ended", 6)
    status, out, _ = ran(capsys, "runs", "show", "3f2a", "--runs-dir", tmp_path)
    assert status == 0
    assert "60 µs estimated, MI300X" in out
    status, out, err = ran(capsys, "report", RUN_ID, "--runs-dir", tmp_path)
    assert status == 0
    assert (folder / "report.html").is_file()
    status, out, err = ran(capsys, "runs", "show", "nothing", "--runs-dir", tmp_path)
    assert (status, out) == (3, "")
    assert RUN_ID in err


def test_an_ended_run_is_not_resumed(
    capsys: pytest.CaptureFixture[str], judge: list[Exception], tmp_path: Path
) -> None:
    make_run(tmp_path)
    status, out, err = ran(capsys, "runs", "resume", RUN_ID, "--runs-dir", tmp_path)
    assert status in (2, 3)
    assert out == ""
    assert "Traceback" not in err


def test_settings_that_do_not_fit(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    status, _, err = ran(capsys, "run", "fp8-mm", "--strategy", "refine", "--runs-dir", tmp_path)
    assert status == 2
    assert "--model" in err
    status, _, err = ran(capsys, "run", "fp8-mm", "--budget-usd", "3", "--runs-dir", tmp_path)
    assert status == 2
    assert "prices" in err


def test_an_evaluation_refuses_before_it_plays(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for options, status, words in (
        (("--agents", "serch", "--problems", "fp8-mm"), 2, "unknown agent"),
        (("--agents", "search", "--problems", "fp9-mm"), 2, "did you mean"),
        (("--agents", "refine", "--problems", "fp8-mm"), 2, "--model"),
        (("--agents", ",", "--problems", "fp8-mm"), 2, "--agents names nothing"),
        (("--agents", "search", "--problems", "fp8-mm", "--out", tmp_path / "file"), 3, "file"),
    ):
        got, out, err = ran(capsys, "eval", *options, "--runner", "cpu")
        assert (got, out) == (status, ""), err
        assert words in err


def test_a_missing_key_names_its_variable(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MY_KEY", raising=False)
    options = (
        "--strategy",
        "refine",
        "--model",
        "m",
        "--base-url",
        "https://models.invalid/v1",
        "--api-key-env",
        "MY_KEY",
    )
    status, _, err = ran(capsys, "run", "fp8-mm", *options, "--runner", "cpu", "--runs-dir", tmp_path)
    assert status == 3
    assert "set MY_KEY" in err
    assert list(tmp_path.iterdir()) == []


def test_an_export_without_runs_is_told(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    status, _, err = ran(capsys, "dataset", "export", tmp_path / "out", "--runs-dir", tmp_path / "none")
    assert status == 3
    assert err.startswith("error: ")


def test_publishing_needs_a_repository_name(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    make_run(tmp_path / "runs")
    status, _, err = ran(capsys, "dataset", "publish", "nameless", "--dry-run", "--runs-dir", tmp_path / "runs")
    assert status == 3
    assert "ORG/NAME" in err


def test_chips_of_the_cpu_runner() -> None:
    from problems.load import load

    assert runners.emulated_chip(load("pmpp/matmul"), None) == "MI300X"
    assert runners.emulated_chip(load("amd/fp8-mm"), "mi355x") == "MI355X"
    from kernelwright.status import UsageError

    with pytest.raises(UsageError, match="AMD chips only"):
        runners.emulated_chip(load("amd/fp8-mm"), "H200")


@pytest.mark.slow
def test_starting_imports_nothing_heavy() -> None:
    heavy = ("torch", "triton", "langgraph", "openai", "datasets", "pandas", "pyarrow", "optuna", "numpy", "jinja2")
    code = f"import sys, kernelwright.main; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_json_spells_what_is_not_finite(capsys: pytest.CaptureFixture[str]) -> None:
    from kernelwright.console import say_json

    say_json({"error": {"worst": float("inf")}, "us": [1.5, float("nan")], "n": 3})
    assert json.loads(capsys.readouterr().out) == {"error": {"worst": "inf"}, "us": [1.5, "nan"], "n": 3}
