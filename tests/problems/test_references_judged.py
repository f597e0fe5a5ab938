"""Each small problem's library call in torch, judged as a submission on a CPU."""

import pytest

from evals.players import reference
from problems import load
from sandbox.candidate import Candidate
from sandbox.cpu import CpuRunner
from sandbox.runner import Mode
from sandbox.verdict import Passed, WrongAnswer
from tests.problems.variants import WAYS

pytestmark = pytest.mark.slow
SPOILT = {
    "bioml/trimul": (" * mask[..., None]", ""),
    "pmpp/histogram": ("minlength=256)", "minlength=256).int()"),
    "pmpp/vectorsum": ("x.sum()", "x.sum().reshape(1)"),
}


def test_library_calls_pass_and_a_wrong_mask_dtype_or_shape_does_not() -> None:
    runner = CpuRunner()
    try:
        for name in WAYS:
            found = reference(load(name))
            assert found is not None
            judgement = runner.judge(load(name), found, Mode.TEST)
            assert isinstance(judgement.verdict, Passed), (name, judgement.verdict)
            assert judgement.board_accepts is True
            if name in SPOILT:
                spoilt = Candidate(source=found.source.replace(*SPOILT[name]))
                assert spoilt != found and isinstance(runner.judge(load(name), spoilt, Mode.TEST).verdict, WrongAnswer)
        itself = Candidate(source="def custom_kernel(data):\n    return data[0]\n")
        assert isinstance(runner.judge(load("amd/identity"), itself, Mode.TEST).verdict, Passed)
    finally:
        runner.close()
