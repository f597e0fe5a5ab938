import os
import resource
import shutil
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from agent import run
from agent.interrupt import Interrupt
from agent.model import ModelError, Reply, ScriptedModel, Unreachable
from agent.progress import AttemptDone, Began, BestChanged, Event, Faulted, Working
from agent.run import RunRefused, settings_of
from agent.settings import RunSettings
from dataset import runs
from dataset.attempt import Attempt, Intent, Judged, Record, RecordError, Replied, RunEnded, RunnerFault, Unusable
from dataset.blobs import Blobs
from dataset.journal import Journal, read
from problems.spec import ProblemError
from sandbox.candidate import Candidate
from sandbox.runner import FakeRunner, RunnerError, Unsupported
from tests.agent.places import MACHINE, ONE_SEED, CountingRunner, law, passed, replies, script, wrong

start, resume = (partial(act, seed_kernels=ONE_SEED) for act in (run.start, run.resume))

ATTEMPTS = 12


def search(attempts: int = ATTEMPTS, **more: object) -> RunSettings:
    return RunSettings.model_validate({"problem": "fp8-mm", "runner": "fake", "attempts": attempts, "seed": 3, **more})


def refine(attempts: int = ATTEMPTS, **more: object) -> RunSettings:
    return search(attempts, **{"strategy": "refine", "script": "script.jsonl", **more})


class CountingModel(ScriptedModel):
    """Keeps the numbers of the replies it was asked for."""

    def __init__(self, folder: Path) -> None:
        super().__init__(script(folder, replies(40)))
        self.bought: list[int] = []

    def complete(self, prompt: str, number: int) -> Reply:
        self.bought.append(number)
        return super().complete(prompt, number)


class Watching:
    def __init__(self) -> None:
        self.events: list[Event] = []

    def show(self, event: Event) -> None:
        self.events.append(event)

    def kinds(self) -> list[str]:
        return [type(event).__name__ for event in self.events]


def attempts_of(folder: Path) -> list[Attempt]:
    return [record for record in read(folder) if isinstance(record, Attempt)]


def decisions(folder: Path) -> list[tuple[object, ...]]:
    """What was decided and what came of it, without ids, times and machine."""
    return [
        (
            each.seq,
            each.move.kind,
            tuple(each.move.knobs.items()),
            tuple(parent.rpartition(".")[2] for parent in each.parents),
            each.hypothesis,
            each.model_call.prompt_sha256 if each.model_call else None,
            each.candidate_sha256,
            each.outcome.score_us if isinstance(each.outcome, Judged) else each.outcome.reason,
        )
        for each in attempts_of(folder)
    ]


def test_a_search_ends_with_the_best_candidates_exact_text(tmp_path: Path) -> None:
    result = start(search(), tmp_path, CountingRunner())
    assert (result.ending, result.reason, result.resumable) == ("ended", "budget of 12 attempts spent", False)
    made = attempts_of(result.folder)
    assert [each.seq for each in made] == list(range(1, ATTEMPTS + 1))
    assert [each.move.kind for each in made] == ["seed"] + ["tune"] * (ATTEMPTS - 1)
    scores = [each.outcome.score_us for each in made if isinstance(each.outcome, Judged) and each.outcome.score_us]
    assert result.best and isinstance(result.best.outcome, Judged) and result.best.outcome.score_us == min(scores)
    assert result.submission and result.submission.ready
    text = result.submission.path.read_text()
    assert Candidate(source=text).sha256 == result.best.candidate_sha256
    assert text.startswith("#!POPCORN leaderboard amd-fp8-mm\n#!POPCORN gpus MI300\n")
    ended = list(read(result.folder))[-1]
    assert isinstance(ended, RunEnded) and ended.best_attempt_id == result.best.attempt_id
    assert made[1].parents == (made[0].attempt_id,) and made[1].derived_from[0].what.startswith(
        "seed_kernels/amd/fp8-mm/"
    )


def test_a_refining_run_records_each_reply_and_what_became_of_it(tmp_path: Path) -> None:
    model = CountingModel(tmp_path)
    result = start(refine(), tmp_path, CountingRunner(), model)
    made = attempts_of(result.folder)
    assert model.bought == list(range(1, ATTEMPTS))
    reasons = [each.outcome.reason for each in made if isinstance(each.outcome, Unusable)]
    assert reasons == [
        "the reply holds no code block", "the reply holds 2 different kernels; exactly one is wanted",
        "same text as attempt 9",
    ]  # fmt: skip
    blobs = Blobs(result.folder)
    for each in made[1:]:
        assert each.model_call and each.taint == ("provider_terms",)
        assert "custom_kernel(data)" in blobs.text(each.model_call.prompt_sha256)
        assert blobs.text(each.model_call.reply_sha256) == replies(40)[each.seq - 2]
    assert result.state.spent.tokens == 110 * (ATTEMPTS - 1)
    assert result.state.spent.unpriced_calls == ATTEMPTS - 1


def test_the_judge_is_never_quoted_on_its_own_faults(tmp_path: Path) -> None:
    failing = iter([True, False])

    def before(candidate: Candidate) -> None:
        if "version 1" in candidate.source and next(failing):
            raise RunnerError("the cable fell out")

    result = start(refine(4), tmp_path, CountingRunner(before), CountingModel(tmp_path))
    faults = [record for record in read(result.folder) if isinstance(record, RunnerFault)]
    assert [fault.message for fault in faults] == ["the cable fell out"]
    blobs = Blobs(result.folder)
    prompts = [blobs.text(each.model_call.prompt_sha256) for each in attempts_of(result.folder) if each.model_call]
    assert len(prompts) == 3 and not any("cable" in prompt for prompt in prompts)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", [search, refine])
def test_the_same_run_twice_decides_the_same(tmp_path: Path, strategy: object) -> None:
    assert callable(strategy)
    first, second = (
        start(strategy(16), tmp_path / name, CountingRunner(), CountingModel(tmp_path)) for name in ("one", "two")
    )
    assert decisions(first.folder) == decisions(second.folder)


def cut(folder: Path, records: list[Record], to: Path) -> Path:
    """The run as a kill right after the last of `records` would have left it, under the same id."""
    left = to / folder.name
    left.mkdir(parents=True)
    shutil.copytree(folder / "blobs", left / "blobs")
    with Journal.open(left) as journal:
        for record in records:
            journal.append(record, durable=False)
    return left


@pytest.mark.slow
@pytest.mark.parametrize("strategy", [search, refine])
def test_a_resume_at_every_record_boundary_ends_as_the_whole_run(tmp_path: Path, strategy: object) -> None:
    assert callable(strategy)
    whole = start(strategy(), tmp_path, CountingRunner(), CountingModel(tmp_path))
    records = list(read(whole.folder))
    for length in range(1, len(records)):
        kept = records[:length]
        runner, model = CountingRunner(), CountingModel(tmp_path)
        again = resume(cut(whole.folder, kept, tmp_path / str(length)), runner, model)
        assert decisions(again.folder) == decisions(whole.folder), f"cut after record {length}"
        assert again.ending == "ended" and again.best and whole.best and again.best.seq == whole.best.seq
        # What is on record is not made again; what was in flight is, once.
        judged_before = [each.candidate_sha256 for each in kept if isinstance(each, Attempt)]
        assert not set(judged_before) & set(runner.judged) and len(runner.judged) == len(set(runner.judged))
        answered = sum(isinstance(each, Replied) for each in kept)
        assert model.bought == list(range(answered + 1, ATTEMPTS)) * (strategy is refine)
        in_flight = sum(isinstance(each, Intent) and each.call == "model" for each in kept) - answered
        assert again.state.spent.possibly_paid == in_flight <= 1


def test_a_run_that_has_ended_is_not_resumed(tmp_path: Path) -> None:
    result = start(search(2), tmp_path, CountingRunner())
    with pytest.raises(RunRefused, match=r"has ended: budget of 2 attempts spent\. Start a new run"):
        resume(result.folder, CountingRunner())


def test_a_run_is_resumed_where_it_was_judged(tmp_path: Path) -> None:
    left = start(search(), tmp_path, CountingRunner(), interrupt=after_attempts(2)).folder
    other = FakeRunner(law, MACHINE.model_copy(update={"chip": "MI355X"}))
    with pytest.raises(RunRefused, match=r"judged on MI300X \(fake\) and this machine judges on MI355X"):
        resume(left, other)
    assert resume(left, CountingRunner()).ending == "ended"


def after_attempts(count: int) -> Interrupt:
    """An interrupt that is requested once `count` decisions were looked at."""

    class Counted(Interrupt):
        looks = 0

        @property
        def requested(self) -> bool:
            self.looks += 1
            return self.looks > count

        @requested.setter
        def requested(self, value: bool) -> None:
            pass

    return Counted()


@pytest.mark.slow
def test_a_second_process_cannot_resume_the_same_run(tmp_path: Path) -> None:
    left = start(search(), tmp_path, CountingRunner(), interrupt=after_attempts(2)).folder
    with Journal.open(left), pytest.raises(RecordError):
        resume(left, CountingRunner())


def test_a_run_stopped_before_it_began(tmp_path: Path) -> None:
    folder = runs.create(tmp_path, "amd/fp8-mm")
    Journal.open(folder).close()
    for call in (lambda: resume(folder, CountingRunner()), lambda: settings_of(folder)):
        with pytest.raises(RecordError, match="stopped before it began; start a new one"):
            call()


def test_settings_survive_in_the_first_record(tmp_path: Path) -> None:
    asked = refine(3, usd=2.5, input_usd_per_mtok=1.0, output_usd_per_mtok=2.0, target_us=1.0, chip="mi355")
    result = start(asked, tmp_path, CountingRunner(), CountingModel(tmp_path))
    assert settings_of(result.folder) == asked.model_copy(update={"problem": "amd/fp8-mm", "chip": "MI355X"})


@pytest.mark.parametrize(
    ("limit", "reason", "seq"),
    [
        ({"target_us": 190.0}, "target reached: ", None),
        ({"attempts": 3}, "budget of 3 attempts spent", 3),
        ({"wall_s": 1e-9}, "budget of 1e-09 s spent", 1),
    ],
)
def test_limits_stop_a_run(tmp_path: Path, limit: dict[str, object], reason: str, seq: int | None) -> None:
    result = start(search(**{"attempts": 60, **limit}), tmp_path, CountingRunner())
    assert result.ending == "ended" and result.reason.startswith(reason)
    assert seq is None or result.state.attempts == seq
    if seq is None:
        assert (
            result.best and isinstance(result.best.outcome, Judged) and (result.best.outcome.score_us or 999) <= 190.0
        )
        assert result.best.seq == result.state.attempts


@pytest.mark.parametrize(
    ("limit", "reason"),
    [
        ({"tokens": 300}, "budget of 300 tokens spent"),
        ({"usd": 1e-6, "input_usd_per_mtok": 0.001, "output_usd_per_mtok": 0.001}, "US dollars"),
    ],
)
def test_model_budgets_stop_a_run(tmp_path: Path, limit: dict[str, object], reason: str) -> None:
    class Priced(CountingModel):
        def complete(self, prompt: str, number: int) -> Reply:
            reply = super().complete(prompt, number)
            return Reply(reply.text, reply.input_tokens, reply.output_tokens, 4e-7, 0.0)

    result = start(refine(**limit), tmp_path, CountingRunner(), Priced(tmp_path))
    assert reason in result.reason and result.state.spent.model_calls == 3


def test_a_runner_that_recovers_costs_nothing(tmp_path: Path) -> None:
    failing = iter([True, True, False] + [False] * 50)

    def before(candidate: Candidate) -> None:
        if next(failing):
            raise RunnerError("lost checker")

    watching = Watching()
    result = start(search(4), tmp_path, CountingRunner(before), progress=watching)
    assert result.ending == "ended" and result.state.attempts == 4
    faults = [event for event in watching.events if isinstance(event, Faulted)]
    assert [(fault.seq, fault.tries_left) for fault in faults] == [(1, 2), (1, 1)]
    assert decisions(result.folder) == decisions(start(search(4), tmp_path, CountingRunner()).folder)


def test_a_runner_that_stays_broken_stops_the_run_and_it_can_be_resumed(tmp_path: Path) -> None:
    broken = [True]

    def before(candidate: Candidate) -> None:
        if broken[0] and len(runner.judged) > 3:
            raise RunnerError("no GPU any more")

    runner = CountingRunner(before)
    result = start(search(), tmp_path, runner)
    assert (result.ending, result.reason) == ("runner_error", "no GPU any more")
    assert result.resumable and result.state.attempts == 3 and result.submission
    assert len([record for record in read(result.folder) if isinstance(record, RunnerFault)]) == 3
    assert not any(isinstance(record, RunEnded) for record in read(result.folder))
    broken[0] = False
    again = resume(result.folder, runner)
    assert decisions(again.folder) == decisions(start(search(), tmp_path, CountingRunner()).folder)


def test_an_unsupported_seed_stops_the_run_and_an_unsupported_reply_is_only_an_attempt(tmp_path: Path) -> None:
    def never(candidate: Candidate) -> None:
        raise Unsupported("larger than the memory")

    result = start(search(), tmp_path, CountingRunner(never))
    assert (result.ending, result.state.attempts) == ("runner_error", 0)

    def one(candidate: Candidate) -> None:
        if "version 2" in candidate.source:
            raise Unsupported("not on a CPU")

    result = start(refine(5), tmp_path, CountingRunner(one), CountingModel(tmp_path))
    assert result.ending == "ended"
    assert attempts_of(result.folder)[2].outcome == Unusable(reason="cannot be judged here: not on a CPU")


def test_a_model_error_stops_the_run_and_counts_the_call_as_possibly_paid(tmp_path: Path) -> None:
    class Failing(CountingModel):
        def complete(self, prompt: str, number: int) -> Reply:
            if number == 4:
                raise Unreachable("cannot reach it: check --base-url")
            return super().complete(prompt, number)

    result = start(refine(), tmp_path, CountingRunner(), Failing(tmp_path))
    assert (result.ending, result.reason) == ("model_error", "cannot reach it: check --base-url")
    assert result.state.spent.possibly_paid == 1 and result.state.attempts == 4
    again = resume(result.folder, CountingRunner(), CountingModel(tmp_path))
    assert again.ending == "ended" and again.state.spent.possibly_paid == 1
    whole = start(refine(), tmp_path, CountingRunner(), CountingModel(tmp_path))
    assert decisions(again.folder) == decisions(whole.folder)


def test_a_script_that_runs_out_stops_the_run(tmp_path: Path) -> None:
    short = ScriptedModel(script(tmp_path, replies(2)))
    result = start(refine(), tmp_path, CountingRunner(), short)
    assert result.ending == "model_error" and "lengthen the script" in result.reason and result.state.attempts == 3


def test_an_interrupt_lets_the_attempt_finish(tmp_path: Path) -> None:
    told: list[str] = []
    interrupt = Interrupt(lambda: told.append("stopping"))

    def before(candidate: Candidate) -> None:
        if len(runner.judged) == 3:
            interrupt.request()

    runner = CountingRunner(before)
    result = start(search(), tmp_path, runner, interrupt=interrupt)
    assert (result.ending, result.state.attempts, result.resumable) == ("interrupted", 3, True)
    assert result.submission is not None and told == ["stopping"]
    assert decisions(resume(result.folder, CountingRunner()).folder)[:3] == decisions(result.folder)[:3]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_stop_a_run_the_second_at_once(tmp_path: Path, number: signal.Signals) -> None:
    def once(candidate: Candidate) -> None:
        if len(runner.judged) == 2:
            os.kill(os.getpid(), number)

    before = signal.getsignal(number)
    runner = CountingRunner(once)
    result = start(search(), tmp_path, runner)
    assert (result.ending, result.state.attempts) == ("interrupted", 2)

    def twice(candidate: Candidate) -> None:
        if len(runner.judged) == 2:
            os.kill(os.getpid(), number)
            os.kill(os.getpid(), number)

    runner = CountingRunner(twice)
    result = start(search(), tmp_path, runner)
    assert (result.ending, result.state.attempts, result.resumable) == ("interrupted", 1, True)
    assert signal.getsignal(number) is before


def test_events_tell_the_run_as_it_goes(tmp_path: Path) -> None:
    watching = Watching()
    result = start(refine(3), tmp_path, CountingRunner(), CountingModel(tmp_path), watching)
    assert watching.kinds()[:3] == ["Began", "Working", "AttemptDone"]
    counts = Counter(watching.kinds())
    assert (counts["Began"], counts["AttemptDone"], counts["Working"]) == (1, 3, 5)
    began, changes = watching.events[0], [event for event in watching.events if isinstance(event, BestChanged)]
    assert isinstance(began, Began) and began.limits.attempts == 3 and began.folder == result.folder
    assert changes and changes[-1].attempt is result.best and changes[0].previous is None
    done = [event for event in watching.events if isinstance(event, AttemptDone)]
    assert [event.state.attempts for event in done] == [1, 2, 3]
    assert [event.stage for event in watching.events if isinstance(event, Working)] == [
        "judging", "drafting", "judging", "drafting", "judging",
    ]  # fmt: skip


def test_a_target_is_not_reached_by_what_the_board_refuses(tmp_path: Path) -> None:
    refused = FakeRunner(lambda problem, candidate: passed(problem, 5.0, board_accepts=False), MACHINE)
    assert start(search(3, target_us=10.0), tmp_path, refused).state.attempts == 3
    taken = FakeRunner(lambda problem, candidate: passed(problem, 5.0), MACHINE)
    assert start(search(3, target_us=10.0), tmp_path, taken).reason == "target reached: 5 us estimated"


def test_an_unready_submission_says_what_it_lacks(tmp_path: Path) -> None:
    refused = FakeRunner(lambda problem, candidate: passed(problem, 5.0, board_accepts=False), MACHINE)
    result = start(search(2), tmp_path, refused)
    assert result.submission and not result.submission.ready
    assert result.submission.lacks == "the board's own check would refuse it"


def test_nothing_accepted_leaves_no_submission(tmp_path: Path) -> None:
    result = start(search(2), tmp_path, FakeRunner(lambda problem, candidate: wrong(problem), MACHINE))
    assert result.submission is None and not (result.folder / "submission.py").exists()


def test_bad_settings_are_told_before_anything_is_written(tmp_path: Path) -> None:
    for settings, says in (
        (search(problem="amd/fp8-nm"), "amd/fp8-mm"),
        (search(chip="MI3000X"), "did you mean MI300X"),
    ):
        with pytest.raises(ProblemError, match=says):
            start(settings, tmp_path / "runs", CountingRunner())
    assert not (tmp_path / "runs").exists()


def test_a_changed_problem_is_not_resumed(tmp_path: Path) -> None:
    left = start(search(), tmp_path, CountingRunner(), interrupt=after_attempts(1)).folder
    records = list(read(left))
    changed = records[0].model_copy(update={"problem_sha256": "0" * 64})
    other = cut(left, [changed, *records[1:]], tmp_path / "other")
    with pytest.raises(RunRefused, match="has changed since"):
        resume(other, CountingRunner())


@contextmanager
def files_limited_to(size_bytes: int) -> Iterator[None]:
    """The operating system refuses longer files meanwhile, as a full disk would."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.slow
def test_a_full_disk_stops_the_run_and_loses_nothing(tmp_path: Path) -> None:
    with files_limited_to(40_000):
        result = start(search(30), tmp_path, CountingRunner())
    assert result.ending == "record_error" and "journal" in result.reason
    kept = decisions(result.folder)
    assert 0 < len(kept) < 30 and result.submission is not None
    again = resume(result.folder, CountingRunner())
    assert decisions(again.folder)[: len(kept)] == kept and again.state.attempts == 30


def test_a_model_is_needed_where_the_strategy_asks_for_one(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="refine needs a model: name one with --model"):
        start(refine(), tmp_path / "runs", CountingRunner())
    assert not (tmp_path / "runs").exists()


def test_an_unwritable_runs_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file")
    with pytest.raises(RecordError, match="runs"):
        start(search(), tmp_path / "runs", CountingRunner())
