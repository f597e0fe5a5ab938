"""Each small problem's mathematics in plain torch, judged as a submission on a CPU."""

import pytest

from problems import load
from sandbox.candidate import Candidate
from sandbox.cpu import CpuRunner
from sandbox.runner import Mode
from sandbox.verdict import Passed, WrongAnswer

pytestmark = pytest.mark.slow
UPDATE = """
    x, mask, w, config = data
    norm = torch.nn.functional.layer_norm
    z = norm(x, (config["dim"],), w["norm.weight"], w["norm.bias"])
    left, right = (
        z @ w[f"{side}_proj.weight"].T * mask[..., None] * (z @ w[f"{side}_gate.weight"].T).sigmoid()
        for side in ("left", "right")
    )
    mixed = (left.permute(0, 3, 1, 2) @ right.permute(0, 3, 2, 1)).permute(0, 2, 3, 1)
    mixed = norm(mixed, (config["hidden_dim"],), w["to_out_norm.weight"], w["to_out_norm.bias"])
    return mixed * (z @ w["out_gate.weight"].T).sigmoid() @ w["to_out.weight"].T
"""
BODIES = {
    "amd/identity": "return data[1].copy_(data[0])",
    "bioml/trimul": UPDATE,
    "pmpp/conv2d": "return torch.nn.functional.conv2d(data[0], data[1])",
    "pmpp/grayscale": "return data[0] @ torch.tensor([0.2989, 0.5870, 0.1140])",
    "pmpp/histogram": "return torch.bincount(data[0], minlength=256)",
    "pmpp/prefixsum": "return data[0].cumsum(0)",
    "pmpp/sort": "return data[0].sort().values",
    "pmpp/vectorsum": "return data[0].sum()",
}
WRONG = {
    "bioml/trimul": UPDATE.replace(" * mask[..., None]", ""),
    "pmpp/histogram": "return torch.bincount(data[0], minlength=256).int()",
    "pmpp/vectorsum": "return data[0].sum().reshape(1)",
}


def candidate(body: str) -> Candidate:
    return Candidate(source=f"import torch\n\ndef custom_kernel(data):\n    {body}\n")


def test_plain_torch_passes_and_a_wrong_mask_dtype_or_shape_does_not() -> None:
    runner = CpuRunner()
    try:
        for name, body in BODIES.items():
            judgement = runner.judge(load(name), candidate(body), Mode.TEST)
            assert isinstance(judgement.verdict, Passed), (name, judgement.verdict)
            assert judgement.board_accepts is (None if name == "pmpp/prefixsum" else True)
        for name, body in WRONG.items():
            assert isinstance(runner.judge(load(name), candidate(body), Mode.TEST).verdict, WrongAnswer), name
        itself = runner.judge(load("amd/identity"), candidate("return data[0]"), Mode.TEST)
        assert isinstance(itself.verdict, Passed)
    finally:
        runner.close()
