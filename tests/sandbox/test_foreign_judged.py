"""Problems from elsewhere judged for real: their references in a guest of their own, candidates in another."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from problems.elsewhere import pointers
from problems.spec import Problem, ProblemError
from sandbox.candidate import Candidate
from sandbox.cpu import CpuRunner
from sandbox.runner import Mode, Unsupported
from sandbox.verdict import BuildFailed, Crashed, Judgement, Passed, Rejected, WrongAnswer

pytestmark = pytest.mark.slow

REFERENCE = """
from dataclasses import dataclass

import torch


@dataclass
class Config:
    scale: float
    dtype: torch.dtype


def generate_input(n, seed):
    generator = torch.Generator(device="cuda")
    generator.manual_seed(seed)
    x = torch.randn(n, 2 * n, device="cuda", generator=generator).t()
    return Config(2.0, torch.float32), {"x": x}, torch.empty(2 * n, n, device="cuda")


def ref_kernel(data):
    config, named, out = data
    return [named["x"].to(config.dtype) * config.scale, named["x"].sum()]


def check_implementation(data, output):
    expected = ref_kernel(data)
    close = all(torch.allclose(a, b, atol=1e-3) for a, b in zip(expected, output))
    return ("", "far")[not close]
"""
RIGHT = """
from reference import Config


def custom_kernel(data):
    config, named, out = data
    assert isinstance(config, Config) and named["x"].stride(0) == 1 and named["x"].is_cuda
    return [named["x"] * 2, named["x"].sum()]
"""
TASK = """
files: [{name: submission.py, source: "@SUBMISSION@"}, {name: reference.py, source: reference.py}]
lang: py
config: {main: eval.py}
description: Doubles.
tests: [{n: 8, seed: 1}, {n: 16, seed: 1}]
benchmarks: [{n: 32, seed: 1}]
"""
MODEL = """
import torch
from torch import nn

batch_size = 1 << 20
features = 64


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.inner = nn.Linear(features, features)
        self.scale = torch.ones(features)

    def forward(self, x, unused):
        return self.inner(x) * self.scale


def get_inputs():
    return [torch.rand(batch_size, features), torch.rand(4)]


def get_init_inputs():
    return [features]
"""
MODEL_NEW = """
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.inner = nn.Linear(features, features)

    def forward(self, x, unused):
        return torch.addmm(self.inner.bias, x.PLACE, self.inner.weight.t().PLACE).float()
"""


@pytest.fixture(scope="module")
def runner() -> Iterator[CpuRunner]:
    """One for all: its guests stay warm."""
    made = CpuRunner()
    yield made
    made.close()


def task(folder: Path, reference: str = REFERENCE) -> Problem:
    """A GPU MODE problem of our own."""
    (folder / "reference.py").write_text(reference)
    (folder / "task.yml").write_text(TASK)
    return pointers.describe(folder / "task.yml")[1]


def model(folder: Path) -> Problem:
    """A KernelBench problem of our own."""
    (folder / "1_Linear.py").write_text(MODEL)
    return pointers.describe(folder / "1_Linear.py")[1]


def judged(runner: CpuRunner, problem: Problem, source: str) -> Judgement:
    return runner.judge(problem, Candidate(source=source, language="triton"), Mode.TEST, 60.0)


def test_a_task_with_objects_strides_and_its_own_check(runner: CpuRunner, tmp_path: Path) -> None:
    problem = task(tmp_path)
    right = judged(runner, problem, RIGHT)
    assert isinstance(right.verdict, Passed), right.verdict
    assert right.board_accepts and len(right.verdict.cases) == 2
    wrong = judged(runner, problem, RIGHT.replace("* 2", "* 2.01"))
    assert isinstance(wrong.verdict, WrongAnswer) and "far" in wrong.verdict.reason
    assert isinstance(judged(runner, problem, RIGHT.replace("* 2", "* None")).verdict, Crashed)
    assert isinstance(judged(runner, problem, "import nothing_there\n" + RIGHT).verdict, BuildFailed)


def test_a_model_is_judged_in_float64_at_smaller_sizes(runner: CpuRunner, tmp_path: Path) -> None:
    problem = model(tmp_path)
    right = judged(runner, problem, MODEL_NEW.replace(".PLACE", ""))
    assert isinstance(right.verdict, Passed), right.verdict
    assert any("reduced sizes: batch_size 1048576" in flag for flag in right.flags)
    narrow = MODEL_NEW.replace("PLACE", "bfloat16()").replace("self.inner.bias", "self.inner.bias.bfloat16()")
    assert isinstance(judged(runner, problem, narrow).verdict, WrongAnswer)
    assert isinstance(judged(runner, problem, "def custom_kernel(data): ...").verdict, Rejected)


def test_an_audit_finds_the_input_that_does_not_matter(runner: CpuRunner, tmp_path: Path) -> None:
    found = runner.audit(model(tmp_path))
    assert [(weakness.kind, weakness.rule) for weakness in found.weaknesses] == [("ignored input", "problem")]
    assert "/1" in found.weaknesses[0].message


@pytest.mark.parametrize(
    ("old", "new", "error", "said"),
    [
        ("import torch\n", "import torch\nraise SystemExit(3)\n", ProblemError, "its reference failed"),
        ("def ref_kernel(data):", "def ref_kernel(data):\n    import os\n    os.abort()", ProblemError, "SIGABRT"),
        ("2 * n, device", "n << 40, device", Unsupported, "more memory"),
        ("return Config(2.0, torch.float32)", "return {1: 2}", ProblemError, "keys must be text"),
    ],
)
def test_a_bad_reference_is_the_problems_fault(
    runner: CpuRunner, tmp_path: Path, old: str, new: str, error: type[Exception], said: str
) -> None:
    problem = task(tmp_path, REFERENCE.replace(old, new, 1))
    with pytest.raises(error, match=said):
        judged(runner, problem, RIGHT)
