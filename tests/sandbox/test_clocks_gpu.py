"""The clocks on a real GPU: what agrees, what is caught, and which of two kernels is the faster."""

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest

from problems.load import load
from sandbox.candidate import Candidate
from sandbox.defences import ALL_UP
from sandbox.gpu import GpuRunner
from sandbox.runner import Mode
from sandbox.verdict import Measured, Passed

GPU = any(Path("/dev").glob("nvidia[0-9]*")) or Path("/dev/kfd").exists()
pytestmark = [pytest.mark.gpu, pytest.mark.slow, pytest.mark.skipif(not GPU, reason="no GPU on this machine")]
VECTORADD = load("pmpp/vectoradd")
ADD = "import torch\ndef custom_kernel(data):\n    a, b, out = data\n    {0}\n    return torch.add(a, b, out=out)\n"
LIAR = """
import torch
real = torch.cuda.Event
class Event(real):
    def __new__(cls, *args, **kwargs):
        return real.__new__(cls, *args, **kwargs)
    def elapsed_time(self, other):
        return real.elapsed_time(self, other) / 50
torch.cuda.Event = Event
def custom_kernel(data):
    a, b, out = data
    torch.cuda._sleep(4_000_000)
    return torch.add(a, b, out=out)
"""
LATE = """
import torch
side = torch.cuda.Stream()
def custom_kernel(data):
    a, b, out = data
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.cuda._sleep(4_000_000)
        torch.add(a, b, out=out)
    return out
"""


@pytest.fixture(scope="module")
def runner() -> Iterator[GpuRunner]:
    opened = GpuRunner()
    yield opened
    opened.close()


def last(runner: GpuRunner, source: str, mode: Mode = Mode.BENCHMARK) -> tuple[Measured, Passed, tuple[str, ...]]:
    """The largest case's time."""
    judgement = runner.judge(VECTORADD, Candidate(source=source), mode, 120)
    assert isinstance(judgement.verdict, Passed), judgement.verdict
    timing = judgement.verdict.timings[-1]
    assert isinstance(timing, Measured)
    return timing, judgement.verdict, judgement.flags


def test_honest_clocks_agree_and_the_board_time_is_near(runner: GpuRunner) -> None:
    timing, verdict, _ = last(runner, ADD.format("torch.cuda._sleep(4_000_000)"), Mode.LEADERBOARD)
    assert timing.agreement == "agree" and 1000 < timing.us < 10_000
    assert timing.interval_us and timing.interval_us[0] <= timing.us <= timing.interval_us[1]
    [board] = verdict.board_us
    assert board.us == pytest.approx(timing.us, rel=0.1)


def test_tampered_events_do_not_decide() -> None:
    """The screen alone refuses this one: here it gets as far as the clocks."""
    runner = GpuRunner(defences=ALL_UP.without("screen"))
    timing, _, flags = last(runner, LIAR)
    runner.close()
    assert timing.agreement == "disagree" and timing.us > 1000
    assert any("which decides" in flag for flag in flags)


def test_work_left_on_another_stream_counts(runner: GpuRunner) -> None:
    timing, _, _ = last(runner, LATE)
    assert timing.us > 1000


def test_comparison(runner: GpuRunner) -> None:
    quick, slow = (Candidate(source=ADD.format(f"torch.cuda._sleep({cycles})")) for cycles in (200_000, 300_000))
    found = runner.compare(VECTORADD, quick, slow, pairs=20)
    assert found.overall is not None and found.overall.outcome == "slower"
    again = runner.compare(VECTORADD, slow, quick, pairs=20)
    assert again.overall is not None and again.overall.outcome == "faster"
    assert importlib.util.find_spec("cuda") is None or not any("staged" in flag for flag in found.first.flags)
