"""How calls are timed and checked on a device: here the host is the device, and the guest is the one that lies."""

import random
from dataclasses import replace
from typing import Any

import pytest

from problems.chips import CHIPS
from problems.load import ROOT
from problems.spec import Case
from sandbox.checker import board_time, contest, gpu_timing
from sandbox.checker.contest import Contest, Side, hold
from sandbox.checker.control import Control, miniature
from sandbox.checker.device import Device
from sandbox.checker.gpu_timing import FEWEST, MOST, WARM_UP, judge
from sandbox.checker.guest import Guest, Returned
from sandbox.checker.layout import lay_out
from sandbox.checker.memory import HostMemory
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


@pytest.fixture
def paced(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checker's clock that shows what each call "takes" by its guest's behaviour, and 300 us of handshake."""
    draw, answered = random.Random(5), Guest._timed

    def timed(guest: Guest, header: dict[str, Any]) -> Returned:
        behaviour = getattr(guest, "behaviour", "")
        takes_us = float(behaviour.split()[1]) if behaviour.startswith("takes ") else 0.0
        return replace(answered(guest, header), wall_us=300 + draw.gauss(0, 15) + takes_us)

    monkeypatch.setattr(Guest, "_timed", timed)


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
    board = [time.case for time in verdict.board_us]
    assert board == ([LARGE] if mode is Mode.LEADERBOARD else []), "this board ranks its last case alone"
    assert [check.role for check in verdict.cases] == ["test", "hidden", *["benchmark"] * (2 + len(board))]
    assert all(check.passed and check.board_accepts for check in verdict.cases)
    assert [timing.case for timing in verdict.timings] == [SMALL, LARGE]
    samples, board_calls = 0, sum(len(time.samples_us) for time in verdict.board_us)
    for timing in verdict.timings:
        assert isinstance(timing, Measured) and timing.chip == "H200" and timing.us == 5.0
        assert FEWEST <= len(timing.samples_us) == len(timing.wall_us) <= MOST
        assert min(timing.wall_us) > 5.0
        samples += len(timing.samples_us)
    assert device.flushes == samples + 2 * WARM_UP
    assert len(progress.seeds) == len(set(progress.seeds)) == 2 + 2 * WARM_UP + samples + board_calls


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
    [("takes 4000 says 4000", "agree", 4000), ("takes 4000 says 20", "disagree", 4000), ("takes 28 says 28", None, 28)],
)
@pytest.mark.usefixtures("paced")
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
    assert timing.us == pytest.approx(decides_us, rel=0.01)
    assert timing.interval_us[0] <= timing.us <= timing.interval_us[1] and timing.us < timing.bound_us
    assert FEWEST <= len(timing.empty_us) <= len(timing.samples_us) == len(timing.wall_us)
    assert agreement is None or len(timing.empty_us) == len(timing.samples_us), "as long as it says something"
    flushes = WARM_UP + len(timing.samples_us) + len(timing.empty_us)
    assert device.flushes == flushes, "an empty call follows the same flush"
    told = [flag.split("us, ")[-1] for flag in progress.flags if "judge's clock" in flag]
    assert len(told) == (timing.agreement != "agree")


@pytest.mark.usefixtures("paced")
def test_empty_calls_that_a_candidate_slows_are_not_believed(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    one = Task(task.problem.model_copy(update={"benchmarks": (SMALL,)}), task.reference, "cpu", ROOT)
    device, answered, called = Host("H200", None).with_control(), Guest._timed, list[dict[str, Any]]()
    device.share = lambda size: HostMemory(size)  # not staged: an empty call costs the same on every case

    def jammed(guest: Guest, header: dict[str, Any]) -> Returned:
        returned = answered(guest, header)
        called.extend([header] if header["op"] == "call" else [])
        late_us = 2000 if header["op"] == "empty" and called else 0
        return replace(returned, wall_us=returned.wall_us + late_us)

    monkeypatch.setattr(Guest, "_timed", jammed)
    outcome, progress, _ = judged(one, "takes 4000 says 2000", monkeypatch, device=device)
    assert isinstance(outcome.verdict, Passed)
    [timing] = outcome.verdict.timings
    assert isinstance(timing, Measured) and timing.agreement == "disagree"
    assert timing.us == pytest.approx(3600, rel=0.02), "4000 us, and no more than 400 of them hidden"
    assert sum("before it" in flag for flag in progress.flags) == 1


@pytest.mark.usefixtures("paced")
def test_without_that_defence_a_lie_about_time_gets_in(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    up = Defences().without("clock_agreement")
    open_task = Task(task.problem.model_copy(update={"benchmarks": (SMALL,)}), task.reference, "cpu", ROOT, up)
    outcome, progress, _ = judged(
        open_task, "takes 4000 says 20", monkeypatch, device=Host("H200", None).with_control()
    )
    assert isinstance(outcome.verdict, Passed) and outcome.verdict.timings[0].us == 20
    assert not any("clock" in flag for flag in progress.flags)


def test_without_that_defence_a_lazy_timed_call_gets_in(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    down = Defences().without("every_timed_output")
    lax = Task(task.problem.model_copy(update={"benchmarks": (SMALL,)}), task.reference, "cpu", ROOT, down)
    outcome, _, _ = judged(lax, "works on early calls only", monkeypatch)
    assert isinstance(outcome.verdict, Passed)


def contested(
    task: Task, first: str, second: str, monkeypatch: pytest.MonkeyPatch, device: Host, pairs: int = 12
) -> Contest:
    monkeypatch.setattr(contest, "drawn", lambda task, size: (LARGE,))
    sides = [Side(Request("", Mode.BENCHMARK, 60.0), impostor(behaviour), Progress()) for behaviour in (first, second)]
    try:
        for side in sides:
            side.guest.await_ready()
        return hold(task, sides[0], sides[1], device, pairs)
    finally:
        for side in sides:
            side.guest.close()
        if device.control is not None:
            device.control.close()


@pytest.mark.parametrize(
    ("first", "second", "outcome"),
    [
        ("takes 12000 says 12000", "takes 3000 says 3000", "faster"),
        ("takes 3000 says 3000", "takes 12000 says 12000", "slower"),
        ("takes 3000 says 3000", "takes 20000 says 15", "slower"),
    ],
)
@pytest.mark.usefixtures("paced")
def test_two_candidates_in_turns(
    task: Task, monkeypatch: pytest.MonkeyPatch, first: str, second: str, outcome: str
) -> None:
    held = contested(task, first, second, monkeypatch, Host("H200", None).with_control())
    assert held.overall is not None and held.overall.outcome == outcome
    [case] = held.cases
    assert case.case == LARGE and len(case.first_us) == len(case.second_us) == 12 == case.difference.pairs
    for done in held.outcomes:
        assert isinstance(done.verdict, Passed)
        assert [check.role for check in done.verdict.cases] == ["test", "hidden", "benchmark"]
        assert [timing.case for timing in done.verdict.timings] == [LARGE]


@pytest.mark.usefixtures("paced")
def test_a_candidate_and_itself(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its own word it takes as long each time: the ratio is one, and nothing is significant."""
    held = contested(task, "takes 40 says 40", "takes 40 says 40", monkeypatch, Host("H200", None))
    assert held.overall is not None and held.overall.ratio == held.overall.low == held.overall.high == 1.0
    assert held.overall.outcome == "no significant difference"


@pytest.mark.usefixtures("paced")
def test_a_wrong_candidate_ends_the_contest(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    held = contested(task, "takes 5 says 5", "works on early calls only", monkeypatch, Host("H200", None))
    assert isinstance(held.outcomes[0].verdict, Passed) and isinstance(held.outcomes[1].verdict, WrongAnswer)
    assert held.overall is None and held.cases == ()


def test_an_empty_call_reads_a_tree_as_long(task: Task) -> None:
    tree = lay_out(task.shapes(LARGE), task.problem.writable).tree
    small = miniature(tree)
    assert len(small["items"]) == len(tree["items"]) == 3
    assert [node["shape"] for node in small["items"]] == [[1, 1]] * 3
    assert len({node["offset"] for node in small["items"]}) == 3


@pytest.mark.usefixtures("paced")
def test_a_board_time_is_taken_as_the_board_takes_it(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome, _, _ = judged(task, "takes 100 says 80", monkeypatch, Mode.LEADERBOARD)
    assert isinstance(outcome.verdict, Passed)
    [time] = outcome.verdict.board_us
    assert (time.us, len(time.samples_us), time.chip) == (80.0, 3, "H200"), "steady at the third sample"
    assert time.how.startswith("as problems/pmpp_v2/eval.py: device events, 256 MiB written before; mean")


@pytest.mark.usefixtures("paced")
def test_a_board_of_another_kind_has_no_time(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    timing = task.problem.board_timing.model_copy(update={"calls_per_sample": 50})
    other = Task(task.problem.model_copy(update={"board_timing": timing}), task.reference, "cpu", ROOT)
    outcome, progress, _ = judged(other, "takes 5 says 5", monkeypatch, Mode.LEADERBOARD)
    assert isinstance(outcome.verdict, Passed) and outcome.verdict.board_us == ()
    assert board_time.UNLIKE in progress.flags


@pytest.mark.parametrize(
    ("samples", "stops"),
    [
        ([5.0, 5.0], False),
        ([5.0, 5.0, 5.0], True),
        ([5.0, 6.0] * 20, False),
        ([5.0, 6.0] * 50, True),
        ([1.0e7, 1.2e7, 1.1e7], True),
    ],
)
def test_when_a_board_stops(samples: list[float], stops: bool) -> None:
    assert board_time.enough(samples) is stops


def test_what_events_say_of_an_empty_kernel_is_taken_off(task: Task) -> None:
    calls = gpu_timing.Calls(task, SMALL)
    calls.samples_us, calls.wall_us, calls.empty_us = [10.0, 12.0, 2.5], [100.0] * 3, [90.0] * 3
    calls._pair_us, calls._head_start_us = [2.0, 3.0, 9.0], [0.0] * 3
    measured = calls.measured("H200")
    assert measured.pair_us == 3.0
    assert measured.samples_us == (7.0, 9.0, gpu_timing.LEAST_US), "no kernel takes less than nothing"
