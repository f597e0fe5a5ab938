import statistics
from pathlib import Path

import pytest

from agent.drafting import tuned
from agent.knobs import KnobSpec, SeedKernel, load_seeds
from agent.move import Seed, Stop, Tune, record
from agent.search import Search
from agent.state import RunState
from agent.trials import EPOCH
from dataset.attempt import Attempt, Judged, Unusable
from sandbox.candidate import Candidate
from sandbox.verdict import Judgement, score_us
from tests.agent.places import ONE_SEED, PROBLEM, build_failed, law, passed
from tests.agent.test_state import attempt

LDS = 65536


def kernel(name: str, knobs: int, values: int, *constraints: str) -> SeedKernel:
    spec = KnobSpec(values=tuple(range(values)), default=0, why="")
    source = "".join(f"K{n} = 0  # knob\n" for n in range(knobs))
    return SeedKernel(name, source, {f"K{n}": spec for n in range(knobs)}, constraints)


def judged(seq: int, move: Seed | Tune, said: Judgement) -> Attempt:
    outcome = Judged(judgement=said, score_us=score_us(PROBLEM, said))
    return attempt(seq, said, move=record(move), outcome=outcome)


def walk(
    seeds: tuple[SeedKernel, ...], said: object, most: int = 10_000, seed: int = 1, fresh: bool = False
) -> tuple[list[Seed | Tune], str, RunState]:
    """Play `search`; with `fresh`, each decision by a new instance, as after a resume."""
    search, state, moves = Search(seeds, seed, LDS), RunState(), []
    while len(moves) < most:
        move = (Search(seeds, seed, LDS) if fresh else search).next_move(state)
        if isinstance(move, Stop):
            return moves, move.reason, state
        assert isinstance(move, Seed | Tune)
        moves.append(move)
        state = state.after(judged(len(moves), move, said(move)))
    return moves, "", state


def by_knobs(move: Seed | Tune) -> Judgement:
    distance = sum((int(value) - 2) ** 2 for value in move.knobs.values())
    return build_failed(PROBLEM) if distance == 5 else passed(PROBLEM, 10.0 + distance)


@pytest.mark.slow
def test_defaults_come_first_then_every_allowed_setting_once_then_it_stops() -> None:
    seeds = (kernel("a", 3, 4, "K0 + K1 <= 4"), kernel("b", 2, 3))
    moves, reason, _ = walk(seeds, by_knobs)
    assert moves[:2] == [Seed("a", {"K0": 0, "K1": 0, "K2": 0}), Seed("b", {"K0": 0, "K1": 0})]
    asked = [(move.seed_kernel, tuple(move.knobs.values())) for move in moves]
    allowed = {("a", (i, j, k)) for i in range(4) for j in range(4) for k in range(4) if i + j <= 4}
    assert len(asked) == len(set(asked))
    assert set(asked) == allowed | {("b", (i, j)) for i in range(3) for j in range(3)}
    assert reason == "space exhausted"


@pytest.mark.slow
def test_a_decision_depends_on_seed_and_history_alone() -> None:
    """Long enough to pass from one epoch of the trials into the next."""
    seeds, most = (kernel("a", 4, 5), kernel("b", 1, 2)), EPOCH + 14
    kept, _, state = walk(seeds, by_knobs, most)
    anew, _, _ = walk(seeds, by_knobs, most, fresh=True)
    assert state.trials["a"].epoch == 1
    assert kept == anew
    assert kept != walk(seeds, by_knobs, most, seed=2)[0]


def test_it_finds_better_settings_than_chance() -> None:
    seeds = load_seeds(ONE_SEED, "amd/fp8-mm")

    def said(move: Seed | Tune) -> Judgement:
        return law(PROBLEM, tuned(move, seeds[0], PROBLEM))

    _, _, state = walk(seeds, said, most=70)
    found = [trial.score_us for trial in (*state.trials[seeds[0].name].base, *state.trials[seeds[0].name].since)]
    late = [us for us in found[-30:] if us is not None]
    early = [us for us in found[:12] if us is not None]
    assert statistics.median(late) < statistics.median(early)


def test_all_failures_are_no_obstacle() -> None:
    moves, reason, state = walk((kernel("a", 2, 5),), lambda move: build_failed(PROBLEM))
    assert len(moves) == 25 and reason == "space exhausted" and state.best is None


def test_a_failed_setting_is_no_number() -> None:
    _, _, state = walk((kernel("a", 2, 4),), by_knobs, most=10)
    trials = (*state.trials["a"].base, *state.trials["a"].since)
    failed = [trial for trial in trials if sum((int(v) - 2) ** 2 for v in trial.knobs.values()) == 5]
    assert failed and all(trial.score_us is None for trial in failed)


def test_a_problem_without_seeds_stops_and_says_so() -> None:
    assert Search((), 1, LDS).next_move(RunState()) == Stop("this problem has no seed kernel to search from")


def test_a_kernel_without_knobs_is_judged_once() -> None:
    moves, reason, _ = walk((kernel("a", 0, 1),), by_knobs)
    assert moves == [Seed("a", {})] and reason == "space exhausted"


def test_a_setting_of_an_older_declaration_is_passed_over() -> None:
    seeds = (kernel("a", 2, 3),)
    old = Seed("a", {"K0": 99, "GONE": 1})
    state = RunState().after(judged(1, old, passed(PROBLEM, 5.0)))
    move = Search(seeds, 1, LDS).next_move(state)
    assert isinstance(move, Tune) and set(move.knobs) == {"K0", "K1"}


@pytest.mark.slow
def test_the_search_reaches_a_lone_setting_in_a_wide_space() -> None:
    """Constraints can leave next to nothing: the walk finds what the optimiser does not suggest."""
    lone = kernel("a", 5, 6, "K0 + K1 + K2 + K3 + K4 == 25 or K0 + K1 + K2 + K3 + K4 == 0")
    moves, reason, _ = walk((lone,), by_knobs)
    assert [sum(int(v) for v in move.knobs.values()) for move in moves] == [0, 25] and reason == "space exhausted"


@pytest.mark.parametrize("outcome", [Unusable(reason="same text as attempt 1")])
def test_a_setting_without_a_verdict_still_counts_as_tried(outcome: Unusable, tmp_path: Path) -> None:
    seeds = (kernel("a", 1, 2),)
    state = RunState().after(judged(1, Seed("a", {"K0": 0}), passed(PROBLEM, 5.0)))
    move = Search(seeds, 1, LDS).next_move(state)
    assert isinstance(move, Tune)
    state = state.after(attempt(2, None, move=record(move), outcome=outcome))
    assert Search(seeds, 1, LDS).next_move(state) == Stop("space exhausted")
    assert Candidate(source=seeds[0].source).sha256 not in state.sources
