"""The checker against a guest that lies: each lie is the verdict it should be, and costs nobody else anything."""

import time

import pytest

from problems.load import ROOT
from problems.spec import Case
from sandbox.checker.cases import check, judge_cases
from sandbox.checker.guest import NotReady
from sandbox.checker.outcome import Progress, Request
from sandbox.checker.task import Task, open_task
from sandbox.runner import Mode
from sandbox.verdict import BuildFailed, Cheated, Crashed, TimedOut, Verdict, WrongAnswer
from tests.sandbox.impostors import impostor

pytestmark = pytest.mark.slow

CASE = Case(params={"size": 16})


@pytest.fixture(scope="module")
def task() -> Task:
    return open_task("pmpp/vectoradd", ROOT, "cpu")


def judged(task: Task, behaviour: str, deadline_s: float = 20.0) -> tuple[Verdict | None, Progress]:
    progress = Progress()
    guest = impostor(behaviour)
    try:
        guest.await_ready()
        request = Request("", Mode.TEST, deadline_s)
        run = [("small", CASE), ("hidden", CASE)]
        return judge_cases(request, progress, guest, lambda: check(task, guest, run, progress)), progress
    finally:
        guest.close()


@pytest.mark.parametrize("behaviour", ["honest", "sends descriptors"])
def test_right_answers_pass(task: Task, behaviour: str) -> None:
    verdict, progress = judged(task, behaviour)
    assert verdict is None
    assert [(found.role, found.passed, found.board_accepts) for found in progress.checks] == [
        ("small", True, True),
        ("hidden", True, True),
    ]
    assert progress.seeds == [found.seed for found in progress.checks] and len(set(progress.seeds)) == 2


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        ("lazy", "256 of 256 elements are off"),
        ("returns an input", "elements are off"),
        ("spoils an input", "an input was written to"),
        ("wrong dtype", "returned float32, the problem asks for float16"),
        ("wrong shape", "returned shape"),
    ],
)
def test_wrong_answers(task: Task, behaviour: str, reason: str) -> None:
    verdict, progress = judged(task, behaviour)
    assert isinstance(verdict, WrongAnswer)
    assert reason in verdict.reason and verdict.reason.startswith("size: 16")
    assert [found.passed for found in verdict.cases] == [False] == [found.passed for found in progress.checks]


@pytest.mark.parametrize(
    "behaviour", ["outside", "other buffer", "no tree", "another verb", "garbage", "too long", "deep"]
)
def test_forged_answers_are_cheating(task: Task, behaviour: str) -> None:
    verdict, _ = judged(task, behaviour)
    assert isinstance(verdict, Cheated)
    assert "forged" in verdict.reason


@pytest.mark.parametrize(("behaviour", "case"), [("exits", CASE), ("exits at load", None), ("hangs up", CASE)])
def test_a_vanished_guest_crashed(task: Task, behaviour: str, case: Case | None) -> None:
    verdict, _ = judged(task, behaviour)
    assert isinstance(verdict, Crashed) and verdict.case == case
    if behaviour == "exits":
        assert "exit status 0" in verdict.reason and "last words" in verdict.log


def test_raising_is_a_crash_and_a_failed_build_is_not(task: Task) -> None:
    raised, _ = judged(task, "raises")
    assert isinstance(raised, Crashed) and raised.case == CASE
    assert raised.reason == "ValueError: no" and "Traceback" in raised.log
    for behaviour in ("refuses", "does not compile", "endless log", "log of another kind"):
        failed, _ = judged(task, behaviour)
        assert isinstance(failed, BuildFailed) and len(failed.log) <= 16_384 and len(failed.reason) <= 500


@pytest.mark.parametrize(("behaviour", "kind"), [("raises half a letter", Crashed), ("endless time", WrongAnswer)])
def test_what_no_record_could_hold_is_a_verdict_all_the_same(task: Task, behaviour: str, kind: type) -> None:
    verdict, _ = judged(task, behaviour)
    assert isinstance(verdict, kind)
    assert verdict.model_dump_json()


@pytest.mark.parametrize("behaviour", ["silent", "drips"])
def test_time_runs_out(task: Task, behaviour: str) -> None:
    start_s = time.monotonic()
    verdict, _ = judged(task, behaviour, deadline_s=0.4)
    assert isinstance(verdict, TimedOut) and verdict.case == CASE and verdict.deadline_s == 0.4
    assert time.monotonic() - start_s < 3


@pytest.mark.parametrize("behaviour", ["never ready", "not ready"])
def test_a_guest_that_never_was_ready_is_the_machines_fault(task: Task, behaviour: str) -> None:
    with pytest.raises(NotReady):
        judged(task, behaviour)
