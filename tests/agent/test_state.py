from agent.seen import Seen
from agent.state import RECENT, RunState
from agent.trials import BEST, EPOCH, Trial, Trials
from dataset.attempt import Attempt, Judged, ModelCall, MoveRecord, Unusable
from sandbox.verdict import Judgement, Measured, Passed, score_us
from tests.agent.places import PROBLEM, check, judgement, passed, wrong


def attempt(seq: int, said: Judgement | None, kind: str = "tune", **more: object) -> Attempt:
    outcome = Judged(judgement=said, score_us=score_us(PROBLEM, said)) if said else Unusable(reason="no code")
    return Attempt.model_validate(
        {
            "attempt_id": f"r.{seq}", "run_id": "r", "seq": seq, "problem": PROBLEM.name, "parents": (),
            "hypothesis": "",
            "move": MoveRecord(kind=kind, knobs={"A": seq}, seed_kernel="s" if kind in {"seed", "tune"} else None),
            "model_call": None, "candidate_sha256": f"{seq:064x}" if said else None, "language": "triton",
            "outcome": outcome, "licence": "Apache-2.0", "derived_from": (), "overhead_s": 0.0,
            "started": "2026-11-21T10:00:00.000+00:00", "ended": "2026-11-21T10:00:02.500+00:00",
        }
        | more
    )  # fmt: skip


def measured(us: float) -> Judgement:
    times = tuple(
        Measured(case=case, chip="MI300X", clock="event", samples_us=(us,), wall_us=(us,), warmup_calls=1)
        for case in PROBLEM.benchmarks
    )
    return judgement(PROBLEM, Passed(cases=(check(PROBLEM, True),), timings=times))


def folded(*attempts: Attempt) -> RunState:
    state = RunState()
    for each in attempts:
        state = state.after(each)
    return state


def test_the_best_is_the_lowest_score_and_failures_are_counted() -> None:
    state = folded(attempt(1, passed(PROBLEM, 9)), attempt(2, passed(PROBLEM, 5)), attempt(3, wrong(PROBLEM)))
    assert state.best and state.best.seq == 2
    assert (state.attempts, state.accepted, state.failures, state.since_best) == (3, 2, 1, 1)
    assert folded(attempt(1, wrong(PROBLEM))).best is None


def test_a_tie_keeps_the_older_one() -> None:
    state = folded(attempt(1, passed(PROBLEM, 5)), attempt(2, passed(PROBLEM, 5)))
    assert state.best and state.best.seq == 1 and state.since_best == 1


def test_an_estimate_never_beats_a_measurement() -> None:
    for order in ((measured(9), passed(PROBLEM, 1)), (passed(PROBLEM, 1), measured(9))):
        state = folded(*(attempt(seq, said) for seq, said in enumerate(order, 1)))
        assert state.best and state.best.outcome.judgement.time_kind == "measured"


def test_what_the_board_refuses_comes_last() -> None:
    refused = passed(PROBLEM, 1, board_accepts=False)
    state = folded(attempt(1, refused), attempt(2, passed(PROBLEM, 9)))
    assert state.best and state.best.seq == 2
    assert folded(attempt(1, refused)).best is not None


def test_an_untimed_pass_comes_after_a_timed_one() -> None:
    untimed = judgement(PROBLEM, Passed(cases=(check(PROBLEM, True),)))
    state = folded(attempt(1, untimed), attempt(2, passed(PROBLEM, 900)))
    assert state.best and state.best.seq == 2


def test_spending_adds_up() -> None:
    call = ModelCall(
        model="m", base_url="b", prompt_sha256="0" * 64, reply_sha256="1" * 64, input_tokens=10, output_tokens=5,
        cost_usd=0.25, latency_s=1.0,
    )  # fmt: skip
    free = call.model_copy(update={"cost_usd": None})
    state = folded(attempt(1, None, "draft", model_call=call), attempt(2, None, "draft", model_call=free))
    spent = state.spent
    assert (spent.model_calls, spent.tokens, spent.cost_usd, spent.unpriced_calls) == (2, 30, 0.25, 1)
    assert spent.busy_s == 5.0


def test_states_are_values_an_older_one_can_be_continued() -> None:
    early = folded(attempt(1, passed(PROBLEM, 9)))
    late = early.after(attempt(2, passed(PROBLEM, 8)))
    other = early.after(attempt(2, passed(PROBLEM, 3), candidate_sha256="f" * 64))
    assert early.attempts == 1 and f"{2:064x}" not in early.sources
    assert f"{2:064x}" in late.sources and "f" * 64 not in late.sources
    assert "f" * 64 in other.sources and f"{2:064x}" not in other.sources
    assert len(late.recent) == 2 and late.best != other.best


def test_nothing_grows_but_what_was_seen() -> None:
    state = folded(*(attempt(seq, passed(PROBLEM, 1000 - seq)) for seq in range(1, 301)))
    assert len(state.recent) == RECENT and len(state.elite) == 4
    trials = state.trials["s"]
    assert len(trials.base) + len(trials.since) < BEST + EPOCH
    assert state.settings.length == state.sources.length == 300
    assert state.settings.get(("s", (("A", 17),))) == 17


def test_seen_keeps_the_first_attempt_of_a_key() -> None:
    seen = Seen().adding("a", 1).adding("a", 2)
    assert seen.get("a") == 1 and seen.length == 1 and seen.get("b") is None


def test_trials_keep_the_best_of_what_is_past() -> None:
    trials = Trials()
    for seq in range(1, 10 * EPOCH + 1):
        trials = trials.adding(Trial(seq, {"A": seq}, None if seq % 3 == 0 else 1000.0 - seq, "measured"))
    assert trials.epoch == 10 and not trials.since and len(trials.base) == BEST
    scores = sorted(trial.score_us for trial in trials.base if trial.score_us is not None)
    assert scores[0] == 1000.0 - 10 * EPOCH
    assert len(scores) == BEST - BEST // 8
