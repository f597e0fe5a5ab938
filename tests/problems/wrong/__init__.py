"""Wrong answers that a kernel's author may well give: a right candidate with a passage or two changed.

``<problem>.toml`` beside this file holds them: under ``wrong``, what each does wrong = what stands in the place of
``passage``, or pairs (other passage, in its place). They change the problem's library call, or the text under ``right``
where the call has no such passages; that text must pass too. A passage stands exactly once. Torch alone, so that each
runs on any device and at any size.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from evals.players import REFERENCES

HERE = Path(__file__).parent
FEWEST = 10
LIBRARY_CALL, SPELT_OUT = "the library call", "spelt out"


@dataclass(frozen=True, slots=True)
class Sources:
    """The texts of one problem's candidates, by what they are."""

    right: dict[str, str]
    wrong: dict[str, str]


def named() -> tuple[str, ...]:
    """The problems that have wrong answers here, sorted."""
    return tuple(sorted(path.relative_to(HERE).with_suffix("").as_posix() for path in HERE.glob("*/*.toml")))


def sources(problem: str) -> Sources:
    """The right and the wrong candidates of `problem`; `ValueError` for a passage that does not stand exactly once."""
    table = tomllib.loads((HERE / f"{problem}.toml").read_text(encoding="utf-8"))
    call, right = REFERENCES / f"{problem}.py.txt", dict[str, str]()
    if call.is_file():
        right[LIBRARY_CALL] = call.read_text(encoding="utf-8")
    if "right" in table:
        right[SPELT_OUT] = table["right"]
    text = right[SPELT_OUT if SPELT_OUT in right else LIBRARY_CALL]
    wrong = dict[str, str]()
    for what, change in table["wrong"].items():
        pairs = [[table["passage"], change]] if isinstance(change, str) else change
        wrong[what] = _changed(text, pairs, f"{problem}, {what}")
    return Sources(right, wrong)


def _changed(text: str, pairs: list[list[str]], where: str) -> str:
    for passage, instead in pairs:
        if (found := text.count(passage)) != 1:
            raise ValueError(f"{where}: {passage!r} stands {found} times in the right text; once is needed")
        text = text.replace(passage, instead)
    return text
