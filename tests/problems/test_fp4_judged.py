"""The library calls of the fp4 problems, judged as submissions on a CPU: right, spoilt, and replaced by zeros."""

from collections.abc import Iterator

import pytest

from evals.players import reference
from problems import load
from sandbox.candidate import Candidate
from sandbox.cpu import CpuRunner
from sandbox.runner import Mode
from sandbox.verdict import Passed, WrongAnswer

pytestmark = pytest.mark.slow
NIBBLES = ("decoded(a, sfa)", "decoded(a, sfa).unflatten(-1, (-1, 2)).flip(-1).flatten(-2)")
ZEROS = ("    return c\n", "    return c.zero_()\n")
SPOILT = {
    "nvidia/nvfp4-gemm": [ZEROS, NIBBLES, ("sfb).mT", "sfb.roll(1, 0)).mT")],
    "nvidia/nvfp4-gemv": [ZEROS, NIBBLES, ("b[:1], sfb[:1]", "b[1:2], sfb[1:2]")],
    "nvidia/nvfp4-dual-gemm": [ZEROS, NIBBLES, ("torch.nn.functional.silu(gate)", "gate")],
    "nvidia/nvfp4-group-gemm": [
        ("return [c for", "return [c.zero_() for"),
        NIBBLES,
        ("return [c for", "abc[-1][2].zero_()\n    return [c for"),
        ("for _, _, c in abc]", "for _, _, c in abc][:1]"),
    ],
    "amd/mxfp4-mm": [
        (".bfloat16()", ".bfloat16().zero_()"),
        ("quantised(a)", "a.float()"),
        ("size >= middle", "size > middle"),
    ],
    "amd/mixed-mla": [("return out", "return out.zero_()"), ("[i * length :", "[i * length + 1 :")],
}


@pytest.fixture(scope="module")
def runner() -> Iterator[CpuRunner]:
    runner = CpuRunner("MI355X")
    yield runner
    runner.close()


@pytest.mark.parametrize("name", SPOILT)
def test_a_library_call_passes_and_what_is_nearly_one_does_not(runner: CpuRunner, name: str) -> None:
    problem, found = load(name), reference(load(name))
    assert found is not None
    judgement = runner.judge(problem, found, Mode.TEST, 60.0)
    assert isinstance(judgement.verdict, Passed), judgement.verdict
    assert judgement.board_accepts
    for old, new in SPOILT[name]:
        assert old in found.source
        spoilt = Candidate(source=found.source.replace(old, new), language="torch")
        assert isinstance(runner.judge(problem, spoilt, Mode.TEST, 60.0).verdict, WrongAnswer), new
