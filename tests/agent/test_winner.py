"""A measured run's winner is measured again before it is named; an estimated run has nothing to measure."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

from agent.resume import fold
from agent.run import RunResult, start
from agent.settings import RunSettings
from dataset.attempt import Remeasured, RunEnded
from dataset.journal import read
from evals import report
from evals.recorded import load
from problems.spec import Problem
from sandbox.candidate import Candidate
from sandbox.comparison import PAIRS, Compared, difference
from sandbox.runner import DEADLINE_S, FakeRunner, Mode, RunnerError
from sandbox.verdict import Judgement, Measured, Passed
from tests.agent.places import MACHINE, PROBLEM, check, judgement, passed, wrong


def measured(problem: Problem, us: float) -> Judgement:
    times = tuple(
        Measured(case=case, chip="MI300X", clock="event", samples_us=(us,) * 3, wall_us=(us,) * 3, warmup_calls=1)
        for case in problem.benchmarks
    )
    return judgement(problem, Passed(cases=(check(problem, True),), timings=times))


class Noisy(FakeRunner):
    """All candidates take 100 us; a single look is off by up to half, a look in leaderboard mode is not."""

    def __init__(self, again: Callable[[Candidate], Judgement]) -> None:
        super().__init__(lambda problem, candidate: measured(problem, 0.0), MACHINE)
        self.again, self.judged_again, self.compared = again, list[str](), list[tuple[str, str]]()
        self._draw = random.Random(3)

    def judge(
        self,
        problem: Problem,
        candidate: Candidate,
        mode: Mode = Mode.BENCHMARK,
        deadline_s: float = DEADLINE_S,
        following: Candidate | None = None,
    ) -> Judgement:
        if mode is not Mode.LEADERBOARD:
            return measured(problem, 100 * (1 + self._draw.uniform(-0.5, 0.5)))
        self.judged_again.append(candidate.sha256)
        return self.again(candidate)

    def compare(
        self, problem: Problem, first: Candidate, second: Candidate, pairs: int = PAIRS, deadline_s: float = DEADLINE_S
    ) -> Compared:
        self.compared.append((first.sha256, second.sha256))
        both = self.again(first), self.again(second)
        return Compared(first=both[0], second=both[1], overall=difference([0.01, -0.01] * (pairs // 2)))


def run(tmp_path: Path, runner: FakeRunner) -> RunResult:
    return start(RunSettings(problem=PROBLEM.name, runner="fake", attempts=12, seed=1), tmp_path, runner)


def last(result: RunResult) -> Remeasured:
    [found] = [record for record in read(result.folder) if isinstance(record, Remeasured)]
    return found


def test_the_winner_is_measured_again(tmp_path: Path) -> None:
    runner = Noisy(lambda candidate: measured(PROBLEM, 100.0 + int(candidate.sha256[:2], 16) / 100))
    result = run(tmp_path, runner)
    found, state = last(result), fold(read(result.folder)).state
    assert len(found.contenders) == len(set(runner.judged_again)) == 4, "the best three, and the seed"
    assert [one.attempt_id for one in found.contenders[:3]] == [attempt.attempt_id for attempt in state.elite[:3]]
    assert found.contenders[3].attempt_id == found.seed_attempt_id
    fastest = min(found.contenders, key=lambda one: one.score_us or 0.0)
    assert result.best is not None
    assert found.winner_attempt_id == fastest.attempt_id == result.best.attempt_id
    assert result.submission is not None and result.submission.attempt_id == found.winner_attempt_id
    [ended] = [record for record in read(result.folder) if isinstance(record, RunEnded)]
    assert ended.best_attempt_id == found.winner_attempt_id
    assert load(result.folder).best == result.best
    text = report.write(result.folder)[1].read_text()
    assert f"measured again on fresh seeds: {fastest.score_us:.4g} us, the fastest of 4" in text
    if found.winner_attempt_id != found.seed_attempt_id:
        assert len(runner.compared) == 1 and "in turns with it: no significant difference" in text


def test_a_lucky_winner_loses_to_the_seed(tmp_path: Path) -> None:
    """What was best by luck is slower when measured again: the seed is named, and nothing is compared with itself."""
    first: list[str] = []

    def again(candidate: Candidate) -> Judgement:
        first.append(candidate.sha256)
        return measured(PROBLEM, 90.0 if len(first) == 4 else 100.0)

    runner = Noisy(again)
    result = run(tmp_path, runner)
    found = last(result)
    assert found.winner_attempt_id == found.seed_attempt_id and runner.compared == [] and found.over_seed is None
    assert "it is the seed kernel itself" in report.write(result.folder)[1].read_text()


def test_a_candidate_refused_the_second_time_does_not_win(tmp_path: Path) -> None:
    result = run(tmp_path, Noisy(lambda candidate: wrong(PROBLEM)))
    assert last(result).winner_attempt_id is None
    assert "none of the best was accepted a second time" in report.write(result.folder)[1].read_text()


def test_a_fault_leaves_a_run_to_be_resumed(tmp_path: Path) -> None:
    def lost(candidate: Candidate) -> Judgement:
        raise RunnerError("the GPU fell off the bus")

    result = run(tmp_path, Noisy(lost))
    assert (result.ending, result.reason, result.resumable) == ("runner_error", "the GPU fell off the bus", True)
    assert not any(isinstance(record, RunEnded | Remeasured) for record in read(result.folder))


def test_an_estimated_run_says_that_there_is_nothing_to_measure(tmp_path: Path) -> None:
    result = run(tmp_path, FakeRunner(lambda problem, candidate: passed(problem, 100.0), MACHINE))
    assert not any(isinstance(record, Remeasured) for record in read(result.folder))
    assert "nothing was measured a second time" in report.write(result.folder)[1].read_text()
