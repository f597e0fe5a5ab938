"""Problems kept elsewhere: what is read of them, what is refused, and that a change of their files is noticed."""

from pathlib import Path

import pytest

from problems.elsewhere import pointers
from problems.load import load
from problems.spec import ProblemError

REFERENCE = """
from utils import make_match_reference


def generate_input(n, seed):
    pass


def ref_kernel(data):
    pass


check_implementation = make_match_reference(ref_kernel)
"""
TASK = """
files:
  - {name: submission.py, source: "@SUBMISSION@"}
  - {name: utils.py, source: ../utils.py}
  - {name: reference.py, source: reference.py}
lang: py
config: {main: eval.py}
description: |
  Doubles.
tests:
  - {n: 8, flag: true, groups: [1, 2], seed: 3}
benchmarks:
  - {n: 64, flag: false, groups: [3], seed: 4}
ranking_by: geom
"""
MODEL = """
import torch

batch_size = 4 * 8
size = 128


class Model(torch.nn.Module):
    def forward(self, x):
        return x


def get_inputs():
    return [torch.rand(batch_size, size)]


def get_init_inputs():
    return []
"""


@pytest.fixture
def task(tmp_path: Path) -> Path:
    """A task.yml with its files, in a set of its own."""
    folder = tmp_path / "board" / "twice"
    folder.mkdir(parents=True)
    (folder.parent / "utils.py").write_text("")
    (folder / "reference.py").write_text(REFERENCE)
    (folder / "task.yml").write_text(TASK)
    return folder / "task.yml"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A KernelBench file."""
    (tmp_path / "level1").mkdir()
    file = tmp_path / "level1" / "7_Same_.py"
    file.write_text(MODEL)
    return file


def test_a_task_is_read_where_it_lies(task: Path) -> None:
    pointer, problem = pointers.describe(task)
    assert problem.name == "from/board/twice"
    assert problem.tests[0].params == {"n": 8, "flag": True, "groups": (1, 2)}
    assert (problem.tests[0].seed, problem.board_timing.ranked_by) == (3, "geomean")
    assert problem.origin is not None and problem.origin.matched and not problem.origin.unmet
    assert {Path(file).name for file in pointer.files} == {"task.yml", "utils.py", "reference.py"}


def test_a_model_is_read_without_running_it(model: Path) -> None:
    model.write_text(MODEL + "\nraise SystemExit(1)\n")
    _, problem = pointers.describe(model)
    assert problem.name == "from/kernelbench-level1/7_Same"
    assert problem.tests[0].params == {"batch_size": 32, "size": 128}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("ranking_by", "ranked_by", "ranked_by: unknown field; did you mean ranking_by"),
        ("lang: py", "lang: rs", "lang: 'rs' is not known"),
        ("  - {n: 8, flag: true, groups: [1, 2], seed: 3}", "", "tests: missing"),
        ("n: 8,", "n: 8.5,", "tests.0.n: is float '8.5'"),
        ("lang: py", "lang: py\nmulti_gpu: true", "tests.0.world_size: must be a whole number from 2"),
        ("ranking_by: geom", "ranking_by: [geom", "is not YAML"),
        ("../utils.py", "../gone.py", "files.1: source: there is no"),
        ("name: utils.py", "name: ../utils.py", "is not a plain file name"),
        ("{main: eval.py}", "{mian: eval.py}", "did you mean main"),
    ],
)
def test_a_bad_task_is_refused_by_file_and_field(task: Path, old: str, new: str, said: str) -> None:
    task.write_text(TASK.replace(old, new))
    with pytest.raises(ProblemError, match=f"task.yml.*{said.replace('[', '.')}"):
        pointers.describe(task)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [("lang: py\nconfig: {main: eval.py}", "lang: cu\nconfig: {sources: [eval.cu]}", "needs nvcc"),
     ("{n: ", "{world_size: 8, n: ", "needs 8 GPUs")],
)  # fmt: skip
def test_what_cannot_be_judged_is_loaded_with_its_reason(task: Path, old: str, new: str, reason: str) -> None:
    several = "multi_gpu: true\n" if "world" in new else ""
    task.write_text(several + TASK.replace(old, new))
    origin = pointers.describe(task)[1].origin
    assert origin is not None and reason in origin.unmet


def test_a_half_written_model_is_refused(model: Path) -> None:
    model.write_text(MODEL[: MODEL.index("def get_init_inputs")])
    with pytest.raises(ProblemError, match="does not define get_init_inputs"):
        pointers.describe(model)
    model.write_text(MODEL + "def (")
    with pytest.raises(ProblemError, match="does not parse"):
        pointers.describe(model)


def test_a_change_of_a_source_is_noticed(task: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KERNELWRIGHT_IMPORTS", str(tmp_path / "records"))
    pointer, problem = pointers.describe(task)
    pointers.keep(pointer)
    assert pointers.names() == ("from/board/twice",)
    assert load("from/board/twice") == problem
    (task.parent.parent / "utils.py").write_text("# changed\n")
    with pytest.raises(ProblemError, match=r"utils\.py has changed since it was imported"):
        load("from/board/twice")
    with pytest.raises(ProblemError, match="no problem is imported as"):
        load("from/board/thrice")
    with pytest.raises(ProblemError, match="is no imported problem's name"):
        load("from/../../etc/passwd")
