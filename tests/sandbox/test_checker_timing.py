"""How calls are timed and checked on a device: here the host is the device, and the guest is the one that lies."""

import pytest

from problems.chips import CHIPS
from problems.load import ROOT
from problems.spec import Case
from sandbox.checker import contest, gpu_timing
from sandbox.checker.contest import Contest, Side, hold
from sandbox.checker.control import Control, miniature
from sandbox.checker.device import Device
from sandbox.checker.gpu_timing import FEWEST, MOST, WARM_UP, judge
from sandbox.checker.layout import lay_out
from sandbox.checker.outcome import Outcome, Progress, Request
from sandbox.checker.pool import Pool
from sandbox.checker.task import Task, open_task
from sandbox.defences import Defences
from sandbox.runner import Mode
from sandbox.verdict import Cheated, Measured, Passed, WrongAnswer
from tests.sandbox.impostors import Impostors, impostor

SMALL, LARGE = Case(params={"size": 16}), Case(params={"size": 32})


class Host(Device):
    """This machine's memory as the device: there is nothing to wait for and no cache to flush."""

    flushes = 0

    def with_control(self) -> "Host":
        self.control = Control(Pool(Impostors("honest"), {"device": ()}))
        return self

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
    task: Task,
    behaviour: str,
    monkeypatch: pytest.MonkeyPatch,
    mode: Mode = Mode.BENCHMARK,
    device: Host | None = None,
) -> tuple[Outcome, Progress, Host]:
    monkeypatch.setattr(gpu_timing, "drawn", lambda task, size: (LARGE,))
    progress, device, guest = Progress(), device or Host("H200", CHIPS["H200"]), impostor(behaviour)
    guest.await_ready()
    try:
        return judge(task, Request("", mode, 60.0), guest, device, progress), progress, device
    finally:
        guest.close()
        if device.control is not None:
            device.control.close()


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


@pytest.mark.parametrize(
    ("behaviour", "agreement", "decides_us"),
    [("takes 3000 says 3000", "agree", 3000), ("takes 3000 says 20", "disagree", 3000), ("takes 0 says 5", None, 5)],
)
def test_events_are_held_against_the_checkers_clock(
    task: Task, monkeypatch: pytest.MonkeyPatch, behaviour: str, agreement: str | None, decides_us: float
) -> None:
    one = Task(task.problem.model_copy(update={"benchmarks": (SMALL,)}), task.reference, "cpu", ROOT)
    device = Host("H200", None).with_control()
    outcome, progress, _ = judged(one, behaviour, monkeypatch, device=device)
    assert isinstance(outcome.verdict, Passed)
    [timing] = outcome.verdict.timings
    assert isinstance(timing, Measured) and timing.interval_us and timing.bound_us
    assert timing.agreement == (agreement or "unresolved")
    assert timing.us == pytest.approx(decides_us, rel=0.05)
    assert timing.interval_us[0] <= timing.us <= timing.interval_us[1] and timing.us < timing.bound_us
    assert len(timing.empty_us) == len(timing.samples_us) == len(timing.wall_us)
    assert device.flushes == 2 * len(timing.samples_us), "an empty call follows the same flush"
    told = [flag.split("us, ")[-1] for flag in progress.flags if "judge's clock" in flag]
    assert len(told) == (timing.agreement != "agree")


def test_without_that_defence_a_lie_about_time_gets_in(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    up = Defences().without("clock_agreement")
    open_task = Task(task.problem.model_copy(update={"benchmarks": (SMALL,)}), task.reference, "cpu", ROOT, up)
    outcome, progress, _ = judged(
        open_task, "takes 3000 says 20", monkeypatch, device=Host("H200", None).with_control()
    )
    assert isinstance(outcome.verdict, Passed) and outcome.verdict.timings[0].us == 20
    assert not any("clock" in flag for flag in progress.flags)


def test_without_that_defence_a_lazy_timed_call_gets_in(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    down = Defences().without("every_timed_output")
    lax = Task(task.problem.model_copy(update={"benchmarks": (SMALL,)}), task.reference, "cpu", ROOT, down)
    outcome, _, _ = judged(lax, "works on early calls only", monkeypatch)
    assert isinstance(outcome.verdict, Passed)


def contested(task: Task, first: str, second: str, monkeypatch: pytest.MonkeyPatch, pairs: int = 20) -> Contest:
    monkeypatch.setattr(contest, "drawn", lambda task, size: (LARGE,))
    device = Host("H200", None).with_control()
    sides = [Side(Request("", Mode.BENCHMARK, 60.0), impostor(behaviour), Progress()) for behaviour in (first, second)]
    try:
        for side in sides:
            side.guest.await_ready()
        return hold(task, sides[0], sides[1], device, pairs)
    finally:
        for side in sides:
            side.guest.close()
        assert device.control is not None
        device.control.close()


@pytest.mark.parametrize(
    ("first", "second", "outcome"),
    [
        ("takes 2000 says 2000", "takes 1000 says 1000", "faster"),
        ("takes 1000 says 1000", "takes 2000 says 2000", "slower"),
        ("takes 1500 says 1500", "takes 1500 says 1500", "no significant difference"),
        ("takes 1500 says 1500", "takes 3000 says 15", "slower"),
    ],
)
def test_two_candidates_in_turns(
    task: Task, monkeypatch: pytest.MonkeyPatch, first: str, second: str, outcome: str
) -> None:
    held = contested(task, first, second, monkeypatch)
    assert held.overall is not None and held.overall.outcome == outcome
    [case] = held.cases
    assert case.case == LARGE and len(case.first_us) == len(case.second_us) == 20 == case.difference.pairs
    for done in held.outcomes:
        assert isinstance(done.verdict, Passed)
        assert [check.role for check in done.verdict.cases] == ["test", "hidden", "benchmark"]
        assert [timing.case for timing in done.verdict.timings] == [LARGE]


def test_a_wrong_candidate_ends_the_contest(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    held = contested(task, "takes 0 says 5", "works on early calls only", monkeypatch)
    assert isinstance(held.outcomes[0].verdict, Passed) and isinstance(held.outcomes[1].verdict, WrongAnswer)
    assert held.overall is None and held.cases == ()


def test_an_empty_call_reads_a_tree_as_long(task: Task) -> None:
    tree = lay_out(task.shapes(LARGE), task.problem.writable).tree
    small = miniature(tree)
    assert len(small["items"]) == len(tree["items"]) == 3
    assert [node["shape"] for node in small["items"]] == [[1, 1]] * 3
    assert len({node["offset"] for node in small["items"]}) == 3
