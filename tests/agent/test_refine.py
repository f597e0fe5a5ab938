from agent.knobs import SeedKernel
from agent.move import Crossover, Draft, Move, Optimise, Port, Repair, Seed
from agent.refine import REPAIRS, STALE, Refine
from agent.state import RunState
from dataset.attempt import ModelCall, MoveRecord
from sandbox.verdict import Judgement
from tests.agent.places import PROBLEM, passed, wrong
from tests.agent.test_state import attempt

CALL = ModelCall(
    model="m",
    base_url="b",
    prompt_sha256="0" * 64,
    reply_sha256="1" * 64,
    input_tokens=1,
    output_tokens=1,
    latency_s=1.0,
)
KERNEL = SeedKernel("s", "", {}, ())


def after(*said: Judgement | None, seeded: bool = True) -> RunState:
    """A history: the seed's judgement first where there is one; None is a reply that held no candidate."""
    state = RunState()
    for seq, each in enumerate(said, 1):
        kind = "seed" if seeded and seq == 1 else "optimise"
        move = MoveRecord(kind=kind, seed_kernel="s" if kind == "seed" else None)
        state = state.after(attempt(seq, each, move=move, model_call=None if kind == "seed" else CALL))
    return state


def following(state: RunState, chip: str = "MI300X", seeds: tuple[SeedKernel, ...] = (KERNEL,)) -> Move:
    return Refine(seeds, PROBLEM, chip).next_move(state)


def us(time_us: float) -> Judgement:
    return passed(PROBLEM, time_us)


def test_seeds_come_first_and_without_any_a_draft() -> None:
    assert following(RunState()) == Seed("s", {})
    assert following(RunState(), seeds=()) == Draft()


def test_the_best_is_optimised() -> None:
    assert following(after(us(9), us(5), us(7))) == Optimise("r.2")


def test_a_failure_is_mended_a_few_times_then_left() -> None:
    failures = [wrong(PROBLEM)] * (REPAIRS + 2)
    for count in range(1, REPAIRS + 1):
        assert following(after(us(9), *failures[:count])) == Repair(f"r.{1 + count}")
    assert following(after(us(9), *failures[: REPAIRS + 1])) == Optimise("r.1")
    assert following(after(us(9), *failures[: REPAIRS + 2])) == Repair(f"r.{REPAIRS + 3}")
    assert following(after(*failures[: REPAIRS + 1])) == Draft()


def test_a_useless_reply_is_asked_for_again_from_the_best() -> None:
    assert following(after(us(9), None)) == Repair("r.2", base="r.1")
    assert following(after(None, seeded=False), seeds=()) == Repair("r.1", base=None)


def test_a_stale_run_joins_two_or_starts_afresh() -> None:
    slower = [us(9.0 + step) for step in range(STALE)]
    assert following(after(us(5), *slower[: STALE - 1])) == Crossover("r.1", "r.2")
    assert following(after(us(5), *slower)) == Optimise("r.1")
    useless = [wrong(PROBLEM)] * (REPAIRS + 1)
    alone = after(us(5), *useless, us(6))
    assert len(alone.elite) == 2 and alone.since_best == STALE - 1
    assert following(alone) == Crossover("r.1", f"r.{REPAIRS + 3}")


def test_a_seed_for_another_chip_is_ported_once() -> None:
    assert following(after(us(9)), chip="H200") == Port("r.1", "MI300X")
    assert following(after(us(9), us(11)), chip="H200") == Optimise("r.1")
    assert following(after(us(9)), chip="MI300X") == Optimise("r.1")
