"""One prompt of each form, whole."""

from collections.abc import Callable
from pathlib import Path

from problems.chips import chip
from prompts import render
from prompts.view import Kernel, Note
from tests.prompts.samples import FAILED, PROBLEM, RIGHT, WRONG

HERE = Path(__file__).parent / "golden"
MI300X = chip("MI300X")
NOTES = (
    Note(1, "seed", "", "passed, 92.5 us estimated"),
    Note(2, "optimise", "split K fills the chip", "wrong answer: 3 of 4096 elements differ"),
)


def crossover() -> str:
    return render.optimise(PROBLEM, MI300X, RIGHT, NOTES, other=Kernel("# the other\n", RIGHT.judgement, 95.0))


GOLDENS: list[tuple[Path, Callable[[], str]]] = [
    (HERE / "draft.txt", lambda: render.draft(PROBLEM, MI300X)),
    (HERE / "retry.txt", lambda: render.draft(PROBLEM, chip("MI355X"), NOTES, "the reply holds no code block")),
    (HERE / "repair_wrong_answer.txt", lambda: render.repair(PROBLEM, MI300X, WRONG, NOTES)),
    (HERE / "repair_build_failed.txt", lambda: render.repair(PROBLEM, MI300X, FAILED, NOTES)),
    (HERE / "optimise.txt", lambda: render.optimise(PROBLEM, MI300X, RIGHT, NOTES)),
    (HERE / "port.txt", lambda: render.optimise(PROBLEM, chip("H200"), RIGHT, from_chip="MI300X")),
    (HERE / "crossover.txt", crossover),
]
