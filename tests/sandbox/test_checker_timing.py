"""How calls are timed and checked on a device: here the host is the device, and the guest is the one that lies."""

import pytest

from problems.chips import CHIPS
from problems.load import ROOT
from problems.spec import Case
from sandbox.checker import gpu_timing
from sandbox.checker.gpu_timing import FEWEST, MOST, WARM_UP, Device, judge
from sandbox.checker.outcome import Outcome, Progress, Request
from sandbox.checker.task import Task, open_task
from sandbox.runner import Mode
from sandbox.verdict import Cheated, Measured, Passed, WrongAnswer
from tests.sandbox.impostors import impostor

SMALL, LARGE = Case(params={"size": 16}), Case(params={"size": 32})


class Host(Device):
    """This machine's memory as the device: there is nothing to wait for and no cache to flush."""

    flushes = 0

    def settle(self) -> None:
        pass

    def flush(self) -> None:
        self.flushes += 1


@pytest.fixture(scope="module")
def task() -> Task:
    opened = open_task("pmpp/vectoradd", ROOT, "cpu")
    problem = opened.problem.model_copy(update={"tests": (SMALL,), "benchmarks": (SMALL, LARGE)})
    return Task(problem, opened.reference, "cpu", ROOT)


def judged(
    task: Task, behaviour: str, monkeypatch: pytest.MonkeyPatch, mode: Mode = Mode.BENCHMARK
) -> tuple[Outcome, Progress, Host]:
    monkeypatch.setattr(gpu_timing, "drawn", lambda task, size: (LARGE,))
    progress, device, guest = Progress(), Host("H200", CHIPS["H200"]), impostor(behaviour)
    guest.await_ready()
    try:
        return judge(task, Request("", mode, 60.0), guest, device, progress), progress, device
    finally:
        guest.close()


@pytest.mark.parametrize("mode", [Mode.BENCHMARK, Mode.LEADERBOARD])
def test_every_call_is_fresh_flushed_and_checked(task: Task, monkeypatch: pytest.MonkeyPatch, mode: Mode) -> None:
    outcome, progress, device = judged(task, "times itself", monkeypatch, mode)
    verdict = outcome.verdict
    assert isinstance(verdict, Passed)
    assert [check.role for check in verdict.cases] == ["test", "hidden", "benchmark", "benchmark"]
    assert all(check.passed and check.board_accepts for check in verdict.cases)
    assert [timing.case for timing in verdict.timings] == [SMALL, LARGE]
    samples = 0
    for timing in verdict.timings:
        assert isinstance(timing, Measured) and timing.chip == "H200" and timing.us == 5.0
        assert FEWEST <= len(timing.samples_us) == len(timing.wall_us) <= MOST
        assert min(timing.wall_us) > 5.0
        samples += len(timing.samples_us)
    assert device.flushes == samples
    assert len(progress.seeds) == len(set(progress.seeds)) == 2 + 2 * WARM_UP + samples


def test_test_mode_times_nothing(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome, _, device = judged(task, "times itself", monkeypatch, Mode.TEST)
    assert isinstance(outcome.verdict, Passed) and outcome.verdict.timings == () and device.flushes == 0


@pytest.mark.parametrize(
    "behaviour", ["honest", "claims no time", "claims less than none", "claims more than all", "claims in words"]
)
def test_a_time_that_cannot_be_is_cheating(task: Task, monkeypatch: pytest.MonkeyPatch, behaviour: str) -> None:
    outcome, _, _ = judged(task, behaviour, monkeypatch)
    assert isinstance(outcome.verdict, Cheated) and "by the judge's clock" in outcome.verdict.reason


def test_a_lazy_timed_call_is_caught(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome, progress, _ = judged(task, "works on early calls only", monkeypatch)
    assert isinstance(outcome.verdict, WrongAnswer)
    assert "call 5: 256 of 256" in outcome.verdict.reason
    assert [check.passed for check in progress.checks] == [True, True, False]


def test_faster_than_the_bound_is_flagged(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = CHIPS["H200"].model_copy(update={"hbm_bytes_per_s": 1e6})
    monkeypatch.setitem(CHIPS, "H200", slow)
    _, progress, _ = judged(task, "times itself", monkeypatch)
    assert any("below H200's bound" in flag for flag in progress.flags)
    assert any("staged through the host" in flag for flag in progress.flags)
