from __future__ import annotations

from pathlib import Path

from dataset.attempt import Attempt
from dataset.blobs import Blobs
from evals.lineage import MAX_NODES, draw, path_to
from tests.evals.recorded_run import RUN_ID, attempts


def test_children_stand_right_of_their_parents(tmp_path: Path) -> None:
    drawn = draw(attempts(Blobs(tmp_path)), f"{RUN_ID}.5")
    places = {node.attempt_id.rsplit(".", 1)[1]: (node.x, node.y) for node in drawn.nodes}
    assert len(set(places.values())) == len(places) == 6
    assert places["1"][0] < places["2"][0] < places["4"][0] < places["5"][0]
    assert [node.title for node in drawn.nodes if node.on_path] == [
        "attempt 1 seed: passed",
        "attempt 2 tune: passed",
        "attempt 4 optimise: wrong answer",
        "attempt 5 repair: passed",
    ]


def test_a_long_chain_is_cut_but_keeps_the_path_to_the_best(tmp_path: Path) -> None:
    first = attempts(Blobs(tmp_path))[0]
    chain = [_chained(first, seq) for seq in range(1, 3000)]
    drawn = draw(chain, "r.2")
    assert len(drawn.nodes) == MAX_NODES
    assert drawn.left_out == 2999 - MAX_NODES
    assert {node.attempt_id for node in drawn.nodes if node.on_path} == {"r.1", "r.2"}


def test_a_loop_in_the_record_ends(tmp_path: Path) -> None:
    one, two = (_chained(attempts(Blobs(tmp_path))[0], seq) for seq in (1, 2))
    looped = [one.model_copy(update={"parents": ("r.2",)}), two]
    assert path_to(looped, "r.2") == {"r.1", "r.2"}
    assert draw(looped, "r.2").left_out == 2


def _chained(attempt: Attempt, seq: int) -> Attempt:
    parents = (f"r.{seq - 1}",) if seq > 1 else ()
    return attempt.model_copy(update={"attempt_id": f"r.{seq}", "seq": seq, "parents": parents})
