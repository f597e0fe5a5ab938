"""The GPU runner: what it says without a GPU, and the same candidate judged on one."""

import importlib.util
from pathlib import Path

import pytest

from problems.load import load
from sandbox.candidate import Candidate
from sandbox.gpu import GpuRunner
from sandbox.runner import Mode, RunnerError
from sandbox.verdict import Crashed, Measured, Passed, TimedOut, WrongAnswer

VECTORADD = load("pmpp/vectoradd")
SEED = Path(__file__).parents[2] / "seed_kernels/pmpp/vectoradd/flat/submission.py"
GPU = any(Path("/dev").glob("nvidia[0-9]*")) or Path("/dev/kfd").exists()
needs_gpu = pytest.mark.skipif(not GPU, reason="no GPU on this machine")


def test_making_one_starts_nothing() -> None:
    GpuRunner().close()


@pytest.mark.slow
@pytest.mark.skipif(GPU, reason="there is a GPU on this machine")
def test_without_a_gpu_the_cure_is_named() -> None:
    runner = GpuRunner()
    with pytest.raises(RunnerError, match="use the CPU runner"):
        runner.machine()
    runner.close()


@pytest.mark.gpu
@needs_gpu
def test_a_seed_is_measured() -> None:
    runner = GpuRunner()
    judgement = runner.judge(VECTORADD, Candidate(source=SEED.read_text()), Mode.BENCHMARK, 120)
    runner.close()
    assert isinstance(judgement.verdict, Passed) and judgement.board_accepts
    assert judgement.machine.kind == "gpu"
    for timing in judgement.verdict.timings:
        assert isinstance(timing, Measured) and len(timing.samples_us) >= 10
        assert all(0 < event <= wall for event, wall in zip(timing.samples_us, timing.wall_us, strict=True))


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("out = data[2]; return out", WrongAnswer),
        ("return data[0] - data[1]", WrongAnswer),
        ("while True: pass", TimedOut),
        ("import os; os._exit(0)", Crashed),
        ("data[0].zero_(); return data[0] + data[1]", WrongAnswer),
    ],
)
def test_verdicts_on_a_gpu(body: str, kind: type) -> None:
    runner = GpuRunner()
    judgement = runner.judge(VECTORADD, Candidate(source=f"def custom_kernel(data):\n    {body}\n"), Mode.TEST, 10)
    runner.close()
    assert isinstance(judgement.verdict, kind)


@pytest.mark.gpu
@needs_gpu
@pytest.mark.skipif(importlib.util.find_spec("cuda") is None, reason="cuda-bindings is not installed")
def test_device_memory_is_shared_by_descriptor() -> None:
    from sandbox.checker.vmm import DeviceMemory, available

    assert available()
    memory = DeviceMemory(1 << 20)
    memory.tensor.fill_(7)
    assert int(memory.tensor.sum()) == 7 * memory.bytes
    memory.close()
    memory.close()
