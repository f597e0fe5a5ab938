"""The command compare: its words and its JSON for each outcome, and what it says without a GPU."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kernelwright.commands.compare import as_object, told_lines
from kernelwright.main import app
from sandbox.comparison import CaseDifference, Compared, difference
from tests.agent.places import wrong
from tests.evals.recorded_run import PROBLEM, measured

SEED = Path(__file__).parents[2] / "seed_kernels/pmpp/vectoradd/flat/submission.py"
GPU = any(Path("/dev").glob("nvidia[0-9]*")) or Path("/dev/kfd").exists()


def found(log_ratios: list[float]) -> Compared:
    said = difference(log_ratios)
    case = CaseDifference(case=PROBLEM.benchmarks[0], first_us=(2.0,), second_us=(1.0,), difference=said)
    return Compared(first=measured(20.0), second=measured(10.0), cases=(case,), overall=said)


@pytest.mark.parametrize(
    ("log_ratios", "words"),
    [
        ([0.1] * 10, "b.py is faster than a.py: 1.1052 times as fast"),
        ([-0.1] * 10, "b.py is slower than a.py: 0.9048 times as fast"),
        ([0.1, -0.1] * 5, "no significant difference between the two: 1.0000 times as fast"),
    ],
)
def test_outcomes_in_words_and_json(log_ratios: list[float], words: str) -> None:
    compared = found(log_ratios)
    lines = told_lines(PROBLEM, compared, "a.py", "b.py")
    assert lines[:2] == ["a.py: passed", "b.py: passed"]
    assert any(line.startswith(f"{PROBLEM.name}: {words}") for line in lines)
    said = json.loads(json.dumps(as_object(PROBLEM, compared)))
    assert compared.overall and said["outcome"] == compared.overall.outcome
    assert said["cases"][0]["pairs"] == 10 and said["first"]["accepted"]
    assert Compared.model_validate_json(compared.model_dump_json()) == compared


def test_a_refused_file_is_not_compared() -> None:
    refused = Compared(first=measured(20.0), second=wrong(PROBLEM))
    assert told_lines(PROBLEM, refused, "a.py", "b.py")[1:] == [
        "b.py: wrong answer",
        f"{PROBLEM.name}: no comparison, since both must be accepted",
    ]
    assert as_object(PROBLEM, refused)["outcome"] is None


@pytest.mark.slow
@pytest.mark.skipif(GPU, reason="there is a GPU on this machine")
def test_without_a_gpu_the_cure_is_named() -> None:
    said = CliRunner().invoke(app, ["compare", str(SEED), str(SEED), "--problem", "pmpp/vectoradd", "--json"])
    assert said.exit_code == 3
    assert json.loads(said.stdout)["error"]["kind"] == "machine"


def test_too_few_pairs_are_a_usage_error() -> None:
    said = CliRunner().invoke(app, ["compare", str(SEED), str(SEED), "--problem", "pmpp/vectoradd", "--pairs", "3"])
    assert said.exit_code == 2
