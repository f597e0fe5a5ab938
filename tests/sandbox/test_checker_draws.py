"""What changes between two calls on a case: an element or two of one input, and all that follows from them."""

import pytest

from problems.load import ROOT
from problems.spec import Case
from sandbox.checker.draws import Draws
from sandbox.checker.layout import bits, same_bits
from sandbox.checker.places import at, named, put, tensors
from sandbox.checker.task import open_task

CASES = {
    "amd/mxfp4-mm": Case(params={"m": 3, "n": 16, "k": 64}),
    "amd/mixed-mla": Case(params={"batchsize": 1, "qseqlen": 1, "kvseqlen": 4}),
    "nvidia/nvfp4-gemm": Case(params={"m": 128, "n": 128, "k": 256, "l": 1}),
    "bioml/trimul": Case(
        params={
            "seqlen": 4,
            "bs": 1,
            "dim": 8,
            "hiddendim": 8,
            "nomask": True,
            "distribution": "normal",
        }
    ),
    "pmpp/histogram": Case(params={"size": 512, "contention": 10}),
}


@pytest.mark.parametrize("name", CASES)
def test_a_perturbed_input_is_one_that_could_have_been_drawn(name: str) -> None:
    task = open_task(name, ROOT, "cpu")
    ruled_out = (*task.problem.writable, *task.repeating)
    seen = set()
    for _ in range(12):
        draws = Draws(task, CASES[name])
        before, seed = draws.fresh()
        after, again = draws.perturbed()
        assert seed == again
        changed = [place for place, tensor in tensors(before) if not same_bits(tensor, at(after, place))]
        [own] = [place for place in changed if not named(place, ruled_out)]
        assert 1 <= int((bits(at(before, own)) != bits(at(after, own))).sum()) <= 2
        assert not any(named(place, task.problem.writable) for place in changed)
        assert all(same_bits(tensor, at(after, place)) for place, tensor in tensors(task.repeated(after)))
        seen.add(own)
    assert len(seen) > 1 or len(list(tensors(before))) - len(ruled_out) == 1


def test_a_place_in_a_tree() -> None:
    data = (1, [{"a.b": 2}, (3, 4)])
    assert put(data, ("1", "1", "0"), 5) == (1, [{"a.b": 2}, (5, 4)]) and at(data, ("1", "0", "a.b")) == 2
    assert named(("0", "3", "2"), ["0/*/2"]) and named(("4", "x"), [4]) and not named(("0",), ["0/1"])
